/* Decoding of damaged bytes on the device: a fault, or the result of the naive decoder. */
#include "decode_problem.h"

extern "C" {
#include "naive_decode.h"
}

#include <cstring>
#include <memory>

/* Outcomes of changed batches. */
struct ends {
    unsigned faults[SLC_GPU_FAULT_PATCH + 1];
};

/* Whether all runs of the fixture can be decoded, with the same result. */
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
        /* The naive decoder checks neither whether a run leads to the base of the next one nor
         * whether high parts are zero. */
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

/* The bytes of a tile that its description does not cover. */
struct alterable {
    uint64_t begin, end;
};

/* The bytes of all groups after their widths and counts. */
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

/* No bytes of LZ4 sections: test_expand.cpp tests those. */
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

/* Offset of the positions in a group with at least two exceptions; 0: there is none. */
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

/* Duplicate exceptions at one position, exceptions outside the group, and exceptions without
 * high parts. */
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
        /* A key or value without its part may be detected first. */
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

SLC_SUITE(decode_altered)
{
    static const struct slc_test tests[] = {
        {"altered bytes: a fault, or what the naive decoder finds", altered},
        {"exceptions in places that do not ascend, or without high parts", positions},
    };

    return slc_test_main("gpu decode altered", tests, SLC_COUNT(tests), argc, argv);
}
