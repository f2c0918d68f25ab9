/*
 * MTTKRP of a batch of encoded blocks on the device. Private to gpu/.
 */
#ifndef SLC_GPU_MTTKRP_H
#define SLC_GPU_MTTKRP_H

#include "gpu/cuda/batch.h"
#include "gpu/mttkrp/exact_sum.h"

/* What kernels are fitted to. */
struct slc_gpu_machine {
    unsigned multiprocessors;
    unsigned shared_bytes; /* of a thread block, at most */
    unsigned architecture; /* 90: sm_90 */
};

/* What a variant of the kernel has code of its own for. */
enum slc_gpu_mttkrp_flag {
    SLC_MTTKRP_WITHOUT_STASH = 1, /* sums of segments go to global memory, all of them */
    SLC_MTTKRP_FULL_SECTORS = 2,  /* neighbouring lanes add neighbouring numbers */
    SLC_MTTKRP_SHARED_FIELDS = 4, /* descriptions of tile and layout are copied to shared memory */
    SLC_MTTKRP_TRANSCODED = 8,    /* batch.transcoded is read in place of the blocks' bytes */
    SLC_MTTKRP_THREE_BLOCKS = 16  /* per multiprocessor; needs chunks of 2 runs */
};

/*
 * Variants of the kernel, which benchmarks compare (gpu/device/variants.h); all-zero: the default.
 * Exact sums have none; flags need f64 factors.
 */
struct slc_gpu_mttkrp_variant {
    unsigned flags;      /* a set of enum slc_gpu_mttkrp_flag */
    uint32_t chunk_runs; /* at most; 0: SLC_MTTKRP_USUAL_RUNS */
    bool interleaved;    /* thread blocks take chunks in turn; else neighbouring ones */
};

/*
 * Sums are ordinary ones in `output`, in any order; or, where exact.words is not NULL, exact ones,
 * whose bits depend on the layout, the rank and the precision alone:
 *     slc_exact_sum_largest per factor, slc_exact_sum_begin -> batches, on any streams after it ->
 *     slc_exact_sum_finish to the output.
 * The squares of the values that exact sums were made of add up in the fault's record (batch.h).
 */
struct slc_gpu_mttkrp {
    unsigned order, mode;
    uint32_t rank;
    enum slc_value_type precision;               /* of factors; products and sums are f64 */
    struct slc_gpu_matrix factor[SLC_MAX_ORDER]; /* of one pitch; that of `mode` is not read */
    /* f64. Added to; with exact sums only its rows are read. */
    struct slc_gpu_matrix output;
    struct slc_exact_sum exact;
    struct slc_gpu_mttkrp_variant variant;
};

/*
 * All variants with their names, the default first. To add one: a row in mttkrp.cu; if it has code
 * of its own also a flag above, its use in mttkrp_kernel.h or a file that this includes, and a case
 * in mttkrp_variants.cu. Then --variant in tools/bench/bench_device.c, sluice-bench(1), and a row
 * in docs/PERFORMANCE.md.
 */
struct slc_gpu_named_variant {
    const char *name;
    struct slc_gpu_mttkrp_variant variant;
};
const struct slc_gpu_named_variant *slc_gpu_mttkrp_variant_list(unsigned *count);

/*
 * How many runs a chunk of the job's batches has: slc_gpu_batch.chunk_runs. Depends on the job's
 * shape, its precision and on whether its sums are exact, not on where its memory is.
 */
uint32_t slc_gpu_mttkrp_chunk_runs(const struct slc_gpu_mttkrp *job,
                                   const struct slc_gpu_machine *machine);

/* Adds a batch to the job's sums. `batch` itself lies in the host's memory. */
cudaError_t slc_gpu_mttkrp_batch(const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_batch *batch,
                                 const struct slc_gpu_machine *machine,
                                 cudaStream_t stream);

#endif
