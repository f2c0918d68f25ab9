/* Decoding on the device, compared with the encoded tensor: every codec, value form, order and
 * length of keys. */
#include "decode_problem.h"

#include <cstring>

/* Whether the decoded nonzeros equal the list, with values rounded to T. */
template <typename T>
static bool is_list(const struct batch_fixture &fixture, const struct decoded_batch &decoded)
{
    const uint64_t nnz = fixture.coo.nnz;
    bool same = true;

    for (unsigned n = 0; n < fixture.coo.order; n++) {
        same &= memcmp(decoded.coords.data() + n * nnz, fixture.coo.coords[n], nnz * 8) == 0;
    }
    for (uint64_t i = 0; i < nnz; i++) {
        same &= decoded.values[i] == (double)(T)fixture.values[i];
    }
    return same;
}

template <typename T> static void check_type(struct batch_fixture *fixture, uint32_t chunk_runs)
{
    struct decoded_batch decoded;

    start_device();
    batch_upload(fixture, chunk_runs, true);
    decode<T>(fixture, &decoded);
    CU_ASSERT_EQUAL(decoded.fault.kind, SLC_GPU_SOUND);
    CU_ASSERT(is_list<T>(*fixture, decoded));
    batch_release(fixture);
    slc_emulation_reset();
}

/* Number of decoded tiles of each kind. */
struct seen {
    unsigned encoding[4], form[7], key_words[5];
};

static void look(const struct batch_fixture &fixture, struct seen *seen)
{
    for (const struct batch_block &block : fixture.blocks) {
        for (const struct slc_encoded_tile &tile : block.tiles) {
            seen->encoding[tile.encoding]++;
            seen->form[tile.form]++;
            seen->key_words[tile.key_words]++;
        }
    }
}

static void check_tensor(const struct slc_made_tensor *tensor,
                         const struct batch_shape &shape,
                         struct seen *seen)
{
    struct batch_fixture fixture;

    batch_encode_tensor(&fixture, tensor, &shape);
    look(fixture, seen);
    check_type<double>(&fixture, 1 + (uint32_t)(tensor->nnz % 5));
    check_type<float>(&fixture, 2);
}

/* Modes of sizes 2^0 to 2^most, so that all key lengths occur. */
static void draw_dims(uint64_t *index, unsigned order, unsigned most, uint64_t *dims)
{
    for (unsigned n = 0; n < order; n++) {
        dims[n] = (UINT64_C(1) << draw(index) % (most + 1)) + (draw(index) % 2);
    }
    dims[order - 1] = dims[order - 1] < 64 ? 64 : dims[order - 1];
}

static void every_form(void)
{
    static const unsigned orders[] = {1, 2, 3, 4, 5, 6, 7, 8, 16};
    struct seen seen = {};
    uint64_t index = 0;

    for (unsigned order : orders) {
        for (int values = 0; values < SLC_MADE_VALUES; values++) {
            const unsigned most = 6 + (unsigned)draw(&index) % 26;
            uint64_t dims[SLC_MAX_ORDER];
            struct slc_made_tensor tensor;

            draw_dims(&index, order, most > 120 / order ? 120 / order : most, dims);
            slc_made_tensor_create(&tensor, order, dims, 900,
                                   static_cast<enum slc_made_values>(values), draw(&index));
            for (uint64_t i = order; order % 2 == 0 && i < tensor.nnz; i += 5) {
                tensor.values[i] = 0;
            }
            for (int codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
                check_tensor(&tensor,
                             {static_cast<enum slc_codec>(codec),
                              {order - 1, values % 2 == 0 ? 5U : 0U},
                              codec == SLC_CODEC_PACKED ? 800U : 600U,
                              0},
                             &seen);
            }
            slc_made_tensor_destroy(&tensor);
        }
    }
    for (int form = SLC_FORM_CONSTANT; form <= SLC_FORM_F64_LZ4; form++) {
        CU_ASSERT(seen.form[form] > 0);
    }
    CU_ASSERT(seen.encoding[1] > 0 && seen.encoding[2] > 0 && seen.encoding[3] > 0);
    CU_ASSERT(seen.key_words[1] > 0 && seen.key_words[2] > 0 && seen.key_words[4] > 0);
}

static void every_size(void)
{
    static const uint32_t sizes[] = {1,   2,   3,   5,   31,  32,  33,   127,  128,  129,  255,
                                     257, 384, 511, 512, 513, 640, 1023, 1024, 1025, 1536, 2049};
    const uint64_t dims[3] = {1 << 9, 1 << 11, 1 << 10};
    struct slc_made_tensor tensor;
    struct seen seen = {};

    slc_made_tensor_create(&tensor, 3, dims, 2200, SLC_MADE_COUNTS, slc_test_seed());
    for (uint32_t size : sizes) {
        tensor.nnz = size < 100 ? 130 : tensor.nnz;
        for (int codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
            check_tensor(&tensor, {static_cast<enum slc_codec>(codec), {0, 0}, size, 0}, &seen);
        }
    }
    slc_made_tensor_destroy(&tensor);
}

/* All runs of a full tile, which has 512 groups and a run that begins after 508 of them. */
static void full_tile(void)
{
    const uint64_t dims[3] = {1 << 12, 1 << 11, 1 << 12};
    struct slc_made_tensor tensor;
    struct seen seen = {};

    slc_made_tensor_create(&tensor, 3, dims, slc_test_quick() ? 20000 : 66000, SLC_MADE_FEW,
                           slc_test_seed());
    check_tensor(&tensor, {SLC_CODEC_PACKED, {0, 0}, 0, 0}, &seen);
    if (!slc_test_quick()) {
        check_tensor(&tensor, {SLC_CODEC_LZ4, {0, 0}, 0, 0}, &seen);
    }
    slc_made_tensor_destroy(&tensor);
}

static void clusters(void)
{
    static const unsigned far[] = {12, 20, 28, 31, 33, 40, 60, 66, 90};
    const uint64_t dims[5] = {1 << 25, 1 << 25, 1 << 25, 1 << 24, 1 << 25};
    uint64_t index = 1000;
    struct seen seen = {};

    for (unsigned bits : far) {
        for (unsigned often = 5; often <= 405; often += 200) {
            struct slc_made_tensor tensor;

            slc_made_tensor_create(&tensor, 5, dims, 1700, SLC_MADE_COUNTS, bits);
            cluster(&tensor, bits, often, &index);
            check_tensor(&tensor, {SLC_CODEC_PACKED, {0, 0}, 0, 0}, &seen);
            check_tensor(&tensor, {SLC_CODEC_LZ4, {0, 0}, 1000, 0}, &seen);
            check_tensor(&tensor, {SLC_CODEC_BLCO, {0, 0}, 0, 0}, &seen);
            slc_made_tensor_destroy(&tensor);
        }
    }
    CU_ASSERT(seen.key_words[1] > 0 && seen.key_words[2] > 0 && seen.key_words[4] > 0);
}

/* A tile around a multiple of 2^32 of a large mode: its coordinates are distinguished from those
 * 2^32 away, up to the largest possible corner. */
static void long_modes(void)
{
    const uint64_t dims[2] = {(uint64_t)1 << 40, 1 << 6};

    for (int codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
        struct batch_shape shape = {static_cast<enum slc_codec>(codec), {0, 0}, 0, 0};
        struct slc_made_tensor tensor;
        struct batch_fixture fixture;
        struct decoded_batch decoded;

        slc_made_tensor_create(&tensor, 2, dims, 700, SLC_MADE_COUNTS, 1);
        for (uint64_t i = 0; i < tensor.nnz; i++) {
            const uint64_t coords[2] = {((uint64_t)5 << 33) - 500 + i, i % 64};
            const slc_u128 key = slc_key_encode(&tensor.keys, coords);

            tensor.key_lo[i] = (uint64_t)key;
            tensor.key_hi[i] = (uint64_t)(key >> 64);
        }
        batch_encode_tensor(&fixture, &tensor, &shape);
        slc_made_tensor_destroy(&tensor);
        CU_ASSERT_EQUAL(fixture.blocks[0].tiles.size(), 1);
        CU_ASSERT(fixture.blocks[0].tiles[0].long_modes);
        check_type<double>(&fixture, 2);
        fixture.blocks[0].tiles[0].corner[0] -= (uint64_t)1 << 32;
        start_device();
        batch_upload(&fixture, 2, true);
        decode<double>(&fixture, &decoded);
        CU_ASSERT_EQUAL(decoded.fault.kind, SLC_GPU_FAULT_OFFSET);
        batch_release(&fixture);
        slc_emulation_reset();
    }
}

/* Groups that end where the words of the keys have only ones. */
static void full_words(void)
{
    const uint64_t dims[5] = {1 << 25, 1 << 25, 1 << 25, 1 << 24, 1 << 25};
    struct seen seen = {};

    for (unsigned bits = 32; bits <= 64; bits += 32) {
        struct slc_made_tensor tensor;

        slc_made_tensor_create(&tensor, 5, dims, 300, SLC_MADE_COUNTS, bits);
        for (uint64_t i = 0; i < tensor.nnz; i++) {
            const slc_u128 key = ((slc_u128)1 << bits) - SLC_GROUP_NNZ + i;

            tensor.key_lo[i] = (uint64_t)key;
            tensor.key_hi[i] = (uint64_t)(key >> 64);
        }
        check_tensor(&tensor, {SLC_CODEC_PACKED, {0, 0}, 0, 0}, &seen);
        check_tensor(&tensor, {SLC_CODEC_LZ4, {0, 0}, 0, 0}, &seen);
        slc_made_tensor_destroy(&tensor);
    }
}

SLC_SUITE(decode)
{
    static const struct slc_test tests[] = {
        {"every codec, value form, order and length of keys", every_form},
        {"tiles and runs of every size", every_size},
        {"a full tile", full_tile},
        {"keys in clusters, integers of every length", clusters},
        {"modes longer than 2^32", long_modes},
        {"groups that end with full words", full_words},
    };

    return slc_test_main("gpu decode", tests, SLC_COUNT(tests), argc, argv);
}
