/* A mode of a tensor in memory, multiplied by several vectors.
 *
 * Identities: with integers every sum equals a naive sum over the nonzeros of the fiber, for narrow
 * and wide keys, whole and relabelled stores, and any number of threads. Every fiber with a nonzero
 * occurs once. Errors name the cause, and failing memory leaves nothing allocated. */
#include "base/error/fault.h"
#include "base/random.h"
#include "builder_fixture.h"
#include "engine/product/fiber_operator.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct operator_case {
    unsigned order;
    uint64_t dims[4];
    uint64_t count;
    bool relabel;
};

static const struct operator_case cases[] = {
    {3, {30, 200, 16}, 3000, false},
    {3, {300, 200, 60}, 150000, false}, /* several tiles */
    {3, {3000, 200, 40}, 60000, true},
    {2, {50, 300000}, 2000, false},
    {4, {1 << 20, 1 << 20, 1 << 20, 1 << 19}, 500, false}, /* keys of more than 64 bits */
    {1, {5000}, 700, false},
    {3, {30, 20, 10}, 0, false},
};

/* A store with small integers and its input. */
struct stored {
    struct input input;
    struct slc_store store;
};

static void create(struct stored *stored, const struct operator_case *c)
{
    struct build build = {.workers = 2, .memory = 200 << 20, .cut = 1000};
    struct slc_builder_report report;
    struct slc_error err = SLC_ERROR_INIT;

    build.relabel = c->relabel ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
    input_create(&stored->input, c->order, c->dims, c->count, 0, UNIFORM, slc_test_seed());
    for (uint64_t i = 0; i < c->count; i++) {
        stored->input.values[i] = (double)(1 + i % 9);
        for (unsigned n = 0; n < c->order && c->relabel; n++) {
            /* Few indices are frequent, and they are not the smallest. */
            const double uniform = slc_random_f64(slc_test_seed(), 90 + n, i);
            const uint64_t rank = (uint64_t)(pow(uniform, 6) * (double)c->dims[n]);

            stored->input.coords[n][i] = rank * 7919 % c->dims[n];
        }
    }
    SLC_ASSERT_OK(run_build(&stored->input, &build, store_in_folder("op"), true, &report, &err),
                  &err);
    SLC_ASSERT_OK(slc_store_open(NULL, store_in_folder("op"), &stored->store, &err), &err);
    CU_ASSERT(!c->relabel || stored->store.manifest.permutation_count > 0);
}

static void destroy(struct stored *stored)
{
    slc_store_close(&stored->store);
    remove_store(store_in_folder("op"));
    input_destroy(&stored->input);
}

static struct slc_fiber_operator_options options_of(const struct stored *stored, unsigned mode)
{
    return (struct slc_fiber_operator_options){
        .store = &stored->store, .mode = mode, .threads = 2, .memory_bytes = UINT64_C(1) << 30};
}

/* The number of a cell of the other modes, in lexicographic order. */
static uint64_t cell_of(const struct stored *stored, unsigned mode, const uint64_t *coords)
{
    uint64_t cell = 0;

    for (unsigned n = 0; n < stored->input.order; n++) {
        cell = n != mode ? cell * stored->input.dims[n] + coords[n] : cell;
    }
    return cell;
}

struct cell_sum {
    uint64_t cell;
    double sum;
};

static int by_cell(const void *a, const void *b)
{
    const struct cell_sum *x = a, *y = b;

    return x->cell < y->cell ? -1 : x->cell > y->cell;
}

/* Returns the sums of all cells with nonzeros, ascending, and sets *count. Cells whose numbers wrap
 * around stay distinct for these cases, because the tests draw few coordinates. */
static struct cell_sum *
naive_sums(const struct stored *stored, unsigned mode, const double *vector, uint64_t *count)
{
    const struct input *input = &stored->input;
    struct cell_sum *sums = malloc((input->count + 1) * sizeof *sums);
    uint64_t at = 0;

    for (uint64_t i = 0; i < input->count; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        for (unsigned n = 0; n < input->order; n++) {
            coords[n] = input->coords[n][i];
        }
        sums[i] = (struct cell_sum){cell_of(stored, mode, coords),
                                    input->values[i] * vector[coords[mode]]};
    }
    qsort(sums, input->count, sizeof *sums, by_cell);
    for (uint64_t i = 0; i < input->count; i++) {
        if (i > 0 && sums[i].cell == sums[at - 1].cell) {
            sums[at - 1].sum += sums[i].sum;
        } else {
            sums[at++] = sums[i];
        }
    }
    *count = at;
    return sums;
}

static void check_product(const struct stored *stored,
                          struct slc_fiber_operator *made,
                          unsigned workers,
                          unsigned phase)
{
    const unsigned mode = made->mode;
    const uint64_t fibers = made->sptv.fibers, length = stored->input.dims[mode];
    double *vector = malloc(length * sizeof *vector);
    double *sums = malloc((fibers + 1) * sizeof *sums);
    struct cell_sum *found = malloc((fibers + 1) * sizeof *found);
    uint64_t *indices[SLC_MAX_ORDER] = {NULL};
    struct slc_error err = SLC_ERROR_INIT;
    bool is_finite = false;
    uint64_t count;

    for (uint64_t i = 0; i < length; i++) {
        vector[i] = (double)((i + phase) % 5) - 2;
    }
    SLC_ASSERT_OK(slc_sptv_multiply(&made->sptv, vector, sums, workers, &is_finite, &err), &err);
    CU_ASSERT(is_finite);
    for (unsigned n = 0; n < stored->input.order; n++) {
        indices[n] = malloc((fibers + 1) * sizeof *indices[n]);
        if (n != mode) {
            slc_fiber_operator_indices(made, n, indices[n]);
        }
    }
    for (uint64_t f = 0; f < fibers; f++) {
        uint64_t coords[SLC_MAX_ORDER];

        for (unsigned n = 0; n < stored->input.order; n++) {
            coords[n] = n != mode ? indices[n][f] : 0;
            CU_ASSERT(n == mode || coords[n] < stored->input.dims[n]);
        }
        found[f] = (struct cell_sum){cell_of(stored, mode, coords), sums[f]};
    }
    qsort(found, fibers, sizeof *found, by_cell);
    struct cell_sum *want = naive_sums(stored, mode, vector, &count);
    CU_ASSERT_EQUAL_FATAL(fibers, count);
    for (uint64_t f = 0; f < fibers; f++) {
        CU_ASSERT(found[f].cell == want[f].cell && found[f].sum == want[f].sum);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        free(indices[n]);
    }
    free(want);
    free(found);
    free(sums);
    free(vector);
}

static void test_against_naive(void)
{
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct stored stored;

        create(&stored, &cases[i]);
        for (unsigned mode = 0; mode < cases[i].order; mode++) {
            struct slc_fiber_operator_options options = options_of(&stored, mode);
            struct slc_fiber_operator made;
            struct slc_error err = SLC_ERROR_INIT;

            options.threads = 1 + mode;
            SLC_ASSERT_OK(slc_fiber_operator_create(&made, &options, &err), &err);
            CU_ASSERT_EQUAL(made.sptv.nnz, stored.store.manifest.nnz);
            CU_ASSERT(slc_fiber_operator_bytes(&made) >= made.sptv.nnz * 6);
            check_product(&stored, &made, 1, 0);
            check_product(&stored, &made, 3, 1);
            slc_fiber_operator_destroy(&made);
        }
        destroy(&stored);
    }
}

static void test_refused(void)
{
    static const struct operator_case large = {2, {UINT64_C(1) << 32, 20}, 500, false};
    const volatile int stopped = 1;
    const struct slc_stop stop = {.flag = &stopped};
    struct slc_fiber_operator made;
    struct slc_error err = SLC_ERROR_INIT;
    struct stored stored;

    create(&stored, &large);
    struct slc_fiber_operator_options options = options_of(&stored, 2);
    SLC_ASSERT_FAILS(slc_fiber_operator_create(&made, &options, &err), SLC_ERR_USAGE, &err,
                     "mode 2 does not exist; the tensor has modes 0 to 1");
    options.mode = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_fiber_operator_create(&made, &options, &err), SLC_ERR_UNSUPPORTED, &err,
                     "4294967296 indices");
    options.mode = 1;
    options.memory_bytes = 1 << 20;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_fiber_operator_create(&made, &options, &err), SLC_ERR_BUDGET, &err,
                     "nonzeros of the tensor in memory");
    options = options_of(&stored, 1);
    options.stop = &stop;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_fiber_operator_create(&made, &options, &err), SLC_ERR_INTERRUPTED, &err,
                     "");
    CU_ASSERT_PTR_NULL(made.memory.data);
    destroy(&stored);
}

static void test_failing_memory(void)
{
    struct stored stored;

    create(&stored, &cases[2]);
    for (uint64_t k = 1;; k++) {
        const struct slc_fiber_operator_options options = options_of(&stored, 1);
        struct slc_fiber_operator made;
        struct slc_error err = SLC_ERROR_INIT;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        const enum slc_status status = slc_fiber_operator_create(&made, &options, &err);
        const bool over = slc_fault_seen(SLC_FAULT_ALLOCATION) < k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        if (over) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT(k > 10);
            slc_fiber_operator_destroy(&made);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_PTR_NULL(made.memory.data);
    }
    destroy(&stored);
}

static const struct slc_test tests[] = {
    {"products against a naive sum", test_against_naive},
    {"refusals", test_refused},
    {"failing memory", test_failing_memory},
};

SLC_SUITE(fiber_operator)
{
    return slc_test_main("fiber operator", tests, SLC_COUNT(tests), argc, argv);
}
