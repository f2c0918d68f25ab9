/* Core consistency of a store: for the model that the tensor was made from, for others against a
 * core computed independently, the same bits for any number of threads, and the state after a
 * fault. */
#include "engine/solve/core_consistency.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "cp_fixture.h"
#include "engine/stream/tile_stream.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODES = 3, RANK = 3 };
static const uint64_t dims[MODES] = {14, 11, 9};

static void make_factors(struct slc_matrix *factors, uint32_t rank, uint64_t seed)
{
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&factors[n], SLC_F64, dims[n], rank, &err), &err);
        for (uint64_t i = 0; i < dims[n]; i++) {
            for (uint32_t r = 0; r < rank; r++) {
                slc_matrix_row_f64(&factors[n], i)[r] =
                    slc_random_f64(seed, n, i * rank + r) - 0.35;
            }
        }
    }
}

static void destroy_factors(struct slc_matrix *factors)
{
    for (unsigned n = 0; n < MODES; n++) {
        slc_matrix_destroy(&factors[n]);
    }
}

/* A dense tensor with the model's values for these weights; in tiles of 200. */
static void make_tensor(struct fixture_tensor *tensor,
                        const struct slc_matrix *factors,
                        const double *lambda,
                        double noise)
{
    fixture_random(tensor, MODES, dims, 40000, 5);
    CU_ASSERT_EQUAL_FATAL(tensor->nnz, dims[0] * dims[1] * dims[2]);
    for (unsigned k = 0; k < 3; k++) {
        tensor->tile_nnz[k] = 200;
    }
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        tensor->values[i] *= noise;
        for (uint32_t r = 0; r < factors[0].cols; r++) {
            double product = lambda[r];
            for (unsigned n = 0; n < MODES; n++) {
                product *= slc_matrix_row_f64(&factors[n], tensor->coords[n][i])[r];
            }
            tensor->values[i] += product;
        }
    }
}

/* Writes the tensor to a store in the test's folder. */
static void
open_store(const struct fixture_tensor *tensor, const char *name, struct slc_store *store)
{
    struct slc_error err = SLC_ERROR_INIT;
    char path[512];

    fixture_store(tensor, slc_test_folder(), name, SLC_CODEC_PACKED, 4096, path);
    SLC_ASSERT_OK(slc_store_open(slc_files_system(), path, store, &err), &err);
}

static enum slc_status consistency(const struct slc_store *store,
                                   unsigned workers,
                                   uint32_t rank,
                                   struct slc_matrix *factors,
                                   const double *lambda,
                                   struct slc_core_report *report,
                                   struct slc_error *err)
{
    struct slc_tile_stream tiles = {.io = SLC_IO_PREAD};
    const struct slc_core_options options = {
        .stream = &tiles,
        .workers = workers,
        .stream_bytes = slc_tile_stream_memory_bytes(&tiles, store->reader, workers, false)};

    return slc_core_consistency(store, &options, rank, factors, lambda, report, err);
}

static void of_the_tensors_own_model_is_100(void)
{
    static const double lambda[RANK] = {30.0, 2.0, 0.5};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix factors[MODES];
    struct slc_core_report report;
    struct fixture_tensor tensor;
    struct slc_store store;

    make_factors(factors, RANK, 1);
    make_tensor(&tensor, factors, lambda, 0.0);
    open_store(&tensor, "own", &store);
    SLC_ASSERT_OK(consistency(&store, 2, RANK, factors, lambda, &report, &err), &err);
    CU_ASSERT_DOUBLE_EQUAL(report.percent, 100.0, 1e-9);
    CU_ASSERT(report.largest_off < 1e-10);
    for (unsigned n = 0; n < MODES; n++) {
        CU_ASSERT_EQUAL(report.independent[n], RANK);
    }
    slc_store_close(&store);
    destroy_factors(factors);
    fixture_destroy(&tensor);
}

/* The least-squares core by conjugate gradients on ||X - G x_1 A1 .. ||, without
 * pseudo-inverses. */
struct normal {
    const struct fixture_tensor *tensor;
    const struct slc_matrix *factors;
};

static double basis(const struct normal *normal, uint64_t i, unsigned k)
{
    double product = 1.0;

    for (unsigned n = MODES; n-- > 0; k /= RANK) {
        product *= slc_matrix_row_f64(&normal->factors[n], normal->tensor->coords[n][i])[k % RANK];
    }
    return product;
}

enum { CORE = RANK * RANK * RANK };

/* out = B^T (B g), or B^T x if g is NULL. */
static void apply(const struct normal *normal, const double *g, double *out)
{
    memset(out, 0, CORE * sizeof *out);
    for (uint64_t i = 0; i < normal->tensor->nnz; i++) {
        double value = g == NULL ? normal->tensor->values[i] : 0.0;

        for (unsigned k = 0; g != NULL && k < CORE; k++) {
            value += basis(normal, i, k) * g[k];
        }
        for (unsigned k = 0; k < CORE; k++) {
            out[k] += basis(normal, i, k) * value;
        }
    }
}

static double dot(const double *a, const double *b)
{
    double sum = 0.0;

    for (unsigned k = 0; k < CORE; k++) {
        sum += a[k] * b[k];
    }
    return sum;
}

static double percent_by_least_squares(const struct fixture_tensor *tensor,
                                       const struct slc_matrix *factors)
{
    const struct normal normal = {tensor, factors};
    double g[CORE] = {0}, residual[CORE], direction[CORE], image[CORE], sum = 0.0;

    apply(&normal, NULL, residual);
    memcpy(direction, residual, sizeof direction);
    for (unsigned step = 0; step < 400 && dot(residual, residual) > 1e-24; step++) {
        const double before = dot(residual, residual);
        double length, next;

        apply(&normal, direction, image);
        length = before / dot(direction, image);
        for (unsigned k = 0; k < CORE; k++) {
            g[k] += length * direction[k];
            residual[k] -= length * image[k];
        }
        next = dot(residual, residual) / before;
        for (unsigned k = 0; k < CORE; k++) {
            direction[k] = residual[k] + next * direction[k];
        }
    }
    for (unsigned k = 0; k < CORE; k++) {
        const double off = g[k] - (k % (RANK * RANK + RANK + 1) == 0 ? 1.0 : 0.0);
        sum += off * off;
    }
    return 100.0 * (1.0 - sum / RANK);
}

static void of_another_model_is_that_of_the_best_core(void)
{
    static const double ones[RANK] = {1.0, 1.0, 1.0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix truth[MODES], factors[MODES];
    struct slc_core_report report, again;
    struct fixture_tensor tensor;
    struct slc_store store;
    double expected;

    make_factors(truth, 2, 1);
    make_factors(factors, RANK, 9);
    make_tensor(&tensor, truth, ones, 0.2);
    open_store(&tensor, "other", &store);
    expected = percent_by_least_squares(&tensor, factors);
    CU_ASSERT(expected < 95.0);
    SLC_ASSERT_OK(consistency(&store, 1, RANK, factors, ones, &report, &err), &err);
    CU_ASSERT_DOUBLE_EQUAL(report.percent, expected, 1e-6 * fabs(expected));
    CU_ASSERT(report.largest_off > 0.01);
    destroy_factors(factors);
    make_factors(factors, RANK, 9);
    SLC_ASSERT_OK(consistency(&store, 3, RANK, factors, ones, &again, &err), &err);
    CU_ASSERT_EQUAL(memcmp(&report, &again, sizeof report), 0);
    slc_store_close(&store);
    destroy_factors(truth);
    destroy_factors(factors);
    fixture_destroy(&tensor);
}

/* Weights are spread evenly over the modes, and scales of columns have no effect. */
static void weights_are_shared_by_the_modes(void)
{
    static const double ones[RANK] = {1.0, 1.0, 1.0}, lambda[RANK] = {8.0, 8.0, 8.0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix factors[MODES], halves[MODES];
    struct slc_core_report report, scaled;
    struct fixture_tensor tensor;
    struct slc_store store;

    make_factors(factors, RANK, 9);
    make_factors(halves, RANK, 9);
    make_tensor(&tensor, factors, ones, 1.0);
    for (unsigned n = 0; n < MODES; n++) {
        for (uint64_t i = 0; i < dims[n]; i++) {
            for (uint32_t r = 0; r < RANK; r++) {
                slc_matrix_row_f64(&halves[n], i)[r] /= 2.0;
            }
        }
    }
    open_store(&tensor, "weights", &store);
    SLC_ASSERT_OK(consistency(&store, 1, RANK, factors, ones, &report, &err), &err);
    SLC_ASSERT_OK(consistency(&store, 1, RANK, halves, lambda, &scaled, &err), &err);
    CU_ASSERT_DOUBLE_EQUAL(scaled.percent, report.percent, 1e-9 * fabs(report.percent));
    slc_store_close(&store);
    destroy_factors(factors);
    destroy_factors(halves);
    fixture_destroy(&tensor);
}

/* A column that is twice another, and a component of weight 0, are reported. */
static void dependent_columns_are_reported(void)
{
    static const double lambda[RANK] = {1.0, 1.0, 0.0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix factors[MODES];
    struct slc_core_report report;
    struct fixture_tensor tensor;
    struct slc_store store;

    make_factors(factors, RANK, 1);
    make_tensor(&tensor, factors, lambda, 0.0);
    for (uint64_t i = 0; i < dims[0]; i++) {
        slc_matrix_row_f64(&factors[0], i)[2] = 2.0 * slc_matrix_row_f64(&factors[0], i)[1];
    }
    open_store(&tensor, "dependent", &store);
    SLC_ASSERT_OK(consistency(&store, 2, RANK, factors, lambda, &report, &err), &err);
    CU_ASSERT_EQUAL(report.independent[0], 2);
    CU_ASSERT_EQUAL(report.independent[1], RANK);
    CU_ASSERT(report.percent < 70.0);
    slc_store_close(&store);
    destroy_factors(factors);
    fixture_destroy(&tensor);
}

static void refuses_and_fails_cleanly(void)
{
    static const double ones[RANK] = {1.0, 1.0, 1.0};
    struct slc_matrix factors[MODES];
    struct slc_core_report report;
    struct fixture_tensor tensor;
    struct slc_store store;
    enum slc_status status = SLC_ERR_MEMORY;
    uint64_t k = 1;

    make_factors(factors, RANK, 1);
    make_tensor(&tensor, factors, ones, 0.0);
    open_store(&tensor, "faults", &store);
    CU_ASSERT_EQUAL(slc_core_consistency_bytes(slc_reader_info(store.reader), 1U << 31, 1),
                    UINT64_MAX);
    for (; status == SLC_ERR_MEMORY; k++) {
        struct slc_error fault = SLC_ERROR_INIT;

        destroy_factors(factors);
        make_factors(factors, RANK, 1);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = consistency(&store, 1, RANK, factors, ones, &report, &fault);
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(fault.status, status);
    }
    CU_ASSERT_EQUAL(status, SLC_OK);
    CU_ASSERT(k > 5);
    CU_ASSERT_DOUBLE_EQUAL(report.percent, 100.0, 1e-9);
    slc_store_close(&store);
    destroy_factors(factors);
    fixture_destroy(&tensor);
}

static const struct slc_test tests[] = {
    {"of the tensor's own model is 100", of_the_tensors_own_model_is_100},
    {"of another model is that of the best core", of_another_model_is_that_of_the_best_core},
    {"weights are shared by the modes", weights_are_shared_by_the_modes},
    {"dependent columns are reported", dependent_columns_are_reported},
    {"refuses and fails cleanly", refuses_and_fails_cleanly},
};

SLC_SUITE(core_consistency)
{
    return slc_test_main("engine/core_consistency", tests, SLC_COUNT(tests), argc, argv);
}
