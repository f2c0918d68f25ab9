/* One bucket: sorted stably and combined in input order, for any order and size of its chunks. */
#include "base/random.h"
#include "convert/build/bucket_sort.h"
#include "convert/build/spill/scatter.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 20000, NEAR = 1000 /* value of `spread` */ };

struct record {
    slc_u128 key;
    uint32_t at;
    double value;
};

static int compare(const void *a, const void *b)
{
    const struct record *x = a;
    const struct record *y = b;

    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->at < y->at ? -1 : 1;
}

struct made {
    struct slc_sort_plan plan;
    struct slc_bucket bucket;
    struct record *records; /* sorted by key, then input order */
    uint32_t count;
    void *memory;
    uint8_t *data;
    void *area;
};

/* A random coordinate: anywhere in the tensor, in a corner of it, or (NEAR) with a key within 2^39
 * of a key that ends in 64 zeros. */
static void draw(const struct slc_key_layout *layout,
                 uint64_t seed,
                 uint64_t i,
                 unsigned spread,
                 uint64_t *coords)
{
    unsigned m;

    if (spread == NEAR && layout->bits > 64) {
        slc_u128 key = ((slc_u128)1 << 64) - (UINT64_C(1) << 39);

        slc_key_decode(layout, key + slc_random_below(seed, 0, i, UINT64_C(1) << 40), coords);
        return;
    }
    for (m = 0; m < 4; m++) {
        uint64_t length = UINT64_C(1) << layout->mode_bits[m];

        coords[m] = slc_random_below(seed, m, i, length) >> spread % (layout->bits / 4 + 1);
    }
}

/* Pushes random nonzeros piece by piece, with the pieces in random order. */
static void make(struct made *made, uint64_t seed, unsigned bits, uint32_t count, unsigned spread)
{
    uint64_t dims[4];
    struct slc_scatter_shape shape = slc_scatter_fit(1, 1, 1 << 16);
    struct slc_spill_options options = {.files = slc_files_system(),
                                        .path = "unused",
                                        .segment_bytes = 1 << 18,
                                        .segment_count = 64};
    struct slc_scatter scatter;
    struct slc_key_range range;
    uint32_t pieces = count / 100 + 1;
    uint32_t p, i;
    unsigned m;

    memset(made, 0, sizeof *made);
    for (m = 0; m < 4; m++) {
        dims[m] = UINT64_C(1) << bits / 4;
    }
    SLC_ASSERT_OK(slc_key_layout_init(&made->plan.layout, 4, dims, NULL), NULL);
    SLC_ASSERT_OK(slc_key_tables_init(&made->plan.tables, &made->plan.layout, NULL), NULL);
    SLC_ASSERT_OK(slc_spill_create(&options, &made->plan.spill, NULL), NULL);
    made->count = count;
    made->records = malloc((count + 1) * sizeof *made->records);
    made->memory = aligned_alloc(64, 1 << 16);
    made->data = aligned_alloc(SLC_PAGE_BYTES, 1 << 18);
    slc_scatter_init(&scatter, &shape, made->plan.spill, &made->bucket.chain, made->memory);
    range = slc_key_range_of(0, bits == 0 ? 0 : ~(slc_u128)0 >> (128 - bits));
    SLC_ASSERT_OK(slc_scatter_frame(&scatter, 0, SLC_FRAME_FINAL, &range, NULL), NULL);
    for (p = 0; p < pieces; p++) {
        uint32_t piece = (uint32_t)((uint64_t)p * 7919 % pieces);

        slc_scatter_piece(&scatter, 0, piece);
        for (i = piece * 100; i < count && i < piece * 100 + 100; i++) {
            uint64_t coords[4], words[2];
            double value = slc_random_normal(seed, 9, i);
            slc_u128 key;

            draw(&made->plan.layout, seed, i, spread, coords);
            key = slc_key_encode(&made->plan.layout, coords);
            made->records[i] = (struct record){key, i, value};
            words[0] = (uint64_t)key;
            words[1] = (uint64_t)(key >> 64);
            SLC_ASSERT_OK(slc_scatter_add(&scatter, 0,
                                          &(struct slc_scatter_batch){.count = 1,
                                                                      .ordinal = i - piece * 100,
                                                                      .buckets = &(uint32_t){0},
                                                                      .key_lo = words,
                                                                      .key_hi = words + 1,
                                                                      .values = &value},
                                          NULL),
                          NULL);
        }
    }
    SLC_ASSERT_OK(slc_scatter_flush_all(&scatter, NULL), NULL);
    qsort(made->records, count, sizeof *made->records, compare);
    made->bucket.last = ~(slc_u128)0;
    made->area = malloc(slc_bucket_area_bytes(&made->plan, &made->bucket) + 8);
}

static void unmake(struct made *made)
{
    slc_spill_destroy(made->plan.spill);
    slc_key_tables_destroy(&made->plan.tables);
    free(made->records);
    free(made->memory);
    free(made->data);
    free(made->area);
}

/* Bits 64..127 of a final nonzero's key. */
static uint64_t upper_of(const struct slc_sorted *sorted, uint64_t at)
{
    return sorted->key_hi != NULL ? sorted->key_hi[at] : sorted->upper + (at >= sorted->carry);
}

/* Compares the result of the sort with the sorted records; both ends may be shared with other
 * buckets. */
static void check(const struct made *made)
{
    struct slc_bucket_source source = {.chunk_data = made->data};
    struct slc_sorted sorted;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t wrong = 0, out = 0, duplicates = 0;
    uint32_t i = 0;

    SLC_ASSERT_OK(slc_bucket_sort(&made->plan, &made->bucket, made->area, &source, &sorted, &err),
                  &err);
    if (made->bucket.lower_shared) {
        for (; i < made->count && made->records[i].key == made->records[0].key; i++) {
            wrong += i >= sorted.raw_count || sorted.raw_values[i] != made->records[i].value;
        }
    }
    CU_ASSERT_EQUAL(sorted.raw_count, i);
    while (i < made->count) {
        slc_u128 key = made->records[i].key;
        double value = made->records[i].value;

        for (i++; i < made->count && made->records[i].key == key; i++) {
            value += made->records[i].value;
            duplicates++;
        }
        if (i == made->count && made->bucket.upper_shared) {
            wrong += !sorted.open || sorted.open_value != value ||
                     sorted.open_lo != (uint64_t)key || sorted.open_hi != (uint64_t)(key >> 64);
            break;
        }
        wrong += out >= sorted.count || sorted.values[out] != value ||
                 sorted.key_lo[out] != (uint64_t)key ||
                 upper_of(&sorted, out) != (uint64_t)(key >> 64);
        out++;
    }
    CU_ASSERT_EQUAL(sorted.count, out);
    CU_ASSERT_EQUAL(sorted.counts.duplicates, duplicates);
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Sets a range like a splitter's: close to the keys, sometimes with a carry into the upper half. */
static void bound_tightly(struct made *made, uint64_t seed)
{
    slc_u128 smallest = made->count > 0 ? made->records[0].key : 0;

    made->bucket.first = smallest - slc_random_below(seed, 30, 0, (uint64_t)smallest | 1);
    made->bucket.last = made->count > 0 ? made->records[made->count - 1].key : smallest;
}

static void test_sorting(void)
{
    static const unsigned bits[] = {0, 4, 20, 64, 68, 72, 100, 128};
    uint64_t seed = slc_test_seed();
    size_t b;
    unsigned round;

    for (b = 0; b < SLC_COUNT(bits); b++) {
        for (round = 0; round < 12; round++) {
            struct made made;
            uint32_t count = (uint32_t)slc_random_below(seed, 20, b * 100 + round,
                                                        round % 3 == 0 ? 40 : COUNT_MAX);

            make(&made, seed + round, bits[b], count,
                 round % 4 == 3   ? round * 3
                 : round % 4 == 2 ? NEAR
                                  : 0);
            made.bucket.lower_shared = round % 2 == 1;
            made.bucket.upper_shared = round % 4 >= 2;
            check(&made);
            bound_tightly(&made, seed + round);
            check(&made);
            unmake(&made);
        }
    }
}

static void test_settling(void)
{
    struct slc_sort_plan plan = {.value = SLC_VALUE_F32};
    struct slc_sort_counts counts = {0};
    struct slc_error err = SLC_ERROR_INIT;
    double value = 0.1;
    bool keep;

    SLC_ASSERT_OK(slc_key_layout_init(&plan.layout, 1, (uint64_t[]){9}, &err), &err);
    SLC_ASSERT_OK(slc_sort_complete_value(&plan, 3, 0, &value, &keep, &counts, &err), &err);
    CU_ASSERT(keep && value == (double)0.1f && counts.rounded_values == 1);
    value = 3.4028234663852886e38;
    SLC_ASSERT_OK(slc_sort_complete_value(&plan, 3, 0, &value, &keep, &counts, &err), &err);
    CU_ASSERT(keep && value == 3.4028234663852886e38 && counts.rounded_values == 1);
    value = 1e-300; /* rounds to zero in f32, and is dropped */
    SLC_ASSERT_OK(slc_sort_complete_value(&plan, 3, 0, &value, &keep, &counts, &err), &err);
    CU_ASSERT(!keep && counts.explicit_zeros == 1 && counts.rounded_values == 2);
    value = 3.4028235677973366e38; /* halfway between the largest float and the next power of two */
    SLC_ASSERT_FAILS(slc_sort_complete_value(&plan, 3, 0, &value, &keep, &counts, &err),
                     SLC_ERR_INPUT, &err, "(4)");
    plan.value = SLC_VALUE_AUTO;
    value = -INFINITY;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_sort_complete_value(&plan, 8, 0, &value, &keep, &counts, &err),
                     SLC_ERR_INPUT, &err, "(9)");
    plan.duplicates = SLC_DUPLICATES_ERROR;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_sort_combine(&plan, 0, 0, 1, &value, &err), SLC_ERR_INPUT, &err, "(1)");
}

static const struct slc_test tests[] = {
    {"sorting equals the specification", test_sorting},
    {"settling values", test_settling},
};

SLC_SUITE(bucket_sort)
{
    return slc_test_main("bucket_sort", tests, SLC_COUNT(tests), argc, argv);
}
