/* The baselines of tools/bench/rivals/cpu/xplat.h, and the slices and fibers that they read
 * (csf.h), against the oracle. */
#include "base/error/fault.h"
#include "base/thread/team.h"
#include "coo_fixture.h"
#include "naive_products.h"
#include "slc_test.h"
#include "tools/bench/rivals/cpu/xplat.h"

#include <stdlib.h>
#include <string.h>

/* One column, rows of less than a vector, a vector, and of several vectors with a remainder; more
 * columns than a kernel keeps in registers. */
static const uint32_t ranks[] = {1, 7, 16, 33, 130};
static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

static double tolerance_of(bool integers, enum slc_value_type type)
{
    return integers ? 0 : type == SLC_F32 ? 1e-5 : 1e-13;
}

/* ---- MTTKRP */

/* A problem, its list in the order of tiles, and its slices. */
struct sliced {
    struct problem problem;
    struct slc_coo coo;
    struct slc_csf csf;
};

static struct slc_csf_list list_of(const struct slc_coo *coo)
{
    return (struct slc_csf_list){.order = coo->shape.order,
                                 .dims = coo->shape.dims,
                                 .nnz = coo->shape.nnz,
                                 .coords = coo->coords.data,
                                 .type = coo->type,
                                 .values = coo->values.data};
}

static void sliced_create(struct sliced *sliced,
                          unsigned order,
                          const uint64_t *dims,
                          uint64_t nnz,
                          unsigned mode,
                          uint32_t rank,
                          enum slc_value_type type,
                          bool integers)
{
    struct slc_error err = SLC_ERROR_INIT;

    memset(sliced, 0, sizeof *sliced);
    problem_create_runs(&sliced->problem, order, dims, nnz, mode, rank, type, integers,
                        (struct runs){(mode + 1) % order, 3});
    SLC_ASSERT_OK(coo_load(&sliced->coo, &sliced->problem.tensor, type, &err), &err);
    const struct slc_csf_list list = list_of(&sliced->coo);
    SLC_ASSERT_OK(slc_csf_create_slices(&sliced->csf, &list, mode, &err), &err);
}

static void sliced_destroy(struct sliced *sliced)
{
    slc_csf_destroy(&sliced->csf);
    slc_coo_destroy(&sliced->coo);
    problem_destroy(&sliced->problem);
}

/* Both kernels overwrite the output, whatever was in it, and nothing else. */
static void check_mttkrp(struct sliced *sliced, unsigned workers, double tolerance)
{
    struct problem *problem = &sliced->problem;
    struct slc_matrix *output = &problem->out.output;
    struct slc_mttkrp_job job;

    problem_job(problem, workers, &job);
    for (enum slc_xplat_kernel k = SLC_XPLAT_MTTKRP_ELEMENT; k < SLC_XPLAT_KERNELS; k++) {
        struct slc_error err = SLC_ERROR_INIT;

        memset(output->buffer.data, 0x5a, output->rows * slc_matrix_row_bytes(output));
        SLC_ASSERT_OK(slc_xplat_mttkrp(&sliced->csf, k, &job, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(problem, tolerance), 0);
        CU_ASSERT(canaries_live(&problem->out));
    }
}

static void check_shape(unsigned order,
                        const uint64_t *dims,
                        uint64_t nnz,
                        unsigned mode,
                        uint32_t rank,
                        enum slc_value_type type,
                        unsigned workers)
{
    for (unsigned integers = 0; integers < 2; integers++) {
        struct sliced sliced;

        sliced_create(&sliced, order, dims, nnz, mode, rank, type, integers != 0);
        check_mttkrp(&sliced, workers, tolerance_of(integers != 0, type));
        sliced_destroy(&sliced);
    }
}

/* Orders 3 to 5 and the largest, every mode, rank and type; modes of size 1, and empty slices. */
static void test_mttkrp(void)
{
    static const uint64_t dims[] = {40, 7, 300, 1, 5};
    const uint64_t nnz = slc_test_quick() ? 200 : 800;
    uint64_t most[SLC_MAX_ORDER];
    unsigned turn = 0;

    for (unsigned order = 3; order <= SLC_COUNT(dims); order++) {
        for (unsigned mode = 0; mode < order; mode++) {
            for (size_t r = 0; r < SLC_COUNT(ranks); r++, turn++) {
                if (!slc_test_quick() || turn % 5 == 0) {
                    check_shape(order, dims, nnz, mode, ranks[r], SLC_F64, 1 + turn % 3);
                    check_shape(order, dims, nnz, mode, ranks[r], SLC_F32, 1 + turn % 3);
                }
            }
        }
    }
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        most[m] = m + 2;
    }
    check_shape(SLC_MAX_ORDER, most, 300, 5, 9, SLC_F64, 2);
    /* Mode sizes beyond a digit of the sort; one slice; one nonzero; none. */
    check_shape(3, (const uint64_t[]){70000, 3, 66000}, 500, 1, 4, SLC_F64, 2);
    check_shape(3, (const uint64_t[]){1, 30, 20}, 500, 0, 33, SLC_F64, 3);
    check_shape(3, (const uint64_t[]){5, 30, 20}, 1, 0, 7, SLC_F64, 2);
    check_shape(3, (const uint64_t[]){5, 30, 20}, 0, 2, 7, SLC_F64, 2);
}

/* Slices and fibers are whole and ascend, as in the paper. */
static void test_slices(void)
{
    static const uint64_t dims[] = {9, 6, 8, 7};

    for (unsigned mode = 0; mode < 4; mode++) {
        struct sliced sliced;
        struct slc_coo_view view;
        uint64_t order[900], fiber[900];

        sliced_create(&sliced, 4, dims, 900, mode, 1, SLC_F64, true);
        const struct slc_csf *csf = &sliced.csf;
        fake_tensor_view(&sliced.problem.tensor, &view);
        CU_ASSERT_EQUAL(csf->fiber_mode, mode == 3 ? 2 : 3);
        CU_ASSERT_EQUAL(csf->slices, dims[mode]);
        CU_ASSERT_EQUAL(csf->fibers, slc_reference_fibers(&view, csf->fiber_mode, order, fiber));
        CU_ASSERT_EQUAL(csf->slice_begin[csf->slices], csf->fibers);
        CU_ASSERT_EQUAL(csf->fiber_begin[csf->fibers], 900);
        for (uint64_t s = 0; s < csf->slices; s++) {
            CU_ASSERT(csf->slice_begin[s] <= csf->slice_begin[s + 1]);
            for (uint32_t f = csf->slice_begin[s]; f < csf->slice_begin[s + 1]; f++) {
                uint64_t key = 0, before = 0;

                CU_ASSERT(csf->fiber_begin[f] < csf->fiber_begin[f + 1]);
                for (unsigned m = 0; m < 4 && f > csf->slice_begin[s]; m++) {
                    if (csf->fiber_index[m] != NULL) {
                        key = key * dims[m] + csf->fiber_index[m][f];
                        before = before * dims[m] + csf->fiber_index[m][f - 1];
                    }
                }
                CU_ASSERT(f == csf->slice_begin[s] || before < key);
                for (uint32_t e = csf->fiber_begin[f] + 1; e < csf->fiber_begin[f + 1]; e++) {
                    CU_ASSERT(csf->index[e - 1] <= csf->index[e]);
                }
            }
        }
        sliced_destroy(&sliced);
    }
}

/* ---- TTM */

/* A tensor sorted by the fibers of a mode, and the oracle's rows. */
struct fibered {
    struct fake_tensor tensor;
    uint32_t *coords;
    void *values;
    struct slc_csf csf;
    struct slc_matrix matrix, rows;
    double *want;
};

static void *must(void *memory)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
    return memory;
}

static void sort_fibers(struct fibered *of, const uint64_t *order, enum slc_value_type type)
{
    const struct fake_tensor *tensor = &of->tensor;

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        for (unsigned m = 0; m < tensor->order; m++) {
            of->coords[i * tensor->order + m] = (uint32_t)tensor->coords[m][order[i]];
        }
        if (type == SLC_F32) {
            ((float *)of->values)[i] = (float)tensor->values[order[i]];
        } else {
            ((double *)of->values)[i] = tensor->values[order[i]];
        }
    }
}

static void fibered_create(struct fibered *of,
                           unsigned order,
                           const uint64_t *dims,
                           uint64_t nnz,
                           unsigned mode,
                           uint32_t cols,
                           enum slc_value_type type)
{
    uint64_t *places = must(calloc(2 * nnz + 1, sizeof *places));
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo_view view;

    memset(of, 0, sizeof *of);
    fake_tensor_random(&of->tensor, order, dims, nnz, true, cols);
    fake_tensor_view(&of->tensor, &view);
    of->coords = must(calloc(nnz * order + 1, sizeof *of->coords));
    of->values = must(calloc(nnz + 1, sizeof(double)));
    const uint64_t fibers = slc_reference_fibers(&view, mode, places, places + nnz);
    sort_fibers(of, places, type);
    const struct slc_csf_list list = {order, of->tensor.dims, nnz, of->coords, type, of->values};
    SLC_ASSERT_OK(slc_csf_create_fibers(&of->csf, &list, mode, &err), &err);
    CU_ASSERT_EQUAL(of->csf.fibers, fibers);
    SLC_ASSERT_OK(slc_matrix_create(&of->matrix, type, dims[mode], cols, &err), &err);
    for (uint64_t i = 0; i < dims[mode]; i++) {
        for (uint32_t r = 0; r < cols; r++) {
            slc_matrix_set(&of->matrix, i, r, (double)((i * 7 + r * 3) % 5) - 2);
        }
    }
    SLC_ASSERT_OK(slc_matrix_create(&of->rows, type, fibers, cols, &err), &err);
    of->want = must(calloc(fibers * cols + 1, sizeof *of->want));
    slc_reference_ttm(&view, mode, &of->matrix, places, places + nnz, of->want);
    free(places);
}

static void fibered_destroy(struct fibered *of)
{
    fake_tensor_free(&of->tensor);
    free(of->coords);
    free(of->values);
    free(of->want);
    slc_csf_destroy(&of->csf);
    slc_matrix_destroy(&of->matrix);
    slc_matrix_destroy(&of->rows);
}

/* Both kernels return the oracle's rows; values are integers, so sums are exact. */
static void check_ttm(unsigned order,
                      const uint64_t *dims,
                      uint64_t nnz,
                      unsigned mode,
                      uint32_t cols,
                      enum slc_value_type type,
                      unsigned workers)
{
    struct fibered of;

    fibered_create(&of, order, dims, nnz, mode, cols, type);
    for (enum slc_xplat_kernel k = SLC_XPLAT_TTM_ELEMENT; k <= SLC_XPLAT_TTM_FIBER; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        uint64_t wrong = 0;

        memset(of.rows.buffer.data, 0x5a, of.rows.buffer.bytes);
        SLC_ASSERT_OK(slc_xplat_ttm(&of.csf, k, &of.matrix, &of.rows, workers, &err), &err);
        for (uint64_t f = 0; f < of.csf.fibers; f++) {
            for (uint32_t r = 0; r < cols; r++) {
                wrong += slc_matrix_get(&of.rows, f, r) != of.want[f * cols + r];
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
    }
    fibered_destroy(&of);
}

/* Every order up to 5, mode, rank and type. */
static void test_ttm(void)
{
    static const uint64_t dims[] = {11, 1, 30, 4, 6};
    const uint64_t nnz = slc_test_quick() ? 200 : 800;
    unsigned turn = 0;

    for (unsigned order = 1; order <= SLC_COUNT(dims); order++) {
        for (unsigned mode = 0; mode < order; mode++) {
            for (size_t r = 0; r < SLC_COUNT(ranks); r++, turn++) {
                if (!slc_test_quick() || turn % 5 == 0) {
                    check_ttm(order, dims, nnz, mode, ranks[r], SLC_F64, 1 + turn % 3);
                    check_ttm(order, dims, nnz, mode, ranks[r], SLC_F32, 1 + turn % 3);
                }
            }
        }
    }
    check_ttm(3, dims, 0, 2, 16, SLC_F64, 2);
    check_ttm(3, dims, 1, 2, 16, SLC_F64, 2);
}

/* ---- both */

static void test_instruction_sets(void)
{
    static const uint64_t dims[] = {30, 20, 25, 6};
    unsigned here = 0;

    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (!slc_cpu_force_instruction_set(sets[s])) {
            continue;
        }
        here++;
        /* Every width of a row up to more than the registers hold. */
        for (uint32_t rank = 1; rank <= 80; rank += slc_test_quick() ? 13 : rank < 8 ? 1 : 18) {
            check_shape(4, dims, 150, rank % 4, rank, SLC_F64, 2);
            check_shape(4, dims, 150, rank % 4, rank, SLC_F32, 2);
            check_ttm(3, dims, 150, rank % 3, rank, SLC_F64, 2);
            check_ttm(3, dims, 150, rank % 3, rank, SLC_F32, 2);
        }
    }
    (void)slc_cpu_force_instruction_set(NULL);
    CU_ASSERT(here > 0);
}

/* Lists, matrices and kernels that do not match. */
static void test_refused(void)
{
    static const uint64_t dims[] = {9, 6, 8}, large[] = {9, 6, (UINT64_C(1) << 32) + 1};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_csf none = {.order = 0};
    struct slc_mttkrp_job job;
    struct sliced sliced;
    struct fibered of;

    sliced_create(&sliced, 3, dims, 100, 1, 8, SLC_F64, true);
    fibered_create(&of, 3, dims, 100, 1, 8, SLC_F64);
    struct slc_csf_list list = list_of(&sliced.coo);
    SLC_ASSERT_FAILS(slc_csf_create_slices(&none, &list, 3, &err), SLC_ERR_USAGE, &err,
                     "a tensor of 4 modes or more");
    slc_error_clear(&err);
    list.dims = large;
    SLC_ASSERT_FAILS(slc_csf_create_slices(&none, &list, 2, &err), SLC_ERR_UNSUPPORTED, &err,
                     "mode size 2^32");
    slc_error_clear(&err);
    list.dims = dims;
    list.nnz = UINT32_MAX;
    SLC_ASSERT_FAILS(slc_csf_create_fibers(&none, &list, 0, &err), SLC_ERR_UNSUPPORTED, &err,
                     "4294967295 nonzeros");
    slc_error_clear(&err);
    list.order = 2;
    list.nnz = 0;
    SLC_ASSERT_FAILS(slc_csf_create_slices(&none, &list, 0, &err), SLC_ERR_USAGE, &err,
                     "3 modes or more, not 2");
    slc_error_clear(&err);
    problem_job(&sliced.problem, 2, &job);
    SLC_ASSERT_FAILS(slc_xplat_mttkrp(&sliced.csf, SLC_XPLAT_TTM_FIBER, &job, &err), SLC_ERR_USAGE,
                     &err, "do not match the MTTKRP");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_xplat_mttkrp(&of.csf, SLC_XPLAT_MTTKRP_ROW, &job, &err), SLC_ERR_USAGE,
                     &err, "do not match the MTTKRP");
    slc_error_clear(&err);
    sliced.problem.factors[2].rows--;
    SLC_ASSERT_FAILS(slc_xplat_mttkrp(&sliced.csf, SLC_XPLAT_MTTKRP_ROW, &job, &err), SLC_ERR_USAGE,
                     &err, "do not match the MTTKRP");
    slc_error_clear(&err);
    sliced.problem.factors[2].rows++;
    of.rows.rows--;
    SLC_ASSERT_FAILS(slc_xplat_ttm(&of.csf, SLC_XPLAT_TTM_FIBER, &of.matrix, &of.rows, 2, &err),
                     SLC_ERR_USAGE, &err, "do not match the matrices of the TTM");
    slc_error_clear(&err);
    of.rows.rows++;
    SLC_ASSERT_FAILS(slc_xplat_ttm(&of.csf, SLC_XPLAT_MTTKRP_ROW, &of.matrix, &of.rows, 2, &err),
                     SLC_ERR_USAGE, &err, "do not match the matrices of the TTM");
    slc_error_clear(&err);
    fibered_destroy(&of);
    sliced_destroy(&sliced);
}

/* The k-th allocation, or thread, fails, for every k. */
static void test_faults(void)
{
    static const uint64_t dims[] = {9, 6, 8};
    static const struct {
        enum slc_fault_kind kind;
        enum slc_status refused;
    } kinds[] = {{SLC_FAULT_ALLOCATION, SLC_ERR_MEMORY}, {SLC_FAULT_THREAD, SLC_ERR_SYSTEM}};
    struct slc_mttkrp_job job;
    struct sliced sliced;

    sliced_create(&sliced, 3, dims, 200, 0, 16, SLC_F64, true);
    problem_job(&sliced.problem, 2, &job);
    for (size_t f = 0; f < SLC_COUNT(kinds); f++) {
        bool done = false;

        for (uint64_t k = 1; !done && k < 50; k++) {
            const struct slc_csf_list list = list_of(&sliced.coo);
            struct slc_csf csf = {.order = 0};

            slc_fault_arm(kinds[f].kind, k);
            enum slc_status status = slc_csf_create_slices(&csf, &list, 0, NULL);
            SLC_THEN(status, slc_xplat_mttkrp(&csf, SLC_XPLAT_MTTKRP_ELEMENT, &job, NULL));
            done = slc_fault_seen(kinds[f].kind) < k;
            slc_fault_arm(kinds[f].kind, 0);
            CU_ASSERT_EQUAL(status, done ? SLC_OK : kinds[f].refused);
            CU_ASSERT(!done || (k > 1 && count_wrong(&sliced.problem, 0) == 0));
            slc_csf_destroy(&csf);
        }
        CU_ASSERT(done);
    }
    sliced_destroy(&sliced);
}

static void test_names(void)
{
    CU_ASSERT_STRING_EQUAL(slc_xplat_kernel_name(SLC_XPLAT_TTM_ELEMENT), "xplat-element");
    CU_ASSERT_STRING_EQUAL(slc_xplat_kernel_name(SLC_XPLAT_TTM_FIBER), "xplat-fiber");
    CU_ASSERT_STRING_EQUAL(slc_xplat_kernel_name(SLC_XPLAT_MTTKRP_ELEMENT), "xplat-element");
    CU_ASSERT_STRING_EQUAL(slc_xplat_kernel_name(SLC_XPLAT_MTTKRP_ROW), "xplat-row");
    CU_ASSERT_STRING_EQUAL(slc_xplat_kernel_name(SLC_XPLAT_KERNELS), "?");
}

SLC_SUITE(xplat)
{
    static const struct slc_test tests[] = {
        {"MTTKRP agrees in every order, mode, rank and type", test_mttkrp},
        {"slices and fibers are whole and ascend", test_slices},
        {"TTM agrees in every order, mode, rank and type", test_ttm},
        {"every instruction set and width of rows", test_instruction_sets},
        {"lists and matrices that do not match", test_refused},
        {"every allocation and thread refused", test_faults},
        {"names", test_names},
    };

    return slc_test_main("rivals xplat", tests, SLC_COUNT(tests), argc, argv);
}
