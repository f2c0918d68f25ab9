/* Decoding of damaged data: every bit of small tiles flipped, larger ones overwritten at random,
 * wrong directory entries. Each must yield SLC_ERR_DAMAGED with file, block and offset, or chunks
 * that keep their guarantees; nothing outside the block may be read (the images have the exact
 * size, so a sanitizer detects it). */
#include "base/memory/bytes.h"
#include "codec_image.h"
#include "slc_test.h"
#include "storage/codec/bitpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIES = 16 };

static const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};

static struct slc_decoder *make_decoder(const struct tile_case *tile)
{
    struct slc_decoder *decoder = NULL;

    SLC_ASSERT_OK(slc_decoder_create(&tile->info, SLC_F64, &decoder, NULL), NULL);
    return decoder;
}

/* Decodes a changed image; returns true if the change was detected. */
static bool decode_changed(struct slc_decoder *decoder,
                           const struct block_image *image,
                           const struct tile_case *tile)
{
    struct slc_error err = SLC_ERROR_INIT;
    enum slc_status status = block_image_decode_by(decoder, image, &tile->info, 256, NULL, &err);

    CU_ASSERT(status == SLC_OK || status == SLC_ERR_DAMAGED);
    if (status == SLC_ERR_DAMAGED) {
        CU_ASSERT_EQUAL(err.block, 0);
        CU_ASSERT(err.offset >= SLC_PAGE_BYTES &&
                  err.offset <= SLC_PAGE_BYTES + image->view.entry.bytes);
        CU_ASSERT(strstr(err.message, "tile 0 of the block: ") != NULL);
    }
    return status != SLC_OK;
}

/* Flips bits from the directory to the end of the data, every third bit under sanitizers. */
static void flip_all_bits(struct block_image *image, const struct tile_case *tile)
{
    uint64_t end = image->view.entry.bytes - SLC_BLOCK_SLACK_BYTES;
    /* A single decoder, because it must survive damage and keep no trace of it. */
    struct slc_decoder *decoder = make_decoder(tile);
    uint64_t noticed = 0;

    for (uint64_t bit = 8 * SLC_BLOCK_HEADER_BYTES; bit < 8 * end;
         bit += slc_test_quick() ? 3 : 1) {
        image->bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        noticed += decode_changed(decoder, image, tile);
        image->bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
    }
    CU_ASSERT(noticed > 0);
    CU_ASSERT(!decode_changed(decoder, image, tile));
    slc_decoder_destroy(decoder);
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

/* Every instruction set detects the same changes of runs that one of them finds without keys. */
static void test_flipped_runs(void)
{
    static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};
    struct random_stream random = {slc_test_seed(), 29, 0};

    for (unsigned bits = 2; bits <= 8; bits += 3) {
        struct tile_case tile;
        struct block_image image;
        uint64_t noticed[SLC_COUNT(sets)] = {0};

        tile_case_make_runs(&tile, &random, bits, 2 * SLC_GROUP_NNZ, VALUES_CONSTANT);
        block_image_make(&image, &tile, SLC_CODEC_PACKED);
        for (uint64_t bit = 8 * SLC_BLOCK_HEADER_BYTES;
             bit < 8 * (image.view.entry.bytes - SLC_BLOCK_SLACK_BYTES); bit++) {
            image.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
            for (size_t s = 0; s < SLC_COUNT(sets); s++) {
                if (slc_decoder_force(sets[s])) {
                    struct slc_decoder *decoder = make_decoder(&tile);

                    /* Add the change to a hash of the detected changes. */
                    noticed[s] =
                        (2 * noticed[s] + decode_changed(decoder, &image, &tile)) % 1000003;
                    slc_decoder_destroy(decoder);
                }
            }
            image.bytes[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        }
        for (size_t s = 0; s < SLC_COUNT(sets); s++) {
            CU_ASSERT(!slc_decoder_force(sets[s]) || noticed[s] == noticed[0]);
        }
        CU_ASSERT(slc_decoder_force(NULL));
        block_image_free(&image);
        tile_case_free(&tile);
    }
}

/* Tiles with LZ4 sections and dictionaries, where bytes affect several fields. */
static void test_overwrites(void)
{
    struct random_stream random = {slc_test_seed(), 21, 0};
    const uint64_t dims[4] = {1 << 12, 1 << 14, 1 << 20, 1 << 22};

    for (unsigned kind = 0; kind < VALUE_KINDS; kind++) {
        struct tile_case tile;
        struct slc_decoder *decoder;

        tile_case_make(&tile, &random, 4, dims, 20 + 6 * kind, 5000, (enum value_kind)kind);
        decoder = make_decoder(&tile);
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
                decode_changed(decoder, &image, &tile);
                memcpy(image.bytes, good, image.view.entry.bytes);
            }
            free(good);
            block_image_free(&image);
        }
        slc_decoder_destroy(decoder);
        tile_case_free(&tile);
    }
}

/* Changes one field so that it contradicts the others, the data or the tensor. */
static void forge_field(struct slc_tile_entry *entry, unsigned lie)
{
    switch (lie) {
    case 0:
        entry->data_offset = 8;
        break;
    case 1:
        entry->data_offset = UINT64_MAX - 7;
        break;
    case 2:
        entry->data_offset += 4;
        break;
    case 3:
        entry->data_bytes += 8;
        break;
    case 4:
        entry->data_bytes = 0;
        break;
    case 5:
        entry->nnz = 0;
        break;
    case 6:
        entry->nnz = SLC_TILE_NNZ + 1;
        break;
    case 7:
        entry->nnz--;
        break;
    case 8:
        entry->nnz++;
        break;
    case 9:
        entry->first_lo++;
        break;
    case 10:
        entry->last_lo--;
        break;
    case 11:
        entry->last_hi = 1;
        break;
    case 12:
        entry->extent[1]--;
        break;
    case 13:
        entry->corner[0]++;
        break;
    case 14:
        entry->corner[2] = UINT64_MAX;
        break;
    case 15:
        entry->extent[0] = UINT32_MAX;
        break;
    }
}

/* Directory entries that contradict the data or the tensor. */
static void test_wrong_entries(void)
{
    struct random_stream random = {slc_test_seed(), 22, 0};
    const uint64_t dims[3] = {1000, 50, 3};
    struct tile_case tile;
    struct block_image image;
    struct slc_tile_entry good, bad;

    tile_case_make(&tile, &random, 3, dims, 128, 500, VALUES_F32);
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        struct slc_error err = SLC_ERROR_INIT;
        uint8_t *entry;

        block_image_make(&image, &tile, codecs[c]);
        entry = image.bytes + SLC_BLOCK_HEADER_BYTES;
        slc_tile_entry_load(entry, 3, &good);
        for (unsigned lie = 0; lie < LIES; lie++) {
            bad = good;
            forge_field(&bad, lie);
            slc_tile_entry_store(entry, 3, &bad);
            slc_error_clear(&err);
            SLC_ASSERT_FAILS(block_image_decode(&image, &tile.info, SLC_F64, 256, NULL, &err),
                             SLC_ERR_DAMAGED, &err, "tile 0 of the block");
        }
        slc_tile_entry_store(entry, 3, &good);
        image.view.entry.bytes = SLC_BLOCK_HEADER_BYTES;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(block_image_decode(&image, &tile.info, SLC_F64, 256, NULL, &err),
                         SLC_ERR_DAMAGED, &err, "tile 0 of the block");
        block_image_free(&image);
    }
    tile_case_free(&tile);
}

/* Writes `bits` over value `i` of a plain f64 or f32 section and expects an error. */
static void refuse_value(struct block_image *image,
                         const struct tile_case *tile,
                         uint8_t *value,
                         uint64_t bits,
                         unsigned value_bytes)
{
    static const enum slc_value_type types[] = {SLC_F64, SLC_F32};
    uint8_t good[8];

    memcpy(good, value, value_bytes);
    if (value_bytes == 4) {
        slc_store_u32(value, (uint32_t)bits);
    } else {
        slc_store_u64(value, bits);
    }
    for (size_t t = 0; t < SLC_COUNT(types); t++) {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_FAILS(block_image_decode(image, &tile->info, types[t], 256, NULL, &err),
                         SLC_ERR_DAMAGED, &err, "value");
    }
    memcpy(value, good, value_bytes);
}

/* Zeros, infinities and NaN stored as values, in every form that could hold them. */
static void test_unsound_values(void)
{
    static const uint64_t wrong64[] = {0, UINT64_C(1) << 63, UINT64_C(0x7ff) << 52,
                                       UINT64_C(0xfff) << 52, UINT64_C(0x7ff8000000000001)};
    static const uint64_t wrong32[] = {0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00001};
    static const enum value_kind kinds[] = {VALUES_CONSTANT, VALUES_DICTIONARY, VALUES_F32,
                                            VALUES_F64};
    struct random_stream random = {slc_test_seed(), 23, 0};
    const uint64_t dims[2] = {1 << 20, 1 << 20};

    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct tile_case tile;
        struct block_image image;
        unsigned value_bytes = kinds[k] == VALUES_F32 ? 4 : 8;
        uint8_t *data, *values;

        tile_case_make(&tile, &random, 2, dims, 40, 600, kinds[k]);
        block_image_make(&image, &tile, SLC_CODEC_PACKED);
        data = image.bytes + slc_tile_entry_offset(2, 1);
        values = data + slc_load_u32(data + 4) + (kinds[k] == VALUES_DICTIONARY ? 8 : 0);
        for (size_t w = 0; w < SLC_COUNT(wrong64); w++) {
            uint64_t bits = value_bytes == 4 ? wrong32[w] : wrong64[w];

            refuse_value(&image, &tile, values, bits, value_bytes);
            if (kinds[k] == VALUES_F32 || kinds[k] == VALUES_F64) {
                refuse_value(&image, &tile, values + (size_t)(tile.nnz - 1) * value_bytes, bits,
                             value_bytes);
            }
        }
        block_image_free(&image);
        block_image_make(&image, &tile, SLC_CODEC_BLCO);
        values = image.bytes + image.view.entry.bytes - SLC_BLOCK_SLACK_BYTES - 8;
        for (size_t w = 0; w < SLC_COUNT(wrong64); w++) {
            refuse_value(&image, &tile, values, wrong64[w], 8);
        }
        block_image_free(&image);
        tile_case_free(&tile);
    }
}

/* An integer section whose smallest value makes one of its values zero, or all of them too
 * large. */
static void test_unsound_integers(void)
{
    struct random_stream random = {slc_test_seed(), 24, 0};
    const uint64_t dims[2] = {1 << 20, 1 << 20};
    struct tile_case tile;
    struct block_image image;
    uint8_t *data, *low;

    tile_case_make(&tile, &random, 2, dims, 40, 600, VALUES_CONSTANT);
    for (uint32_t i = 0; i < tile.nnz; i++) {
        tile.values[i] = 3 + (double)(i * 7 % 97);
    }
    block_image_make(&image, &tile, SLC_CODEC_PACKED);
    data = image.bytes + slc_tile_entry_offset(2, 1);
    CU_ASSERT_EQUAL_FATAL(data[1], 1);
    low = data + slc_load_u32(data + 4);
    CU_ASSERT_EQUAL_FATAL(slc_load_u64(low), 3);
    refuse_value(&image, &tile, low, 0, 8);
    refuse_value(&image, &tile, low, (uint64_t)-5, 8);
    refuse_value(&image, &tile, low, UINT64_C(1) << 53, 8);
    refuse_value(&image, &tile, low, (UINT64_C(1) << 53) + 1, 8);
    refuse_value(&image, &tile, low, (uint64_t) - (INT64_C(1) << 53) - 1, 8);
    block_image_free(&image);
    tile_case_free(&tile);
}

/* The bases of a tile are at their place in the format, one per 512 nonzeros, and none may
 * differ. */
static void test_bases(void)
{
    static const unsigned widths[] = {40, 100}; /* of keys: bases have one or two words */
    struct random_stream random = {slc_test_seed(), 26, 0};
    const uint64_t dims[4] = {1 << 25, 1 << 25, 1 << 25, 1 << 25};

    for (size_t w = 0; w < SLC_COUNT(widths); w++) {
        struct tile_case tile;
        struct block_image image;
        uint8_t *data;

        tile_case_make(&tile, &random, 4, dims, widths[w], 4 * SLC_BASE_NNZ, VALUES_CONSTANT);
        CU_ASSERT_FATAL(tile.nnz > 2 * SLC_BASE_NNZ);
        block_image_make(&image, &tile, SLC_CODEC_PACKED);
        data = image.bytes + slc_tile_entry_offset(4, 1);
        CU_ASSERT_EQUAL_FATAL(slc_bases_of(tile.nnz), (tile.nnz + 511) / 512);
        for (uint32_t i = 0; i < slc_bases_of(tile.nnz); i++) {
            uint64_t bit = (uint64_t)i * data[0];
            unsigned low_bits = data[0] < 64 ? data[0] : 64;
            uint64_t base = i == 0 ? 0 : tile.key_lo[512 * i - 1] + 1 - tile.key_lo[0];
            struct slc_error err = SLC_ERROR_INIT;

            CU_ASSERT_EQUAL(slc_bits_get(data + 8, bit, low_bits), base & slc_low_mask(low_bits));
            data[8 + bit / 8] ^= (uint8_t)(1 << bit % 8);
            SLC_ASSERT_FAILS(block_image_decode(&image, &tile.info, SLC_F64, 1024, NULL, &err),
                             SLC_ERR_DAMAGED, &err, "base");
            data[8 + bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        block_image_free(&image);
        tile_case_free(&tile);
    }
}

/* A tile of codec lz4 with 128-bit keys whose 16 planes of gap bytes are stored uncompressed. */
struct plain_gaps {
    struct tile_case tile;
    struct block_image image;
    uint8_t *planes;
};

/* Encodes the keys, then replaces the data by planes of zero gaps and of the value 1. */
static void plain_gaps_make(struct plain_gaps *plain, const slc_u128 *keys, uint32_t nnz)
{
    enum { GAP_BYTES = 16, VALUE_BYTES = 4 };
    const uint32_t stored = (GAP_BYTES + VALUE_BYTES) * nnz;
    const uint64_t data_at = slc_tile_entry_offset(SLC_MAX_ORDER, 1);
    struct random_stream random = {slc_test_seed(), 25, 0};
    struct block_image *image = &plain->image;
    uint64_t dims[SLC_MAX_ORDER];
    struct slc_tile_entry entry;
    uint8_t *bytes;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        dims[n] = 256;
    }
    tile_case_from_keys(&plain->tile, &random, SLC_MAX_ORDER, dims, keys, nnz, VALUES_CONSTANT);
    block_image_make(image, &plain->tile, SLC_CODEC_LZ4);
    slc_tile_entry_load(image->bytes + SLC_BLOCK_HEADER_BYTES, SLC_MAX_ORDER, &entry);
    entry.data_bytes = 8 + (stored + 7) / 8 * 8;
    image->view.entry.bytes = data_at + entry.data_bytes + SLC_BLOCK_SLACK_BYTES;
    image->view.entry.padded_bytes = image->view.entry.bytes;
    bytes = calloc(1, image->view.entry.bytes);
    slc_tile_entry_store(bytes + SLC_BLOCK_HEADER_BYTES, SLC_MAX_ORDER, &entry);
    bytes[data_at] = GAP_BYTES;
    bytes[data_at + 1] = VALUE_BYTES;
    slc_store_u32(bytes + data_at + 4, stored);
    plain->planes = bytes + data_at + 8;
    /* The bytes of 1.0F are 3f800000. */
    memset(plain->planes + (size_t)(GAP_BYTES + 2) * nnz, 0x80, nnz);
    memset(plain->planes + (size_t)(GAP_BYTES + 3) * nnz, 0x3f, nnz);
    free(image->bytes);
    image->bytes = bytes;
    image->view.data = bytes;
}

static void plain_gaps_put(struct plain_gaps *plain, uint32_t i, slc_u128 gap)
{
    for (unsigned plane = 0; plane < 16; plane++) {
        plain->planes[(size_t)plane * plain->tile.nnz + i] = (uint8_t)(gap >> (8 * plane));
    }
}

static void plain_gaps_refused(struct plain_gaps *plain)
{
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_FAILS(block_image_decode(&plain->image, &plain->tile.info, SLC_F64, 128, NULL, &err),
                     SLC_ERR_DAMAGED, &err, "first key of a group");
    block_image_free(&plain->image);
    tile_case_free(&plain->tile);
}

/* Gap 0 gets upper bits from gap 1: the last key is right, the first one is not. */
static void test_first_gap(void)
{
    const slc_u128 half = (slc_u128)1 << 127;
    const slc_u128 keys[3] = {0, half, ~(slc_u128)0};
    struct slc_error err = SLC_ERROR_INIT;
    struct plain_gaps plain;

    plain_gaps_make(&plain, keys, 3);
    plain_gaps_put(&plain, 1, half - 1);
    plain_gaps_put(&plain, 2, half - 2);
    SLC_ASSERT_OK(block_image_decode(&plain.image, &plain.tile.info, SLC_F64, 128, NULL, &err),
                  &err);
    plain_gaps_put(&plain, 0, half >> 1);
    plain_gaps_put(&plain, 1, (half >> 1) - 1);
    plain_gaps_refused(&plain);
}

/* The first group ends with the largest possible key, after which the second starts again at 0. */
static void test_wrapped_keys(void)
{
    enum { NNZ = 2 * SLC_GROUP_NNZ };
    struct plain_gaps plain;
    slc_u128 keys[NNZ];

    for (uint32_t i = 0; i < NNZ; i++) {
        keys[i] = i;
    }
    keys[NNZ - 1] = ~(slc_u128)0;
    plain_gaps_make(&plain, keys, NNZ);
    plain_gaps_put(&plain, SLC_GROUP_NNZ - 1, keys[NNZ - 1] - (SLC_GROUP_NNZ - 1));
    plain_gaps_put(&plain, NNZ - 1, keys[NNZ - 1] - (SLC_GROUP_NNZ - 1));
    plain_gaps_refused(&plain);
}

static const struct slc_test tests[] = {
    {"every flipped bit is noticed or harmless", test_flips},
    {"runs with flipped bits are refused by all alike", test_flipped_runs},
    {"overwritten bytes are noticed or harmless", test_overwrites},
    {"wrong directory entries are rejected", test_wrong_entries},
    {"values that are zero, infinite or NaN are refused", test_unsound_values},
    {"integers that are zero or too large are refused", test_unsound_integers},
    {"bases are one for 512 nonzeros, and another one is refused", test_bases},
    {"a first key that is not the directory's is refused", test_first_gap},
    {"keys that wrap after the largest are rejected", test_wrapped_keys},
};

SLC_SUITE(codec_damage)
{
    return slc_test_main("codec-damage", tests, SLC_COUNT(tests), argc, argv);
}
