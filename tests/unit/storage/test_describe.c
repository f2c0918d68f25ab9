/*
 * Descriptions of blocks (storage/describe.h): a decoder that follows them and knows nothing else
 * finds the nonzeros that were encoded.
 */
#include "codec_image.h"
#include "naive_decode.h"
#include "slc_test.h"
#include "storage/describe.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

static const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};

/* A block, its description and what LZ4 hid of it. */
struct followed {
    struct slc_encoded_layout layout;
    struct slc_encoded_block block;
    struct slc_encoded_tile *tiles;
    uint8_t *expanded;
};

static void free_followed(struct followed *followed)
{
    free(followed->tiles);
    free(followed->expanded);
}

static enum slc_status describe(struct followed *followed,
                                const struct slc_layout_info *info,
                                const struct slc_block_view *view,
                                struct slc_error *err)
{
    struct slc_decoder *decoder = NULL;
    enum slc_status status;

    memset(followed, 0, sizeof *followed);
    followed->tiles = calloc(view->entry.tile_count, sizeof *followed->tiles);
    slc_describe_layout(info, &followed->layout);
    SLC_ASSERT_OK(slc_decoder_create(info, SLC_F64, &decoder, err), err);
    status = slc_describe_block(decoder, view, followed->tiles, &followed->block, err);
    slc_decoder_destroy(decoder);
    return status;
}

/* Sections expand to places of their own, in order, and to no more than was foretold. */
static void expand(struct followed *followed,
                   const struct slc_layout_info *info,
                   const struct slc_block_view *view)
{
    uint64_t end = 0;

    CU_ASSERT(followed->block.expanded_bytes <= slc_describe_expanded_bound(info, &view->entry));
    followed->expanded = malloc(followed->block.expanded_bytes + 1);
    for (uint32_t t = 0; t < followed->block.tile_count; t++) {
        const struct slc_encoded_lz4 *lz4 = &followed->tiles[t].lz4;

        if (lz4->bytes > 0) {
            CU_ASSERT_EQUAL(lz4->expanded_at % 16, 0);
            CU_ASSERT(lz4->expanded_at >= end);
            end = lz4->expanded_at + lz4->expanded_bytes;
        }
        CU_ASSERT(end <= followed->block.expanded_bytes);
        CU_ASSERT(slc_naive_expand(&followed->block, &followed->tiles[t], followed->expanded));
    }
}

/* Whether run `run` is the nonzeros of `tile` from its place on. */
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

static void check_tile(const struct tile_case *tile, enum slc_codec codec)
{
    static struct slc_naive_run decoded;
    struct slc_error err = SLC_ERROR_INIT;
    struct followed followed;
    struct block_image image;
    uint32_t nnz = 0;
    bool same = true;

    block_image_make(&image, tile, codec);
    SLC_ASSERT_OK(describe(&followed, &tile->info, &image.view, &err), &err);
    expand(&followed, &tile->info, &image.view);
    for (uint32_t run = 0; run < slc_naive_runs(followed.tiles); run++) {
        same &= slc_naive_decode(&followed.layout, &followed.block, followed.tiles,
                                 followed.expanded, run, &decoded) &&
                same_run(&decoded, tile, nnz);
        nnz += decoded.nnz;
    }
    CU_ASSERT(same);
    CU_ASSERT_EQUAL(nnz, tile->nnz);
    free_followed(&followed);
    block_image_free(&image);
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
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        check_tile(&tile, codecs[c]);
    }
    tile_case_free(&tile);
}

static void test_values(void)
{
    struct random_stream random = {slc_test_seed(), 60, 0};
    const uint64_t dims[3] = {3000, 500, 7000};

    for (unsigned kind = 0; kind < VALUE_KINDS; kind++) {
        check_random(&random, 3, dims, 128, 3000, (enum value_kind)kind);
    }
}

static const struct slc_test tests[] = {
    {"every form of values, by every codec", test_values},
};

int main(int argc, char **argv)
{
    return slc_test_main("describe", tests, SLC_COUNT(tests), argc, argv);
}
