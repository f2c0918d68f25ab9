/*
 * Launch plan of slc_gpu_mttkrp_batch: what a thread block keeps in shared memory, and so where it
 * stores sums. Private to gpu/.
 *
 * There are three regimes, by the rows of the output that a thread block keeps sums of:
 * 1. All of them, if they fit with chunks of at least SLC_MTTKRP_WHOLE_RUNS runs: short modes, in
 *    which every chunk has most rows, so that all blocks would add to the same few rows of global
 *    memory. They are added there once per launch.
 * 2. None: the sum of each segment is added to global memory. Rows of rank far above a hundred, of
 *    which shared memory holds too few to matter.
 * 3. A few, otherwise: those with more than 1 / SLC_MTTKRP_HOT_SHARE of a chunk, which have long
 *    segments in every chunk of every block, until hotter ones replace them.
 */
#ifndef SLC_GPU_MTTKRP_PLAN_H
#define SLC_GPU_MTTKRP_PLAN_H

#include "gpu/mttkrp/mttkrp.h"

enum {
    SLC_MTTKRP_THREADS = 256,
    SLC_MTTKRP_WARPS = SLC_MTTKRP_THREADS / SLC_WARP,
    /* Largest number of runs per chunk: one per warp, which decodes it. */
    SLC_MTTKRP_MOST_RUNS = SLC_MTTKRP_WARPS,
    /*
     * Runs of a chunk unless a job's variant sets them. Sorting 2048 nonzeros at a time yields
     * fewer segments than sorting 32. Larger chunks leave less of a multiprocessor's cache for rows
     * of the factors: 4 runs leave 124 KiB, 8 runs 28 KiB (sm_90; f64, rank 32, three modes;
     * test_mttkrp.cpp).
     */
    SLC_MTTKRP_USUAL_RUNS = 4,
    /*
     * Runs of a chunk when the whole output is kept: 2048 nonzeros, below which sorting gains less.
     */
    SLC_MTTKRP_WHOLE_RUNS = 4,
    /* Buckets of the counting sort. Each needs 16 bytes and a thread scans a whole number. */
    SLC_MTTKRP_LEAST_BUCKETS = SLC_MTTKRP_THREADS,
    SLC_MTTKRP_MOST_BUCKETS = 4 * SLC_MTTKRP_THREADS,
    /* Rows of the stash: each lane of a warp checks one. With more rows, a row of 1 % could only be
     * one of about a hundred. */
    SLC_MTTKRP_MOST_STASHED = SLC_WARP,
    SLC_MTTKRP_LEAST_STASHED = 4,
    SLC_MTTKRP_HOT_SHARE = 128, /* a little below 1 % */
    SLC_MTTKRP_HOT_NNZ = 8      /* of a short chunk, least segment worth keeping */
};

struct slc_gpu_mttkrp_plan {
    uint32_t chunk_runs;
    uint32_t buckets; /* at most */
    /* rows that a thread block keeps sums of: a power of two, unless `whole` */
    uint32_t stash_rows;
    bool whole;           /* all of the output */
    bool interleaved;     /* struct slc_gpu_mttkrp_variant */
    uint32_t blocks_each; /* per multiprocessor */

    /* Shared memory: u32 offsets of every mode, one after the other, at 0; then: */
    uint32_t values_at; /* of the type of sums */
    uint32_t work_at;   /* scratch of decoding, then counters of the sort */
    uint32_t tags_at;   /* u64 rows in the stash, u32 candidates per position */
    uint32_t corner_at; /* u64 per mode */
    uint32_t fields_at; /* with SLC_MTTKRP_SHARED_FIELDS */
    uint32_t stash_at;  /* sums */
    uint32_t shared_bytes;
};

/* Returns false if the machine has too little shared memory for a chunk of one run. */
bool slc_gpu_mttkrp_plan(const struct slc_gpu_mttkrp *job,
                         const struct slc_gpu_machine *machine,
                         struct slc_gpu_mttkrp_plan *plan);

/* Percentage of a multiprocessor's shared memory that its thread blocks need; the rest is cache for
 * the factors. */
uint32_t slc_gpu_mttkrp_carveout(const struct slc_gpu_mttkrp_plan *plan,
                                 const struct slc_gpu_machine *machine);

/* Launch the kernel for a batch of at least one chunk: _exact for exact sums, _ordinary for the
 * default, _variants for variants that are compiled separately (f64 factors). */
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
