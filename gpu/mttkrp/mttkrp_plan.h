/* Launch plan of slc_gpu_mttkrp_batch. The plan chooses the data that a thread block keeps in
 * shared memory, and so the memory to which the thread block adds sums. Private to gpu/.
 *
 * There are three regimes. They differ in the output rows whose sums a thread block keeps in shared
 * memory:
 * 1. All rows, if they fit together with chunks of at least SLC_MTTKRP_WHOLE_RUNS runs. This regime
 *    is for small modes: every chunk has nonzeros in most rows, so otherwise all thread blocks
 *    would add to the same few rows of global memory. Sums reach global memory once per launch.
 * 2. No rows: the sum of each segment is added to global memory. This regime is for ranks far above
 *    a hundred, for which too few rows fit in shared memory to help.
 * 3. A few hot rows, in all other cases. A hot row has more than 1 / SLC_MTTKRP_HOT_SHARE of a
 *    chunk's nonzeros, and usually long segments in every chunk of every thread block. A row stays
 *    until it is no longer hot and another hot row replaces it. */
#ifndef SLC_GPU_MTTKRP_PLAN_H
#define SLC_GPU_MTTKRP_PLAN_H

#include "gpu/mttkrp/mttkrp.h"

enum {
    SLC_MTTKRP_THREADS = 256,
    SLC_MTTKRP_WARPS = SLC_MTTKRP_THREADS / SLC_WARP,
    /* Largest number of runs per chunk; each warp decodes one run. */
    SLC_MTTKRP_MOST_RUNS = SLC_MTTKRP_WARPS,
    /* Number of runs per chunk, unless a job's variant sets another number. Sorting 2048 nonzeros
     * at a time yields fewer segments than sorting 32. Larger chunks leave less of a
     * multiprocessor's cache for rows of the factors: 4 runs leave 124 KiB, 8 runs 28 KiB (sm_90;
     * f64, rank 32, three modes; test_mttkrp.cpp). */
    SLC_MTTKRP_USUAL_RUNS = 4,
    /* Minimum number of runs per chunk in regime 1; 4 runs have 2048 nonzeros. With fewer nonzeros,
     * sorting would save fewer additions. */
    SLC_MTTKRP_WHOLE_RUNS = 4,
    /* Limits for the number of buckets of the counting sort. Each bucket needs 16 bytes. The number
     * of buckets is a multiple of the number of threads, so that each thread scans the same number
     * of buckets. */
    SLC_MTTKRP_LEAST_BUCKETS = SLC_MTTKRP_THREADS,
    SLC_MTTKRP_MOST_BUCKETS = 4 * SLC_MTTKRP_THREADS,
    /* Largest number of rows in the stash: one per warp lane, because each warp lane checks the
     * candidate of one position. Fewer than 128 rows can be hot in a chunk. */
    SLC_MTTKRP_MOST_STASHED = SLC_WARP,
    SLC_MTTKRP_LEAST_STASHED = 4,
    SLC_MTTKRP_HOT_SHARE = 128, /* a hot row has more than 1/128 of the nonzeros of a chunk */
    /* in a short chunk, a hot row has at least this number of nonzeros */
    SLC_MTTKRP_HOT_NNZ = 8
};

struct slc_gpu_mttkrp_plan {
    uint32_t chunk_runs;
    uint32_t buckets; /* largest number of buckets for the sort of a chunk */
    /* number of output rows whose sums a thread block keeps: a power of two, unless `whole` */
    uint32_t stash_rows;
    bool whole;           /* the thread block keeps sums of all output rows */
    bool interleaved;     /* see struct slc_gpu_mttkrp_variant */
    uint32_t blocks_each; /* thread blocks per multiprocessor */

    /* Layout of shared memory. It begins with the u32 offsets of every mode, one mode after the
     * other. The other parts begin at: */
    uint32_t values_at; /* values, f64 */
    uint32_t work_at;   /* scratch of decoding, reused for the counters of the sort */
    uint32_t tags_at;   /* u64 row and u32 candidate of each stash position */
    uint32_t corner_at; /* the tile's corner, u64 per mode */
    uint32_t fields_at; /* descriptions, with SLC_MTTKRP_SHARED_FIELDS */
    uint32_t stash_at;  /* sums */
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
 * sums, and _variants in a variant that is compiled separately (f64 factors only). */
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

cudaError_t slc_gpu_mttkrp_variants(const struct slc_gpu_mttkrp *job,
                                    const struct slc_gpu_batch *batch,
                                    const struct slc_gpu_machine *machine,
                                    const struct slc_gpu_mttkrp_plan *plan,
                                    cudaStream_t stream);

#endif
