/*
 * BLCO out of memory: its form stays in registered memory of the host and is streamed to the device
 * over several queues (section 4.2 of the paper, cited in tools/bench/rivals/gpu/blco.h). Private
 * to gpu/.
 *
 * A queue is a stream and device memory for one block of the largest size; its batches use that
 * memory in turn. A batch is one block, or several consecutive ones that fit together.
 * Batches go to the queues in turn; each is copied, then computed by one launch. Copies of one
 * queue overlap the kernels of others.
 *
 *     create -> { run -> times } .. -> destroy
 */
#ifndef SLC_GPU_BLCO_QUEUES_H
#define SLC_GPU_BLCO_QUEUES_H

#include "tools/bench/rivals/gpu/blco.h"

enum { SLC_BLCO_QUEUES_MIN = 2, SLC_BLCO_QUEUES_MAX = 8 };

struct slc_gpu_blco_queue {
    cudaStream_t stream;
    uint64_t *indices;
    void *values;
    cudaEvent_t ended; /* after all that a run has enqueued */
};

/* What is recorded of a batch, in this order. */
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

/* Times of a run by the device's clock, during which at least one copy or kernel ran. */
struct slc_gpu_blco_times {
    double copy_seconds, kernel_seconds;
};

/*
 * Nonzeros of a queue's memory: `block_nnz`, or fewer if the device's free memory is too small for
 * all queues, but not below 1024; no more than the list has.
 */
cudaError_t slc_gpu_blco_queue_nnz(const struct slc_gpu_host_list *list,
                                   unsigned queues,
                                   uint64_t block_nnz,
                                   uint64_t *nnz);

/*
 * Forms batches, allocates the memory of `count` queues, or of one per batch if there are fewer
 * batches, and registers the host's memory. Needs: a count from SLC_BLCO_QUEUES_MIN to
 * SLC_BLCO_QUEUES_MAX; queues->blco is encoded, in blocks of at most nnz_each nonzeros; all else is
 * zero. Owns: slc_gpu_blco_queues_destroy, also after an error. Errors: cudaErrorMemoryAllocation.
 */
cudaError_t
slc_gpu_blco_queues_create(struct slc_gpu_blco_queues *queues, unsigned count, cudaStream_t stream);

/* Enqueues the kernel for a part on a stream. */
typedef cudaError_t
slc_gpu_blco_launch(const void *context, const struct slc_gpu_blco_part *part, cudaStream_t stream);

/*
 * Copies and computes all batches, after what is on `stream`, which then waits for them. After an
 * error nothing is under way on the queues.
 */
cudaError_t slc_gpu_blco_queues_run(const struct slc_gpu_blco_queues *queues,
                                    const struct slc_gpu_blco_map *map,
                                    slc_gpu_blco_launch *launch,
                                    const void *context,
                                    cudaStream_t stream);

/* Times of the last run, which has ended. */
cudaError_t slc_gpu_blco_queues_times(const struct slc_gpu_blco_queues *queues,
                                      struct slc_gpu_blco_times *times);

/* Accepts an all-zero struct. */
void slc_gpu_blco_queues_destroy(struct slc_gpu_blco_queues *queues);

#endif
