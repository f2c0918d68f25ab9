/* Solving for rows unit by unit on the emulated device: rows have the same bits as when solving for
 * all at once, rows outside of units are unchanged, and the sums of a unit do not depend on the
 * other units. */
#include "dense_problem.h"

#include <cmath>

/* Units of at most `most` rows with gaps in between, in random order. */
static std::vector<slc_row_span> random_units(uint64_t rows, uint64_t most, uint64_t seed)
{
    std::vector<slc_row_span> units;

    for (uint64_t first = 0; first < rows;) {
        const uint64_t count = 1 + slc_random_below(seed, 1, first, most);
        const uint64_t gap = slc_random_below(seed, 2, first, 3) == 0 ? 5 : 0;

        units.push_back({first, first + count < rows ? first + count : rows});
        first += count + gap;
    }
    for (size_t i = 0; i + 2 < units.size(); i += 3) {
        std::swap(units[i], units[i + 2]);
    }
    return units;
}

static void solve_units(const problem &given,
                        const std::vector<slc_row_span> &units,
                        uint64_t most,
                        unsigned seed,
                        struct slc_matrix *factor,
                        std::vector<double> *columns)
{
    const emulated_device device(seed);
    const cudaStream_t stream = device.stream;
    std::vector<double> packed(slc_gpu_solver_bytes(given.rank) / sizeof(double));
    const device_matrix m(&given.m, stream);
    const framed_rows x(factor->type, given.m.rows, given.rank, stream);
    const device_bytes scratch(slc_gpu_dense_scratch_bytes(given.m.rows, given.rank));
    const device_array<slc_row_span> spans(units, stream);
    const slc_gpu_units all = {spans.data, (uint32_t)units.size(), most};

    columns->assign(units.size() * 2 * given.rank, -1.0);
    slc_gpu_solver_pack(&given.solver, packed.data());
    const device_array<double> on_device(packed, stream);
    const device_array<double> found(*columns, stream);
    const slc_gpu_solver solver = {on_device.data, given.rank, given.solver.singular};

    SLC_MUST(slc_gpu_dense_update_units(&solver, given.precision, &m.matrix, &x.matrix, &all,
                                        found.data, scratch.data, stream));
    *columns = found.read(columns->size(), stream);
    x.read(factor);
}

static void solve_all(const problem &given, struct slc_matrix *factor, std::vector<double> *columns)
{
    const std::vector<slc_row_span> all = {{0, given.m.rows}};

    solve_units(given, all, given.m.rows, 7, factor, columns);
}

/* Compares the expected values of a unit's rows in a column with the computed ones. */
static bool right_column(const problem &given,
                         const struct slc_matrix *x,
                         const slc_row_span &rows,
                         uint32_t r,
                         const double *found)
{
    double largest = 0.0, inner = 0.0, scale = 0.0;

    for (uint64_t i = rows.first; i < rows.end; i++) {
        const double product = slc_matrix_get(x, i, r) * slc_matrix_get(&given.m, i, r);

        largest = fmax(largest, fabs(slc_matrix_get(x, i, r)));
        inner += product;
        scale += fabs(product);
    }
    return found[r] == largest && fabs(found[given.rank + r] - inner) <= 1e-13 * scale;
}

/* Rows of units equal those of `want`; the others are canaries. */
static void check_rows(const std::vector<slc_row_span> &units,
                       const struct slc_matrix *got,
                       const struct slc_matrix *want)
{
    const uint64_t element = slc_value_bytes(got->type), row_bytes = got->pitch * element;
    std::vector<bool> inside(got->rows);
    std::vector<unsigned char> canaries(got->cols * element, canary);
    uint64_t wrong = 0;

    for (const slc_row_span &unit : units) {
        for (uint64_t i = unit.first; i < unit.end; i++) {
            inside[i] = true;
        }
    }
    for (uint64_t i = 0; i < got->rows; i++) {
        const char *row = static_cast<char *>(got->buffer.data) + i * row_bytes;
        const void *expected = inside[i] ? static_cast<char *>(want->buffer.data) + i * row_bytes
                                         : static_cast<void *>(canaries.data());

        wrong += memcmp(row, expected, got->cols * element) != 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void check(enum slc_value_type precision, uint64_t rows, uint32_t rank, uint64_t most)
{
    const std::vector<slc_row_span> units = random_units(rows, most, rows + rank);
    problem given(precision, rows, rank);
    solved whole(precision, given), got(precision, given), again(precision, given);
    std::vector<double> columns, others;
    uint64_t wrong = 0;

    given.factorize();
    solve_all(given, &whole.x, &columns);
    solve_units(given, units, most, 1, &got.x, &columns);
    check_rows(units, &got.x, &whole.x);
    for (size_t u = 0; u < units.size(); u++) {
        for (uint32_t r = 0; r < rank; r++) {
            wrong += !right_column(given, &whole.x, units[u], r, &columns[2 * u * rank]);
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);

    /* Half of the units alone, in another order of threads. */
    std::vector<slc_row_span> half;
    std::vector<double> want;

    for (size_t u = 1; u < units.size(); u += 2) {
        half.push_back(units[u]);
        want.insert(want.end(), &columns[2 * u * rank], &columns[2 * u * rank] + 2 * rank);
    }
    solve_units(given, half, most, 2, &again.x, &others);
    check_rows(half, &again.x, &whole.x);
    CU_ASSERT(same_bits(others, want));
}

static void test_units(void)
{
    static const enum slc_value_type precisions[] = {SLC_F64, SLC_F32};
    static const uint32_t ranks[] = {1, 5, 8, 12, 16, 33, 64, 70};
    static const uint64_t most[] = {1, 32, 150, 1000};

    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        check(precisions[r % 2], 300, ranks[r], most[r % 4]);
        check(precisions[(r + 1) % 2], slc_test_quick() ? 200 : 1000, ranks[r], most[(r + 2) % 4]);
    }
}

/* More units than scratch has groups: they are processed in turns. */
static void test_turns(void)
{
    check(SLC_F64, 200, 3, 2);
    check(SLC_F32, 33, 40, 1);
}

static void test_none(void)
{
    problem given(SLC_F64, 40, 8);
    solved got(SLC_F64, given);
    std::vector<double> columns;

    given.factorize();
    solve_units(given, {}, 32, 1, &got.x, &columns);
    check_rows({}, &got.x, &got.x);
}

static const struct slc_test tests[] = {
    {"rows and columns of units", test_units},
    {"units in turns", test_turns},
    {"no units", test_none},
};

SLC_SUITE(dense_units)
{
    return slc_test_main("dense units on a device", tests, SLC_COUNT(tests), argc, argv);
}
