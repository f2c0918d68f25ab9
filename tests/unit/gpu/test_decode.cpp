/*
 * Decoding on the device beside the tensor that was encoded: every codec, value form, order and
 * length of keys; and beside the naive decoder where bytes are not what an encoder wrote.
 */
#include "batch_fixture.h"
#include "gpu/decode.h"

extern "C" {
#include "base/random.h"
#include "naive_decode.h"
#include "slc_test.h"
}

#include <cstdlib>
#include <cstring>
#include <memory>

enum { WARPS = 2 };

/* What a warp decodes to: as small as it may be, so that a sanitizer sees what goes beyond. */
template <typename T> struct warp_room {
    uint32_t nnz; /* of the tile's runs, rounded up to whole groups */
    unsigned order;

    __host__ __device__ size_t bytes(void) const
    {
        return sizeof(struct slc_decode_scratch) + nnz * (order * sizeof(uint32_t) + sizeof(T));
    }
};

/* A warp for each run; nonzero i of tile t is element tile_begin[t] + i. */
template <typename T>
__global__ static void decode_runs(struct slc_gpu_batch batch,
                                   struct warp_room<T> room,
                                   const uint64_t *tile_begin,
                                   uint64_t nnz,
                                   uint64_t *coords,
                                   T *values)
{
    SLC_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t lane = threadIdx.x % SLC_WARP, warp = threadIdx.x / SLC_WARP;
    uint32_t t = 0;

    while (batch.chunk_begin[t + 1] <= blockIdx.x) {
        t++;
    }
    const struct slc_gpu_tile *tile = &batch.tiles[t];
    const uint32_t first = (blockIdx.x - batch.chunk_begin[t]) * batch.chunk_runs;
    auto *scratch = reinterpret_cast<struct slc_decode_scratch *>(shared + warp * room.bytes());
    T *decoded = reinterpret_cast<T *>(scratch + 1);
    uint32_t *offsets = reinterpret_cast<uint32_t *>(decoded + room.nnz);

    for (uint32_t run = first + warp; run < first + batch.chunk_runs; run += WARPS) {
        if (run * SLC_RUN_NNZ >= tile->tile.nnz) {
            return;
        }
        const uint64_t at = tile_begin[t] + (uint64_t)run * SLC_RUN_NNZ;
        const uint32_t count = slc_decode_run(batch.layout, tile, run, scratch, offsets, room.nnz,
                                              decoded, batch.fault);

        __syncwarp();
        for (uint32_t i = lane; i < count; i += SLC_WARP) {
            for (unsigned n = 0; n < batch.layout->order; n++) {
                const uint32_t offset = offsets[n * room.nnz + i];

                if (offset > tile->tile.extent[n]) {
                    batch.fault->kind = ~0U; /* whatever the bytes are, this may not be */
                }
                coords[n * nnz + at + i] = tile->tile.corner[n] + offset;
            }
            values[at + i] = decoded[i];
        }
        __syncwarp();
    }
}

/* All that is decoded, as f64, and what was met. */
struct decoded_batch {
    std::vector<uint64_t> coords; /* of nonzero i in mode n: n * nnz + i */
    std::vector<double> values;
    struct slc_gpu_fault fault;
};

template <typename T> static void decode(struct batch_fixture *fixture, struct decoded_batch *to)
{
    const uint64_t nnz = fixture->coo.nnz;
    struct warp_room<T> room = {
        0, fixture->coo.order
    };
    std::vector<T> values(nnz);

    for (const struct batch_block &block : fixture->blocks) {
        for (const struct slc_encoded_tile &tile : block.tiles) {
            const uint32_t run = slc_least(tile.nnz, SLC_RUN_NNZ);
            const uint32_t whole = (run + SLC_GROUP_NNZ - 1) / SLC_GROUP_NNZ * SLC_GROUP_NNZ;

            room.nnz = whole > room.nnz ? whole : room.nnz;
        }
    }
    to->coords.resize(room.order * nnz);
    auto *device_coords =
        static_cast<uint64_t *>(batch_to_device(fixture, nullptr, to->coords.size() * 8));
    auto *device_values = static_cast<T *>(batch_to_device(fixture, nullptr, nnz * sizeof(T)));
    const auto *tile_begin = static_cast<const uint64_t *>(
        batch_to_device(fixture, fixture->tile_begin.data(), fixture->tile_begin.size() * 8));

    CU_ASSERT_EQUAL(cudaFuncSetAttribute(decode_runs<T>,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         (int)(WARPS * room.bytes())),
                    cudaSuccess);
    CU_ASSERT_EQUAL(slc_launch(decode_runs<T>, dim3(fixture->batch.chunk_count),
                               dim3(WARPS * SLC_WARP), WARPS * room.bytes(), fixture->stream,
                               fixture->batch, room, tile_begin, nnz, device_coords, device_values),
                    cudaSuccess);
    batch_download(fixture, to->coords.data(), device_coords, to->coords.size() * 8);
    batch_download(fixture, values.data(), device_values, nnz * sizeof(T));
    to->values.assign(values.begin(), values.end());
    batch_fault(fixture, &to->fault);
}

/* Seeds of the emulation's order change from case to case. */
static void start_device(void)
{
    static unsigned seed = 0;
    const struct slc_emulation emulation = {1, (size_t)64 << 20, 128 << 10, 2, ++seed};

    slc_emulation_set(&emulation);
}

/* Whether what was decoded is the list, its values rounded to T. */
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

/* Tiles of each kind that were decoded. */
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

static uint64_t draw(uint64_t *index)
{
    return slc_random_u64(slc_test_seed(), 91, (*index)++);
}

/* Modes of 2^0 to 2^most, so that keys of every length are met. */
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

/*
 * Keys in clusters, so that groups of short gaps lie between exceptions of up to `far` bits, and
 * integers of which some are of any length.
 */
static void cluster(struct slc_made_tensor *tensor, unsigned far, unsigned often, uint64_t *index)
{
    slc_u128 key = 0;

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        slc_u128 gap = draw(index) % 1000;

        if (draw(index) % often == 0) {
            gap = slc_key_join(draw(index), draw(index)) >> (128 - far);
        }
        key += i > 0 ? gap + 1 : 0;
        tensor->key_lo[i] = (uint64_t)key;
        tensor->key_hi[i] = (uint64_t)(key >> 64);
        if (draw(index) % 9 == 0) {
            const int64_t magnitude = (int64_t)(draw(index) >> (11 + draw(index) % 40)) + 1;

            tensor->values[i] = (double)(draw(index) % 2 == 0 ? magnitude : -magnitude);
        }
    }
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

/*
 * A tile around a multiple of 2^32 of a long mode: its coordinates are told from those that lie
 * 2^32 away, as far as a corner may, too.
 */
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

/* Groups that end where the words that keys are taken in have ones alone. */
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

/* ---- bytes that are not what an encoder wrote */

/* What came of altered batches. */
struct ends {
    unsigned faults[SLC_GPU_FAULT_PATCH + 1];
};

/* Whether all runs of the fixture can be decoded, and are what was. */
static bool
is_naive(const struct batch_fixture &fixture, const struct decoded_batch &decoded, bool *sound)
{
    auto run = std::make_unique<struct slc_naive_run>();
    uint64_t at = 0;
    bool same = true;

    *sound = true;
    for (const struct batch_block &block : fixture.blocks) {
        std::vector<uint8_t> expanded(block.described.expanded_bytes);

        for (const struct slc_encoded_tile &tile : block.tiles) {
            *sound &= slc_naive_expand(&block.described, &tile, expanded.data());
            for (uint32_t r = 0; r < slc_naive_runs(&tile); r++) {
                *sound &= slc_naive_decode(&fixture.layout, &block.described, &tile,
                                           expanded.data(), r, run.get());
                for (uint32_t i = 0; i < run->nnz; i++, at++) {
                    same &= run->values[i] == decoded.values[at];
                    for (unsigned n = 0; n < fixture.coo.order; n++) {
                        same &= run->coords[n][i] == decoded.coords[n * fixture.coo.nnz + at];
                    }
                }
            }
        }
    }
    return same;
}

static void check_altered(struct batch_fixture *fixture, struct ends *ends)
{
    struct decoded_batch decoded;
    bool sound;

    start_device();
    batch_upload(fixture, 1, true);
    decode<double>(fixture, &decoded);
    const bool same = is_naive(*fixture, decoded, &sound);

    CU_ASSERT_FATAL(decoded.fault.kind <= SLC_GPU_FAULT_PATCH);
    ends->faults[decoded.fault.kind]++;
    if (decoded.fault.kind == SLC_GPU_SOUND) {
        CU_ASSERT(sound && same);
    } else {
        /* The naive decoder does not ask whether a run leads to the next one's base, nor whether
         * high parts are zero. */
        CU_ASSERT(!sound || decoded.fault.kind == SLC_GPU_FAULT_KEYS ||
                  decoded.fault.kind == SLC_GPU_FAULT_PATCH);
        CU_ASSERT(decoded.fault.tile < fixture->tile_begin.size());
        CU_ASSERT(decoded.fault.block_number < fixture->blocks.size());
        CU_ASSERT_EQUAL(decoded.fault.block_offset,
                        fixture->blocks[decoded.fault.block_number].described.offset);
    }
    batch_release(fixture);
    slc_emulation_reset();
}

/* The bytes of a tile that its description has not been checked by. */
struct alterable {
    uint64_t begin, end;
};

/* The bytes of all groups behind their widths and counts. */
static struct alterable
groups_of(const struct batch_block &block, const struct slc_encoded_patched &patched, uint32_t nnz)
{
    struct alterable groups = {patched.data_at, patched.data_at};

    for (uint32_t first = 0; first < nnz; first += SLC_GROUP_NNZ) {
        const uint32_t g = first / SLC_GROUP_NNZ;
        const uint32_t size = slc_least(nnz - first, SLC_GROUP_NNZ);
        const uint32_t count = block.bytes[patched.counts_at + g];

        groups.end += (size * block.bytes[patched.widths_at + g] + 7) / 8 + count +
                      (count * block.bytes[patched.extras_at + g] + 7) / 8;
    }
    return groups;
}

/* Of LZ4 sections nothing: what becomes of those is for test_expand.cpp. */
static std::vector<struct alterable> alterable_of(const struct batch_block &block,
                                                  const struct slc_encoded_tile &tile)
{
    const uint64_t nnz = tile.nnz, bases = (nnz + SLC_RUN_NNZ - 1) / SLC_RUN_NNZ;
    std::vector<struct alterable> found;

    if (tile.encoding == SLC_ENCODING_PACKED) {
        found.push_back({tile.bases_at, tile.bases_at + (bases * tile.base_width + 7) / 8});
        found.push_back(groups_of(block, tile.gaps, tile.nnz));
    } else if (tile.encoding == SLC_ENCODING_FIELDS) {
        found.push_back({tile.indices_at, tile.indices_at + 8 * nnz});
    } else if (tile.lz4.bytes == 0) {
        found.push_back({tile.planes_at, tile.planes_at + nnz * tile.gap_bytes});
    }
    switch (tile.form) {
    case SLC_FORM_CONSTANT:
        found.push_back({tile.values_at, tile.values_at + 8});
        break;
    case SLC_FORM_INTEGER:
        found.push_back(groups_of(block, tile.integers, tile.nnz));
        break;
    case SLC_FORM_DICTIONARY:
        found.push_back({tile.values_at, tile.values_at + (nnz * tile.index_width + 7) / 8});
        break;
    case SLC_FORM_F32:
        found.push_back({tile.values_at, tile.values_at + 4 * nnz});
        break;
    case SLC_FORM_F64:
        found.push_back({tile.values_at, tile.values_at + 8 * nnz});
        break;
    default:
        break;
    }
    return found;
}

static void alter(struct batch_block *block, uint64_t *index)
{
    const auto places = alterable_of(*block, block->tiles[draw(index) % block->tiles.size()]);

    if (places.empty()) {
        return;
    }
    const struct alterable place = places[draw(index) % places.size()];

    if (place.begin < place.end) {
        const uint64_t at = place.begin + draw(index) % (place.end - place.begin);

        block->bytes[at] = draw(index) % 2 == 0
                               ? (uint8_t)draw(index)
                               : (uint8_t)(block->bytes[at] ^ 1U << draw(index) % 8);
    }
}

static void altered(void)
{
    static const unsigned far[] = {14, 31, 40, 90};
    const uint64_t dims[5] = {1 << 25, 1 << 25, 1 << 25, 1 << 24, 1 << 25};
    const unsigned trials = slc_test_quick() ? 12 : 60;
    struct ends ends = {};
    uint64_t index = 5000;

    for (int values = 0; values < SLC_MADE_VALUES; values++) {
        for (unsigned trial = 0; trial < trials; trial++) {
            struct slc_made_tensor tensor;
            struct batch_fixture fixture;
            const struct batch_shape shape = {
                static_cast<enum slc_codec>(1 + trial % 3), {0, 0}, 700, 0};

            slc_made_tensor_create(&tensor, 5, dims, 1000,
                                   static_cast<enum slc_made_values>(values), trial);
            if (values == SLC_MADE_COUNTS) {
                cluster(&tensor, far[trial % 4], 20, &index);
            }
            batch_encode_tensor(&fixture, &tensor, &shape);
            for (unsigned change = 0; change < 1 + trial % 4; change++) {
                alter(&fixture.blocks[0], &index);
            }
            check_altered(&fixture, &ends);
            slc_made_tensor_destroy(&tensor);
        }
    }
    CU_ASSERT(ends.faults[SLC_GPU_SOUND] > 0 && ends.faults[SLC_GPU_FAULT_OFFSET] > 0 &&
              ends.faults[SLC_GPU_FAULT_KEYS] > 0 && ends.faults[SLC_GPU_FAULT_VALUE] > 0);
}

/* Where a group with at least two exceptions has their positions; 0: there is none. */
static uint64_t find_positions(const struct batch_block &block,
                               const struct slc_encoded_patched &patched,
                               uint32_t nnz,
                               uint32_t *count,
                               uint32_t *extra)
{
    uint64_t at = patched.data_at;

    for (uint32_t first = 0; first < nnz; first += SLC_GROUP_NNZ) {
        const uint32_t g = first / SLC_GROUP_NNZ, size = slc_least(nnz - first, SLC_GROUP_NNZ);

        at += (size * block.bytes[patched.widths_at + g] + 7) / 8;
        *count = block.bytes[patched.counts_at + g];
        *extra = block.bytes[patched.extras_at + g];
        if (*count >= 2) {
            return at;
        }
        at += *count + (*count * *extra + 7) / 8;
    }
    return 0;
}

/* Exceptions at one place twice, behind the group, and without high parts. */
static void check_positions(struct batch_fixture *fixture,
                            const struct slc_encoded_patched &patched,
                            struct ends *ends)
{
    struct batch_block *block = &fixture->blocks[0];
    const std::vector<uint8_t> bytes = block->bytes;
    uint32_t count = 0, extra = 0;
    const uint64_t at = find_positions(*block, patched, block->tiles[0].nnz, &count, &extra);

    CU_ASSERT_FATAL(at > 0);
    for (unsigned change = 0; change < 3; change++) {
        struct ends found = {};

        if (change == 0) {
            block->bytes[at + 1] = block->bytes[at];
        } else if (change == 1) {
            block->bytes[at + count - 1] = SLC_GROUP_NNZ;
        } else {
            memset(block->bytes.data() + at + count, 0, (count * extra + 7) / 8);
        }
        check_altered(fixture, &found);
        /* A key or value that lacks a part may be what is met first. */
        CU_ASSERT_EQUAL(found.faults[SLC_GPU_SOUND], 0);
        ends->faults[SLC_GPU_FAULT_PATCH] += found.faults[SLC_GPU_FAULT_PATCH];
        memcpy(block->bytes.data(), bytes.data(), bytes.size());
    }
}

static void positions(void)
{
    static const unsigned far[] = {24, 40, 90};
    const uint64_t dims[5] = {1 << 25, 1 << 25, 1 << 25, 1 << 24, 1 << 25};
    struct ends ends = {};
    uint64_t index = 9000;

    for (unsigned bits : far) {
        const struct batch_shape shape = {SLC_CODEC_PACKED, {0, 0}, 0, 0};
        struct slc_made_tensor tensor;
        struct batch_fixture fixture;

        slc_made_tensor_create(&tensor, 5, dims, 1100, SLC_MADE_COUNTS, bits);
        cluster(&tensor, bits, 20, &index);
        batch_encode_tensor(&fixture, &tensor, &shape);
        check_positions(&fixture, fixture.blocks[0].tiles[0].gaps, &ends);
        check_positions(&fixture, fixture.blocks[0].tiles[0].integers, &ends);
        slc_made_tensor_destroy(&tensor);
    }
    CU_ASSERT(ends.faults[SLC_GPU_FAULT_PATCH] >= 6);
}

int main(int argc, char **argv)
{
    static const struct slc_test tests[] = {
        {"every codec, value form, order and length of keys", every_form},
        {"tiles and runs of every size", every_size},
        {"a full tile", full_tile},
        {"keys in clusters, integers of every length", clusters},
        {"modes longer than 2^32", long_modes},
        {"groups that end with full words", full_words},
        {"altered bytes: a fault, or what the naive decoder finds", altered},
        {"exceptions in places that do not ascend, or without high parts", positions},
    };

    return slc_test_main("gpu decode", tests, SLC_COUNT(tests), argc, argv);
}
