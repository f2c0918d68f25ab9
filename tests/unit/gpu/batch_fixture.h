/*
 * Blocks of random tensors on an emulated device, for tests of kernels: encoded and described by
 * storage/, uploaded byte for byte, with their nonzeros as a list for the oracle beside them.
 *
 *     batch_encode -> (the test may alter blocks[b].bytes or tiles) -> batch_upload -> kernels on
 *     fixture.batch -> batch_fault, batch_download -> batch_release
 *
 * The test sets the emulation up before batch_upload. What cannot be done ends the program.
 */
#ifndef SLC_BATCH_FIXTURE_H
#define SLC_BATCH_FIXTURE_H

extern "C" {
#include "cpu/reference/reference.h"
#include "make_store.h"
#include "storage/codec/describe.h"
}
#include "gpu/cuda/batch.h"

#include <vector>

/* How a tensor is encoded. */
struct batch_shape {
    enum slc_codec codec;
    struct slc_fiber_run run; /* of the keys; all zero: plain ALTO order */
    uint32_t tile_nnz;        /* 0: full tiles */
    uint64_t block_bytes;     /* aimed at, SLC_MIN_BLOCK_BYTES or more; 0: the writer's default */
};

struct batch_block {
    std::vector<uint8_t> bytes;
    std::vector<struct slc_encoded_tile> tiles;
    struct slc_encoded_block described; /* borrows the two */
    /* Each tile as its view describes it, alone. */
    std::vector<struct slc_encoded_tile> lone_tiles;
    std::vector<struct slc_encoded_block> lone;
    std::vector<std::vector<uint8_t>> lone_expanded;
};

struct batch_fixture {
    /* Of the host. */
    struct slc_encoded_layout layout;
    uint64_t tile_bytes, tile_expanded_bytes; /* that a tile alone can have at most */
    std::vector<struct batch_block> blocks;
    std::vector<uint64_t> tile_begin; /* of tile t of all blocks: its first nonzero in `coo` */
    std::vector<uint64_t> coords[SLC_MAX_ORDER];
    std::vector<double> values;
    struct slc_coo_view coo; /* in the order of the keys, which is that of the tiles */

    /* Of the device; `batch` itself is the host's, as launches take it. */
    struct slc_gpu_batch batch;
    std::vector<void *> memory;
    cudaStream_t stream;
};

/* Draws a tensor (slc_made_tensor_create), and encodes and describes its blocks. */
void batch_encode(struct batch_fixture *fixture,
                  unsigned order,
                  const uint64_t *dims,
                  uint64_t nnz,
                  enum slc_made_values values,
                  uint64_t seed,
                  const struct batch_shape *shape);
/* The same of a given tensor. */
void batch_encode_tensor(struct batch_fixture *fixture,
                         const struct slc_made_tensor *tensor,
                         const struct batch_shape *shape);

/*
 * Brings all blocks to the device as one batch in chunks of `chunk_runs` runs. Each block has
 * memory of its own size, so that a load beyond it is found. `expanded`: their LZ4 sections are
 * expanded on the host, and must be sound; else room for them is all that there is.
 */
void batch_upload(struct batch_fixture *fixture, uint32_t chunk_runs, bool expanded);

/* Memory of the device until batch_release: a copy of `bytes` bytes, or as it comes (NULL). */
void *batch_to_device(struct batch_fixture *fixture, const void *host, size_t bytes);
/* Waits for the stream, and copies. */
void batch_download(struct batch_fixture *fixture, void *host, const void *device, size_t bytes);
/* Waits for the stream; what the kernels so far have met, SLC_GPU_SOUND or the first fault. */
enum slc_gpu_fault_kind batch_fault(struct batch_fixture *fixture, struct slc_gpu_fault *fault);

/* Gives back what the device holds; the blocks may be uploaded again. */
void batch_release(struct batch_fixture *fixture);

#endif
