/* The FPGA designs against the reference kernels, and against plain loops bit for bit. */
#include "base/error/fault.h"
#include "cpu/reference/reference.h"
#include "fpga_fixture.h"
#include "slc_test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Computes the sums of a design by the reference kernel, and their scale. TTM is the MTTKRP of a
 * matrix whose rows are the fibers. The caller must free both. */
static void compute_reference(const struct fpga_problem *problem,
                              enum slc_fpga_design design,
                              double **sums,
                              double **scale)
{
    const struct slc_fpga_tensor *tensor = &problem->tensor;
    const bool two_stages = design == SLC_FPGA_MTTKRP;
    const uint64_t rows = two_stages ? tensor->slices : tensor->fibers;
    const uint32_t cols = problem->matrix.cols;
    uint64_t *coords = calloc(3 * (size_t)tensor->nnz + 1, sizeof *coords);
    double *values = calloc(tensor->nnz + 1, sizeof *values);
    struct slc_coo_view view = {.order = two_stages ? 3 : 2, .nnz = tensor->nnz, .values = values};
    const struct slc_matrix *factors[3] = {NULL, &problem->matrix, &problem->fiber_matrix};

    for (unsigned m = 0; m < 3; m++) {
        view.coords[m] = coords + m * (size_t)tensor->nnz;
    }
    for (uint32_t f = 0; f < tensor->fibers; f++) {
        for (uint32_t e = tensor->fiber_ptr[f]; e < tensor->fiber_ptr[f + 1]; e++) {
            coords[e] = two_stages ? problem->slice[f] : f;
            coords[tensor->nnz + e] = tensor->index[e];
            coords[2 * (size_t)tensor->nnz + e] = tensor->fiber_index[f];
            values[e] = tensor->value[e];
        }
    }
    *sums = calloc(rows * cols + 1, sizeof **sums);
    *scale = calloc(rows * cols + 1, sizeof **scale);
    slc_reference_mttkrp(&view, factors, 0, rows, cols, *sums);
    slc_reference_mttkrp_magnitude(&view, factors, 0, rows, cols, *scale);
    free(coords);
    free(values);
}

/* Checks an output: equal to the reference within `error`, relative to the sums of magnitudes. */
static void check_output(const struct fpga_problem *problem,
                         enum slc_fpga_design design,
                         const struct slc_matrix *output,
                         double error)
{
    double *sums, *scale;
    uint64_t wrong = 0;

    compute_reference(problem, design, &sums, &scale);
    for (uint64_t i = 0; i < output->rows * output->cols; i++) {
        const double got = slc_matrix_get(output, i / output->cols, (uint32_t)(i % output->cols));

        wrong += !(fabs(got - sums[i]) <= error * scale[i]);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    free(sums);
    free(scale);
}

static void check_designs(bool integers, double error)
{
    static const uint32_t cols[] = {1, 7, 16, 33, 64};

    for (unsigned i = 0; i < SLC_COUNT(cols); i++) {
        for (unsigned shape = 0; shape < FPGA_SHAPES; shape++) {
            struct fpga_problem problem;

            fpga_create(&problem, shape, slc_test_seed() + i, 1500, 70, cols[i], integers);
            for (unsigned design = 0; design < SLC_FPGA_DESIGNS; design++) {
                const struct slc_fpga_parameters parameters = fpga_parameters(cols[i]);
                struct slc_matrix output;

                (void)fpga_run(&problem, design, &parameters, &output);
                check_output(&problem, design, &output, error);
                slc_matrix_destroy(&output);
            }
            fpga_destroy(&problem);
        }
    }
}

static void test_integers(void)
{
    check_designs(true, 0.0);
}

/* A sum of n products in f32 has a relative error of at most about n + 1 roundings; two stages have
 * the sum of both. */
static void test_real_numbers(void)
{
    check_designs(false, 1500 * (double)FLT_EPSILON);
}

/* Listings 2 and 4 of the paper for one sum, in f32. */
static float sum_in_order(const struct fpga_problem *problem,
                          enum slc_fpga_design design,
                          uint32_t row,
                          uint32_t col)
{
    const struct slc_fpga_tensor *tensor = &problem->tensor;
    const bool two_stages = design == SLC_FPGA_MTTKRP;
    const uint32_t end = two_stages ? tensor->slice_ptr[row + 1] : row + 1;
    float of_fiber = 0.0F, of_slice = 0.0F;

    for (uint32_t f = two_stages ? tensor->slice_ptr[row] : row; f < end; f++) {
        of_fiber = 0.0F;
        for (uint32_t e = tensor->fiber_ptr[f]; e < tensor->fiber_ptr[f + 1]; e++) {
            of_fiber +=
                tensor->value[e] * slc_matrix_row_f32(&problem->matrix, tensor->index[e])[col];
        }
        of_slice +=
            of_fiber * slc_matrix_row_f32(&problem->fiber_matrix, tensor->fiber_index[f])[col];
    }
    return two_stages ? of_slice : of_fiber;
}

/* The bits are equal to the bits of the plain loops for all parameters. */
static void test_bits(void)
{
    static const struct slc_fpga_parameters forms[] = {
        {24, 24, 32, 1, 1, 1}, {24, 24, 32, 90, 3, 1}, {24, 5, 32, 30, 4, 7},
        {24, 1, 4, 10, 2, 9},  {24, 8, 1, 50, 1, 2},   {24, 24, 7, 600, 40, 50},
    };
    struct fpga_problem problem;

    fpga_create(&problem, FPGA_MIXED, slc_test_seed(), 900, 30, 24, false);
    for (unsigned design = 0; design < SLC_FPGA_DESIGNS; design++) {
        for (unsigned i = 0; i < SLC_COUNT(forms); i++) {
            struct slc_matrix output;
            uint64_t wrong = 0;

            (void)fpga_run(&problem, design, &forms[i], &output);
            for (uint32_t row = 0; row < output.rows; row++) {
                for (uint32_t col = 0; col < 24; col++) {
                    const float want = sum_in_order(&problem, design, row, col);

                    wrong +=
                        memcmp(&want, slc_matrix_row_f32(&output, row) + col, sizeof want) != 0;
                }
            }
            CU_ASSERT_EQUAL(wrong, 0);
            slc_matrix_destroy(&output);
        }
    }
    fpga_destroy(&problem);
}

/* Tensors without nonzeros, fibers or slices. */
static void test_nothing(void)
{
    static const uint32_t zeros[4] = {0, 0, 0, 0};
    const struct slc_fpga_parameters parameters = fpga_parameters(3);
    struct slc_error err = SLC_ERROR_INIT;

    for (uint32_t count = 0; count < 4; count++) {
        struct fpga_problem problem = {
            .tensor = {count, count, 0, zeros, zeros, zeros, zeros, NULL}};

        problem.tensor.slices = count > 0;
        problem.slice_ptr = (uint32_t[]){0, count};
        problem.tensor.slice_ptr = problem.slice_ptr;
        SLC_ASSERT_OK(slc_matrix_create(&problem.matrix, SLC_F32, 1, 3, &err), &err);
        SLC_ASSERT_OK(slc_matrix_create(&problem.fiber_matrix, SLC_F32, 1, 3, &err), &err);
        for (unsigned design = 0; design < SLC_FPGA_DESIGNS; design++) {
            struct slc_matrix output;
            const struct slc_fpga_count done = fpga_run(&problem, design, &parameters, &output);

            CU_ASSERT(count == 0 || done.beats > 0);
            for (uint64_t row = 0; row < output.rows; row++) {
                CU_ASSERT_EQUAL(slc_matrix_get(&output, row, 2), 0.0);
            }
            slc_matrix_destroy(&output);
        }
        slc_matrix_destroy(&problem.matrix);
        slc_matrix_destroy(&problem.fiber_matrix);
    }
}

static void test_refused(void)
{
    static const struct {
        struct slc_fpga_parameters parameters;
        const char *part;
    } bad[] = {{{5, 0, 32, 1, 1, 1}, "1 to 5 MAC lanes"},
               {{5, 6, 32, 1, 1, 1}, "1 to 5 MAC lanes"},
               {{5, 5, 0, 1, 1, 1}, "beats of 1 to 512 words"},
               {{5, 5, 513, 1, 1, 1}, "beats of 1 to 512 words"},
               {{5, 5, 32, 0, 1, 1}, "latencies of 1"},
               {{5, 5, 32, 1, 0, 1}, "latencies of 1"},
               {{5, 5, 32, 1, 1, 0}, "latencies of 1"},
               {{6, 5, 32, 1, 1, 1}, "x 6 numbers"}};
    struct fpga_problem problem;
    struct slc_matrix output;
    struct slc_fpga_count count;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_fpga_parameters good = fpga_parameters(5);

    fpga_create(&problem, FPGA_MIXED, 1, 50, 9, 5, true);
    (void)fpga_run(&problem, SLC_FPGA_TTM, &good, &output);
    for (unsigned i = 0; i < SLC_COUNT(bad); i++) {
        err = (struct slc_error)SLC_ERROR_INIT;
        SLC_ASSERT_FAILS(slc_fpga_run(SLC_FPGA_TTM, &bad[i].parameters, &problem.tensor,
                                      &problem.matrix, NULL, &output, &count, &err),
                         SLC_ERR_USAGE, &err, bad[i].part);
    }
    problem.index[3] = 9;
    err = (struct slc_error)SLC_ERROR_INIT;
    SLC_ASSERT_FAILS(slc_fpga_run(SLC_FPGA_TTM, &good, &problem.tensor, &problem.matrix, NULL,
                                  &output, &count, &err),
                     SLC_ERR_USAGE, &err, "at least 10 x 5 numbers");
    problem.index[3] = 0;
    problem.fiber_ptr[1] = 51;
    err = (struct slc_error)SLC_ERROR_INIT;
    SLC_ASSERT_FAILS(slc_fpga_run(SLC_FPGA_TTM, &good, &problem.tensor, &problem.matrix, NULL,
                                  &output, &count, &err),
                     SLC_ERR_USAGE, &err, "fiber pointers must begin at 0");
    slc_matrix_destroy(&output);
    fpga_destroy(&problem);
}

/* The k-th allocation fails, for every k. */
static void test_no_memory(void)
{
    const struct slc_fpga_parameters parameters = fpga_parameters(5);
    struct fpga_problem problem;
    struct slc_matrix output;
    bool done = false;

    fpga_create(&problem, FPGA_MIXED, 1, 50, 9, 5, true);
    (void)fpga_run(&problem, SLC_FPGA_MTTKRP, &parameters, &output);
    for (uint64_t k = 1; !done && k < 100; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_fpga_count count;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        const enum slc_status status =
            slc_fpga_run(SLC_FPGA_MTTKRP, &parameters, &problem.tensor, &problem.matrix,
                         &problem.fiber_matrix, &output, &count, &err);
        done = slc_fault_seen(SLC_FAULT_ALLOCATION) < k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, done ? SLC_OK : SLC_ERR_MEMORY);
    }
    CU_ASSERT(done);
    slc_matrix_destroy(&output);
    fpga_destroy(&problem);
}

SLC_SUITE(design)
{
    static const struct slc_test tests[] = {
        {"integers: equal to the reference", test_integers},
        {"real numbers: equal to rounding", test_real_numbers},
        {"same bits as plain loops for all parameters", test_bits},
        {"tensors without nonzeros", test_nothing},
        {"invalid arguments", test_refused},
        {"failing allocations", test_no_memory},
    };

    return slc_test_main("fpga: design", tests, SLC_COUNT(tests), argc, argv);
}
