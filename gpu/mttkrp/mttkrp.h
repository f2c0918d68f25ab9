/* MTTKRP of a batch of encoded blocks on the device. Private to gpu/. */
#ifndef SLC_GPU_MTTKRP_H
#define SLC_GPU_MTTKRP_H

#include "gpu/cuda/batch.h"
#include "gpu/mttkrp/exact_sum.h"

/* Device properties that kernels are tuned to. */
struct slc_gpu_machine {
    unsigned multiprocessors;
    unsigned shared_bytes; /* limit per thread block */
    unsigned architecture; /* 90: sm_90 */
};

/* Parts of a variant that need code of their own. */
enum slc_gpu_mttkrp_flag {
    SLC_MTTKRP_WITHOUT_STASH = 1, /* sums of all segments go to global memory */
    SLC_MTTKRP_FULL_SECTORS = 2,  /* neighbouring lanes add neighbouring numbers */
    SLC_MTTKRP_SHARED_FIELDS = 4, /* descriptions of tile and layout are copied to shared memory */
    SLC_MTTKRP_TRANSCODED = 8,    /* batch.transcoded is read instead of the blocks' bytes */
    SLC_MTTKRP_THREE_BLOCKS = 16  /* per multiprocessor; needs chunks of 2 runs */
};

/* Variants of the kernel, which benchmarks compare (gpu/device/variants.h); all-zero: the default.
 * Exact sums have no variants; flags need f64 factors. */
struct slc_gpu_mttkrp_variant {
    unsigned flags;      /* a set of enum slc_gpu_mttkrp_flag */
    uint32_t chunk_runs; /* upper limit; 0: SLC_MTTKRP_USUAL_RUNS */
    bool interleaved; /* thread blocks process chunks with a stride; otherwise neighbouring ones */
};

/*
 * Sums are ordinary ones in `output`, in any order; or, if exact.words is not NULL, exact sums,
 * whose bits depend only on the layout, the rank and the precision:
 *     slc_exact_sum_largest per factor, slc_exact_sum_begin -> batches, on any streams after it ->
 *     slc_exact_sum_finish to the output.
 * The squares of the values in exact sums are added in the fault's record (batch.h).
 */
struct slc_gpu_mttkrp {
    unsigned order, mode;
    uint32_t rank;
    enum slc_value_type precision;               /* of factors; products and sums are f64 */
    struct slc_gpu_matrix factor[SLC_MAX_ORDER]; /* all of one pitch; that of `mode` is not read */
    /* f64. Added to; with exact sums only its rows are read. */
    struct slc_gpu_matrix output;
    struct slc_exact_sum exact;
    struct slc_gpu_mttkrp_variant variant;
};

/*
 * All variants with their names, the default first. To add one: a row in mttkrp.cu; if it has code
 * of its own also a flag above, its use in mttkrp_kernel.h or a file included there, and a case in
 * mttkrp_variants.cu. Then --variant in tools/bench/bench_device.c, sluice-bench(1), and a row in
 * docs/PERFORMANCE.md.
 */
struct slc_gpu_named_variant {
    const char *name;
    struct slc_gpu_mttkrp_variant variant;
};
const struct slc_gpu_named_variant *slc_gpu_mttkrp_variant_list(unsigned *count);

/* Runs per chunk of the job's batches: slc_gpu_batch.chunk_runs. Depends on the job's shape, its
 * precision and whether its sums are exact, not on the location of its memory. */
uint32_t slc_gpu_mttkrp_chunk_runs(const struct slc_gpu_mttkrp *job,
                                   const struct slc_gpu_machine *machine);

/* Adds a batch to the job's sums. `batch` itself is in the host's memory. */
cudaError_t slc_gpu_mttkrp_batch(const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_batch *batch,
                                 const struct slc_gpu_machine *machine,
                                 cudaStream_t stream);

#endif
