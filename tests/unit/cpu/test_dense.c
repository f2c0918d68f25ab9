/* Dense algebra against plain loops, and its guarantees: the same bits for any number of workers,
 * and SLC_ERR_MEMORY as the only error of failing allocations. test_dense_solve.c tests the update
 * of a factor. */
#include "base/error/fault.h"
#include "base/memory/limits.h"
#include "base/random.h"
#include "cpu/reference/reference.h"
#include "dense_fixture.h"
#include "naive_products.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Threads of this process, from the kernel; 0 if unknown. */
static unsigned threads_here(void)
{
    DIR *folder = opendir("/proc/self/task");
    unsigned count = 0;

    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

/* ThreadSanitizer has its own thread, and so may an emulator of other processors. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
enum { THREADS_ALONE = 1 };
#else
enum { THREADS_ALONE = 2 };
#endif

/* The first test, because the threads of BLAS still exist; creating scratch restarts none. */
static void test_alone(void)
{
    const struct timespec moment = {0, 1000000};
    struct slc_dense *dense;

    slc_dense_end_blas_threads();
    slc_dense_end_blas_threads();
    /* The kernel may list an ended thread for a moment. */
    for (int i = 0; i < 10000 && threads_here() > THREADS_ALONE; i++) {
        (void)nanosleep(&moment, NULL);
    }
    dense = dense_for(2, 4, 100);
    CU_ASSERT(threads_here() <= THREADS_ALONE);
    slc_dense_destroy(dense);
}

static void test_gram(void)
{
    static const uint64_t rows[] = {0, 1, 5, 511, 512, 513, 2500};
    static const uint32_t ranks[] = {1, 3, 16, 33, 128, 130, 300};

    for (size_t i = 0; i < SLC_COUNT(rows); i++) {
        /* Omit the largest products under ThreadSanitizer: the reference takes most of the time. */
        for (size_t j = 0; j < (slc_test_threads_only() ? 5 : SLC_COUNT(ranks)); j++) {
            if (slc_test_quick() && ranks[j] > 100 && (i + j) % 3 != 0) {
                continue;
            }
            const enum slc_value_type type = (i + j) % 2 == 0 ? SLC_F64 : SLC_F32;
            const uint64_t square = (uint64_t)ranks[j] * ranks[j];
            struct slc_dense *dense = dense_for(2, ranks[j], rows[i]);
            double *got = must(malloc(square * sizeof *got));
            double *want = must(malloc(square * sizeof *want));
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_matrix a;

            if (rows[i] > 1000 && ranks[j] == 300) {
                random_matrix(&a, type, 600, ranks[j]);
            } else {
                random_matrix(&a, type, rows[i], ranks[j]);
            }
            SLC_ASSERT_OK(slc_dense_gram(dense, &a, got, &err), &err);
            slc_reference_gram(&a, want);
            CU_ASSERT(relative_error(got, want, square) <= 1e-12);
            for (uint32_t r = 0; r < ranks[j]; r++) {
                for (uint32_t c = 0; c < r; c++) {
                    CU_ASSERT_EQUAL(got[r * ranks[j] + c], got[c * ranks[j] + r]);
                }
            }
            slc_matrix_destroy(&a);
            free(got);
            free(want);
            slc_dense_destroy(dense);
        }
    }
}

static void check_columns(enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    struct slc_dense *dense = dense_for(2, cols, rows);
    double *weights = must(malloc(cols * sizeof *weights));
    double *norms = must(malloc(cols * sizeof *norms));
    double *signs = must(malloc(cols * sizeof *signs));
    double *opposites = must(malloc(cols * sizeof *opposites));
    uint32_t *order = must(malloc(cols * sizeof *order));
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a, c;

    random_matrix(&a, type, rows, cols);
    random_matrix(&c, type, rows, cols);
    for (uint32_t r = 0; r < cols; r++) {
        weights[r] = 1.0 + r;
        order[r] = (r + 1) % cols;
    }
    SLC_ASSERT_OK(slc_dense_scale(dense, &a, weights, &err), &err);
    SLC_ASSERT_OK(slc_dense_permute(dense, &a, order, &err), &err);
    SLC_ASSERT_OK(slc_dense_column_norms(dense, &a, norms, signs, opposites, &err), &err);
    for (uint32_t r = 0; r < cols; r++) {
        double sum = 0.0, largest = 0.0, opposite = 0.0;

        for (uint64_t i = 0; i < rows; i++) {
            const double value = slc_matrix_get(&a, i, r);

            CU_ASSERT_DOUBLE_EQUAL(value, slc_matrix_get(&c, i, order[r]) * weights[order[r]],
                                   tolerance(type) * cols);
            sum += value * value;
            largest = fabs(value) > fabs(largest) ? value : largest;
        }
        CU_ASSERT_DOUBLE_EQUAL(norms[r], sqrt(sum), 1e-12 * sqrt(sum));
        CU_ASSERT_EQUAL(signs[r], largest < 0.0 ? -1.0 : 1.0);
        for (uint64_t i = 0; i < rows; i++) {
            opposite = fmax(opposite, -signs[r] * slc_matrix_get(&a, i, r));
        }
        CU_ASSERT_EQUAL(opposites[r], rows > 0 ? opposite / fabs(largest) : 0.0);
    }
    slc_matrix_destroy(&a);
    slc_matrix_destroy(&c);
    free(weights);
    free(norms);
    free(signs);
    free(opposites);
    free(order);
    slc_dense_destroy(dense);
}

static void test_columns(void)
{
    check_columns(SLC_F64, 2300, 7);
    check_columns(SLC_F32, 1025, 20);
    check_columns(SLC_F64, 70, 150);
    check_columns(SLC_F64, 0, 4);
    check_columns(SLC_F32, 1, 1);
}

static void test_sign_of_ties(void)
{
    struct slc_dense *dense = dense_for(2, 2, 3000);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a;
    double norms[2], signs[2], opposites[2];

    SLC_ASSERT_OK(slc_matrix_create(&a, SLC_F64, 3000, 2, &err), &err);
    slc_matrix_set(&a, 10, 0, -4.0); /* the first of equal magnitudes determines the sign */
    slc_matrix_set(&a, 2900, 0, 4.0);
    SLC_ASSERT_OK(slc_dense_column_norms(dense, &a, norms, signs, opposites, &err), &err);
    CU_ASSERT_EQUAL(opposites[0], 1.0);
    CU_ASSERT_EQUAL(opposites[1], 0.0);
    CU_ASSERT_EQUAL(signs[0], -1.0);
    CU_ASSERT_EQUAL(signs[1], 1.0);
    CU_ASSERT_EQUAL(norms[1], 0.0);
    slc_matrix_destroy(&a);
    slc_dense_destroy(dense);
}

/* Squares that underflow or overflow do not affect the norms. */
static void test_extreme_norms(void)
{
    static const double scales[] = {1e-320, 1e-300, 1e-170, 1e-140, 1.0, 1e140, 1e170, 1e300};
    struct slc_dense *dense = dense_for(2, SLC_COUNT(scales), 3000);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix a;
    double norms[SLC_COUNT(scales)], signs[SLC_COUNT(scales)], opposites[SLC_COUNT(scales)];

    SLC_ASSERT_OK(slc_matrix_create(&a, SLC_F64, 3000, SLC_COUNT(scales), &err), &err);
    for (uint32_t r = 0; r < SLC_COUNT(scales); r++) {
        slc_matrix_set(&a, 7, r, 3.0 * scales[r]);
        slc_matrix_set(&a, 2900, r, -4.0 * scales[r]);
    }
    SLC_ASSERT_OK(slc_dense_column_norms(dense, &a, norms, signs, opposites, &err), &err);
    for (uint32_t r = 0; r < SLC_COUNT(scales); r++) {
        /* 1e-320 is denormal and has only three digits. */
        CU_ASSERT_DOUBLE_EQUAL(norms[r] / scales[r], 5.0, r == 0 ? 1e-2 : 1e-14);
        CU_ASSERT_EQUAL(signs[r], -1.0);
        CU_ASSERT_DOUBLE_EQUAL(opposites[r], 0.75, r == 0 ? 1e-3 : 1e-14);
    }
    slc_matrix_destroy(&a);
    slc_dense_destroy(dense);
}

static void test_fill(void)
{
    for (int type = SLC_F32; type <= SLC_F64; type++) {
        struct slc_dense *dense = dense_for(2, 5, 3000);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_matrix a;
        uint64_t wrong = 0;

        SLC_ASSERT_OK(slc_matrix_create(&a, (enum slc_value_type)type, 3000, 5, &err), &err);
        SLC_ASSERT_OK(slc_dense_fill_uniform(dense, &a, 42, 7, &err), &err);
        for (uint64_t i = 0; i < 3000; i++) {
            for (uint32_t r = 0; r < 5; r++) {
                const double want = slc_random_f64(42, 7, i * 5 + r);
                wrong += slc_matrix_get(&a, i, r) != (type == SLC_F32 ? (double)(float)want : want);
            }
            for (uint32_t r = 5; r < a.pitch; r++) {
                struct slc_matrix wide = a;
                wide.cols = a.pitch;
                wrong += slc_matrix_get(&wide, i, r) != 0.0;
            }
        }
        CU_ASSERT_EQUAL(wrong, 0);
        slc_matrix_destroy(&a);
        slc_dense_destroy(dense);
    }
}

static void test_same_bits(void)
{
    static const uint32_t ranks[] = {5, 16, 140};
    static const unsigned worker_counts[] = {1, 2, 3, 8};

    for (size_t c = 0; c < SLC_COUNT(ranks) * 2; c++) {
        const uint32_t rank = ranks[c / 2];
        const size_t square = (size_t)rank * rank;
        double *gram = must(malloc(2 * square * sizeof *gram));
        double *norms = must(malloc(4 * rank * sizeof *norms));
        struct slc_matrix m;

        random_matrix(&m, c % 2 == 0 ? SLC_F64 : SLC_F32, 9000, rank);
        for (size_t w = 0; w < SLC_COUNT(worker_counts); w++) {
            struct slc_dense *dense = dense_for(worker_counts[w], rank, m.rows);
            const size_t which = w > 0;
            struct slc_error err = SLC_ERROR_INIT;

            SLC_ASSERT_OK(slc_dense_gram(dense, &m, gram + which * square, &err), &err);
            SLC_ASSERT_OK(slc_dense_column_norms(dense, &m, norms + which * rank, norms + 2 * rank,
                                                 norms + 3 * rank, &err),
                          &err);
            CU_ASSERT(w == 0 || memcmp(gram, gram + square, square * sizeof *gram) == 0);
            CU_ASSERT(w == 0 || memcmp(norms, norms + rank, rank * sizeof *norms) == 0);
            slc_dense_destroy(dense);
        }
        slc_matrix_destroy(&m);
        free(gram);
        free(norms);
    }
}

static void test_faults(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_dense *dense = NULL;

    for (uint64_t k = 1; k <= 2; k++) {
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        slc_error_clear(&err);
        CU_ASSERT_EQUAL(slc_dense_create(2, 4, 100, &dense, &err), SLC_ERR_MEMORY);
        CU_ASSERT_PTR_NULL(dense);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
}

static void test_refusals(void)
{
    struct slc_dense *dense = dense_for(2, 4, 100);
    struct slc_dense *none = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix tall, wide;
    double gram[25];

    random_matrix(&tall, SLC_F64, 101, 4);
    random_matrix(&wide, SLC_F64, 100, 5);
    SLC_ASSERT_FAILS(slc_dense_gram(dense, &tall, gram, &err), SLC_ERR_USAGE, &err, "101");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_dense_gram(dense, &wide, gram, &err), SLC_ERR_USAGE, &err, "5");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_dense_create(0, 4, 4, &none, &err), SLC_ERR_USAGE, &err, "threads");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_dense_create(1, SLC_MAX_RANK + 1, 4, &none, &err), SLC_ERR_USAGE, &err,
                     "rank");
    CU_ASSERT(slc_dense_memory_bytes(2, 16, 1000) >= 2048);
    CU_ASSERT(slc_dense_memory_bytes(2, 16, UINT64_C(1) << 60) <= UINT64_C(4) << 20);
    CU_ASSERT_EQUAL(slc_dense_memory_bytes(2, 0, 1000), UINT64_MAX);
    slc_matrix_destroy(&tall);
    slc_matrix_destroy(&wide);
    slc_dense_destroy(dense);
}

static const struct slc_test tests[] = {
    {"BLAS on the calling thread alone", test_alone},
    {"Gram matrices", test_gram},
    {"scaling, order, column norms", test_columns},
    {"sign of the first of equal magnitudes", test_sign_of_ties},
    {"norms of very small and very large columns", test_extreme_norms},
    {"uniform filling", test_fill},
    {"same bits for any number of workers", test_same_bits},
    {"every allocation may fail", test_faults},
    {"mismatched requests are rejected", test_refusals},
};

SLC_SUITE(dense)
{
    return slc_test_main("dense", tests, SLC_COUNT(tests), argc, argv);
}
