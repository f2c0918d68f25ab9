/* Blocks of random tensors on an emulated device, for tests of kernels: encoded and described by
 * storage/, uploaded byte for byte, together with a list of their nonzeros for the oracle.
 *
 * The calls of a test are, in this order:
 *
 *  1. batch_encode. The test may then change blocks[b].bytes or blocks[b].tiles.
 *  2. batch_upload, then the kernels with fixture.batch.
 *  3. batch_fault and batch_download for the results, then batch_release.
 *
 * The test sets the emulation up before batch_upload. Errors end the program. */
#ifndef SLC_BATCH_FIXTURE_H
#define SLC_BATCH_FIXTURE_H

extern "C" {
#include "cpu/reference/reference.h"
#include "make_store.h"
#include "storage/codec/describe.h"
}
#include "gpu/cuda/batch.h"

#include <vector>

/* Encoding of a tensor. */
struct batch_shape {
    enum slc_codec codec;
    struct slc_fiber_run run; /* fiber run of the keys; zero: plain ALTO order */
    uint32_t tile_nnz;        /* 0: full tiles */
    uint64_t block_bytes;     /* target size, SLC_MIN_BLOCK_BYTES or more; 0: the writer's
                               * default */
};

struct batch_block {
    std::vector<uint8_t> bytes;
    std::vector<struct slc_encoded_tile> tiles;
    struct slc_encoded_block described; /* description of the block; borrows bytes and tiles */
    /* Each tile alone, as described by its view. */
    std::vector<struct slc_encoded_tile> lone_tiles;
    std::vector<struct slc_encoded_block> lone;
    std::vector<std::vector<uint8_t>> lone_expanded;
};

struct batch_fixture {
    /* Members in host memory. */
    struct slc_encoded_layout layout;
    uint64_t tile_bytes, tile_expanded_bytes; /* largest possible sizes of a single tile */
    std::vector<struct batch_block> blocks;
    std::vector<uint64_t> tile_begin; /* first nonzero in `coo` of tile t of all blocks */
    std::vector<uint64_t> coords[SLC_MAX_ORDER];
    std::vector<double> values;
    struct slc_coo_view coo; /* in key order, which is the order of the tiles */

    /* In device memory; `batch` itself is in host memory, as launches require. */
    struct slc_gpu_batch batch;
    std::vector<void *> memory;
    cudaStream_t stream;
    std::vector<uint8_t> staging; /* registered memory of the host, or empty */
};

/* Draws a tensor (slc_made_tensor_create), and encodes and describes its blocks. */
void batch_encode(struct batch_fixture *fixture,
                  unsigned order,
                  const uint64_t *dims,
                  uint64_t nnz,
                  enum slc_made_values values,
                  uint64_t seed,
                  const struct batch_shape *shape);
/* Does the same as batch_encode for a given tensor. */
void batch_encode_tensor(struct batch_fixture *fixture,
                         const struct slc_made_tensor *tensor,
                         const struct batch_shape *shape);

/* Uploads all blocks as one batch in chunks of `chunk_runs` runs. Each block has memory of its
 * exact size, so that a load beyond it is detected. `expanded`: their LZ4 sections, which must be
 * valid, are expanded on the host; otherwise only the memory for them is allocated. */
void batch_upload(struct batch_fixture *fixture, uint32_t chunk_runs, bool expanded);

/* Device memory until batch_release: a copy of `bytes` bytes, or uninitialized (NULL). */
void *batch_to_device(struct batch_fixture *fixture, const void *host, size_t bytes);
/* Waits for the stream, and copies to the host. */
void batch_download(struct batch_fixture *fixture, void *host, const void *device, size_t bytes);
/* Waits for the stream; returns the first fault of the kernels so far, or SLC_GPU_SOUND. */
enum slc_gpu_fault_kind batch_fault(struct batch_fixture *fixture, struct slc_gpu_fault *fault);

/* Releases the device memory; the blocks can be uploaded again. */
void batch_release(struct batch_fixture *fixture);

#endif
