/* A tensor in BLCO's form. Only files of this folder and tests include this header.
 *
 * BLCO is [Nguyen2022] section 4: the coordinates of a nonzero are one index of at most 64 bits.
 * The index is re-encoded from ALTO order, so that each mode has one field, which a shift and a
 * mask extract. Consecutive nonzeros that agree in all coordinate bits that do not fit in the index
 * form a block, which stores these bits once. With f64 values, the form needs 16 bytes per nonzero.
 *
 * A block has at most 2^27 nonzeros; streamed blocks have fewer if the memory of a queue is smaller
 * (section 4.2). One launch can compute many small blocks: a map lists, for each work-group (thread
 * block), the number of its block and its first nonzero. Kernels with different numbers of nonzeros
 * per work-group use different maps.
 *
 * Call slc_gpu_blco_encode; then slc_gpu_blco_upload or, if nonzeros are streamed,
 * slc_gpu_blco_upload_blocks; then slc_gpu_blco_map for each size of work-groups; and
 * slc_gpu_blco_destroy at the end. */
#ifndef SLC_GPU_BLCO_H
#define SLC_GPU_BLCO_H

#include "tools/bench/rivals/gpu/coo.h"

enum {
    SLC_BLCO_BLOCK_NNZ = 1 << 27, /* largest number of nonzeros per block */
    SLC_BLCO_GROUP_MAX = 512,     /* largest number of threads per work-group */
    SLC_BLCO_MAPS = 8             /* largest number of maps of a form */
};

/* A block: the nonzeros from `first` to the `first` of the next block. */
struct slc_gpu_blco_block {
    uint64_t first;
    /* bits of each coordinate that are not in the index, at their positions */
    uint32_t upper[SLC_MAX_ORDER];
};

/* The nonzeros of a work-group: `count` nonzeros of block `block` from nonzero `first` on. */
struct slc_gpu_blco_group {
    uint64_t first;
    uint32_t count, block;
};

struct slc_gpu_blco_map {
    uint32_t elements; /* largest number of nonzeros per work-group; 0 if there is no map */
    uint64_t count;
    double seconds;                    /* seconds to build the map */
    struct slc_buffer host;            /* the work-groups in host memory */
    struct slc_gpu_blco_group *groups; /* the work-groups in device memory */
};

struct slc_gpu_blco {
    unsigned order;
    enum slc_value_type type;
    uint64_t nnz, block_count;
    uint8_t shift[SLC_MAX_ORDER]; /* lowest bit of the field of each mode */
    uint8_t bits[SLC_MAX_ORDER];  /* number of bits of the field of each mode, up to 32 */

    struct slc_buffer host_indices; /* indices; empty after slc_gpu_blco_upload */
    struct slc_buffer host_blocks;
    const void *host_values; /* values of the list */

    /* arrays in device memory; NULL if they are not uploaded */
    uint64_t *indices;
    void *values;
    struct slc_gpu_blco_block *blocks;
    struct slc_gpu_blco_map maps[SLC_BLCO_MAPS];
};

/* The input of one launch: a range of work-groups, and their nonzeros in device memory. */
struct slc_gpu_blco_part {
    unsigned order;
    enum slc_value_type type;
    uint8_t shift[SLC_MAX_ORDER], bits[SLC_MAX_ORDER];
    const uint64_t *indices;
    const void *values;
    uint64_t base; /* number of the nonzero at indices[0] and values[0] */
    const struct slc_gpu_blco_block *blocks;
    /* work-groups of the map, starting with the first work-group of the launch */
    const struct slc_gpu_blco_group *groups;
    uint32_t group_count;
};

/* Encodes a list on the host. `dims` are the mode sizes; `index_bits` is the number of bits of an
 * index, 1 to 64; `block_nnz` is the largest number of nonzeros per block, at least 1. The list may
 * have any order; ALTO order (base/key.h) yields the fewest blocks. The values of the list stay
 * borrowed. Needs: *blco is all-zero. The caller must call slc_gpu_blco_destroy, also after an
 * error. Errors: cudaErrorInvalidValue for mode sizes of 2^32 or more, and for 2^32 blocks or more;
 * cudaErrorMemoryAllocation if there is not enough host memory. */
cudaError_t slc_gpu_blco_encode(struct slc_gpu_blco *blco,
                                const struct slc_gpu_host_list *list,
                                const uint64_t *dims,
                                unsigned index_bits,
                                uint64_t block_nnz);

/* Copies indices, values and blocks to the device. Waits for the stream. Errors:
 * cudaErrorMemoryAllocation. */
cudaError_t slc_gpu_blco_upload(struct slc_gpu_blco *blco, cudaStream_t stream);
/* Copies only the descriptions of blocks to the device. */
cudaError_t slc_gpu_blco_upload_blocks(struct slc_gpu_blco *blco, cudaStream_t stream);

/* Sets *map to the map for work-groups of `elements` nonzeros. The first call for `elements` builds
 * the map and waits for the stream. The map is released with the form. Errors:
 * cudaErrorInvalidValue for more than SLC_BLCO_MAPS maps, and for 2^31 work-groups or more;
 * cudaErrorMemoryAllocation. */
cudaError_t slc_gpu_blco_map(struct slc_gpu_blco *blco,
                             uint32_t elements,
                             cudaStream_t stream,
                             const struct slc_gpu_blco_map **map);
/* Returns the map for work-groups of `elements` nonzeros, NULL if it was not built. */
const struct slc_gpu_blco_map *slc_gpu_blco_find_map(const struct slc_gpu_blco *blco,
                                                     uint32_t elements);

/* Returns all work-groups of a map as the input of a launch. Needs: the form was uploaded. */
struct slc_gpu_blco_part slc_gpu_blco_whole(const struct slc_gpu_blco *blco,
                                            const struct slc_gpu_blco_map *map);

/* Releases the memory of the form. *blco may be all-zero. */
void slc_gpu_blco_destroy(struct slc_gpu_blco *blco);

/* BLCO for tensors that exceed device memory: the form stays in registered host memory and is
 * streamed to the device over several queues (section 4.2 of the paper).
 *
 * A queue consists of a stream, and of device memory for one block of the largest size, which the
 * batches of the queue use one after the other. A batch is one block, or several consecutive blocks
 * that fit in this memory together. Batches are distributed to the queues in turn. Each batch is
 * copied, and then computed by one launch. Copies of a queue overlap with the kernels of other
 * queues.
 *
 * Call slc_gpu_blco_queues_create; then, for each run, slc_gpu_blco_queues_run and, if its times
 * are needed, slc_gpu_blco_queues_times; and slc_gpu_blco_queues_destroy at the end. */
enum { SLC_BLCO_QUEUES_MIN = 2, SLC_BLCO_QUEUES_MAX = 8 };

struct slc_gpu_blco_queue {
    cudaStream_t stream;
    uint64_t *indices;
    void *values;
    cudaEvent_t ended; /* event after all work that a run has enqueued */
};

/* The events of a batch, in the order in which they are recorded. */
enum { SLC_BLCO_BEGUN, SLC_BLCO_COPIED, SLC_BLCO_COMPUTED, SLC_BLCO_EVENTS };

struct slc_gpu_blco_batch {
    uint64_t first, nnz;
    cudaEvent_t events[SLC_BLCO_EVENTS];
};

struct slc_gpu_blco_queues {
    struct slc_gpu_blco blco; /* the form, with indices and values only in host memory */
    unsigned count;
    uint64_t nnz_each; /* number of nonzeros that fit in the memory of a queue */
    struct slc_gpu_blco_queue queue[SLC_BLCO_QUEUES_MAX];
    cudaEvent_t begun;
    struct slc_buffer batches; /* batch_count elements of struct slc_gpu_blco_batch */
    uint64_t batch_count;
    void *registered[2]; /* indices and values, NULL if these queues have not registered them */
};

/* Times of a run by the clock of the device: while at least one copy ran, and while at least one
 * kernel ran. */
struct slc_gpu_blco_times {
    double copy_seconds, kernel_seconds;
};

/* Sets *nnz to the number of nonzeros for which a queue is to have memory: `block_nnz`, or fewer if
 * the free device memory is too small for all queues, but at least 1024 and at most the nonzeros of
 * the list. */
cudaError_t slc_gpu_blco_queue_nnz(const struct slc_gpu_host_list *list,
                                   unsigned queues,
                                   uint64_t block_nnz,
                                   uint64_t *nnz);

/* Divides the blocks into batches, allocates the memory of `count` queues (but at most one queue
 * per batch), and registers the host memory of the form. Needs: `count` is from SLC_BLCO_QUEUES_MIN
 * to SLC_BLCO_QUEUES_MAX; queues->blco is encoded, in blocks of at most nnz_each nonzeros; all
 * other members are zero. The caller must call slc_gpu_blco_queues_destroy, also after an error.
 * Errors: cudaErrorMemoryAllocation. */
cudaError_t
slc_gpu_blco_queues_create(struct slc_gpu_blco_queues *queues, unsigned count, cudaStream_t stream);

/* Enqueues the kernel for one launch, whose input is `part`, on a stream. */
typedef cudaError_t
slc_gpu_blco_launch(const void *context, const struct slc_gpu_blco_part *part, cudaStream_t stream);

/* Enqueues the copies and kernels of all batches after the work that is already on `stream`. Later
 * work on `stream` waits for all batches. After an error, the queues are idle. */
cudaError_t slc_gpu_blco_queues_run(const struct slc_gpu_blco_queues *queues,
                                    const struct slc_gpu_blco_map *map,
                                    slc_gpu_blco_launch *launch,
                                    const void *context,
                                    cudaStream_t stream);

/* Sets the times of the last run, which must have ended. */
cudaError_t slc_gpu_blco_queues_times(const struct slc_gpu_blco_queues *queues,
                                      struct slc_gpu_blco_times *times);

/* Releases the queues. *queues may be all-zero. */
void slc_gpu_blco_queues_destroy(struct slc_gpu_blco_queues *queues);

#endif
