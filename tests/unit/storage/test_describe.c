/* Descriptions of blocks (storage/codec/describe.h): a decoder that uses only them finds the
 * encoded nonzeros, the same as storage's own decoder. */
#include "codec_image.h"
#include "describe_fixture.h"
#include "forge_file.h"
#include "make_sorted.h"
#include "naive_decode.h"
#include "slc_test.h"

#include "base/memory/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};

/* Whether run `run` equals the nonzeros of `tile` at its position. */
static bool
same_run(const struct slc_naive_run *decoded, const struct tile_case *tile, uint32_t start)
{
    bool same = true;

    for (uint32_t i = 0; i < decoded->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        slc_key_decode(&tile->info.keys,
                       slc_key_join(tile->key_lo[start + i], tile->key_hi[start + i]), coords);
        for (unsigned n = 0; n < tile->info.order; n++) {
            same &= decoded->coords[n][i] == coords[n];
        }
        same &= slc_bits_f64(decoded->values[i]) == slc_bits_f64(tile->values[start + i]);
    }
    return same;
}

/* The minimal number of 32-bit words that hold all bits in which keys of the tile differ. */
static unsigned key_words(const struct tile_case *tile)
{
    const uint32_t last = tile->nnz - 1;

    if (tile->key_hi[0] != tile->key_hi[last]) {
        return 4;
    }
    return (tile->key_lo[0] ^ tile->key_lo[last]) >> 32 != 0 ? 2 : 1;
}

static void check_tile(const struct tile_case *tile, enum slc_codec codec)
{
    static struct slc_naive_run decoded;
    struct slc_error err = SLC_ERROR_INIT;
    struct followed followed;
    struct block_image image;
    uint32_t nnz = 0;
    bool same = true;

    block_image_make(&image, tile, codec);
    SLC_ASSERT_OK(follow_describe(&followed, &tile->info, &image.view, &err), &err);
    CU_ASSERT(follow_expand(&followed));
    CU_ASSERT(followed.block.expanded_bytes <=
              slc_describe_expanded_bound(&tile->info, &image.view.entry));
    CU_ASSERT_EQUAL(followed.tiles->key_words, key_words(tile));
    for (uint32_t run = 0; run < slc_naive_runs(followed.tiles); run++) {
        same &= slc_naive_decode(&followed.layout, &followed.block, followed.tiles,
                                 followed.expanded, run, &decoded) &&
                same_run(&decoded, tile, nnz);
        nnz += decoded.nnz;
    }
    CU_ASSERT(same);
    CU_ASSERT_EQUAL(nnz, tile->nnz);
    follow_end(&followed);
    block_image_free(&image);
}

static void check_codecs(struct tile_case *tile)
{
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        check_tile(tile, codecs[c]);
    }
    tile_case_free(tile);
}

static void check_random(struct random_stream *random,
                         unsigned order,
                         const uint64_t *dims,
                         unsigned varying,
                         uint32_t nnz,
                         enum value_kind kind)
{
    struct tile_case tile;

    tile_case_make(&tile, random, order, dims, varying, nnz, kind);
    check_codecs(&tile);
}

static void test_values(void)
{
    struct random_stream random = {slc_test_seed(), 60, 0};
    const uint64_t dims[3] = {3000, 500, 7000};

    for (unsigned kind = 0; kind < VALUE_KINDS; kind++) {
        check_random(&random, 3, dims, 128, 3000, (enum value_kind)kind);
    }
}

static void test_orders(void)
{
    struct random_stream random = {slc_test_seed(), 61, 0};

    for (unsigned order = 1; order <= SLC_MAX_ORDER; order++) {
        for (unsigned round = 0; round < 4; round++) {
            uint64_t dims[SLC_MAX_ORDER];

            for (unsigned n = 0; n < order; n++) {
                /* Up to 8 bits each, so that 16 modes fit in keys; every fourth mode has size 1. */
                dims[n] = n % 4 == 3 ? 1 : 1 + draw_below(&random, order == 1 ? 1 << 20 : 256);
            }
            check_random(&random, order, dims, 128, 700, (enum value_kind)(order % VALUE_KINDS));
        }
    }
}

/* Keys of each length with all bits varying, or few. */
static void test_key_bits(void)
{
    static const struct {
        unsigned order;
        unsigned bits[5];
    } shapes[] = {
        {1, {0}},
        {3, {0, 0, 0}},
        {2, {0, 1}},
        {2, {16, 16}},
        {3, {16, 17, 0}},
        {3, {22, 21, 21}},
        {4, {22, 0, 21, 22}},
        {5, {24, 20, 18, 19, 12}},
        {5, {31, 31, 31, 31, 4}},
    };
    static const unsigned varying[] = {128, 100, 64, 40, 32, 20, 8};
    struct random_stream random = {slc_test_seed(), 62, 0};

    for (size_t s = 0; s < SLC_COUNT(shapes); s++) {
        uint64_t dims[5];

        for (unsigned n = 0; n < shapes[s].order; n++) {
            dims[n] = UINT64_C(1) << shapes[s].bits[n];
        }
        for (size_t v = 0; v < SLC_COUNT(varying); v++) {
            check_random(&random, shapes[s].order, dims, varying[v], 1200, VALUES_INTEGER);
        }
    }
}

static void test_sizes(void)
{
    static const uint32_t sizes[] = {1,   2,   127, 128,  129,  511,
                                     512, 513, 640, 1024, 1025, SLC_TILE_NNZ};
    static const enum value_kind kinds[] = {VALUES_INTEGER, VALUES_DICTIONARY, VALUES_F64_SMOOTH};
    struct random_stream random = {slc_test_seed(), 63, 0};
    const uint64_t dims[3] = {1 << 18, 1 << 20, 1 << 19};
    slc_u128 *keys = malloc(SLC_TILE_NNZ * sizeof *keys);

    for (size_t s = 0; s < SLC_COUNT(sizes); s++) {
        for (size_t k = 0; k < (sizes[s] == SLC_TILE_NNZ ? 1 : SLC_COUNT(kinds)); k++) {
            struct tile_case tile;
            slc_u128 key = draw_below(&random, 1 << 30);

            for (uint32_t i = 0; i < sizes[s]; i++) {
                key += 1 + draw_below(&random, draw_below(&random, 50) == 0 ? 1 << 28 : 90);
                keys[i] = key;
            }
            tile_case_from_keys(&tile, &random, 3, dims, keys, sizes[s], kinds[k]);
            check_codecs(&tile);
        }
    }
    free(keys);
}

/* ---- whole files: every tile against storage's decoder */

/* Compares the run with the next chunk of the decoder's tile. */
static bool same_chunk(const struct slc_naive_run *decoded,
                       const struct slc_tile_view *tile,
                       const struct slc_chunk_view *chunk)
{
    bool same = decoded->nnz == chunk->nnz;

    for (uint32_t i = 0; i < chunk->nnz && same; i++) {
        for (unsigned n = 0; n < tile->order; n++) {
            same &= decoded->coords[n][i] == tile->corner[n] + chunk->offset[n][i];
        }
        same &=
            slc_bits_f64(decoded->values[i]) == slc_bits_f64(((const double *)chunk->values)[i]);
    }
    return same;
}

/* The tile described alone, from its open view, has the same run. */
static void check_alone(const struct slc_layout_info *info,
                        const struct followed *followed,
                        struct slc_tile_view *opened,
                        uint32_t run,
                        const struct slc_naive_run *expected)
{
    static struct slc_naive_run decoded;
    struct slc_encoded_block alone;
    bool same;

    SLC_ASSERT_OK(opened->describe(opened, &alone, NULL), NULL);
    CU_ASSERT_EQUAL(alone.block, followed->block.block);
    CU_ASSERT_EQUAL(alone.offset, followed->block.offset);
    CU_ASSERT(alone.tile_count == 1 && alone.nnz == opened->nnz);
    CU_ASSERT_EQUAL(alone.tiles[0].ordinal, opened->ordinal);
    CU_ASSERT(alone.bytes <= slc_describe_tile_bound(info));
    CU_ASSERT(alone.expanded_bytes <= slc_describe_tile_expanded_bound(info));
    CU_ASSERT((const uint8_t *)alone.data >= (const uint8_t *)followed->block.data);
    CU_ASSERT((const uint8_t *)alone.data + alone.bytes <=
              (const uint8_t *)followed->block.data + followed->block.bytes);
    CU_ASSERT((alone.expanded != NULL) == (alone.tiles[0].lz4.bytes > 0));
    CU_ASSERT(
        slc_naive_decode(&followed->layout, &alone, alone.tiles, alone.expanded, run, &decoded));
    same = decoded.nnz == expected->nnz &&
           memcmp(decoded.values, expected->values, decoded.nnz * sizeof(double)) == 0;
    for (unsigned n = 0; n < opened->order && same; n++) {
        same = memcmp(decoded.coords[n], expected->coords[n], decoded.nnz * sizeof(uint64_t)) == 0;
    }
    CU_ASSERT(same);
}

static void check_decoded(const struct followed *followed,
                          const struct slc_block_view *view,
                          struct slc_decoder *decoder,
                          uint32_t index)
{
    static struct slc_naive_run decoded;
    const struct slc_encoded_tile *tile = &followed->tiles[index];
    const struct slc_layout_info *info = slc_reader_info(view->reader);
    struct slc_tile_view opened;
    struct slc_chunk_view chunk;

    SLC_ASSERT_OK(slc_tile_open(decoder, view, index, &opened, NULL), NULL);
    CU_ASSERT_EQUAL(tile->nnz, opened.nnz);
    CU_ASSERT_EQUAL(tile->ordinal, opened.ordinal);
    for (uint32_t run = 0; run < slc_naive_runs(tile); run++) {
        SLC_ASSERT_OK(opened.next(&opened, SLC_RUN_NNZ, &chunk, NULL), NULL);
        CU_ASSERT(slc_naive_decode(&followed->layout, &followed->block, tile, followed->expanded,
                                   run, &decoded));
        CU_ASSERT(same_chunk(&decoded, &opened, &chunk));
        check_alone(info, followed, &opened, run, &decoded);
    }
}

static void check_block(const struct slc_reader *reader, uint64_t block, const uint8_t *file)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct slc_decoder *decoder = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_block_entry entry;
    struct slc_block_view view;
    struct followed followed;
    uint64_t nnz = 0;

    slc_reader_entry(reader, block, &entry);
    SLC_ASSERT_OK(slc_block_open(reader, block, file + entry.offset, false, &view, &err), &err);
    SLC_ASSERT_OK(follow_describe(&followed, info, &view, &err), &err);
    CU_ASSERT(follow_expand(&followed));
    CU_ASSERT(followed.block.expanded_bytes <= slc_describe_expanded_bound(info, &entry));
    CU_ASSERT_EQUAL(followed.block.block, block);
    CU_ASSERT_EQUAL(followed.block.offset, entry.offset);
    CU_ASSERT_EQUAL(followed.block.bytes, entry.bytes);
    CU_ASSERT_EQUAL(followed.block.tile_count, entry.tile_count);
    SLC_ASSERT_OK(slc_decoder_create(info, SLC_F64, &decoder, NULL), NULL);
    for (uint32_t t = 0; t < entry.tile_count; t++) {
        check_decoded(&followed, &view, decoder, t);
        nnz += followed.tiles[t].nnz;
    }
    CU_ASSERT_EQUAL(nnz, entry.nnz);
    CU_ASSERT_EQUAL(followed.block.nnz, entry.nnz);
    slc_decoder_destroy(decoder);
    follow_end(&followed);
}

/* A file of several blocks, at least one with several tiles. */
static void check_file(const char *path)
{
    struct slc_reader *reader = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_forged file;

    SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
    slc_forged_load(&file, path);
    CU_ASSERT(slc_reader_info(reader)->block_count > 1);
    CU_ASSERT(slc_reader_info(reader)->tile_count > slc_reader_info(reader)->block_count);
    for (uint64_t block = 0; block < slc_reader_info(reader)->block_count; block++) {
        check_block(reader, block, file.bytes);
    }
    slc_forged_release(&file);
    slc_reader_close(reader);
    unlink(path);
}

/* The tensor in each layout, the first with its keys' own run. */
static void check_layouts(const struct slc_made_tensor *tensor, unsigned mode, enum slc_codec codec)
{
    char path[4096];
    struct slc_made_sorted sorted;
    struct slc_writer_summary summary;
    struct slc_error err = SLC_ERROR_INIT;

    snprintf(path, sizeof path, "%s/layout.blk", slc_test_folder());
    SLC_ASSERT_OK(slc_made_blocks_write(tensor, NULL, path, codec, 8192, &summary, &err), &err);
    check_file(path);
    slc_made_sorted_create(&sorted, tensor, mode, tensor->nnz / 3);
    SLC_ASSERT_OK(slc_made_sorted_write(&sorted, NULL, path, codec, 8192, &summary, &err), &err);
    slc_made_sorted_destroy(&sorted);
    check_file(path);
    SLC_ASSERT_OK(slc_made_fibers_write(tensor, mode, path, codec, 8192, &summary, &err), &err);
    check_file(path);
}

static void test_layouts(void)
{
    const uint64_t dims[4] = {50, 700, 1, 300};
    struct slc_made_tensor tensor, rekeyed;

    for (int values = 0; values < SLC_MADE_VALUES; values += slc_test_quick() ? 3 : 1) {
        slc_made_tensor_create(&tensor, 4, dims, 7000, (enum slc_made_values)values,
                               slc_test_seed());
        for (uint64_t i = 0; values % 2 == 1 && i < tensor.nnz; i += 9) {
            tensor.values[i] = 0;
        }
        slc_made_tensor_rekey(&tensor, (struct slc_fiber_run){3, 5}, &rekeyed);
        tensor.tile_nnz = 150;
        rekeyed.tile_nnz = 150;
        for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
            check_layouts(&tensor, 1, codecs[c]);
            check_layouts(&rekeyed, 3, codecs[c]);
        }
        slc_made_tensor_destroy(&rekeyed);
        slc_made_tensor_destroy(&tensor);
    }
}

/* The expanded size of a block may exceed 32 bits. */
static void test_bound(void)
{
    struct slc_layout_info info = {.keys = {.bits = 128}};
    struct slc_block_entry entry = {.nnz = UINT64_C(1) << 36, .tile_count = 1 << 20};

    entry.codec = SLC_CODEC_LZ4;
    CU_ASSERT_EQUAL(slc_describe_expanded_bound(&info, &entry),
                    (UINT64_C(24) << 36) + (UINT64_C(15) << 20));
    info.keys.bits = 9;
    CU_ASSERT_EQUAL(slc_describe_expanded_bound(&info, &entry),
                    (UINT64_C(10) << 36) + (UINT64_C(15) << 20));
    entry.codec = SLC_CODEC_PACKED;
    CU_ASSERT_EQUAL(slc_describe_expanded_bound(&info, &entry),
                    (UINT64_C(8) << 36) + (UINT64_C(15) << 20));
    entry.codec = SLC_CODEC_BLCO;
    CU_ASSERT_EQUAL(slc_describe_expanded_bound(&info, &entry), 0);
}

static const struct slc_test tests[] = {
    {"every form of values, by every codec", test_values},
    {"1 to 16 modes, and modes of length 1", test_orders},
    {"keys of 0 to 128 bits", test_key_bits},
    {"tiles of 1 to 65536 nonzeros", test_sizes},
    {"files of every layout, with runs, blocks and tiles", test_layouts},
    {"how much blocks can expand to", test_bound},
};

SLC_SUITE(describe)
{
    return slc_test_main("describe", tests, SLC_COUNT(tests), argc, argv);
}
