/* Dense algebra on the emulated device against that of the CPU: residuals of solutions for any
 * condition of V, the sums computed along the way, Gram matrices, scaling. Memory around the
 * written rows is unchanged, scratch has exactly the stated size, and another order of threads
 * yields the same bits. */
#include "dense_problem.h"
#include "naive_products.h"

#include <cfloat>
#include <cmath>

/* M with its columns in the order of the output of an MTTKRP, if the rank permits that order. */
struct output_of_mttkrp {
    struct slc_matrix reordered;
    uint32_t split;

    explicit output_of_mttkrp(const problem &given)
        : split(given.rank % 4 == 0   ? 4
                : given.rank % 2 == 0 ? 2
                                      : 0)
    {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(slc_matrix_create(&reordered, SLC_F64, given.m.rows, given.rank, &err), &err);
        for (uint64_t i = 0; i < given.m.rows; i++) {
            for (uint32_t c = 0; c < given.rank; c++) {
                slc_matrix_row_f64(&reordered, i)[slc_gpu_place_of_column(given.rank, split, c)] =
                    slc_matrix_get(&given.m, i, c);
            }
        }
    }
    ~output_of_mttkrp()
    {
        slc_matrix_destroy(&reordered);
    }
    output_of_mttkrp(const output_of_mttkrp &) = delete;
};

/* Computes the update and the Gram matrix of the updated factor on an emulated device, whose order
 * of execution depends on `seed`. */
static void solve_on_device(const problem &given, unsigned seed, solved *result)
{
    const output_of_mttkrp output(given);
    const emulated_device device(seed);
    const cudaStream_t stream = device.stream;
    std::vector<double> packed(slc_gpu_solver_bytes(given.rank) / sizeof(double));
    device_matrix m(&output.reordered, stream);
    const framed_rows x(result->x.type, given.m.rows, given.rank, stream);
    const device_bytes scratch(slc_gpu_dense_scratch_bytes(given.m.rows, given.rank));

    m.matrix.split = output.split;
    slc_gpu_solver_pack(&given.solver, packed.data());
    const device_array<double> on_device(packed, stream);
    const device_array<double> columns(result->columns, stream), gram(result->gram, stream);
    const slc_gpu_solver solver = {on_device.data, given.rank, given.solver.singular};

    SLC_MUST(slc_gpu_dense_update(&solver, given.precision, &m.matrix, &x.matrix, columns.data,
                                  scratch.data, stream));
    SLC_MUST(slc_gpu_dense_gram(&x.matrix, x.type, gram.data, scratch.data, stream));
    result->columns = columns.read(result->columns.size(), stream);
    result->gram = gram.read(result->gram.size(), stream);
    x.read(&result->x);
}

/* The sums equal those of the stored factor. */
static void check_sums(const problem &given, const solved &got)
{
    const uint32_t rank = given.rank;
    std::vector<double> gram((size_t)rank * rank);
    uint64_t wrong = 0;

    slc_reference_gram(&got.x, gram.data());
    CU_ASSERT(relative_error(got.gram.data(), gram.data(), gram.size()) <= 1e-13);
    for (uint32_t r = 0; r < rank; r++) {
        double inner = 0.0, scale = 0.0, largest = 0.0;

        for (uint64_t i = 0; i < got.x.rows; i++) {
            const double x = slc_matrix_get(&got.x, i, r);
            const double product = x * slc_matrix_get(&given.m, i, r);

            inner += product;
            scale += fabs(product);
            largest = fmax(largest, fabs(x));
        }
        wrong += got.columns[r] != largest;
        wrong += !(fabs(got.columns[rank + r] - inner) <= 1e-13 * scale);
        for (uint32_t s = 0; s < r; s++) {
            wrong += got.gram[(size_t)r * rank + s] != got.gram[(size_t)s * rank + r];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static double error_of(const problem &given, const struct slc_matrix *x)
{
    return backward_error(given.v.data(), given.left.data(), given.right.data(), &given.m, x);
}

/* Solves with two orders of threads, and checks everything except the solution. */
static void solve_twice(const problem &given, solved *got)
{
    solved other(got->x.type, given);

    solve_on_device(given, 1, got);
    solve_on_device(given, 2, &other);
    CU_ASSERT(same_matrix(&got->x, &other.x));
    CU_ASSERT(same_bits(got->columns, other.columns));
    CU_ASSERT(same_bits(got->gram, other.gram));
    check_sums(given, *got);
}

static void check_regular(enum slc_value_type precision, uint64_t rows, uint32_t rank)
{
    problem given(precision, rows, rank);
    solved got(precision, given);
    double error;

    for (uint32_t r = 0; r < rank; r++) {
        given.left[r] = 0.5 + r % 3;
        given.right[r] = pow(2.0, 20.0 - r % 40);
    }
    given.factorize();
    CU_ASSERT_FALSE(given.solver.singular);
    solve_twice(given, &got);
    error = error_of(given, &got.x);
    if (!(error <= (precision == SLC_F32 ? 1e-7 : 2.0 * rank * DBL_EPSILON))) {
        printf("# precision %d, %llu x %u: backward error %.1e\n", (int)precision,
               (unsigned long long)rows, rank, error);
        CU_FAIL("a row is not the solution");
    }
}

static const enum slc_value_type precisions[] = {SLC_F64, SLC_F32};

static void test_ranks(void)
{
    static const uint32_t ranks[] = {1, 3, 7, 8, 16, 24, 32, 33, 48, 64, 100, 128, 200};
    static const uint64_t rows[] = {0, 1, 2, 31, 33, 70};
    const size_t step = slc_test_threads_only() ? 3 : 1;

    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        for (size_t i = r % step; i < SLC_COUNT(rows); i += step) {
            for (size_t a = 0; a < SLC_COUNT(precisions); a++) {
                if ((!slc_test_quick() && ranks[r] < 100) || (r + i) % 2 == a) {
                    check_regular(precisions[a], rows[i], ranks[r]);
                }
            }
        }
    }
    check_regular(SLC_F64, 3, slc_test_threads_only() ? 210 : 520);
}

static void test_rows(void)
{
    static const uint32_t ranks[] = {1, 5, 16, 20, 33, 66};

    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        check_regular(precisions[r % 2], slc_test_quick() ? 140 : 1000, ranks[r]);
    }
}

/* More panels than groups, and more groups than scratch has panels. Rows repeat, so that the
 * results for a few rows determine those for all. */
static void check_many_rows(enum slc_value_type precision, uint64_t repeats, uint32_t rank)
{
    enum { PERIOD = 77 };
    problem few(precision, PERIOD, rank), many(precision, PERIOD * repeats, rank);
    solved want(precision, few), got(precision, many);
    const uint64_t row_bytes = want.x.pitch * (uint64_t)slc_value_bytes(want.x.type);
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < many.m.rows; i++) {
        for (uint32_t r = 0; r < rank; r++) {
            slc_matrix_set(&many.m, i, r, slc_matrix_get(&few.m, i % PERIOD, r));
        }
    }
    few.factorize();
    many.factorize();
    solve_on_device(few, 1, &want);
    solve_on_device(many, 1, &got);
    for (uint64_t i = 0; i < many.m.rows; i++) {
        wrong += memcmp(static_cast<char *>(got.x.buffer.data) + i * row_bytes,
                        static_cast<char *>(want.x.buffer.data) + i % PERIOD * row_bytes,
                        row_bytes) != 0;
    }
    for (uint32_t r = 0; r < 2 * rank; r++) {
        const double sum = want.columns[r] * (r < rank ? 1.0 : (double)repeats);

        wrong += !(fabs(got.columns[r] - sum) <= 1e-10 * fabs(sum));
    }
    CU_ASSERT_EQUAL(wrong, 0);
    for (double &element : want.gram) {
        element *= (double)repeats;
    }
    CU_ASSERT(relative_error(got.gram.data(), want.gram.data(), got.gram.size()) <= 1e-12);
}

static void test_many_rows(void)
{
    if (slc_test_quick()) {
        slc_test_skip("half a million rows, in builds without sanitizers");
        return;
    }
    check_many_rows(SLC_F32, 8192 * 64 / 77 + 9, 1);
    check_many_rows(SLC_F32, 1024 * 64 / 77 + 3, 65);
}

static void solve_on_cpu(const problem &given, struct slc_matrix *x)
{
    struct slc_dense *dense = dense_for(1, given.rank, given.m.rows);
    struct slc_update_sums sums = update_sums(given.rank);
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_dense_update(dense, &given.solver, &given.m, x, &sums, &err), &err);
    update_sums_free(&sums);
    slc_dense_destroy(dense);
}

/* Solutions are as accurate as those of the CPU for the same system, up to the condition at which a
 * system counts as singular. */
static void test_conditions(void)
{
    static const uint32_t ranks[] = {6, 16, 33, 64, 80};
    static const double digits[] = {2, 5, 8, 11, 13};

    for (size_t c = 0; c < SLC_COUNT(ranks); c++) {
        /* At high ranks 1e13 counts as singular. */
        for (size_t d = 0; d < SLC_COUNT(digits) - (ranks[c] > 64); d++) {
            problem given(SLC_F64, 40, ranks[c]);
            solved got(SLC_F64, given), want(SLC_F64, given);

            conditioned_gram(given.rank, digits[d], given.v.data());
            given.factorize();
            CU_ASSERT_FALSE(given.solver.singular);
            solve_on_device(given, 3, &got);
            check_sums(given, got);
            solve_on_cpu(given, &want.x);
            CU_ASSERT(error_of(given, &got.x) <=
                      3.0 * error_of(given, &want.x) + given.rank * DBL_EPSILON / 4);
        }
    }
}

/* V of rank 2, or zero: a single product. */
static void check_singular(enum slc_value_type precision, uint64_t rows, uint32_t rank, bool zero)
{
    problem given(precision, rows, rank);
    solved got(precision, given);
    std::vector<double> have, want;
    struct slc_matrix b;

    if (zero) {
        given.v.assign(given.v.size(), 0.0);
    } else {
        random_matrix(&b, SLC_F64, 2, rank);
        slc_reference_gram(&b, given.v.data());
        slc_matrix_destroy(&b);
    }
    given.left[rank / 2] = 8.0;
    given.right[0] = 0.125;
    given.factorize();
    CU_ASSERT(given.solver.singular);
    solve_twice(given, &got);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t c = 0; c < rank; c++) {
            double sum = 0.0;

            for (uint32_t k = 0; k < rank; k++) {
                sum += slc_matrix_get(&given.m, i, k) *
                       given.solver.forward[(size_t)k * given.solver.size + c];
            }
            want.push_back(sum);
            have.push_back(slc_matrix_get(&got.x, i, c));
        }
    }
    CU_ASSERT(relative_error(have.data(), want.data(), want.size()) <= tolerance(got.x.type));
}

static void test_singular(void)
{
    static const uint32_t ranks[] = {3, 9, 16, 33, 70};

    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        check_singular(precisions[r % 2], 100, ranks[r], false);
        check_singular(precisions[(r + 1) % 2], 33, ranks[r], true);
    }
}

/* Values that are not finite stay in their row; they show in the Gram matrix, but not in the
 * largest magnitudes. */
static void test_not_finite(void)
{
    static const double values[] = {(double)NAN, (double)INFINITY};

    for (size_t c = 0; c < 4; c++) {
        problem given(precisions[c % 2], 77, 16);
        solved clean(given.precision, given);
        solved got(given.precision, given);

        given.factorize();
        solve_on_device(given, 1, &clean);
        slc_matrix_set(&given.m, 40, 1, values[c / 2]);
        solve_on_device(given, 1, &got);
        CU_ASSERT_FALSE(std::isfinite(got.gram[16 + 1]));
        CU_ASSERT_FALSE(std::isfinite(got.columns[16 + 1]));
        for (uint32_t r = 0; r < 16; r++) {
            CU_ASSERT_FALSE(std::isnan(got.columns[r]));
            for (uint64_t i = 0; i < 77; i++) {
                CU_ASSERT(i == 40 ||
                          slc_matrix_get(&got.x, i, r) == slc_matrix_get(&clean.x, i, r));
            }
        }
    }
}

/* Sums of integers are exact. */
static void check_gram(enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    const emulated_device device(4);
    const host_matrix matrix(type, rows, cols, rows + cols);
    const device_matrix on_device(&matrix.matrix, device.stream);
    const device_bytes scratch(slc_gpu_dense_scratch_bytes(rows, cols));
    std::vector<double> want((size_t)cols * cols), got(want.size(), 7.0);
    const device_array<double> gram(got, device.stream);

    SLC_MUST(slc_gpu_dense_gram(&on_device.matrix, type, gram.data, scratch.data, device.stream));
    got = gram.read(want.size(), device.stream);
    slc_reference_gram(&matrix.matrix, want.data());
    CU_ASSERT(got == want);
}

static void test_gram(void)
{
    static const uint32_t cols[] = {1, 2, 4, 5, 12, 17, 31, 32, 63, 64, 65, 127, 128, 130, 200};
    static const uint64_t rows[] = {0, 1, 33, 600};
    const size_t step = slc_test_threads_only() ? 2 : 1;

    for (size_t c = 0; c < SLC_COUNT(cols); c++) {
        for (size_t i = c % step; i < SLC_COUNT(rows); i += step) {
            check_gram((c + i) % 2 == 0 ? SLC_F64 : SLC_F32, rows[i], cols[c]);
        }
    }
    if (!slc_test_threads_only()) {
        check_gram(SLC_F64, 9, 520);
    }
    if (!slc_test_quick()) {
        check_gram(SLC_F32, 700, 300);
    }
}

static void check_scale(enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    const emulated_device device(5);
    struct slc_dense *dense = dense_for(1, cols, rows);
    struct slc_error err = SLC_ERROR_INIT;
    const framed_rows on_device(type, rows, cols, device.stream);
    std::vector<double> scale(cols);
    struct slc_matrix want, got;

    for (uint32_t r = 0; r < cols; r++) {
        scale[r] = 1.0 / (3.0 + r);
    }
    random_matrix(&want, type, rows, cols);
    empty_matrix(&got, &want);
    on_device.write(&want);
    const device_array<double> scale_there(scale, device.stream);
    SLC_MUST(slc_gpu_dense_scale(&on_device.matrix, type, scale_there.data, device.stream));
    on_device.read(&got);
    SLC_ASSERT_OK(slc_dense_scale(dense, &want, scale.data(), &err), &err);
    CU_ASSERT(same_matrix(&got, &want));
    slc_matrix_destroy(&want);
    slc_matrix_destroy(&got);
    slc_dense_destroy(dense);
}

static void test_scale(void)
{
    static const uint32_t cols[] = {1, 7, 8, 9, 16, 33, 200};
    static const uint64_t rows[] = {0, 1, 2, 100};

    for (size_t c = 0; c < SLC_COUNT(cols); c++) {
        for (size_t i = 0; i < SLC_COUNT(rows); i++) {
            check_scale((c + i) % 2 == 0 ? SLC_F64 : SLC_F32, rows[i], cols[c]);
        }
    }
}

/* Scratch for many rows suffices for fewer, and its size is bounded. */
static void test_scratch(void)
{
    static const uint32_t ranks[] = {1, 8, 33, 64, 65, 520, 4096};

    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        uint64_t before = 0;

        for (uint64_t rows = 0; rows < (uint64_t)1 << 40; rows = rows * 5 / 4 + 1) {
            const uint64_t bytes = slc_gpu_dense_scratch_bytes(rows, ranks[r]);

            CU_ASSERT(bytes >= before);
            before = bytes;
        }
        CU_ASSERT(before <= (uint64_t)160 << 20);
    }
}

static const struct slc_test tests[] = {
    {"X V = M and its sums, every rank", test_ranks},
    {"X V = M and its sums, hundreds of rows", test_rows},
    {"X V = M and its sums, more panels than groups and than scratch has", test_many_rows},
    {"backward errors up to a condition of 1e13", test_conditions},
    {"singular V: pseudo-inverse", test_singular},
    {"an MTTKRP that is not finite", test_not_finite},
    {"Gram matrices of integers", test_gram},
    {"columns scaled", test_scale},
    {"scratch", test_scratch},
};

SLC_SUITE(dense)
{
    return slc_test_main("gpu dense", tests, SLC_COUNT(tests), argc, argv);
}
