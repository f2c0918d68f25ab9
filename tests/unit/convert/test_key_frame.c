/* Frames widen as coordinates require; keys of any frame convert to final keys and coordinates. */
#include "base/error/fault.h"
#include "base/random.h"
#include "convert/build/sort/key_frame.h"
#include "convert/build/sort/recode.h"
#include "slc_test.h"

#include <string.h>

enum { COUNT = 200 };

/* Random mode sizes with a random total number of bits. */
static void draw_dims(uint64_t seed, uint64_t round, unsigned order, uint64_t *dims)
{
    unsigned most = 128 / order < 60 ? 128 / order : 60;

    for (unsigned n = 0; n < order; n++) {
        dims[n] =
            1 + slc_random_below(seed, n, round,
                                 (UINT64_C(1) << slc_random_below(seed, 20 + n, round, most)));
    }
}

static struct slc_fiber_run draw_run(uint64_t seed, uint64_t round, unsigned order)
{
    return round % 2 == 0
               ? (struct slc_fiber_run){0, 0}
               : (struct slc_fiber_run){(unsigned)slc_random_below(seed, 40, round, order),
                                        1 + (unsigned)slc_random_below(seed, 41, round, 20)};
}

/* The new layout has another run, larger modes and another base, or none of these changes. */
static void test_recoding(void)
{
    uint64_t seed = slc_test_seed();
    uint64_t wrong = 0;

    for (uint64_t round = 0; round < 400; round++) {
        unsigned order = 1 + (unsigned)slc_random_below(seed, 50, round, 6);
        uint64_t from_base = slc_random_below(seed, 51, round, 2);
        uint64_t to_base = slc_random_below(seed, 52, round, 2);
        uint64_t dims[SLC_MAX_ORDER], from_dims[SLC_MAX_ORDER], to_dims[SLC_MAX_ORDER];
        uint64_t written[SLC_MAX_ORDER][COUNT], columns[SLC_MAX_ORDER][SLC_KEY_BATCH];
        uint64_t lo[COUNT], hi[COUNT], lo_before[COUNT], hi_before[COUNT];
        const uint64_t *view[SLC_MAX_ORDER];
        struct slc_key_layout from, to;
        struct slc_key_tables from_tables, to_tables;
        struct slc_recoder recoder;

        draw_dims(seed, round, order, dims);
        for (unsigned n = 0; n < order; n++) {
            /* Coordinates are 1-based, so that both bases fit. */
            from_dims[n] = (dims[n] + 1 - from_base)
                           << slc_random_below(seed, 60 + n, round, order < 3 ? 2 : 1);
            to_dims[n] = dims[n] + 1 - to_base;
            view[n] = written[n];
            for (unsigned i = 0; i < COUNT; i++) {
                written[n][i] = 1 + slc_random_below(seed, 80 + n, round * COUNT + i, dims[n]);
            }
        }
        if (slc_key_layout_init_run(&from, order, from_dims, draw_run(seed, round, order), NULL) !=
                SLC_OK ||
            slc_key_layout_init_run(&to, order, to_dims, draw_run(seed, round / 3, order), NULL) !=
                SLC_OK) {
            continue; /* more than 128 bits */
        }
        SLC_ASSERT_OK(slc_key_tables_init(&from_tables, &from, NULL), NULL);
        SLC_ASSERT_OK(slc_key_tables_init(&to_tables, &to, NULL), NULL);
        slc_key_tables_form(&from_tables, view, 0, COUNT, from_base, lo, hi);
        memcpy(lo_before, lo, sizeof lo);
        memcpy(hi_before, hi, sizeof hi);
        SLC_ASSERT_OK(slc_recoder_init(&recoder, &from, from_base, &to, &to_tables, to_base, NULL),
                      NULL);
        if (!recoder.same) {
            slc_recode(&recoder, lo, hi, COUNT);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            uint64_t coords[SLC_MAX_ORDER];

            slc_key_decode(&to, slc_key_join(lo[i], to.bits > 64 ? hi[i] : 0), coords);
            for (unsigned n = 0; n < order; n++) {
                wrong += coords[n] != written[n][i] - to_base;
            }
        }
        slc_recoder_destroy(&recoder);
        SLC_ASSERT_OK(slc_recoder_init_coords(&recoder, &from, from_base, to_base, NULL), NULL);
        slc_recode_coords(&recoder, lo_before, hi_before, COUNT, columns);
        for (unsigned i = 0; i < COUNT; i++) {
            for (unsigned n = 0; n < order; n++) {
                wrong += columns[n][i] != written[n][i] - to_base;
            }
        }
        slc_recoder_destroy(&recoder);
        slc_key_tables_destroy(&from_tables);
        slc_key_tables_destroy(&to_tables);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Whether a frame can hold all keys of smallest .. largest. */
static bool holds(const struct slc_key_frame *frame, const uint64_t *low, const uint64_t *high)
{
    bool all = true;

    for (unsigned n = 0; n < frame->layout.order; n++) {
        all = all && low[n] >= frame->index_base &&
              (high[n] - frame->index_base) >> frame->layout.mode_bits[n] == 0;
    }
    return all;
}

static void test_frames(void)
{
    uint64_t rows[] = {3, 5, 9, 2, 100, 60};
    struct slc_splitters splitters;
    struct slc_key_frames frames;
    const struct slc_key_frame *frame = NULL, *other;

    SLC_ASSERT_OK(
        slc_splitters_choose(&splitters, 2, (struct slc_fiber_run){0, 0}, rows, 3, 3, NULL), NULL);
    slc_key_frames_init(&frames, 2, &splitters, 1);
    SLC_ASSERT_OK(
        slc_key_frames_fit(&frames, NULL, (uint64_t[]){1, 2}, (uint64_t[]){4, 4}, &frame, NULL),
        NULL);
    CU_ASSERT(frame->number == 0 && frame->index_base == 1 && !frame->hopeless);
    CU_ASSERT(frame->layout.mode_bits[0] == 7 && frame->layout.mode_bits[1] == 6);
    SLC_ASSERT_OK(
        slc_key_frames_fit(&frames, frame, (uint64_t[]){1, 1}, (uint64_t[]){128, 64}, &other, NULL),
        NULL);
    CU_ASSERT_PTR_EQUAL(other, frame);
    /* The new frame has one bit more and two spare bits; later workers get the same new frame. */
    for (unsigned i = 0; i < 2; i++) {
        SLC_ASSERT_OK(slc_key_frames_fit(&frames, frame, (uint64_t[]){1, 1}, (uint64_t[]){129, 64},
                                         &other, NULL),
                      NULL);
        CU_ASSERT(other->number == 1 && other->layout.mode_bits[0] == 10);
        CU_ASSERT(other->layout.mode_bits[1] == 6);
    }
    /* An index 0 shows that indices are not 1-based. */
    SLC_ASSERT_OK(
        slc_key_frames_fit(&frames, other, (uint64_t[]){1, 0}, (uint64_t[]){129, 64}, &other, NULL),
        NULL);
    CU_ASSERT(other->number == 2 && other->index_base == 0);
    CU_ASSERT(holds(other, (uint64_t[]){0, 0}, (uint64_t[]){129, 64}));
    /* Keys of more than 128 bits. */
    SLC_ASSERT_OK(slc_key_frames_fit(&frames, other, (uint64_t[]){1, 1},
                                     (uint64_t[]){UINT64_MAX, 1}, &other, NULL),
                  NULL);
    CU_ASSERT(other->hopeless);
    SLC_ASSERT_OK(
        slc_key_frames_fit(&frames, other, (uint64_t[]){1, 1}, (uint64_t[]){1, 1}, &frame, NULL),
        NULL);
    CU_ASSERT_PTR_EQUAL(frame, other);
    slc_key_frames_destroy(&frames);
    slc_splitters_destroy(&splitters);
}

/* A mode that grows by a bit at a time never needs more frames than the limit. */
static void test_many_frames(void)
{
    struct slc_splitters splitters = {.order = 3};
    struct slc_key_frames frames;
    const struct slc_key_frame *frame = NULL;
    uint64_t low[] = {0, 0, 0}, high[] = {0, 0, 0};
    bool all = true;

    slc_key_frames_init(&frames, 3, &splitters, 1);
    for (unsigned i = 0; i < 3 * 63; i++) {
        high[i % 3] = high[i % 3] * 2 + 1;
        SLC_ASSERT_OK(slc_key_frames_fit(&frames, frame, low, high, &frame, NULL), NULL);
        all = all && (frame->hopeless ? i >= 128 : holds(frame, low, high));
    }
    CU_ASSERT(all && frame->hopeless);
    slc_key_frames_destroy(&frames);
}

static void test_memory_faults(void)
{
    for (uint64_t k = 1;; k++) {
        struct slc_splitters splitters = {.order = 2};
        struct slc_key_frames frames;
        const struct slc_key_frame *frame = NULL;
        enum slc_status status;

        slc_key_frames_init(&frames, 2, &splitters, 0);
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status =
            slc_key_frames_fit(&frames, NULL, (uint64_t[]){0, 0}, (uint64_t[]){9, 9}, &frame, NULL);
        slc_key_frames_destroy(&frames);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            SLC_ASSERT_OK(status, NULL);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
}

static const struct slc_test tests[] = {
    {"keys of one layout to another", test_recoding},
    {"frames fit the requested coordinates", test_frames},
    {"enough frames for any growth", test_many_frames},
    {"memory faults", test_memory_faults},
};

SLC_SUITE(key_frame)
{
    return slc_test_main("key_frame", tests, SLC_COUNT(tests), argc, argv);
}
