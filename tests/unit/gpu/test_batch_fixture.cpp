/* The fixture of kernel tests itself: the uploaded blocks, decoded on the device by the naive
 * decoder, equal the list for the oracle. */
#include "batch_fixture.h"

extern "C" {
#include "naive_decode.h"
#include "slc_test.h"
}

#include <cstring>

static const struct slc_emulation emulation = {1, (size_t)64 << 20, 100 << 10, 2, 1};

/* A block of one thread for each chunk; nonzero i of tile t is element tile_begin[t] + i. */
__global__ static void decode_naively(struct slc_gpu_batch batch,
                                      const uint64_t *tile_begin,
                                      uint64_t nnz,
                                      uint64_t *coords,
                                      double *values)
{
    std::vector<struct slc_naive_run> room(1); /* larger than a fiber's stack */
    struct slc_naive_run &decoded = room[0];
    struct slc_encoded_block block = {};
    uint32_t t = 0;

    while (batch.chunk_begin[t + 1] <= blockIdx.x) {
        t++;
    }
    const struct slc_gpu_tile *tile = &batch.tiles[t];
    const uint32_t first = (blockIdx.x - batch.chunk_begin[t]) * batch.chunk_runs;

    block.data = tile->block;
    for (uint32_t run = first; run < first + batch.chunk_runs && run < slc_naive_runs(&tile->tile);
         run++) {
        const uint64_t at = tile_begin[t] + (uint64_t)run * SLC_RUN_NNZ;

        if (!slc_naive_decode(batch.layout, &block, &tile->tile, tile->expanded, run, &decoded)) {
            batch.fault->kind = SLC_GPU_FAULT_KEYS;
            return;
        }
        for (uint32_t i = 0; i < decoded.nnz; i++) {
            for (unsigned n = 0; n < batch.layout->order; n++) {
                coords[n * nnz + at + i] = decoded.coords[n][i];
            }
            values[at + i] = decoded.values[i];
        }
    }
}

/* Whether the nonzeros decoded on the device equal the list. */
static bool same_as_list(struct batch_fixture *fixture)
{
    const uint64_t nnz = fixture->coo.nnz;
    const unsigned order = fixture->coo.order;
    std::vector<uint64_t> coords(order * nnz);
    std::vector<double> values(nnz);
    auto *device_coords =
        static_cast<uint64_t *>(batch_to_device(fixture, nullptr, coords.size() * 8));
    auto *device_values =
        static_cast<double *>(batch_to_device(fixture, nullptr, values.size() * 8));
    const auto *tile_begin = static_cast<const uint64_t *>(
        batch_to_device(fixture, fixture->tile_begin.data(), fixture->tile_begin.size() * 8));
    struct slc_gpu_fault fault;
    bool same;

    slc_launch(decode_naively, dim3(fixture->batch.chunk_count), dim3(1), 0, fixture->stream,
               fixture->batch, tile_begin, nnz, device_coords, device_values);
    if (batch_fault(fixture, &fault) != SLC_GPU_SOUND) {
        return false; /* not all nonzeros were written */
    }
    batch_download(fixture, coords.data(), device_coords, coords.size() * 8);
    batch_download(fixture, values.data(), device_values, values.size() * 8);
    same = memcmp(values.data(), fixture->coo.values, nnz * 8) == 0;
    for (unsigned n = 0; n < order; n++) {
        same &= memcmp(coords.data() + n * nnz, fixture->coo.coords[n], nnz * 8) == 0;
    }
    return same;
}

static void check_batch(enum slc_codec codec, struct slc_fiber_run run, enum slc_made_values values)
{
    static const enum slc_value_form forms[SLC_MADE_VALUES] = {
        SLC_FORM_CONSTANT,   SLC_FORM_INTEGER, SLC_FORM_F32,    SLC_FORM_F64,
        SLC_FORM_DICTIONARY, SLC_FORM_F32_LZ4, SLC_FORM_F64_LZ4};
    const uint64_t dims[4] = {300, 1, 5000, 70};
    const struct batch_shape shape = {codec, run, 1000, SLC_MIN_BLOCK_BYTES};
    struct batch_fixture fixture;
    struct slc_gpu_fault fault;

    batch_encode(&fixture, 4, dims, 4300, values, slc_test_seed(), &shape);
    CU_ASSERT(fixture.blocks.size() > 1);
    CU_ASSERT(codec != SLC_CODEC_PACKED || fixture.blocks[0].tiles[0].form == forms[values]);
    slc_emulation_set(&emulation);
    batch_upload(&fixture, 2, true);
    CU_ASSERT(same_as_list(&fixture));
    CU_ASSERT_EQUAL(batch_fault(&fixture, &fault), SLC_GPU_SOUND);
    batch_release(&fixture);
    slc_emulation_reset();
}

static void every_codec(void)
{
    for (int values = 0; values < SLC_MADE_VALUES; values++) {
        for (int codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
            check_batch(static_cast<enum slc_codec>(codec), {2, values % 2 == 0 ? 6U : 0U},
                        static_cast<enum slc_made_values>(values));
        }
    }
}

/* Kernels see the changes that a test makes to the bytes. */
static void altered(void)
{
    const uint64_t dims[2] = {300, 200};
    const struct batch_shape shape = {SLC_CODEC_PACKED, {0, 0}, 0, 0};
    struct batch_fixture fixture;
    struct slc_gpu_fault fault;

    batch_encode(&fixture, 2, dims, 1000, SLC_MADE_ONES, slc_test_seed(), &shape);
    CU_ASSERT_EQUAL(fixture.blocks.size(), 1);
    fixture.blocks[0].bytes[fixture.blocks[0].tiles[0].bases_at + 1] ^= 0x40;
    slc_emulation_set(&emulation);
    batch_upload(&fixture, 1, true);
    CU_ASSERT(!same_as_list(&fixture));
    CU_ASSERT_EQUAL(batch_fault(&fixture, &fault), SLC_GPU_FAULT_KEYS);
    batch_release(&fixture);
    slc_emulation_reset();
}

SLC_SUITE(batch_fixture)
{
    static const struct slc_test tests[] = {
        {"a batch on the device is the tensor", every_codec},
        {"altered bytes reach the device", altered},
    };

    return slc_test_main("gpu batch fixture", tests, SLC_COUNT(tests), argc, argv);
}
