/* LZ4 sections expanded on the device: output of liblz4, sections written by hand, and invalid
 * bytes. Input and output have their exact sizes, so that a sanitizer detects overruns. */
#include "batch_fixture.h"
#include "gpu/decode/expand.h"

extern "C" {
#include "base/random.h"
#include "naive_decode.h"
#include "slc_test.h"
}

#include <cstring>
#include <lz4.h>
#include <lz4hc.h>

typedef std::vector<uint8_t> byte_string;

static uint64_t draw(void)
{
    static uint64_t index = 0;

    return slc_random_u64(slc_test_seed(), 92, index++);
}

/* A length with a token's four bits `bits`, and the bytes that extend it. */
static bool naive_length(const byte_string &in, size_t *at, size_t *length)
{
    if (*length < 15) {
        return true;
    }
    for (;;) {
        if (*at == in.size()) {
            return false;
        }
        *length += in[*at];
        if (in[(*at)++] != 255) {
            return true;
        }
    }
}

/* Whether the bytes are a section of `bytes` bytes, decoded byte by byte; returns these. */
static bool naive_expand(const byte_string &in, size_t bytes, byte_string *out)
{
    size_t at = 0;

    out->clear();
    while (at < in.size()) {
        const unsigned token = in[at++];
        size_t literals = token >> 4, match = token & 15, distance;

        if (!naive_length(in, &at, &literals) || literals > in.size() - at ||
            literals > bytes - out->size()) {
            return false;
        }
        out->insert(out->end(), in.begin() + (ptrdiff_t)at,
                    in.begin() + (ptrdiff_t)(at + literals));
        at += literals;
        if (at == in.size()) {
            return out->size() == bytes;
        }
        if (in.size() - at < 2 || bytes - out->size() < 12) {
            return false;
        }
        distance = in[at] | (size_t)in[at + 1] << 8;
        at += 2;
        if (!naive_length(in, &at, &match) || distance == 0 || distance > out->size() ||
            match + 4 + 5 > bytes - out->size()) {
            return false;
        }
        for (match += 4; match > 0; match--) {
            out->push_back((*out)[out->size() - distance]);
        }
    }
    return false;
}

/* Expands one section after another on its own device. */
struct expander {
    struct batch_fixture device = {};

    expander(void)
    {
        static unsigned seed = 0;
        const struct slc_emulation emulation = {1, (size_t)64 << 20, 100 << 10, 2, ++seed};

        slc_emulation_set(&emulation);
        CU_ASSERT_EQUAL(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking),
                        cudaSuccess);
    }
    ~expander(void)
    {
        batch_release(&device);
        slc_emulation_reset();
    }
    expander(const expander &) = delete;

    /* The section is `odd` bytes into its block, and followed by slack. All expanded bytes are
     * copied, also of an invalid section: the emulation, or initcheck of compute-sanitizer, reports
     * those that the kernel did not write. */
    bool run(const byte_string &in, size_t bytes, unsigned odd, byte_string *out)
    {
        byte_string block(odd + in.size() + SLC_BLOCK_SLACK_BYTES);
        struct slc_gpu_fault fault = {};
        struct slc_gpu_tile tile = {};

        memcpy(block.data() + odd, in.data(), in.size());
        tile.block = static_cast<uint8_t *>(batch_to_device(&device, block.data(), block.size()));
        void *room = batch_to_device(&device, nullptr, bytes);
        tile.expanded = static_cast<uint8_t *>(room);
        tile.block_number = 7;
        tile.block_offset = 4096;
        tile.tile.ordinal = 3;
        tile.tile.lz4.at = odd;
        tile.tile.lz4.bytes = (uint32_t)in.size();
        tile.tile.lz4.expanded_bytes = (uint32_t)bytes;
        device.batch.fault =
            static_cast<struct slc_gpu_fault *>(batch_to_device(&device, &fault, sizeof fault));
        CU_ASSERT_EQUAL(slc_gpu_expand(static_cast<const struct slc_gpu_tile *>(
                                           batch_to_device(&device, &tile, sizeof tile)),
                                       1, device.batch.fault, device.stream),
                        cudaSuccess);
        batch_fault(&device, &fault);
        out->resize(bytes);
        batch_download(&device, out->data(), room, bytes);
        if (fault.kind == SLC_GPU_SOUND) {
            return true;
        }
        CU_ASSERT(fault.kind == SLC_GPU_FAULT_LZ4 && fault.block_number == 7 &&
                  fault.block_offset == 4096 && fault.tile == 3);
        return false;
    }
};

static byte_string compressed(const byte_string &bytes, bool hard)
{
    byte_string to((size_t)LZ4_compressBound((int)bytes.size()));
    const char *from = reinterpret_cast<const char *>(bytes.data());
    char *room = reinterpret_cast<char *>(to.data());
    const int size = (int)bytes.size(), most = (int)to.size();
    const int made = hard ? LZ4_compress_HC(from, room, size, most, LZ4HC_CLEVEL_MAX)
                          : LZ4_compress_default(from, room, size, most);

    to.resize((size_t)made);
    return to;
}

/* Bytes with period `period` for some time, then again after a non-periodic part. */
static byte_string periodic(size_t size, size_t period, size_t noise)
{
    byte_string bytes(size);

    for (size_t i = 0; i < size; i++) {
        bytes[i] = i < period || (noise > 0 && i % noise < 6) ? (uint8_t)draw() : bytes[i - period];
    }
    return bytes;
}

static void check_section(struct expander *expander, const byte_string &bytes, bool hard)
{
    const byte_string in = compressed(bytes, hard);
    byte_string naive, out;

    CU_ASSERT(naive_expand(in, bytes.size(), &naive) && naive == bytes);
    CU_ASSERT(expander->run(in, bytes.size(), (unsigned)(bytes.size() % 9), &out));
    CU_ASSERT(out == bytes);
    /* Neither more bytes than there are, nor fewer. */
    CU_ASSERT(!expander->run(in, bytes.size() + 1, 0, &out));
    CU_ASSERT(bytes.empty() || !expander->run(in, bytes.size() - 1, 0, &out));
}

static void every_period(void)
{
    static const size_t sizes[] = {1, 2, 12, 13, 17, 40, 63, 64, 65, 200, 700, 5000};

    for (size_t period = 1; period <= 70; period += period < 34 ? 1 : 7) {
        struct expander expander;

        for (size_t size : sizes) {
            check_section(&expander, periodic(size, period, size % 2 == 0 ? 0 : 150), period % 2);
        }
    }
}

static void long_lengths(void)
{
    static const size_t lengths[] = {14, 15, 16, 269, 270, 271, 525, 3000, 70000};
    struct expander expander;

    for (size_t length : lengths) {
        byte_string bytes = periodic(length, length, 0); /* literals */

        bytes.resize(bytes.size() + length, bytes.back()); /* a match of one byte */
        bytes.insert(bytes.end(), bytes.begin(), bytes.begin() + (ptrdiff_t)length);
        bytes.resize(bytes.size() + 9, 1);
        check_section(&expander, bytes, false);
    }
}

/* Sections of whole batches: planes of both codecs that have any. */
static void batches(void)
{
    static const struct {
        enum slc_codec codec;
        enum slc_made_values values;
    } cases[] = {
        {SLC_CODEC_PACKED, SLC_MADE_EVEN_FLOATS}, {SLC_CODEC_PACKED, SLC_MADE_EVEN_DOUBLES},
        {SLC_CODEC_LZ4, SLC_MADE_ONES},           {SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES},
        {SLC_CODEC_LZ4, SLC_MADE_DOUBLES},        {SLC_CODEC_BLCO, SLC_MADE_ONES}};
    const struct slc_emulation emulation = {1, (size_t)64 << 20, 100 << 10, 2, 1};
    const uint64_t dims[3] = {400, 3000, 70};

    for (const auto &c : cases) {
        const struct batch_shape shape = {c.codec, {0, 0}, 900, SLC_MIN_BLOCK_BYTES};
        struct batch_fixture fixture;
        struct slc_gpu_fault fault;

        batch_encode(&fixture, 3, dims, 5000, c.values, slc_test_seed(), &shape);
        slc_emulation_set(&emulation);
        batch_upload(&fixture, 1, false);
        CU_ASSERT_EQUAL(slc_gpu_expand(fixture.batch.tiles, fixture.batch.tile_count,
                                       fixture.batch.fault, fixture.stream),
                        cudaSuccess);
        CU_ASSERT_EQUAL(batch_fault(&fixture, &fault), SLC_GPU_SOUND);
        std::vector<struct slc_gpu_tile> tiles(fixture.batch.tile_count);
        batch_download(&fixture, tiles.data(), fixture.batch.tiles,
                       tiles.size() * sizeof(struct slc_gpu_tile));
        size_t t = 0;
        for (const struct batch_block &block : fixture.blocks) {
            byte_string want(block.described.expanded_bytes);

            for (const struct slc_encoded_tile &tile : block.tiles) {
                byte_string found(tile.lz4.expanded_bytes);

                CU_ASSERT(slc_naive_expand(&block.described, &tile, want.data()));
                batch_download(&fixture, found.data(), tiles[t++].expanded + tile.lz4.expanded_at,
                               found.size());
                CU_ASSERT(found.empty() || memcmp(found.data(), want.data() + tile.lz4.expanded_at,
                                                  found.size()) == 0);
            }
        }
        batch_release(&fixture);
        slc_emulation_reset();
    }
    CU_ASSERT_EQUAL(slc_gpu_expand(nullptr, 0, nullptr, nullptr), cudaSuccess);
}

/* The result of the naive reader and, if it succeeds, that of liblz4. */
static void
check_any(struct expander *expander, const byte_string &in, size_t bytes, unsigned *sound)
{
    byte_string naive, out, library(bytes);
    const bool good = naive_expand(in, bytes, &naive);

    CU_ASSERT_EQUAL(expander->run(in, bytes, (unsigned)(in.size() % 5), &out), good);
    if (good) {
        CU_ASSERT(out == naive);
        CU_ASSERT_EQUAL(LZ4_decompress_safe(reinterpret_cast<const char *>(in.data()),
                                            reinterpret_cast<char *>(library.data()),
                                            (int)in.size(), (int)bytes),
                        (int)bytes);
        CU_ASSERT(library == naive);
    }
    *sound += good;
}

static void written_by_hand(void)
{
    struct expander expander;
    unsigned sound = 0;
    const byte_string tail = {0x50, 1, 2, 3, 4, 5};
    const auto join = [&](byte_string first) {
        first.insert(first.end(), tail.begin(), tail.end());
        return first;
    };

    check_any(&expander, {0x10, 9}, 1, &sound);                                /* a literal */
    check_any(&expander, join({0x33, 1, 2, 3, 3, 0}), 3 + 7 + 5, &sound);      /* a match */
    check_any(&expander, join({0x33, 1, 2, 3, 1, 0}), 3 + 7 + 5, &sound);      /* overlapping */
    check_any(&expander, join({0x1f, 9, 1, 0, 10}), 1 + 29 + 5, &sound);       /* long */
    check_any(&expander, join({0x1f, 9, 1, 0, 255, 0}), 1 + 274 + 5, &sound);  /* two bytes */
    check_any(&expander, join({0x33, 1, 2, 3, 3, 0, 0x03, 3, 0}), 22, &sound); /* no literals */
    CU_ASSERT_EQUAL(sound, 6);
    check_any(&expander, join({0x33, 1, 2, 3, 0, 0}), 3 + 7 + 5, &sound); /* a distance of 0 */
    check_any(&expander, join({0x33, 1, 2, 3, 4, 0}), 3 + 7 + 5, &sound); /* before the start */
    check_any(&expander, {0x33, 1, 2, 3, 3, 0}, 10, &sound);              /* ends with a match */
    check_any(&expander, {0x33, 1, 2, 3, 3}, 10, &sound); /* ends within a distance */
    check_any(&expander, {0xf0, 255, 255}, 600, &sound);  /* ends within a length */
    check_any(&expander, {0x50, 1, 2}, 5, &sound);        /* ends within literals */
    check_any(&expander, {0x1f, 9, 1, 0, 255, 255, 255, 255}, 1 << 10, &sound);
    check_any(&expander, {0x33, 1, 2, 3, 3, 0, 0x40, 1, 2, 3, 4}, 14, &sound); /* short tail */
    CU_ASSERT_EQUAL(sound, 6);
}

static void altered(void)
{
    const unsigned trials = slc_test_threads_only() ? 5 : slc_test_quick() ? 20 : 60;
    unsigned sound = 0, all = 0;

    for (size_t period = 1; period < 60; period += 3) {
        const byte_string bytes = periodic(300 + draw() % 500, period, 40 + draw() % 90);
        struct expander expander;

        for (unsigned trial = 0; trial < trials; trial++, all++) {
            byte_string in = compressed(bytes, trial % 2 == 0);

            for (unsigned change = 0; change < 1 + trial % 3; change++) {
                in[draw() % in.size()] = draw() % 4 == 0 ? 255 : (uint8_t)draw();
            }
            if (trial % 7 == 0) {
                in.resize(1 + draw() % in.size());
            }
            check_any(&expander, in, bytes.size(), &sound);
        }
    }
    CU_ASSERT(sound > 0 && sound < all);
}

SLC_SUITE(expand)
{
    static const struct slc_test tests[] = {
        {"periods of every length, wrong sizes", every_period},
        {"lengths of several bytes", long_lengths},
        {"sections of a batch", batches},
        {"sections written by hand, sound and not", written_by_hand},
        {"altered bytes: refused as a naive reading does, or the same", altered},
    };

    return slc_test_main("gpu expand", tests, SLC_COUNT(tests), argc, argv);
}
