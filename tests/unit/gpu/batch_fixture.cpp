/* Encodes random tensors and uploads their blocks to an emulated device. */
#include "batch_fixture.h"

extern "C" {
#include "forge_file.h"
#include "naive_decode.h"
#include "slc_test.h"
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>

static void must(bool done, const char *what, const char *why)
{
    if (!done) {
        fprintf(stderr, "batch_fixture: %s: %s\n", what, why);
        exit(1);
    }
}

static void must(enum slc_status status, const char *what, const struct slc_error &err)
{
    must(status == SLC_OK, what, err.message);
}

static void must(cudaError_t error, const char *what)
{
    must(error == cudaSuccess, what, cudaGetErrorName(error));
}

/* Least size of the memory that copies use. */
enum { STAGING_BYTES = 1 << 18 };

static void release_staging(struct batch_fixture *fixture)
{
    if (!fixture->staging.empty()) {
        must(cudaHostUnregister(fixture->staging.data()), "registering");
        fixture->staging.clear();
    }
}

static void list_nonzeros(struct batch_fixture *fixture, const struct slc_made_tensor *tensor)
{
    for (uint64_t i = 0; i < tensor->nnz; i++) {
        uint64_t at[SLC_MAX_ORDER];

        slc_key_decode(&tensor->keys, slc_key_join(tensor->key_lo[i], tensor->key_hi[i]), at);
        for (unsigned n = 0; n < tensor->order; n++) {
            fixture->coords[n].push_back(at[n]);
        }
        fixture->values.push_back(tensor->values[i]);
    }
    fixture->coo.order = tensor->order;
    fixture->coo.nnz = tensor->nnz;
    for (unsigned n = 0; n < tensor->order; n++) {
        fixture->coo.coords[n] = fixture->coords[n].data();
    }
    fixture->coo.values = fixture->values.data();
}

/* Checks and describes the block whose bytes, padding included, are in `block`. */
static void describe(struct batch_block *block,
                     const struct slc_reader *reader,
                     uint64_t number,
                     struct slc_decoder *decoder)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_block_view view;

    must(slc_block_open(reader, number, block->bytes.data(), false, &view, &err), "a block", err);
    block->tiles.resize(view.entry.tile_count);
    must(slc_describe_block(decoder, &view, block->tiles.data(), &block->described, &err),
         "a description", err);
    block->lone_tiles.resize(view.entry.tile_count);
    block->lone.resize(view.entry.tile_count);
    block->lone_expanded.resize(view.entry.tile_count);
    for (uint32_t t = 0; t < view.entry.tile_count; t++) {
        struct slc_tile_view tile;

        must(slc_tile_open(decoder, &view, t, &tile, &err), "a tile", err);
        must(tile.describe(&tile, &block->lone[t], &err), "a tile alone", err);
        block->lone_tiles[t] = block->lone[t].tiles[0];
        block->lone[t].tiles = &block->lone_tiles[t];
        if (block->lone[t].expanded != nullptr) {
            const auto *bytes = static_cast<const uint8_t *>(block->lone[t].expanded);

            block->lone_expanded[t].assign(bytes, bytes + block->lone[t].expanded_bytes);
            block->lone[t].expanded = block->lone_expanded[t].data();
        }
    }
}

static void read_blocks(struct batch_fixture *fixture, const char *path)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_reader *reader = nullptr;
    struct slc_decoder *decoder = nullptr;
    struct slc_forged file;
    uint64_t nnz = 0;

    must(slc_reader_open(nullptr, path, &reader, &err), path, err);
    const struct slc_layout_info *info = slc_reader_info(reader);
    must(slc_decoder_create(info, SLC_F64, &decoder, &err), "a decoder", err);
    slc_describe_layout(info, &fixture->layout);
    fixture->tile_bytes = slc_describe_tile_bound(info);
    fixture->tile_expanded_bytes = slc_describe_tile_expanded_bound(info);
    slc_forged_load(&file, path);
    fixture->blocks.resize(info->block_count);
    for (uint64_t b = 0; b < info->block_count; b++) {
        struct batch_block *block = &fixture->blocks[b];
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        block->bytes.assign(file.bytes + entry.offset,
                            file.bytes + entry.offset + entry.padded_bytes);
        describe(block, reader, b, decoder);
        for (const struct slc_encoded_tile &tile : block->tiles) {
            fixture->tile_begin.push_back(nnz);
            nnz += tile.nnz;
        }
    }
    slc_forged_release(&file);
    slc_decoder_destroy(decoder);
    slc_reader_close(reader);
}

void batch_encode_tensor(struct batch_fixture *fixture,
                         const struct slc_made_tensor *tensor,
                         const struct batch_shape *shape)
{
    const std::string path = std::string(slc_test_folder()) + "/batch.blk";
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;
    struct slc_made_tensor ordered;

    *fixture = batch_fixture{};
    slc_made_tensor_rekey(tensor, shape->run, &ordered);
    ordered.tile_nnz = shape->tile_nnz;
    must(slc_made_blocks_write(&ordered, nullptr, path.c_str(), shape->codec, shape->block_bytes,
                               &summary, &err),
         "the block file", err);
    list_nonzeros(fixture, &ordered);
    read_blocks(fixture, path.c_str());
    unlink(path.c_str());
    slc_made_tensor_destroy(&ordered);
}

void batch_encode(struct batch_fixture *fixture,
                  unsigned order,
                  const uint64_t *dims,
                  uint64_t nnz,
                  enum slc_made_values values,
                  uint64_t seed,
                  const struct batch_shape *shape)
{
    struct slc_made_tensor tensor;

    slc_made_tensor_create(&tensor, order, dims, nnz, values, seed);
    batch_encode_tensor(fixture, &tensor, shape);
    slc_made_tensor_destroy(&tensor);
}

/* Registered memory of the host for a copy of `bytes` bytes. All copies use the same memory,
 * because a real driver needs longer to register memory than to copy a megabyte. */
static uint8_t *staged(struct batch_fixture *fixture, size_t bytes)
{
    std::vector<uint8_t> *staging = &fixture->staging;

    if (bytes > staging->size()) {
        release_staging(fixture);
        staging->resize(std::max<size_t>(bytes, (size_t)STAGING_BYTES));
        must(cudaHostRegister(staging->data(), staging->size(), cudaHostRegisterDefault),
             "registering");
    }
    return staging->data();
}

void *batch_to_device(struct batch_fixture *fixture, const void *host, size_t bytes)
{
    void *device = nullptr;

    must(cudaMalloc(&device, std::max<size_t>(bytes, 1)), "memory of the device");
    fixture->memory.push_back(device);
    if (host != nullptr && bytes > 0) {
        uint8_t *staging = staged(fixture, bytes);

        memcpy(staging, host, bytes);
        must(cudaMemcpyAsync(device, staging, bytes, cudaMemcpyHostToDevice, fixture->stream),
             "a copy to the device");
        must(cudaStreamSynchronize(fixture->stream), "a copy to the device");
    }
    return device;
}

void batch_download(struct batch_fixture *fixture, void *host, const void *device, size_t bytes)
{
    if (bytes == 0) {
        return;
    }
    uint8_t *staging = staged(fixture, bytes);
    must(cudaMemcpyAsync(staging, device, bytes, cudaMemcpyDeviceToHost, fixture->stream),
         "a copy to the host");
    must(cudaStreamSynchronize(fixture->stream), "kernels and a copy to the host");
    memcpy(host, staging, bytes);
}

/* Memory for the block's expanded bytes on the device, filled or uninitialized. */
static const uint8_t *
upload_expanded(struct batch_fixture *fixture, const struct batch_block &block, bool expanded)
{
    std::vector<uint8_t> bytes(block.described.expanded_bytes);

    for (const struct slc_encoded_tile &tile : block.tiles) {
        must(!expanded || slc_naive_expand(&block.described, &tile, bytes.data()),
             "a section under LZ4", "it does not expand");
    }
    return static_cast<const uint8_t *>(
        batch_to_device(fixture, expanded ? bytes.data() : nullptr, bytes.size()));
}

void batch_upload(struct batch_fixture *fixture, uint32_t chunk_runs, bool expanded)
{
    const struct slc_gpu_fault sound = {};
    std::vector<struct slc_gpu_tile> tiles;
    std::vector<uint32_t> chunk_begin(1, 0);

    must(cudaStreamCreateWithFlags(&fixture->stream, cudaStreamNonBlocking), "a stream");
    for (const struct batch_block &block : fixture->blocks) {
        const auto *bytes = static_cast<const uint8_t *>(
            batch_to_device(fixture, block.bytes.data(), block.described.bytes));
        const uint8_t *room = upload_expanded(fixture, block, expanded);

        for (const struct slc_encoded_tile &tile : block.tiles) {
            const uint32_t runs = (tile.nnz + SLC_RUN_NNZ - 1) / SLC_RUN_NNZ;

            tiles.push_back({bytes, room, block.described.block, block.described.offset, tile});
            chunk_begin.push_back(chunk_begin.back() + (runs + chunk_runs - 1) / chunk_runs);
        }
    }
    fixture->batch.tiles = static_cast<const struct slc_gpu_tile *>(
        batch_to_device(fixture, tiles.data(), tiles.size() * sizeof tiles[0]));
    fixture->batch.chunk_begin = static_cast<const uint32_t *>(
        batch_to_device(fixture, chunk_begin.data(), chunk_begin.size() * sizeof chunk_begin[0]));
    fixture->batch.tile_count = static_cast<uint32_t>(tiles.size());
    fixture->batch.chunk_count = chunk_begin.back();
    fixture->batch.chunk_runs = chunk_runs;
    fixture->batch.waves = 1;
    fixture->batch.layout = static_cast<const struct slc_encoded_layout *>(
        batch_to_device(fixture, &fixture->layout, sizeof fixture->layout));
    fixture->batch.fault =
        static_cast<struct slc_gpu_fault *>(batch_to_device(fixture, &sound, sizeof sound));
}

enum slc_gpu_fault_kind batch_fault(struct batch_fixture *fixture, struct slc_gpu_fault *fault)
{
    batch_download(fixture, fault, fixture->batch.fault, sizeof *fault);
    return static_cast<enum slc_gpu_fault_kind>(fault->kind);
}

void batch_release(struct batch_fixture *fixture)
{
    for (void *memory : fixture->memory) {
        must(cudaFree(memory), "memory of the device");
    }
    fixture->memory.clear();
    release_staging(fixture);
    must(cudaStreamDestroy(fixture->stream), "a stream");
    fixture->stream = nullptr;
    fixture->batch = slc_gpu_batch{};
}
