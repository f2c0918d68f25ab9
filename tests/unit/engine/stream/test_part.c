/* Parts of products: every nonzero belongs to one part and is in a block of this part, for any
 * kept modes, orders of nonzeros and numbers of parts; parts are about equally large. */
#include "engine/stream/part.h"

#include "base/random.h"
#include "make_sorted.h"
#include "make_store.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODES = 3, NNZ = 20000, TILE_NNZ = 150, BLOCK_BYTES = 4096, PARTS_MAX = 300 };

/* A tensor, its store, and a layout of the store. */
struct place {
    struct slc_made_tensor tensor;
    struct slc_store store;
    struct slc_reader *reader;
};

static void place_create(struct place *place, const uint64_t *dims, uint64_t nnz, unsigned sorted)
{
    struct slc_error err = SLC_ERROR_INIT;
    char path[256];

    (void)snprintf(path, sizeof path, "%s/part.slc", slc_test_folder());
    slc_made_tensor_create(&place->tensor, MODES, dims, nnz, SLC_MADE_ONES, slc_test_seed());
    place->tensor.tile_nnz = TILE_NNZ;
    SLC_ASSERT_OK(
        slc_made_store_write(&place->tensor, NULL, path, SLC_CODEC_PACKED, BLOCK_BYTES, &err),
        &err);
    if (sorted < MODES) {
        SLC_ASSERT_OK(slc_made_store_add_sorted(&place->tensor, path, sorted, 3000,
                                                SLC_CODEC_PACKED, BLOCK_BYTES, &err),
                      &err);
    }
    SLC_ASSERT_OK(slc_store_open(NULL, path, &place->store, &err), &err);
    place->reader = place->store.reader;
    if (sorted < MODES) {
        SLC_ASSERT_OK(slc_store_open_layout(&place->store, SLC_LAYOUT_SORTED, sorted, UINT64_MAX,
                                            &place->reader, &err),
                      &err);
    }
}

static void place_destroy(struct place *place)
{
    slc_store_close_layout(&place->store, place->reader);
    slc_store_close(&place->store);
    slc_made_tensor_destroy(&place->tensor);
}

/* Returns true if a block of the part may contain the coordinates: by its bounding box and, in
 * blco, by its keys. */
static bool is_read(const struct place *place, const struct slc_part *part, uint64_t i)
{
    const struct slc_made_tensor *tensor = &place->tensor;
    const slc_u128 key = slc_key_join(tensor->key_lo[i], tensor->key_hi[i]);
    const uint64_t blocks = slc_reader_info(place->reader)->block_count;
    uint64_t coords[SLC_MAX_ORDER];

    slc_key_decode(&tensor->keys, key, coords);
    for (uint64_t k = 0; k < part->block_count; k++) {
        struct slc_block_entry entry, next = {.first_key_lo = 0};
        bool inside = true;

        slc_reader_entry(place->reader, part->blocks[k], &entry);
        for (unsigned n = 0; n < MODES; n++) {
            inside = inside && coords[n] >= entry.min[n] && coords[n] <= entry.max[n];
        }
        if (inside && place->reader == place->store.reader && part->blocks[k] + 1 < blocks) {
            slc_reader_entry(place->reader, part->blocks[k] + 1, &next);
            inside = key < slc_key_join(next.first_key_lo, next.first_key_hi);
        }
        if (inside && key >= slc_key_join(entry.first_key_lo, entry.first_key_hi)) {
            return true;
        }
        if (inside && place->reader != place->store.reader) {
            return true;
        }
    }
    return false;
}

/* Opens all parts, and checks that they divide the results and list the blocks of their
 * nonzeros. Returns the number of blocks of all parts. */
static uint64_t check_parts(const struct place *place, uint32_t kept, unsigned count)
{
    struct slc_part *parts = calloc(count, sizeof *parts);
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t blocks = 0;
    slc_u128 next = 0;

    CU_ASSERT_FATAL(parts != NULL);
    for (unsigned p = 0; p < count; p++) {
        SLC_ASSERT_OK(
            slc_part_open(&parts[p], place->reader, kept, (struct slc_part_choice){p, count}, &err),
            &err);
        CU_ASSERT_TRUE(parts[p].empty || parts[p].first == next);
        next = parts[p].empty ? next : parts[p].last + 1;
        blocks += parts[p].block_count;
        uint64_t tiles = 0;
        for (uint64_t k = 0; k < parts[p].block_count; k++) {
            struct slc_block_entry entry;

            slc_reader_entry(place->reader, parts[p].blocks[k], &entry);
            CU_ASSERT_EQUAL(slc_part_ordinal(&parts[p], parts[p].blocks[k], entry.first_tile),
                            tiles);
            tiles += entry.tile_count;
        }
        CU_ASSERT_EQUAL(tiles, parts[p].tile_count);
    }
    for (uint64_t i = 0; i < place->tensor.nnz; i += 1 + place->tensor.nnz / 100) {
        uint64_t coords[SLC_MAX_ORDER];
        unsigned found = 0;

        slc_key_decode(&place->tensor.keys,
                       slc_key_join(place->tensor.key_lo[i], place->tensor.key_hi[i]), coords);
        for (unsigned p = 0; p < count; p++) {
            const bool holds = slc_part_holds(&parts[p], coords);

            found += holds;
            CU_ASSERT_EQUAL(slc_part_overlap(&parts[p], coords, coords),
                            holds ? SLC_PART_ALL : SLC_PART_NONE);
            CU_ASSERT_TRUE(!holds || is_read(place, &parts[p], i));
        }
        CU_ASSERT_EQUAL(found, 1);
    }
    for (unsigned p = 0; p < count; p++) {
        slc_part_close(&parts[p]);
    }
    free(parts);
    return blocks;
}

static void every_nonzero_once(void)
{
    static const uint64_t shapes[][MODES] = {{300, 200, 100}, {5000, 3, 70}, {1, 900, 1200}};
    static const unsigned counts[] = {1, 3, 8, 29};

    for (unsigned s = 0; s < SLC_COUNT(shapes); s++) {
        for (unsigned sorted = 0; sorted <= MODES; sorted++) {
            struct place place;

            place_create(&place, shapes[s], NNZ, sorted);
            for (unsigned c = 0; c < SLC_COUNT(counts); c++) {
                const uint32_t kept = sorted < MODES ? UINT32_C(1) << sorted : 1 + (s + c) % 6;

                (void)check_parts(&place, kept, counts[c]);
            }
            place_destroy(&place);
        }
    }
}

/* In a cube of powers of two, parts are boxes that end where blocks end: parts that keep the first
 * bits of keys share few blocks, and have the same size. */
static void few_blocks_are_shared(void)
{
    static const uint64_t dims[MODES] = {256, 256, 256};
    struct slc_error err = SLC_ERROR_INIT;
    struct place place;
    struct slc_part part;

    place_create(&place, dims, 8 * NNZ, MODES);
    const uint64_t blocks = slc_reader_info(place.reader)->block_count;
    CU_ASSERT_TRUE_FATAL(blocks >= 50);
    CU_ASSERT_EQUAL(check_parts(&place, 7, 1), blocks);
    CU_ASSERT_TRUE(check_parts(&place, 3, 2) <= blocks + 1);
    CU_ASSERT_TRUE(check_parts(&place, 3, 4) <= blocks + 3);
    CU_ASSERT_TRUE(check_parts(&place, 3, 8) <= blocks + 15);
    SLC_ASSERT_OK(slc_part_open(&part, place.reader, 3, (struct slc_part_choice){1, 4}, &err),
                  &err);
    CU_ASSERT_TRUE(part.first == (slc_u128)1 << 14 && part.last == ((slc_u128)1 << 15) - 1);
    slc_part_close(&part);
    place_destroy(&place);
}

/* More parts than results: some parts are empty and read nothing. */
static void parts_may_be_empty(void)
{
    static const uint64_t dims[MODES] = {40, 2, 30};
    struct place place;

    place_create(&place, dims, 500, MODES);
    CU_ASSERT_TRUE(check_parts(&place, 2, PARTS_MAX) <=
                   2 * slc_reader_info(place.reader)->block_count);
    place_destroy(&place);
    place_create(&place, dims, 0, MODES);
    CU_ASSERT_EQUAL(check_parts(&place, 5, 3), 0);
    place_destroy(&place);
}

static void wrong_choices(void)
{
    static const uint64_t dims[MODES] = {40, 2, 30};
    static const struct slc_part_choice wrong[] = {{0, 0}, {3, 3}, {0, SLC_PARTS_MAX + 1}};
    struct place place;

    place_create(&place, dims, 500, MODES);
    for (unsigned i = 0; i < SLC_COUNT(wrong); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_part part;

        SLC_ASSERT_FAILS(slc_part_open(&part, place.reader, 5, wrong[i], &err), SLC_ERR_USAGE, &err,
                         "there is no part");
        slc_part_close(&part);
    }
    place_destroy(&place);
}

static const struct slc_test tests[] = {{"every nonzero once", every_nonzero_once},
                                        {"few blocks are shared", few_blocks_are_shared},
                                        {"parts may be empty", parts_may_be_empty},
                                        {"wrong choices", wrong_choices}};

SLC_SUITE(part)
{
    return slc_test_main("part", tests, SLC_COUNT(tests), argc, argv);
}
