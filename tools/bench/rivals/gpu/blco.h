/*
 * A tensor in BLCO's form. Private to gpu/.
 *
 * BLCO is [Nguyen2022] section 4: the coordinates of a nonzero as
 * one index of at most 64 bits, re-encoded from ALTO order so that each mode has one field, found
 * by a shift and a mask. Bits beyond 64 are shared by a block of consecutive nonzeros that agree in
 * them, and stored once per block. 16 bytes per nonzero with f64 values.
 *
 * A block has at most 2^27 nonzeros; streamed blocks have fewer if a queue's memory is smaller
 * (section 4.2). One launch computes many small blocks: for each work-group (thread block) a map
 * has the block of its nonzeros and the first of them. Maps are built with the form, one for each
 * number of nonzeros per work-group.
 *
 *     encode -> upload, or upload_blocks if nonzeros are streamed -> map .. -> destroy
 */
#ifndef SLC_GPU_BLCO_H
#define SLC_GPU_BLCO_H

#include "tools/bench/rivals/gpu/coo.h"

enum {
    SLC_BLCO_BLOCK_NNZ = 1 << 27, /* nonzeros of a block at most */
    SLC_BLCO_GROUP_MAX = 512,     /* threads of a work-group at most */
    SLC_BLCO_MAPS = 8             /* different sizes of work-groups */
};

/* A block: nonzeros from `first` up to the next block's first. */
struct slc_gpu_blco_block {
    uint64_t first;
    uint32_t
        upper[SLC_MAX_ORDER]; /* bits of a coordinate that the index lacks, at their position */
};

/* The nonzeros of a work-group: `count` nonzeros of block `block` from `first`. */
struct slc_gpu_blco_group {
    uint64_t first;
    uint32_t count, block;
};

struct slc_gpu_blco_map {
    uint32_t elements; /* nonzeros of a work-group at most; 0: no map */
    uint64_t count;
    double seconds;                    /* to build the map */
    struct slc_buffer host;            /* the groups in the host's memory */
    struct slc_gpu_blco_group *groups; /* and in the device's memory */
};

struct slc_gpu_blco {
    unsigned order;
    enum slc_value_type type;
    uint64_t nnz, block_count;
    uint8_t shift[SLC_MAX_ORDER]; /* of a mode's field */
    uint8_t bits[SLC_MAX_ORDER];  /* of the field: up to 32 */

    struct slc_buffer host_indices; /* empty after slc_gpu_blco_upload */
    struct slc_buffer host_blocks;
    const void *host_values; /* the list's */

    /* In the device's memory; NULL: not uploaded. */
    uint64_t *indices;
    void *values;
    struct slc_gpu_blco_block *blocks;
    struct slc_gpu_blco_map maps[SLC_BLCO_MAPS];
};

/* The input of one launch: some work-groups, and their nonzeros in the device's memory. */
struct slc_gpu_blco_part {
    unsigned order;
    enum slc_value_type type;
    uint8_t shift[SLC_MAX_ORDER], bits[SLC_MAX_ORDER];
    const uint64_t *indices;
    const void *values;
    uint64_t base; /* the nonzero of indices[0] and values[0] */
    const struct slc_gpu_blco_block *blocks;
    const struct slc_gpu_blco_group *groups; /* of the first work-group */
    uint32_t group_count;
};

/*
 * Encodes a list on the host. `dims` are the mode sizes, `index_bits` the bits of an index, 1 to
 * 64, `block_nnz` the nonzeros of a block, at least 1. A list in ALTO order (base/key.h) has the
 * fewest blocks; any order is correct. The list's values stay borrowed. Needs: *blco all-zero.
 * Owns: slc_gpu_blco_destroy, also after an error. Errors: cudaErrorInvalidValue for sizes of 2^32
 * or more and 2^32 blocks or more; cudaErrorMemoryAllocation for the host's memory.
 */
cudaError_t slc_gpu_blco_encode(struct slc_gpu_blco *blco,
                                const struct slc_gpu_host_list *list,
                                const uint64_t *dims,
                                unsigned index_bits,
                                uint64_t block_nnz);

/* Copies the form to the device. Waits for the stream. Errors: cudaErrorMemoryAllocation. */
cudaError_t slc_gpu_blco_upload(struct slc_gpu_blco *blco, cudaStream_t stream);
/* Copies only the blocks to the device. */
cudaError_t slc_gpu_blco_upload_blocks(struct slc_gpu_blco *blco, cudaStream_t stream);

/*
 * The map for work-groups of `elements` nonzeros, built by the first call. Waits for the stream.
 * *map belongs to the form. Errors: cudaErrorInvalidValue for more than SLC_BLCO_MAPS maps and 2^31
 * work-groups or more; cudaErrorMemoryAllocation.
 */
cudaError_t slc_gpu_blco_map(struct slc_gpu_blco *blco,
                             uint32_t elements,
                             cudaStream_t stream,
                             const struct slc_gpu_blco_map **map);
/* The map if it was built, otherwise NULL. */
const struct slc_gpu_blco_map *slc_gpu_blco_find_map(const struct slc_gpu_blco *blco,
                                                     uint32_t elements);

/* All work-groups of a map, for an uploaded form. */
struct slc_gpu_blco_part slc_gpu_blco_whole(const struct slc_gpu_blco *blco,
                                            const struct slc_gpu_blco_map *map);

/* Accepts an all-zero struct. */
void slc_gpu_blco_destroy(struct slc_gpu_blco *blco);

/*
 * BLCO out of memory: its form stays in registered memory of the host and is streamed to the device
 * over several queues (section 4.2 of the paper).
 *
 * A queue is a stream and device memory for one block of the largest size, which its batches use in
 * turn. A batch is one block, or several consecutive ones that fit together. Batches are
 * distributed to the queues in turn; each is copied, then computed by one launch. Copies of one
 * queue overlap the kernels of others.
 *
 *     create -> { run -> times } .. -> destroy
 */
enum { SLC_BLCO_QUEUES_MIN = 2, SLC_BLCO_QUEUES_MAX = 8 };

struct slc_gpu_blco_queue {
    cudaStream_t stream;
    uint64_t *indices;
    void *values;
    cudaEvent_t ended; /* after all work enqueued by a run */
};

/* Events recorded for a batch, in this order. */
enum { SLC_BLCO_BEGUN, SLC_BLCO_COPIED, SLC_BLCO_COMPUTED, SLC_BLCO_EVENTS };

struct slc_gpu_blco_batch {
    uint64_t first, nnz;
    cudaEvent_t events[SLC_BLCO_EVENTS];
};

struct slc_gpu_blco_queues {
    struct slc_gpu_blco blco; /* indices and values are not uploaded */
    unsigned count;
    uint64_t nnz_each; /* nonzeros that fit a queue's memory */
    struct slc_gpu_blco_queue queue[SLC_BLCO_QUEUES_MAX];
    cudaEvent_t begun;
    struct slc_buffer batches; /* struct slc_gpu_blco_batch, batch_count of them */
    uint64_t batch_count;
    void *registered[2]; /* indices and values; NULL: not registered here */
};

/* Times of a run by the device's clock during which at least one copy or kernel ran. */
struct slc_gpu_blco_times {
    double copy_seconds, kernel_seconds;
};

/*
 * Nonzeros of a queue's memory: `block_nnz`, or fewer if the device's free memory is too small for
 * all queues, but at least 1024 and at most those of the list.
 */
cudaError_t slc_gpu_blco_queue_nnz(const struct slc_gpu_host_list *list,
                                   unsigned queues,
                                   uint64_t block_nnz,
                                   uint64_t *nnz);

/*
 * Forms batches, allocates the memory of `count` queues (of one per batch if there are fewer
 * batches), and registers the host's memory. Needs: a count from SLC_BLCO_QUEUES_MIN to
 * SLC_BLCO_QUEUES_MAX; queues->blco encoded, in blocks of at most nnz_each nonzeros; the other
 * fields zero. Owns: slc_gpu_blco_queues_destroy, also after an error. Errors:
 * cudaErrorMemoryAllocation.
 */
cudaError_t
slc_gpu_blco_queues_create(struct slc_gpu_blco_queues *queues, unsigned count, cudaStream_t stream);

/* Enqueues the kernel for a part on a stream. */
typedef cudaError_t
slc_gpu_blco_launch(const void *context, const struct slc_gpu_blco_part *part, cudaStream_t stream);

/*
 * Copies and computes all batches after the work already on `stream`, which then waits for them.
 * After an error the queues are idle.
 */
cudaError_t slc_gpu_blco_queues_run(const struct slc_gpu_blco_queues *queues,
                                    const struct slc_gpu_blco_map *map,
                                    slc_gpu_blco_launch *launch,
                                    const void *context,
                                    cudaStream_t stream);

/* Times of the last run, which must have ended. */
cudaError_t slc_gpu_blco_queues_times(const struct slc_gpu_blco_queues *queues,
                                      struct slc_gpu_blco_times *times);

/* Accepts an all-zero struct. */
void slc_gpu_blco_queues_destroy(struct slc_gpu_blco_queues *queues);

#endif
