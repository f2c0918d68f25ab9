/* Buckets of coordinates agree with their definition, and keys formed in every way with theirs. */
#include "base/error/fault.h"
#include "base/random.h"
#include "convert/build/sort/heap_sort.h"
#include "convert/build/sort/key_tables.h"
#include "convert/build/sort/splitters.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

static const struct slc_fiber_run plain = {0, 0};

static uint32_t by_definition(const struct slc_splitters *s, const uint64_t *coords)
{
    uint32_t bucket = 0;

    while (bucket < s->count &&
           slc_coords_compare(s->order, s->run, s->coords + bucket * s->order, coords) <= 0) {
        bucket++;
    }
    return bucket;
}

static void test_buckets(void)
{
    uint64_t seed = slc_test_seed();
    uint64_t round, wrong = 0;
    unsigned wide = 0;

    for (round = 0; round < 300; round++) {
        unsigned order = 1 + (unsigned)slc_random_below(seed, 1, round, SLC_MAX_ORDER);
        uint32_t count = (uint32_t)slc_random_below(seed, 2, round, 500);
        uint32_t buckets = 1 + (uint32_t)slc_random_below(seed, 3, round, 200);
        uint64_t *rows = malloc((count + 1) * order * 8);
        uint64_t coords[SLC_KEY_BATCH][SLC_MAX_ORDER];
        uint64_t lo[SLC_KEY_BATCH], hi[SLC_KEY_BATCH], dims[SLC_MAX_ORDER];
        uint32_t found[SLC_KEY_BATCH];
        struct slc_fiber_run run = {0, 0};
        struct slc_splitters s;
        struct slc_splitter_keys keys;
        struct slc_key_layout layout;
        uint32_t i;
        unsigned m;

        if (round % 3 != 0) {
            run.mode = (unsigned)slc_random_below(seed, 5, round, order);
            run.bits = 1 + (unsigned)slc_random_below(seed, 6, round, SLC_FIBER_BITS_MAX);
        }
        for (m = 0; m < order; m++) {
            unsigned most = 128 / order < 61 ? 128 / order : 61;
            unsigned bits = (unsigned)slc_random_below(seed, 10 + m, round, most);

            for (i = 0; i < count; i++) {
                rows[i * order + m] =
                    bits == 0 ? 0 : slc_random_u64(seed, 30 + m, round * 1000 + i) >> (64 - bits);
            }
            /* Some coordinates are outside the range of the sample, others equal sampled ones. */
            dims[m] = UINT64_C(1) << (bits + (round % 5 == 0));
            for (i = 0; i < SLC_KEY_BATCH; i++) {
                coords[i][m] = i < count
                                   ? rows[i * order + m]
                                   : slc_random_below(seed, 50 + m, round * 1000 + i, dims[m]);
            }
        }
        SLC_ASSERT_OK(slc_key_layout_init_run(&layout, order, dims, run, NULL), NULL);
        SLC_ASSERT_OK(slc_splitters_choose(&s, order, run, rows, count, buckets, NULL), NULL);
        SLC_ASSERT_OK(slc_splitter_keys_init(&keys, &s, &layout, NULL), NULL);
        CU_ASSERT(s.count < buckets);
        wide += keys.wide;
        for (i = 1; i < s.count; i++) {
            wrong += slc_coords_compare(order, run, s.coords + (i - 1) * order,
                                        s.coords + i * order) >= 0;
        }
        for (i = 0; i < SLC_KEY_BATCH; i++) {
            slc_u128 key = slc_key_encode(&layout, coords[i]);

            lo[i] = (uint64_t)key;
            hi[i] = (uint64_t)(key >> 64);
        }
        slc_splitter_keys_find(&keys, lo, hi, SLC_KEY_BATCH, found);
        for (i = 0; i < SLC_KEY_BATCH; i++) {
            wrong += found[i] != by_definition(&s, coords[i]);
        }
        slc_splitter_keys_destroy(&keys);
        slc_splitters_destroy(&s);
        free(rows);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(wide > 30 && wide < 270);
}

/* Keys by instruction, by tables and by definition. */
static void test_key_tables(void)
{
    uint64_t round, wrong = 0;

    for (round = 0; round < 200; round++) {
        unsigned order = 1 + (unsigned)slc_random_below(slc_test_seed(), 1, round, SLC_MAX_ORDER);
        uint64_t dims[SLC_MAX_ORDER], coords[SLC_MAX_ORDER];
        struct slc_key_layout layout;
        struct slc_key_tables tables;
        slc_u128 key;
        unsigned m, way;

        for (m = 0; m < order; m++) {
            unsigned bits = (unsigned)slc_random_below(slc_test_seed(), 10 + m, round, 128 / order);

            dims[m] = UINT64_C(1) << (bits > 62 ? 62 : bits);
            coords[m] = slc_random_below(slc_test_seed(), 50 + m, round, dims[m]);
        }
        SLC_ASSERT_OK(slc_key_layout_init(&layout, order, dims, NULL), NULL);
        SLC_ASSERT_OK(slc_key_tables_init(&tables, &layout, NULL), NULL);
        key = slc_key_encode(&layout, coords);
        for (way = 0; way < 2; way++) {
            uint64_t lo = 0, hi = 0, lo_formed = 1, hi_formed = 0;
            const uint64_t *view[SLC_MAX_ORDER];
            uint64_t written[SLC_MAX_ORDER];

            for (m = 0; m < order; m++) {
                slc_key_tables_add(&tables, m, &coords[m], 1, &lo, &hi);
                written[m] = coords[m] + round % 2;
                view[m] = &written[m];
            }
            slc_key_tables_form(&tables, view, 0, 1, round % 2, &lo_formed, &hi_formed);
            wrong += slc_key_join(lo, hi) != key || lo_formed != lo || hi_formed != hi;
            tables.spread = false;
        }
        slc_key_tables_destroy(&tables);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void test_even_buckets(void)
{
    enum { COUNT = 20000, BUCKETS = 50 };
    uint64_t *rows = malloc(COUNT * 3 * 8);
    uint32_t sizes[BUCKETS] = {0};
    struct slc_splitters s;
    uint32_t i;

    for (i = 0; i < COUNT * 3; i++) {
        rows[i] = slc_random_below(slc_test_seed(), 0, i, 1000);
    }
    SLC_ASSERT_OK(slc_splitters_choose(&s, 3, plain, rows, COUNT, BUCKETS, NULL), NULL);
    for (i = 0; i < COUNT; i++) {
        sizes[by_definition(&s, rows + i * 3)]++;
    }
    for (i = 0; i < BUCKETS; i++) {
        CU_ASSERT(sizes[i] > COUNT / BUCKETS / 2 && sizes[i] < COUNT / BUCKETS * 2);
    }
    slc_splitters_destroy(&s);
    free(rows);
}

/* Computes splitters and their keys while the k-th allocation fails. */
static enum slc_status choose_with_keys(void)
{
    uint64_t rows[] = {1, 2, 3, 4, 5, 6};
    struct slc_key_layout layout;
    struct slc_splitters s = {0};
    struct slc_splitter_keys keys = {0};
    enum slc_status status;

    SLC_ASSERT_OK(slc_key_layout_init(&layout, 2, (uint64_t[]){8, 8}, NULL), NULL);
    status = slc_splitters_choose(&s, 2, plain, rows, 3, 3, NULL);
    if (status == SLC_OK) {
        status = slc_splitter_keys_init(&keys, &s, &layout, NULL);
    }
    slc_splitter_keys_destroy(&keys);
    slc_splitters_destroy(&s);
    return status;
}

static void test_memory_faults(void)
{
    uint64_t k;

    for (k = 1;; k++) {
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = choose_with_keys();
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, NULL);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
}

static bool less(const void *context, const void *a, const void *b)
{
    (void)context;
    return *(const uint64_t *)a < *(const uint64_t *)b;
}

static void test_heap_sort(void)
{
    uint64_t items[300];
    size_t count, i;

    for (count = 0; count < SLC_COUNT(items); count++) {
        uint64_t before = 0, after = 0;

        for (i = 0; i < count; i++) {
            items[i] = slc_random_below(slc_test_seed(), count, i, 100);
            before += items[i] * items[i];
        }
        slc_heap_sort(items, count, sizeof items[0], less, NULL);
        for (i = 0; i < count; i++) {
            after += items[i] * items[i];
            CU_ASSERT(i == 0 || items[i - 1] <= items[i]);
        }
        CU_ASSERT_EQUAL(before, after);
    }
}

static const struct slc_test tests[] = {
    {"buckets equal their definition", test_buckets},
    {"keys in two ways", test_key_tables},
    {"buckets are even", test_even_buckets},
    {"memory faults", test_memory_faults},
    {"heap sort", test_heap_sort},
};

SLC_SUITE(splitters)
{
    return slc_test_main("splitters", tests, SLC_COUNT(tests), argc, argv);
}
