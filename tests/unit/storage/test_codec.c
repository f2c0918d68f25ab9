/* Codecs in both directions: encoded data decodes to the same bits, for every codec, value form,
 * key length, instruction set and element type; sizes stay within their bounds. */
#include "base/encoded.h"
#include "base/error/fault.h"
#include "codec_image.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};
static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

static struct random_stream stream_of(uint64_t stream)
{
    struct random_stream random = {slc_test_seed(), stream, 0};

    return random;
}

/* Every instruction set of the machine encodes `tile` to the bytes of `image`. */
static void
check_encoders(const struct block_image *image, const struct tile_case *tile, enum slc_codec codec)
{
    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        struct block_image other;

        if (!slc_encoder_force(sets[s])) {
            continue;
        }
        block_image_make(&other, tile, codec);
        CU_ASSERT_EQUAL_FATAL(other.blob.data_bytes, image->blob.data_bytes);
        CU_ASSERT_EQUAL(memcmp(other.blob.data, image->blob.data, image->blob.data_bytes), 0);
        CU_ASSERT_EQUAL(other.blob.content_sum, image->blob.content_sum);
        CU_ASSERT_EQUAL(memcmp(&other.blob.sum_of_squares, &image->blob.sum_of_squares,
                               sizeof other.blob.sum_of_squares),
                        0);
        CU_ASSERT_EQUAL(other.blob.all_f32, image->blob.all_f32);
        CU_ASSERT(slc_value_stats_same(&other.blob.stats, &image->blob.stats));
        block_image_free(&other);
    }
    CU_ASSERT(slc_encoder_force(NULL));
}

/* Encodes with every codec, and encodes and decodes with every available instruction set. */
static void check_round_trip(const struct tile_case *tile, uint32_t chunk_nnz)
{
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        struct block_image image;

        block_image_make(&image, tile, codecs[c]);
        CU_ASSERT(image.blob.data_bytes <=
                  slc_encoder_bound(&tile->info.keys, codecs[c], tile->nnz));
        CU_ASSERT(image.blob.index_bytes <= image.blob.data_bytes);
        check_encoders(&image, tile, codecs[c]);
        for (size_t s = 0; s < SLC_COUNT(sets); s++) {
            struct slc_error err = SLC_ERROR_INIT;

            if (!slc_decoder_force(sets[s])) {
                continue;
            }
            SLC_ASSERT_OK(block_image_decode(&image, &tile->info, SLC_F64, chunk_nnz, tile, &err),
                          &err);
            SLC_ASSERT_OK(block_image_decode(&image, &tile->info, SLC_F32, chunk_nnz, tile, &err),
                          &err);
        }
        block_image_free(&image);
    }
    CU_ASSERT(slc_decoder_force(NULL));
}

static void test_names(void)
{
    enum slc_codec codec = SLC_CODEC_BLCO;

    CU_ASSERT_STRING_EQUAL(slc_codec_name(SLC_CODEC_PACKED), "packed");
    CU_ASSERT_STRING_EQUAL(slc_codec_name((enum slc_codec)9), "?");
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        CU_ASSERT(slc_codec_parse(slc_codec_name(codecs[c]), &codec));
        CU_ASSERT_EQUAL(codec, codecs[c]);
    }
    CU_ASSERT(!slc_codec_parse("zip", &codec));
    CU_ASSERT(!slc_codec_parse("", &codec));
    CU_ASSERT(!slc_decoder_force("sse9"));
    CU_ASSERT(!slc_encoder_force("sse9"));
}

/* Random orders, mode sizes and varying bits; small tiles, many of them. */
static void test_random_shapes(void)
{
    struct random_stream random = stream_of(1);

    for (unsigned round = 0; round < 400; round++) {
        unsigned order = 1 + (unsigned)draw_below(&random, SLC_MAX_ORDER);
        unsigned bits_left = 1 + (unsigned)draw_below(&random, SLC_MAX_KEY_BITS);
        uint64_t dims[SLC_MAX_ORDER];
        struct tile_case tile;

        for (unsigned n = 0; n < order; n++) {
            unsigned most = bits_left < 31 ? bits_left : 31;
            unsigned bits = (unsigned)draw_below(&random, most + 1);

            bits_left -= bits;
            dims[n] = bits == 0 ? 1 : (UINT64_C(1) << bits);
            if (bits > 1) {
                dims[n] -= draw_below(&random, UINT64_C(1) << (bits - 1));
            }
        }
        tile_case_make(&tile, &random, order, dims, (unsigned)draw_below(&random, 129),
                       1 + (uint32_t)draw_below(&random, 700),
                       (enum value_kind)draw_below(&random, VALUE_KINDS));
        check_round_trip(&tile, 128 * (1 + (uint32_t)draw_below(&random, 9)));
        tile_case_free(&tile);
    }
}

/* Every key length, with all bits varying. */
static void test_key_lengths(void)
{
    struct random_stream random = stream_of(2);

    for (unsigned bits = 0; bits <= SLC_MAX_KEY_BITS; bits++) {
        uint64_t dims[SLC_MAX_ORDER];
        unsigned order = 5;
        struct tile_case tile;

        for (unsigned n = 0; n < order; n++) {
            unsigned share = bits / order + (n < bits % order ? 1 : 0);

            dims[n] = UINT64_C(1) << share;
        }
        tile_case_make(&tile, &random, order, dims, bits, 300, VALUES_INTEGER);
        CU_ASSERT_EQUAL(tile.info.keys.bits, bits);
        check_round_trip(&tile, 256);
        tile_case_free(&tile);
    }
}

/* Tile sizes around groups and chunks, up to the largest tile. */
static void test_sizes(void)
{
    static const uint32_t sizes[] = {1, 2, 127, 128, 129, 1023, 1024, 1025, 4096, 65536};
    struct random_stream random = stream_of(3);
    const uint64_t dims[3] = {1 << 14, 1 << 13, 1 << 15};

    for (size_t s = 0; s < SLC_COUNT(sizes); s++) {
        slc_u128 *keys = malloc(sizes[s] * sizeof *keys);
        slc_u128 key = 0;
        struct tile_case tile;

        for (uint32_t i = 0; i < sizes[s]; i++) {
            key += 1 + draw_below(&random, UINT64_C(1) << draw_below(&random, 24));
            keys[i] = key;
        }
        tile_case_from_keys(&tile, &random, 3, dims, keys, sizes[s],
                            (enum value_kind)draw_below(&random, VALUE_KINDS));
        CU_ASSERT_EQUAL(tile.nnz, sizes[s]);
        check_round_trip(&tile, s % 2 == 0 ? 1024 : 65536);
        tile_case_free(&tile);
        free(keys);
    }
}

/* Runs found without keys, in chunks of all sizes and with an incomplete group. */
static void test_short_runs(void)
{
    static const uint32_t chunks[] = {128, 384, 1024, 2048};
    struct random_stream random = stream_of(12);

    for (unsigned round = 0; round < 32; round++) {
        struct tile_case tile;

        tile_case_make_runs(&tile, &random, 1 + round % 8, 1 + (uint32_t)draw_below(&random, 8000),
                            (enum value_kind)draw_below(&random, VALUE_KINDS));
        check_round_trip(&tile, chunks[round / 8]);
        tile_case_free(&tile);
    }
}

/* Tiles whose coordinates cross 2^32 and higher powers of two although their extent is small. */
static void test_wide_fields(void)
{
    struct random_stream random = stream_of(4);
    const uint64_t dims[3] = {UINT64_C(1) << 62, UINT64_C(1) << 41, 3};
    struct slc_key_layout layout;

    SLC_ASSERT_OK(slc_key_layout_init(&layout, 3, dims, NULL), NULL);
    for (unsigned power = 31; power <= 61; power += 5) {
        const uint64_t corner[3] = {(UINT64_C(1) << power) - 2, (UINT64_C(1) << 40) - 1, 0};
        slc_u128 keys[24];
        uint32_t count = 0;
        struct tile_case tile;

        for (uint64_t i = 0; i < 24; i++) {
            const uint64_t coords[3] = {corner[0] + i / 6, corner[1] + i / 3 % 2, i % 3};
            slc_u128 key = slc_key_encode(&layout, coords);
            uint32_t at = count++;

            for (; at > 0 && keys[at - 1] > key; at--) {
                keys[at] = keys[at - 1];
            }
            keys[at] = key;
        }
        tile_case_from_keys(&tile, &random, 3, dims, keys, count, VALUES_F32);
        check_round_trip(&tile, 128);
        tile_case_free(&tile);
    }
}

/* The longest possible gaps: from key 0 to the last key of 64 and of 128 bits. */
static void test_extreme_gaps(void)
{
    struct random_stream random = stream_of(5);
    const uint64_t dims64[4] = {1 << 16, 1 << 16, 1 << 16, 1 << 16};
    const uint64_t dims128[5] = {1 << 26, 1 << 26, 1 << 26, 1 << 25, 1 << 25};
    const slc_u128 keys64[2] = {0, UINT64_MAX};
    const slc_u128 keys128[4] = {0, 1, ((slc_u128)1 << 64) - 1, ~(slc_u128)0};
    struct tile_case tile;

    tile_case_from_keys(&tile, &random, 4, dims64, keys64, 2, VALUES_F64);
    check_round_trip(&tile, 128);
    tile_case_free(&tile);
    tile_case_from_keys(&tile, &random, 5, dims128, keys128, 4, VALUES_F64);
    check_round_trip(&tile, 128);
    tile_case_free(&tile);
}

/* Each kind of data gets its expected form, and both LZ4 forms occur. */
static void test_value_forms(void)
{
    static const unsigned forms[VALUE_KINDS] = {
        SLC_FORM_CONSTANT, SLC_FORM_INTEGER, SLC_FORM_DICTIONARY, SLC_FORM_F32,
        SLC_FORM_F64,      SLC_FORM_F32_LZ4, SLC_FORM_F64_LZ4,
    };
    static const bool f32[VALUE_KINDS] = {true, true, false, true, false, true, false};
    struct random_stream random = stream_of(6);
    const uint64_t dims[2] = {1 << 20, 1 << 20};

    for (unsigned kind = 0; kind < VALUE_KINDS; kind++) {
        struct tile_case tile;
        struct block_image image;

        tile_case_make(&tile, &random, 2, dims, 40, 20000, (enum value_kind)kind);
        block_image_make(&image, &tile, SLC_CODEC_PACKED);
        CU_ASSERT_EQUAL(((const uint8_t *)image.blob.data)[1], forms[kind]);
        CU_ASSERT_EQUAL(image.blob.stats.integers, kind == VALUES_INTEGER);
        CU_ASSERT(image.blob.all_f32 == f32[kind] || kind == VALUES_INTEGER);
        block_image_free(&image);
        check_round_trip(&tile, 1024);
        tile_case_free(&tile);
    }
}

/* Decodes with every codec and instruction set a tile with zeros as if it had none. */
static void check_zeros_found(const struct tile_case *tile)
{
    struct slc_layout_info plain = tile->info;

    plain.has_zeros = false;
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        struct block_image image;

        block_image_make(&image, tile, codecs[c]);
        for (size_t s = 0; s < SLC_COUNT(sets); s++) {
            struct slc_error err = SLC_ERROR_INIT;

            if (slc_decoder_force(sets[s])) {
                SLC_ASSERT_FAILS(block_image_decode(&image, &plain, SLC_F64, 1024, NULL, &err),
                                 SLC_ERR_DAMAGED, &err, "expected");
            }
        }
        block_image_free(&image);
    }
    CU_ASSERT(slc_decoder_force(NULL));
}

/* Values of zero are found in every form of values: few and many zeros, only zeros, and zeros among
 * negative values. */
static void test_zeros(void)
{
    static const uint32_t every[] = {1, 2, 7, 131, 8000};
    struct random_stream random = stream_of(61);
    const uint64_t dims[2] = {1 << 20, 1 << 20};

    for (unsigned round = 0; round < 2 * VALUE_KINDS; round++) {
        for (size_t e = 0; e < SLC_COUNT(every); e++) {
            struct tile_case tile;
            uint64_t zeros = 0;

            tile_case_make(&tile, &random, 2, dims, 40, 9001, (enum value_kind)(round / 2));
            tile.info.has_zeros = true;
            for (uint32_t i = 0; i < tile.nnz; i++) {
                const bool zero = i % every[e] == every[e] / 2;

                tile.values[i] = zero ? 0 : round % 2 == 0 ? tile.values[i] : -tile.values[i];
                zeros += zero;
            }
            check_round_trip(&tile, 1024);
            if (zeros > 0) {
                check_zeros_found(&tile);
            }
            tile_case_free(&tile);
        }
    }
}

/* Equal values, integers and fractions, alternating. */
static double value_of(unsigned kind, uint32_t i)
{
    static const double equal = 3;

    return kind == 0 ? equal : kind == 1 ? 1 + i % 5 : 1 / (1.0 + i);
}

/* One decoder decodes tiles of short or long keys, with equal values in every other tile. It fills
 * equal values once per tile, and other values and keys chunk by chunk. */
static void test_one_decoder(void)
{
    struct random_stream random = stream_of(12);
    const uint64_t dims[2] = {1 << 20, 1 << 20};

    for (unsigned round = 0; round < 4; round++) {
        static const unsigned kinds[] = {0, 1, 0, 2, 1, 0};
        struct slc_decoder *decoder = NULL;
        struct slc_error err = SLC_ERROR_INIT;
        struct tile_case tile;

        tile_case_make(&tile, &random, 2, dims, round < 2 ? 26 : 40, 3000, VALUES_CONSTANT);
        SLC_ASSERT_OK(
            slc_decoder_create(&tile.info, round % 2 == 0 ? SLC_F64 : SLC_F32, &decoder, &err),
            &err);
        for (size_t turn = 0; turn < SLC_COUNT(kinds); turn++) {
            struct block_image image;

            for (uint32_t i = 0; i < tile.nnz; i++) {
                tile.values[i] = value_of(kinds[turn], i);
            }
            block_image_make(&image, &tile, SLC_CODEC_PACKED);
            SLC_ASSERT_OK(block_image_decode_by(decoder, &image, &tile.info, 1024, &tile, &err),
                          &err);
            block_image_free(&image);
        }
        slc_decoder_destroy(decoder);
        tile_case_free(&tile);
    }
}

/* Integers over the whole range of +-2^53, including the ends: 55 bits above the smallest. */
static void test_largest_integers(void)
{
    struct random_stream random = stream_of(8);
    const uint64_t dims[2] = {1 << 20, 1 << 20};
    struct tile_case tile;
    struct block_image image;

    tile_case_make(&tile, &random, 2, dims, 40, 1000, VALUES_CONSTANT);
    CU_ASSERT_FATAL(tile.nnz > 2);
    for (uint32_t i = 0; i < tile.nnz; i++) {
        tile.values[i] = (double)((int64_t)(draw(&random) >> 10 | 1) - (INT64_C(1) << 53));
    }
    tile.values[0] = -9007199254740992.0;
    tile.values[1] = 9007199254740992.0;
    block_image_make(&image, &tile, SLC_CODEC_PACKED);
    CU_ASSERT_EQUAL(((const uint8_t *)image.blob.data)[1], SLC_FORM_INTEGER);
    block_image_free(&image);
    check_round_trip(&tile, 1024);
    tile_case_free(&tile);
}

/* Sums and ranges of a blob against plain loops; keys above 64 bits without upper bits set. */
static void test_blob(void)
{
    struct random_stream random = stream_of(7);
    const uint64_t dims[3] = {1 << 30, 1 << 30, 1 << 30};
    struct tile_case tile;

    tile_case_make(&tile, &random, 3, dims, 90, 3000, VALUES_F64);
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        struct block_image image;
        uint64_t min[3] = {UINT64_MAX, UINT64_MAX, UINT64_MAX}, max[3] = {0, 0, 0};
        double squares = 0;

        block_image_make(&image, &tile, codecs[c]);
        for (uint32_t i = 0; i < tile.nnz; i++) {
            uint64_t coords[3];

            slc_key_decode(&tile.info.keys, (slc_u128)tile.key_hi[i] << 64 | tile.key_lo[i],
                           coords);
            for (unsigned n = 0; n < 3; n++) {
                min[n] = coords[n] < min[n] ? coords[n] : min[n];
                max[n] = coords[n] > max[n] ? coords[n] : max[n];
            }
            squares += tile.values[i] * tile.values[i];
        }
        CU_ASSERT_EQUAL(image.blob.sum_of_squares, squares);
        CU_ASSERT_EQUAL(memcmp(min, image.blob.min, sizeof min), 0);
        CU_ASSERT_EQUAL(memcmp(max, image.blob.max, sizeof max), 0);
        block_image_free(&image);
    }
    tile_case_free(&tile);
    tile_case_make(&tile, &random, 3, dims, 50, 100, VALUES_F64);
    memset(tile.key_hi, 0, tile.nnz * sizeof *tile.key_hi);
    check_round_trip(&tile, 128);
    tile_case_free(&tile);
}

/* Keys with a single upper half need not store it: the same bytes, sums and ranges. */
static void test_one_upper_half(void)
{
    struct random_stream random = stream_of(8);
    const uint64_t dims[3] = {1 << 30, 1 << 30, 1 << 30};
    struct tile_case tile;

    tile_case_make(&tile, &random, 3, dims, 55, 5000, VALUES_INTEGER);
    for (size_t c = 0; c < SLC_COUNT(codecs); c++) {
        struct slc_tile_source source = {tile.nnz, tile.key_lo, tile.key_hi, tile.values, 0};
        struct slc_encoder *encoders[2] = {NULL, NULL};
        struct slc_tile_blob spelt, blob;
        struct slc_error err = SLC_ERROR_INIT;

        for (uint32_t i = 0; i < tile.nnz; i++) {
            tile.key_hi[i] = 5;
        }
        SLC_ASSERT_OK(slc_encoder_create(&tile.info.keys, codecs[c], &encoders[0], &err), &err);
        SLC_ASSERT_OK(slc_encoder_create(&tile.info.keys, codecs[c], &encoders[1], &err), &err);
        SLC_ASSERT_OK(slc_tile_encode(encoders[0], &source, &spelt, &err), &err);
        source.key_hi = NULL;
        source.upper = 5;
        SLC_ASSERT_OK(slc_tile_encode(encoders[1], &source, &blob, &err), &err);
        CU_ASSERT_EQUAL(blob.data_bytes, spelt.data_bytes);
        CU_ASSERT_EQUAL(memcmp(blob.data, spelt.data, spelt.data_bytes), 0);
        CU_ASSERT_EQUAL(memcmp(blob.min, spelt.min, sizeof blob.min), 0);
        CU_ASSERT_EQUAL(memcmp(blob.max, spelt.max, sizeof blob.max), 0);
        CU_ASSERT_EQUAL(blob.content_sum, spelt.content_sum);
        CU_ASSERT_EQUAL(blob.first_hi, 5);
        CU_ASSERT_EQUAL(blob.last_hi, 5);
        slc_encoder_destroy(encoders[0]);
        slc_encoder_destroy(encoders[1]);
    }
    tile_case_free(&tile);
}

/* Failing allocations return SLC_ERR_MEMORY and leak nothing. */
static void test_refused_memory(void)
{
    const uint64_t dims[2] = {1000, 1000};
    struct slc_layout_info info;
    unsigned refused = 0;

    memset(&info, 0, sizeof info);
    info.order = 2;
    memcpy(info.dims, dims, sizeof dims);
    SLC_ASSERT_OK(slc_key_layout_init(&info.keys, 2, dims, NULL), NULL);
    CU_ASSERT(slc_decoder_memory_bytes(&info, SLC_F64) < 2 << 20);
    CU_ASSERT(slc_encoder_memory_bytes(&info.keys, SLC_CODEC_PACKED) < 4 << 20);
    for (uint64_t k = 1; k <= 8; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_encoder *encoder = NULL;
        struct slc_decoder *decoder = NULL;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_encoder_create(&info.keys, SLC_CODEC_PACKED, &encoder, &err);
        if (status == SLC_OK) {
            status = slc_decoder_create(&info, SLC_F64, &decoder, &err);
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT(status == SLC_OK || status == SLC_ERR_MEMORY);
        refused += status == SLC_ERR_MEMORY;
        slc_encoder_destroy(encoder);
        slc_decoder_destroy(decoder);
    }
    CU_ASSERT_EQUAL(refused, 4);
    slc_encoder_destroy(NULL);
    slc_decoder_destroy(NULL);
}

static const struct slc_test tests[] = {
    {"one decoder for tiles of every kind", test_one_decoder},
    {"names of codecs and instruction sets", test_names},
    {"random shapes come back", test_random_shapes},
    {"keys of 0 to 128 bits come back", test_key_lengths},
    {"tiles of 1 to 65536 nonzeros come back", test_sizes},
    {"runs of at most eight key bits come back", test_short_runs},
    {"coordinates that cross 2^32 come back", test_wide_fields},
    {"the longest gaps come back", test_extreme_gaps},
    {"values get their cheapest form", test_value_forms},
    {"zeros come back, and are found where there must be none", test_zeros},
    {"integers up to 2^53", test_largest_integers},
    {"sums and ranges of a tile", test_blob},
    {"keys with one upper half", test_one_upper_half},
    {"refused memory", test_refused_memory},
};

SLC_SUITE(codec)
{
    return slc_test_main("codec", tests, SLC_COUNT(tests), argc, argv);
}
