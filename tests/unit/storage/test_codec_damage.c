/*
 * Decoding bytes that are not what an encoder wrote: every bit of small tiles flipped, larger ones
 * overwritten at random, directory entries that lie. Each must give SLC_ERR_DAMAGED with file,
 * block and offset, or chunks that keep their promises; nothing may be read outside the block (the
 * images are allocated without a byte to spare, so a sanitizer sees it).
 */
#include "codec_image.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};

/* Decodes a changed image; returns true when the change was noticed. */
static bool decode_changed(const struct block_image *image, const struct tile_case *tile)
{
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status = block_image_decode(image, &tile->info, SLC_F64, 256, NULL, &err);

    CU_ASSERT(status == SLC_OK || status == SLC_ERR_DAMAGED);
    if (status == SLC_ERR_DAMAGED) {
        CU_ASSERT_EQUAL(err.block, 0);
        CU_ASSERT(err.offset >= SLC_PAGE_BYTES &&
                  err.offset <= SLC_PAGE_BYTES + image->view.entry.bytes);
        CU_ASSERT(strstr(err.message, "tile 0 of the block: ") != NULL);
    }
    return status != SLC_OK;
}

/* Flips each bit from the directory to the end of the data. */
static void flip_all_bits(struct block_image *image, const struct tile_case *tile)
{
    uint64_t end = image->view.entry.bytes - SLC_BLOCK_SLACK_BYTES;
    uint64_t noticed = 0;

    for (uint64_t bit = 8 * SLC_BLOCK_HEADER_BYTES; bit < 8 * end; bit++) {
        image->bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        noticed += decode_changed(image, tile);
        image->bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    }
    CU_ASSERT(noticed > 0);
    CU_ASSERT(!decode_changed(image, tile));
}

static void flip_tile(struct random_stream *random,
                      unsigned order,
                      const uint64_t *dims,
                      unsigned varying,
                      uint32_t nnz,
                      enum value_kind kind)
{
    struct tile_case tile;

    tile_case_make(&tile, random, order, dims, varying, nnz, kind);
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        struct block_image image;

        block_image_make(&image, &tile, codecs[c]);
        flip_all_bits(&image, &tile);
        block_image_free(&image);
    }
    tile_case_free(&tile);
}

static void test_flips(void)
{
    static const uint32_t sizes[] = {1, 3, 40, 131};
    struct random_stream random = {slc_test_seed(), 20, 0};
    const uint64_t short_dims[3] = {300, 1, 70};
    const uint64_t long_dims[5] = {1 << 20, 1 << 19, 1 << 20, 1 << 18, 1 << 16};

    for (size_t s = 0; s < SLC_COUNT(sizes); s++) {
        for (unsigned kind = 0; kind<VALUE_KINDS; kind += sizes[s]> 100 ? 2 : 1) {
            flip_tile(&random, 3, short_dims, 128, sizes[s], (enum value_kind)kind);
        }
        flip_tile(&random, 5, long_dims, 128, sizes[s], VALUES_INTEGER);
        flip_tile(&random, 5, long_dims, 60, sizes[s], VALUES_F32);
    }
}

/* Tiles with LZ4 sections and dictionaries, where bytes steer more than one field. */
static void test_overwrites(void)
{
    struct random_stream random = {slc_test_seed(), 21, 0};
    const uint64_t dims[4] = {1 << 12, 1 << 14, 1 << 20, 1 << 22};

    for (unsigned kind = 0; kind < VALUE_KINDS; kind++) {
        struct tile_case tile;

        tile_case_make(&tile, &random, 4, dims, 20 + 6 * kind, 5000, (enum value_kind)kind);
        for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
            struct block_image image;
            uint64_t data_at, data_bytes;
            uint8_t *good;

            block_image_make(&image, &tile, codecs[c]);
            good = malloc(image.view.entry.bytes);
            memcpy(good, image.bytes, image.view.entry.bytes);
            data_at = slc_tile_entry_offset(4, 1);
            data_bytes = image.blob.data_bytes;
            for (unsigned round = 0; round < 150; round++) {
                unsigned changes = 1 + (unsigned)draw_below(&random, 8);
                uint64_t reach = round % 3 == 0 ? 64 : round % 3 == 1 ? 400 : data_bytes;

                reach = reach < data_bytes ? reach : data_bytes;
                for (unsigned i = 0; i < changes; i++) {
                    image.bytes[data_at + draw_below(&random, reach)] = (uint8_t)draw(&random);
                }
                decode_changed(&image, &tile);
                memcpy(image.bytes, good, image.view.entry.bytes);
            }
            free(good);
            block_image_free(&image);
        }
        tile_case_free(&tile);
    }
}

/* Directory entries that contradict the data or the tensor. */
static void test_lies(void)
{
    struct random_stream random = {slc_test_seed(), 22, 0};
    const uint64_t dims[3] = {1000, 50, 3};
    struct tile_case tile;
    struct block_image image;
    struct slc_tile_entry good, bad;

    tile_case_make(&tile, &random, 3, dims, 128, 500, VALUES_F32);
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        uint8_t *entry;

        block_image_make(&image, &tile, codecs[c]);
        entry = image.bytes + SLC_BLOCK_HEADER_BYTES;
        slc_tile_entry_load(entry, 3, &good);
        for (unsigned lie = 0; lie < 16; lie++) {
            struct slc_error err = SLC_ERROR_INIT;

            bad = good;
            switch (lie) {
            case 0:
                bad.data_offset = 8;
                break;
            case 1:
                bad.data_offset = UINT64_MAX - 7;
                break;
            case 2:
                bad.data_offset += 4;
                break;
            case 3:
                bad.data_bytes += 8;
                break;
            case 4:
                bad.data_bytes = 0;
                break;
            case 5:
                bad.nnz = 0;
                break;
            case 6:
                bad.nnz = SLC_TILE_NNZ + 1;
                break;
            case 7:
                bad.nnz--;
                break;
            case 8:
                bad.nnz++;
                break;
            case 9:
                bad.first_lo++;
                break;
            case 10:
                bad.last_lo--;
                break;
            case 11:
                bad.last_hi = 1;
                break;
            case 12:
                bad.extent[1]--;
                break;
            case 13:
                bad.corner[0]++;
                break;
            case 14:
                bad.corner[2] = UINT64_MAX;
                break;
            case 15:
                bad.extent[0] = UINT32_MAX;
                break;
            }
            slc_tile_entry_store(entry, 3, &bad);
            SLC_ASSERT_FAILS(block_image_decode(&image, &tile.info, SLC_F64, 256, NULL, &err),
                             SLC_ERR_DAMAGED, &err, "tile 0 of the block");
        }
        slc_tile_entry_store(entry, 3, &good);
        image.view.entry.bytes = SLC_BLOCK_HEADER_BYTES;
        CU_ASSERT(decode_changed(&image, &tile));
        block_image_free(&image);
    }
    tile_case_free(&tile);
}

static const struct slc_test tests[] = {
    {"every flipped bit is noticed or harmless", test_flips},
    {"overwritten bytes are noticed or harmless", test_overwrites},
    {"directory entries that lie are refused", test_lies},
};

int main(int argc, char **argv)
{
    return slc_test_main("codec-damage", tests, SLC_COUNT(tests), argc, argv);
}
