/*
 * Batches decoded to lists of coordinates, from what is under LZ4 on: the lists are the tensors.
 */
#include "batch_fixture.h"
#include "gpu/decode_batch.h"
#include "gpu/expand.h"

extern "C" {
#include "slc_test.h"
}

#include <cstring>

/* Whether the list has the fixture's nonzeros in their order, values rounded to its type. */
template <typename T>
static bool same_list(struct batch_fixture *fixture, const struct slc_gpu_coo &coo)
{
    std::vector<uint32_t> coords(coo.nnz * coo.order);
    std::vector<T> values(coo.nnz);
    bool same = true;

    batch_download(fixture, coords.data(), coo.coords, coords.size() * sizeof coords[0]);
    batch_download(fixture, values.data(), coo.values, values.size() * sizeof values[0]);
    for (uint64_t i = 0; i < coo.nnz; i++) {
        same &= values[i] == (T)fixture->values[i];
        for (unsigned n = 0; n < coo.order; n++) {
            same &= coords[i * coo.order + n] == fixture->coords[n][i];
        }
    }
    return same;
}

static void check_list(struct batch_fixture *fixture, enum slc_value_type type, uint32_t chunk_runs)
{
    static unsigned seed = 0;
    const struct slc_emulation emulation = {1, (size_t)64 << 20, 100 << 10, 2, ++seed};
    struct slc_gpu_coo coo = {};
    struct slc_gpu_fault fault;

    slc_emulation_set(&emulation);
    batch_upload(fixture, chunk_runs, false);
    CU_ASSERT_EQUAL(slc_gpu_coo_create(&coo, fixture->coo.order, fixture->coo.nnz, type),
                    cudaSuccess);
    const auto *tile_begin = static_cast<const uint64_t *>(
        batch_to_device(fixture, fixture->tile_begin.data(), fixture->tile_begin.size() * 8));

    CU_ASSERT_EQUAL(slc_gpu_expand(fixture->batch.tiles, fixture->batch.tile_count,
                                   fixture->batch.fault, fixture->stream),
                    cudaSuccess);
    CU_ASSERT_EQUAL(slc_gpu_decode_batch(&fixture->batch, tile_begin, &coo, fixture->stream),
                    cudaSuccess);
    CU_ASSERT_EQUAL(batch_fault(fixture, &fault), SLC_GPU_SOUND);
    CU_ASSERT(type == SLC_F32 ? same_list<float>(fixture, coo) : same_list<double>(fixture, coo));
    slc_gpu_coo_destroy(&coo);
    batch_release(fixture);
    slc_emulation_reset();
}

static void lists(void)
{
    static const unsigned orders[] = {1, 2, 3, 4, 5, 8, 16};
    static const enum slc_made_values values[] = {SLC_MADE_COUNTS, SLC_MADE_EVEN_DOUBLES,
                                                  SLC_MADE_DOUBLES};

    for (unsigned order : orders) {
        uint64_t dims[SLC_MAX_ORDER];

        for (unsigned n = 0; n < order; n++) {
            dims[n] = order == 1 ? 4000000000U : 3 + 200 / order + n;
        }
        for (int codec = SLC_CODEC_PACKED; codec <= SLC_CODEC_BLCO; codec++) {
            /* Tiles of all sorts of runs, of which several are in a block. */
            const struct batch_shape shape = {
                static_cast<enum slc_codec>(codec), {0, 0}, 1300, SLC_MIN_BLOCK_BYTES};
            struct batch_fixture fixture;

            batch_encode(&fixture, order, dims, 4000, values[(order + (unsigned)codec) % 3],
                         slc_test_seed() + order, &shape);
            CU_ASSERT(fixture.tile_begin.size() > 1);
            check_list(&fixture, SLC_F64, 1 + order % 3);
            check_list(&fixture, SLC_F32, 200);
        }
    }
}

/* Coordinates stay within their tiles where bytes lead out of them. */
static void contradiction(void)
{
    const struct slc_emulation emulation = {1, (size_t)64 << 20, 100 << 10, 2, 1};
    const struct batch_shape shape = {SLC_CODEC_BLCO, {0, 0}, 0, 0};
    const uint64_t dims[2] = {300, 200};
    struct batch_fixture fixture;
    struct slc_gpu_coo coo = {};
    struct slc_gpu_fault fault;

    batch_encode(&fixture, 2, dims, 1000, SLC_MADE_ONES, slc_test_seed(), &shape);
    const struct slc_encoded_tile &tile = fixture.blocks[0].tiles[0];

    /* Nonzero 600 has the largest index that there may be, and beyond. */
    memset(fixture.blocks[0].bytes.data() + tile.indices_at + 8 * 600, 0xff, 8);
    slc_emulation_set(&emulation);
    batch_upload(&fixture, 1, true);
    CU_ASSERT_EQUAL(slc_gpu_coo_create(&coo, 2, fixture.coo.nnz, SLC_F64), cudaSuccess);
    const auto *tile_begin = static_cast<const uint64_t *>(
        batch_to_device(&fixture, fixture.tile_begin.data(), fixture.tile_begin.size() * 8));

    CU_ASSERT_EQUAL(slc_gpu_decode_batch(&fixture.batch, tile_begin, &coo, fixture.stream),
                    cudaSuccess);
    CU_ASSERT_EQUAL(batch_fault(&fixture, &fault), SLC_GPU_FAULT_OFFSET);
    fixture.coords[0][600] = tile.corner[0] + tile.extent[0];
    fixture.coords[1][600] = tile.corner[1] + tile.extent[1];
    CU_ASSERT(same_list<double>(&fixture, coo));
    /* A batch of nothing. */
    fixture.batch.chunk_count = 0;
    CU_ASSERT_EQUAL(slc_gpu_decode_batch(&fixture.batch, tile_begin, &coo, fixture.stream),
                    cudaSuccess);
    slc_gpu_coo_destroy(&coo);
    batch_release(&fixture);
    slc_emulation_reset();
}

int main(int argc, char **argv)
{
    static const struct slc_test tests[] = {
        {"batches of every codec become lists", lists},
        {"a list within its tiles, and a fault", contradiction},
    };

    return slc_test_main("gpu decode batch", tests, SLC_COUNT(tests), argc, argv);
}
