/* Launch plan of slc_gpu_mttkrp_batch. Private to gpu/.
 *
 * Sums of segments are added to global memory. Because a chunk is sorted, a row has few segments
 * per chunk, even if it has most of the nonzeros. Sums of small modes or of frequent rows in shared
 * memory were measured and are slower (docs/PERFORMANCE.md): additions of f64 in shared memory are
 * loops of compare-and-swap, and the shared memory is then missing as cache for the factors. */
#ifndef SLC_GPU_MTTKRP_PLAN_H
#define SLC_GPU_MTTKRP_PLAN_H

#include "gpu/mttkrp/mttkrp.h"

enum {
    SLC_MTTKRP_THREADS = 256,
    SLC_MTTKRP_WARPS = SLC_MTTKRP_THREADS / SLC_WARP,
    /* Maximum number of runs per chunk. Sorting 2048 nonzeros at a time yields fewer segments than
     * sorting 32. Larger chunks leave less of a multiprocessor's cache for rows of the factors: 4
     * runs leave 124 KiB, 8 runs 28 KiB (sm_90; f64, rank 32, three modes; test_mttkrp.cpp). */
    SLC_MTTKRP_MOST_RUNS = 4,
    /* Limits for the number of buckets of the counting sort. Each bucket needs 16 bytes. The number
     * of buckets is a multiple of the number of threads, so that each thread scans the same number
     * of buckets. */
    SLC_MTTKRP_LEAST_BUCKETS = SLC_MTTKRP_THREADS,
    SLC_MTTKRP_MOST_BUCKETS = 4 * SLC_MTTKRP_THREADS
};

struct slc_gpu_mttkrp_plan {
    uint32_t chunk_runs;
    uint32_t buckets;     /* largest number of buckets for the sort of a chunk */
    uint32_t blocks_each; /* thread blocks per multiprocessor */

    /* Layout of shared memory. It begins with the u32 offsets of every mode, one mode after the
     * other. The other parts begin at: */
    uint32_t values_at; /* values, f64 */
    uint32_t work_at;   /* scratch of decoding, reused for the counters of the sort */
    uint32_t sums_at;   /* one u32 per warp, for the sort */
    uint32_t corner_at; /* the tile's corner, u64 per mode */
    uint32_t shared_bytes;
};

/* Plans a launch. Returns false if the machine has too little shared memory for a chunk of one
 * run. */
bool slc_gpu_mttkrp_plan(const struct slc_gpu_mttkrp *job,
                         const struct slc_gpu_machine *machine,
                         struct slc_gpu_mttkrp_plan *plan);

/* Returns the percentage of a multiprocessor's shared memory that its thread blocks need; the rest
 * serves as cache for the factors. */
uint32_t slc_gpu_mttkrp_carveout(const struct slc_gpu_mttkrp_plan *plan,
                                 const struct slc_gpu_machine *machine);

/* Launch the kernel for a batch of at least one chunk: _exact with exact sums, _ordinary with f64
 * sums. */
cudaError_t slc_gpu_mttkrp_exact(const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_batch *batch,
                                 const struct slc_gpu_machine *machine,
                                 const struct slc_gpu_mttkrp_plan *plan,
                                 cudaStream_t stream);
cudaError_t slc_gpu_mttkrp_ordinary(const struct slc_gpu_mttkrp *job,
                                    const struct slc_gpu_batch *batch,
                                    const struct slc_gpu_machine *machine,
                                    const struct slc_gpu_mttkrp_plan *plan,
                                    cudaStream_t stream);

#endif
