/* Counts of distinct numbers, of all or of a sample, and the mode whose fibers are in the fewest
 * pieces. */
#include "base/error/fault.h"
#include "base/hash.h"
#include "base/random.h"
#include "convert/build/sort/fiber_guess.h"
#include "convert/build/sort/fibers.h"
#include "convert/build/sort/key_tables.h"
#include "convert/forecast/species_estimate.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>

enum { WORKERS = 3 };

static void test_distinct_is_exact_while_small(void)
{
    static uint64_t slots[SLC_DISTINCT_SLOTS];
    struct slc_distinct distinct;
    uint64_t i;

    slc_distinct_init(&distinct, slots);
    CU_ASSERT_EQUAL(slc_distinct_count(&distinct), 0);
    for (i = 0; i < 3 * SLC_DISTINCT_KEPT_MAX; i++) {
        slc_distinct_keep(&distinct, slc_random_u64(1, 0, i % SLC_DISTINCT_KEPT_MAX));
    }
    CU_ASSERT_EQUAL(slc_distinct_count(&distinct), SLC_DISTINCT_KEPT_MAX);
    CU_ASSERT_EQUAL(distinct.halvings, 0);
}

/* Small numbers are kept through all halvings, until their count reaches the limit. */
static void test_distinct_of_small_numbers(void)
{
    static uint64_t slots[SLC_DISTINCT_SLOTS];
    struct slc_distinct distinct;
    uint64_t i;

    slc_distinct_init(&distinct, slots);
    for (i = 0; i < 100000; i++) {
        if (i <= distinct.limit) {
            slc_distinct_keep(&distinct, i);
        }
    }
    CU_ASSERT_EQUAL(distinct.halvings, 52);
    CU_ASSERT_EQUAL(distinct.kept, SLC_DISTINCT_KEPT_MAX - 1);
}

static void test_distinct_estimates_and_joins(void)
{
    enum { COUNT = 300000 };
    static uint64_t slots[WORKERS][SLC_DISTINCT_SLOTS];
    static uint64_t slots_alone[SLC_DISTINCT_SLOTS];
    struct slc_distinct distinct[WORKERS];
    struct slc_distinct alone;
    uint64_t seed = slc_test_seed();
    uint64_t i;
    double ratio;

    slc_distinct_init(&alone, slots_alone);
    for (i = 0; i < WORKERS; i++) {
        slc_distinct_init(&distinct[i], slots[i]);
    }
    for (i = 0; i < 2 * COUNT; i++) {
        uint64_t number = slc_random_u64(seed, 1, i % COUNT);
        /* Unequal shares, so that workers halve at different times. */
        struct slc_distinct *mine = &distinct[i % 10 == 0 ? 0 : i % 10 < 3 ? 1 : 2];

        if (number <= alone.limit) {
            slc_distinct_keep(&alone, number);
        }
        if (number <= mine->limit) {
            slc_distinct_keep(mine, number);
        }
    }
    slc_distinct_join(&distinct[0], &distinct[1]);
    slc_distinct_join(&distinct[0], &distinct[2]);
    CU_ASSERT_EQUAL(distinct[0].halvings, alone.halvings);
    CU_ASSERT_EQUAL(distinct[0].kept, alone.kept);
    ratio = (double)slc_distinct_count(&alone) / COUNT;
    CU_ASSERT(ratio > 0.9 && ratio < 1.1);
}

/* Rows as columns; fibers of `mode`, each with `length` consecutive nonzeros, otherwise random. */
struct rows {
    unsigned order;
    uint32_t count;
    uint64_t *columns[SLC_MAX_ORDER];
};

static void rows_create(struct rows *rows,
                        unsigned order,
                        unsigned mode,
                        uint32_t count,
                        uint32_t length,
                        uint64_t spread)
{
    *rows = (struct rows){.order = order, .count = count};
    for (unsigned m = 0; m < order; m++) {
        rows->columns[m] = malloc(count * sizeof(uint64_t));
        for (uint32_t i = 0; i < count; i++) {
            rows->columns[m][i] =
                m == mode ? i % length : slc_random_below(slc_test_seed(), m, i / length, spread);
        }
    }
}

static void rows_destroy(struct rows *rows)
{
    for (unsigned m = 0; m < rows->order; m++) {
        free(rows->columns[m]);
    }
}

static const uint64_t *const *view(const struct rows *rows)
{
    return (const uint64_t *const *)rows->columns;
}

/* Returns the choice for `rows`, which several workers count in batches of `cut`. `base` is added
 * to all coordinates and passed as their base. */
static struct slc_fiber_choice
choose(const struct rows *rows, unsigned workers, uint32_t cut, uint64_t base)
{
    struct slc_fiber_counts counts[WORKERS];
    void *memory[WORKERS];
    struct slc_fiber_choice choice;
    uint32_t begin = 0;

    for (unsigned m = 0; m < rows->order; m++) {
        for (uint32_t i = 0; i < rows->count; i++) {
            rows->columns[m][i] += base;
        }
    }
    for (unsigned w = 0; w < workers; w++) {
        memory[w] = malloc(slc_fiber_counts_bytes(rows->order));
        slc_fiber_counts_init(&counts[w], rows->order, memory[w]);
    }
    for (unsigned w = 0; begin < rows->count; w = (w + 1) % workers, begin += cut) {
        uint32_t left = rows->count - begin;

        slc_fiber_counts_add(&counts[w], view(rows), begin, left < cut ? left : cut, base);
    }
    for (unsigned w = 1; w < workers; w++) {
        slc_fiber_counts_join(&counts[0], &counts[w]);
    }
    choice = slc_fiber_counts_choose(&counts[0]);
    for (unsigned w = 0; w < workers; w++) {
        free(memory[w]);
    }
    for (unsigned m = 0; m < rows->order; m++) {
        for (uint32_t i = 0; i < rows->count; i++) {
            rows->columns[m][i] -= base;
        }
    }
    return choice;
}

static void test_choice(void)
{
    for (unsigned order = 2; order <= 6; order++) {
        for (unsigned mode = 0; mode < order; mode++) {
            struct rows rows;
            struct slc_fiber_choice one, other;

            rows_create(&rows, order, mode, 60000, 5, UINT64_C(1) << 30);
            one = choose(&rows, 1, SLC_KEY_BATCH, 0);
            CU_ASSERT_EQUAL(one.run.mode, mode);
            CU_ASSERT_EQUAL(one.run.bits, SLC_FIBER_BITS);
            CU_ASSERT(one.nnz > 56000 && one.nnz < 64000);
            CU_ASSERT(one.pieces > 11000 && one.pieces < 13000);
            other = choose(&rows, WORKERS, 77, 1);
            CU_ASSERT_EQUAL(other.run.mode, one.run.mode);
            CU_ASSERT_EQUAL(other.nnz, one.nnz);
            CU_ASSERT_EQUAL(other.pieces, one.pieces);
            rows_destroy(&rows);
        }
    }
}

static void test_no_choice(void)
{
    static const struct {
        unsigned order;
        uint32_t count;
        uint32_t length;
        unsigned bits;
    } cases[] = {
        {1, 4000, 4000, 0}, /* with only one mode, a run is plain order */
        {3, 0, 1, 0},
        {3, 1020, 4, 0},
        {3, 1024, 4, SLC_FIBER_BITS},
        {3, 60000, 1, 0},
        {3, 60000, 2, SLC_FIBER_BITS},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct rows rows;
        struct slc_fiber_choice choice;

        rows_create(&rows, cases[i].order, 0, cases[i].count, cases[i].length, UINT64_C(1) << 30);
        choice = choose(&rows, 1, SLC_KEY_BATCH, 1);
        CU_ASSERT_EQUAL(choice.run.bits, cases[i].bits);
        CU_ASSERT_EQUAL(choice.run.mode, 0);
        rows_destroy(&rows);
    }
}

/* Equal coordinates are no fibers; neither are fibers with gaps larger than a piece. */
static void test_duplicates_and_gaps(void)
{
    struct rows rows;
    struct slc_fiber_choice choice;

    rows_create(&rows, 3, 0, 60000, 6, UINT64_C(1) << 30);
    for (uint32_t i = 0; i < rows.count; i++) {
        rows.columns[0][i] = rows.columns[0][i] / 6 << SLC_FIBER_BITS;
    }
    choice = choose(&rows, 2, SLC_KEY_BATCH, 0);
    CU_ASSERT_EQUAL(choice.run.bits, 0);
    CU_ASSERT(choice.nnz < 11000);
    for (uint32_t i = 0; i < rows.count; i++) {
        rows.columns[0][i] = (uint64_t)(i % 6) << SLC_FIBER_BITS;
    }
    choice = choose(&rows, 2, SLC_KEY_BATCH, 0);
    CU_ASSERT_EQUAL(choice.run.bits, 0);
    CU_ASSERT(choice.nnz > 56000);
    rows_destroy(&rows);
}

static struct slc_fiber_run
guess(const struct rows *from, uint32_t stretches, bool spread, uint64_t expected)
{
    enum { COUNT = 6000 };
    uint64_t *rows = malloc(COUNT * from->order * sizeof *rows);
    void *memory = malloc(slc_fiber_counts_bytes(from->order));
    struct slc_fiber_counts counts;
    struct slc_fiber_run run;

    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t each = COUNT / stretches;
        uint64_t at =
            spread ? (uint64_t)(i / each) * (from->count / stretches) + i % each : (uint64_t)i;

        for (unsigned m = 0; m < from->order; m++) {
            rows[i * from->order + m] = from->columns[m][at];
        }
    }
    slc_fiber_counts_init(&counts, from->order, memory);
    SLC_ASSERT_OK(slc_fiber_guess(&counts, rows, COUNT, stretches, expected, &run, NULL), NULL);
    free(memory);
    free(rows);
    return run;
}

/* The input is sorted by the few long fibers of mode 3. The fibers of mode 1 are longer, but their
 * nonzeros are spread over the whole input. */
static void test_guess(void)
{
    struct rows rows;
    struct slc_fiber_run run;
    struct slc_fiber_choice choice;

    rows_create(&rows, 3, 0, 60000, 1, 2);
    for (uint32_t i = 0; i < rows.count; i++) {
        rows.columns[0][i] = i / 150;
        rows.columns[1][i] = slc_random_below(slc_test_seed(), 9, i / 3, 50);
        rows.columns[2][i] = slc_random_below(slc_test_seed(), 8, i, 6);
    }
    choice = choose(&rows, 1, SLC_KEY_BATCH, 0);
    CU_ASSERT_EQUAL(choice.run.mode, 0);
    CU_ASSERT_EQUAL(choice.run.bits, SLC_FIBER_BITS);
    run = guess(&rows, 60, true, rows.count);
    CU_ASSERT_EQUAL(run.mode, 0);
    CU_ASSERT_EQUAL(run.bits, SLC_FIBER_BITS);
    run = guess(&rows, 6000, true, rows.count);
    CU_ASSERT_EQUAL(run.mode, 0);
    CU_ASSERT_EQUAL(run.bits, SLC_FIBER_BITS);
    rows_destroy(&rows);
    /* Fibers whose beginning is complete. */
    rows_create(&rows, 3, 2, 60000, 5, UINT64_C(1) << 20);
    run = guess(&rows, 1, false, 0);
    CU_ASSERT_EQUAL(run.mode, 2);
    CU_ASSERT_EQUAL(run.bits, SLC_FIBER_BITS);
    rows_destroy(&rows);
    rows_create(&rows, 3, 0, 60000, 1, UINT64_C(1) << 30);
    CU_ASSERT_EQUAL(guess(&rows, 60, true, rows.count).bits, 0);
    CU_ASSERT_EQUAL(guess(&rows, 1, false, 0).bits, 0);
    rows_destroy(&rows);
}

/* Pieces of 1.9 nonzeros on average, one after the other, as in the complete choice. */
static void test_guess_of_short_pieces(void)
{
    struct rows rows;
    struct slc_fiber_run run;

    rows_create(&rows, 3, 0, 60000, 1, UINT64_C(1) << 30);
    for (uint32_t i = 0; i < rows.count; i++) {
        rows.columns[0][i] = 5;
        rows.columns[1][i] = (uint64_t)(10 * (i / 19) + i % 19 / 2) << (SLC_FIBER_BITS + 1);
        rows.columns[2][i] = i % 2;
    }
    CU_ASSERT_EQUAL(choose(&rows, 1, SLC_KEY_BATCH, 0).run.mode, 2);
    run = guess(&rows, 60, true, rows.count);
    CU_ASSERT_EQUAL(run.mode, 2);
    CU_ASSERT_EQUAL(run.bits, SLC_FIBER_BITS);
    rows_destroy(&rows);
}

static void test_guess_without_memory(void)
{
    static uint64_t rows[3000];
    void *memory = malloc(slc_fiber_counts_bytes(3));
    struct slc_fiber_counts counts;
    struct slc_fiber_run run;

    slc_fiber_counts_init(&counts, 3, memory);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    CU_ASSERT_EQUAL(slc_fiber_guess(&counts, rows, 1000, 64, 100000, &run, NULL), SLC_ERR_MEMORY);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    SLC_ASSERT_OK(slc_fiber_guess(&counts, rows, 0, 64, 100000, &run, NULL), NULL);
    CU_ASSERT_EQUAL(run.bits, 0);
    free(memory);
}

/* The number in row `row` of a file. */
typedef uint64_t thing_fn(uint64_t row);

static uint64_t always_new(uint64_t row)
{
    return row;
}

static uint64_t one_of_twenty(uint64_t row)
{
    return slc_random_below(3, 0, row, 20);
}

static uint64_t as_likely_each(uint64_t row)
{
    return slc_random_below(3, 1, row, 80000);
}

/* Returns numbers in runs of 600 rows; most pieces of the file are within a run. */
static uint64_t in_long_runs(uint64_t row)
{
    return row / 600;
}

/* Returns numbers distributed like words in a text, by a power law. */
static uint64_t as_words(uint64_t row)
{
    return (uint64_t)pow(1 - slc_random_f64(3, 2, row), -1 / 0.7);
}

static uint64_t some_common(uint64_t row)
{
    return slc_random_below(3, 4, row, 4) == 0 ? slc_random_below(3, 5, row, 8)
                                               : 8 + slc_random_below(3, 6, row, 400000);
}

enum { FILE_ROWS = 400000, PIECES = 64, PIECE_ROWS = 200 };

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static double count_all(thing_fn *thing)
{
    uint64_t *all = malloc(FILE_ROWS * sizeof *all);
    double count = 1;

    for (uint64_t row = 0; row < FILE_ROWS; row++) {
        all[row] = thing(row);
    }
    qsort(all, FILE_ROWS, sizeof *all, compare_numbers);
    for (uint64_t row = 1; row < FILE_ROWS; row++) {
        count += all[row] != all[row - 1];
    }
    free(all);
    return count;
}

/* The estimate from 3 % of a file is within a fraction of the actual number, which is within the
 * estimated bounds. */
static void check_unseen(thing_fn *thing, double within)
{
    const double truth = count_all(thing);
    struct slc_species species;
    struct slc_species_estimate found;

    SLC_ASSERT_OK(slc_species_create(&species, NULL), NULL);
    for (uint64_t p = 0; p < PIECES; p++) {
        const uint64_t begin = p * (FILE_ROWS - PIECE_ROWS) / (PIECES - 1);

        slc_species_piece(&species, p == 0);
        for (uint64_t row = begin; row < begin + PIECE_ROWS; row++) {
            const uint64_t what = thing(row);

            slc_species_add(&species, slc_hash64(&what, sizeof what), 7 + what % 2);
        }
    }
    slc_species_extrapolate(&species, (double)FILE_ROWS / (PIECES * PIECE_ROWS), &found);
    CU_ASSERT(fabs(found.count - truth) <= within * truth);
    CU_ASSERT(found.least <= truth && truth <= found.most);
    CU_ASSERT(found.seen <= found.count && found.bytes_each >= 7 && found.new_bytes_each <= 8);
    slc_species_destroy(&species);
}

static void test_unseen(void)
{
    check_unseen(always_new, 0.02);
    check_unseen(one_of_twenty, 0);
    check_unseen(as_likely_each, 0.1);
    check_unseen(in_long_runs, 0.25);
    check_unseen(as_words, 0.25);
    check_unseen(some_common, 0.25);
}

/* If the sample is the whole file, a small count is exact. */
static void test_unseen_of_all(void)
{
    struct slc_species species;
    struct slc_species_estimate found;

    slc_fault_arm(SLC_FAULT_ALLOCATION, 1);
    CU_ASSERT_EQUAL(slc_species_create(&species, NULL), SLC_ERR_MEMORY);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    SLC_ASSERT_OK(slc_species_create(&species, NULL), NULL);
    slc_species_extrapolate(&species, 1, &found);
    CU_ASSERT_EQUAL(found.most, 3 * found.seen);
    slc_species_piece(&species, true);
    for (uint64_t i = 0; i < 30000; i++) {
        const uint64_t what = i % 10000;

        slc_species_add(&species, slc_hash64(&what, sizeof what), 100000);
    }
    slc_species_extrapolate(&species, 1, &found);
    CU_ASSERT_EQUAL(found.count, 10000);
    CU_ASSERT(found.least == 10000 && found.most == 10000 && found.bytes_each == 65535);
    slc_species_destroy(&species);
}

static const struct slc_test tests[] = {
    {"distinct: exact while small", test_distinct_is_exact_while_small},
    {"distinct: small numbers", test_distinct_of_small_numbers},
    {"distinct: estimates and joins", test_distinct_estimates_and_joins},
    {"choice of every mode, by any workers, cut and base", test_choice},
    {"no choice", test_no_choice},
    {"duplicates and gaps", test_duplicates_and_gaps},
    {"guess from a sample", test_guess},
    {"guess of short pieces", test_guess_of_short_pieces},
    {"guess without memory", test_guess_without_memory},
    {"unseen things of a file", test_unseen},
    {"none unseen of all of it", test_unseen_of_all},
};

SLC_SUITE(fibers)
{
    return slc_test_main("fibers", tests, SLC_COUNT(tests), argc, argv);
}
