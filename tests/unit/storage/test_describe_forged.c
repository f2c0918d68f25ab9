/* Descriptions of damaged data: rejected with the same message and position as when opening the
 * tile; an accepted description never leads outside the block (images have the exact size, so a
 * sanitizer detects it). */
#include "codec_image.h"
#include "describe_fixture.h"
#include "naive_decode.h"
#include "slc_test.h"

#include <string.h>

static const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};

/* How often each outcome occurred, so that none is missing by chance. */
struct ends {
    uint64_t refused, not_expanded, not_decoded, sound;
};

static bool same_error(const struct slc_error *a, const struct slc_error *b)
{
    return a->status == b->status && a->block == b->block && a->offset == b->offset &&
           strcmp(a->message, b->message) == 0;
}

/* Decodes the whole tile with the naive decoder. */
static bool decode_all(const struct followed *followed)
{
    static struct slc_naive_run decoded;
    bool sound = true;

    for (uint32_t run = 0; run < slc_naive_runs(followed->tiles); run++) {
        sound &= slc_naive_decode(&followed->layout, &followed->block, followed->tiles,
                                  followed->expanded, run, &decoded);
    }
    return sound;
}

/* Opening rejects exactly what describing rejects, and decoding what cannot be expanded. */
static void check_changed(struct slc_decoder *decoder,
                          const struct block_image *image,
                          const struct slc_layout_info *info,
                          struct ends *ends)
{
    struct slc_error open_err = SLC_ERROR_INIT, describe_err = SLC_ERROR_INIT;
    struct followed followed;
    struct slc_tile_view tile;
    struct slc_chunk_view chunk;
    enum slc_status open, described;

    open = slc_tile_open(decoder, &image->view, 0, &tile, &open_err);
    described = follow_describe(&followed, info, &image->view, &describe_err);
    CU_ASSERT_EQUAL(open, described);
    if (described != SLC_OK) {
        CU_ASSERT(same_error(&open_err, &describe_err));
        ends->refused++;
    } else if (!follow_expand(&followed)) {
        SLC_ASSERT_FAILS(tile.next(&tile, SLC_GROUP_NNZ, &chunk, &open_err), SLC_ERR_DAMAGED,
                         &open_err, "expanded size of an LZ4 section");
        ends->not_expanded++;
    } else {
        if (decode_all(&followed)) {
            ends->sound++;
        } else {
            ends->not_decoded++;
        }
    }
    follow_end(&followed);
}

/* Flips every bit of the directory and the data, one after the other; quick tests flip about a
 * third of these bits. */
static void
flip_bits(struct block_image *image, const struct slc_layout_info *info, struct ends *ends)
{
    const uint64_t end = image->view.entry.bytes - SLC_BLOCK_SLACK_BYTES;
    struct slc_decoder *decoder = NULL;

    SLC_ASSERT_OK(slc_decoder_create(info, SLC_F64, &decoder, NULL), NULL);
    for (uint64_t bit = 8 * SLC_BLOCK_HEADER_BYTES; bit < 8 * end;
         bit += slc_test_quick() ? 5 : 1) {
        image->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        check_changed(decoder, image, info, ends);
        image->bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    slc_decoder_destroy(decoder);
}

static void check_flips(struct random_stream *random,
                        unsigned order,
                        const uint64_t *dims,
                        uint32_t nnz,
                        enum value_kind kind,
                        struct ends *ends)
{
    struct tile_case tile;

    tile_case_make(&tile, random, order, dims, 128, nnz, kind);
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        struct block_image image;

        block_image_make(&image, &tile, codecs[c]);
        flip_bits(&image, &tile.info, ends);
        block_image_free(&image);
    }
    tile_case_free(&tile);
}

static void test_flips(void)
{
    static const uint32_t sizes[] = {1, 3, 140};
    const uint64_t short_dims[3] = {300, 1, 70};
    const uint64_t long_dims[5] = {1 << 24, 1 << 20, 1 << 18, 1 << 19, 1 << 12};
    struct random_stream random = {slc_test_seed(), 70, 0};
    struct ends ends = {0, 0, 0, 0};

    for (size_t s = 0; s < SLC_COUNT(sizes); s++) {
        for (unsigned kind = 0; kind < VALUE_KINDS; kind++) {
            check_flips(&random, 3, short_dims, sizes[s], (enum value_kind)kind, &ends);
        }
        check_flips(&random, 5, long_dims, sizes[s], VALUES_INTEGER, &ends);
    }
    CU_ASSERT(ends.refused > 0 && ends.not_expanded > 0 && ends.not_decoded > 0 && ends.sound > 0);
}

/* Long tiles with several random bytes: many runs, dictionaries, long LZ4 sections. */
static void test_overwritten(void)
{
    const uint64_t dims[4] = {1 << 20, 1 << 19, 1 << 20, 1 << 18};
    struct random_stream random = {slc_test_seed(), 71, 0};
    struct ends ends = {0, 0, 0, 0};

    for (unsigned kind = 0; kind < VALUE_KINDS; kind++) {
        struct tile_case tile;

        tile_case_make(&tile, &random, 4, dims, 128, 1500, (enum value_kind)kind);
        for (unsigned i = 0; i < (slc_test_quick() ? 60 : 300); i++) {
            struct slc_decoder *decoder = NULL;
            struct block_image image;
            const uint64_t data_at = slc_tile_entry_offset(4, 1);

            block_image_make(&image, &tile, codecs[i % SLC_COUNT(codecs)]);
            for (unsigned b = 0; b < 1 + i % 5; b++) {
                image.bytes[data_at + draw_below(&random, image.blob.data_bytes)] =
                    (uint8_t)draw(&random);
            }
            SLC_ASSERT_OK(slc_decoder_create(&tile.info, SLC_F64, &decoder, NULL), NULL);
            check_changed(decoder, &image, &tile.info, &ends);
            slc_decoder_destroy(decoder);
            block_image_free(&image);
        }
        tile_case_free(&tile);
    }
    CU_ASSERT(ends.not_expanded > 0 && ends.not_decoded > 0 && ends.sound > 0);
}

/* An empty section cannot be expanded: it is rejected before that. */
static void test_empty_section(void)
{
    const uint64_t dims[2] = {1 << 10, 1 << 10};
    struct random_stream random = {slc_test_seed(), 72, 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_decoder *decoder = NULL;
    struct ends ends = {0, 0, 0, 0};
    struct followed followed;
    struct block_image image;
    struct tile_case tile;
    uint8_t *entry;

    tile_case_make(&tile, &random, 2, dims, 128, 1000, VALUES_F64_SMOOTH);
    block_image_make(&image, &tile, SLC_CODEC_LZ4);
    entry = image.bytes + slc_tile_entry_offset(2, 0);
    slc_store_u32(entry + SLC_TILE_AT_DATA_BYTES, 8);
    slc_store_u32(image.bytes + slc_tile_entry_offset(2, 1) + 4, 0);
    SLC_ASSERT_FAILS(follow_describe(&followed, &tile.info, &image.view, &err), SLC_ERR_DAMAGED,
                     &err, "the expanded size of an LZ4 section is 0");
    CU_ASSERT_EQUAL(err.offset, SLC_PAGE_BYTES + slc_tile_entry_offset(2, 1) + 8);
    follow_end(&followed);
    SLC_ASSERT_OK(slc_decoder_create(&tile.info, SLC_F64, &decoder, NULL), NULL);
    check_changed(decoder, &image, &tile.info, &ends);
    CU_ASSERT_EQUAL(ends.refused, 1);
    slc_decoder_destroy(decoder);
    block_image_free(&image);
    tile_case_free(&tile);
}

static const struct slc_test tests[] = {
    {"every bit flipped: refused as opening refuses, or followed within the block", test_flips},
    {"bytes of long tiles drawn anew", test_overwritten},
    {"a section under LZ4 of no bytes", test_empty_section},
};

SLC_SUITE(describe_forged)
{
    return slc_test_main("describe-forged", tests, SLC_COUNT(tests), argc, argv);
}
