/* Computes the MTTKRP of a batch of encoded blocks on the device. Private to gpu/. */
#ifndef SLC_GPU_MTTKRP_H
#define SLC_GPU_MTTKRP_H

#include "gpu/cuda/batch.h"
#include "gpu/mttkrp/exact_sum.h"

/* Device properties on which the launch configuration depends. */
struct slc_gpu_machine {
    unsigned multiprocessors;
    unsigned shared_bytes; /* shared memory that a thread block may use */
    unsigned architecture; /* architecture, such as 90 for sm_90 */
};

/* Properties of a variant that need separate code in kernels. */
enum slc_gpu_mttkrp_flag {
    SLC_MTTKRP_WITHOUT_STASH = 1, /* sums of all segments are added to global memory */
    SLC_MTTKRP_FULL_SECTORS = 2,  /* neighbouring warp lanes add neighbouring numbers */
    SLC_MTTKRP_SHARED_FIELDS = 4, /* descriptions of tile and layout are copied to shared memory */
    SLC_MTTKRP_TRANSCODED = 8,    /* batch.transcoded is read instead of the blocks' bytes */
    SLC_MTTKRP_THREE_BLOCKS =
        16 /* three thread blocks per multiprocessor; needs chunks of 2 runs */
};

/* A variant of the kernel, for benchmarks that compare variants (gpu/device/variants.h). All zero
 * is the default variant. Exact sums have no variants. A variant with flags needs f64 factors. */
struct slc_gpu_mttkrp_variant {
    unsigned flags;      /* a set of enum slc_gpu_mttkrp_flag */
    uint32_t chunk_runs; /* maximum number of runs per chunk; 0 means SLC_MTTKRP_USUAL_RUNS */
    /* true if thread blocks process chunks at a stride, false for contiguous ranges */
    bool interleaved;
};

/* The job of a kernel. If exact.words is NULL, sums are ordinary f64 sums in `output`, added in any
 * order. Otherwise sums are exact, and their bits depend only on the layout, the rank and the
 * precision. The order of calls for exact sums is:
 *     slc_exact_sum_largest per factor, slc_exact_sum_begin -> batches, on any streams after it ->
 *     slc_exact_sum_finish to the output.
 * The squares of the values that are added to exact sums are summed in the fault record
 * (records.h). */
struct slc_gpu_mttkrp {
    unsigned order, mode;
    uint32_t rank;
    enum slc_value_type precision; /* type of the factors; products and sums are f64 */
    /* all factors have the same pitch; the factor of `mode` is not read */
    struct slc_gpu_matrix factor[SLC_MAX_ORDER];
    /* f64 matrix to which sums are added. With exact sums, only output.rows is used. */
    struct slc_gpu_matrix output;
    struct slc_exact_sum exact;
    struct slc_gpu_mttkrp_variant variant;
};

/* All variants with their names, the default first. To add a variant:
 * 1. Add a row in mttkrp.cu.
 * 2. If the variant needs separate code, add a flag above, use the flag in mttkrp_kernel.h or a
 *    file included there, and add a case in mttkrp_variants.cu.
 * 3. Add the variant to --variant in tools/bench/bench_device.c and in sluice-bench(1), and add a
 *    row in docs/PERFORMANCE.md. */
struct slc_gpu_named_variant {
    const char *name;
    struct slc_gpu_mttkrp_variant variant;
};
const struct slc_gpu_named_variant *slc_gpu_mttkrp_variant_list(unsigned *count);

/* Returns the runs per chunk for the job's batches (slc_gpu_batch.chunk_runs). The result depends
 * on the job's shape, its precision and whether its sums are exact, not on the addresses of its
 * memory. */
uint32_t slc_gpu_mttkrp_chunk_runs(const struct slc_gpu_mttkrp *job,
                                   const struct slc_gpu_machine *machine);

/* Adds the products of a batch to the job's sums. The struct `batch` is in host memory. */
cudaError_t slc_gpu_mttkrp_batch(const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_batch *batch,
                                 const struct slc_gpu_machine *machine,
                                 cudaStream_t stream);

#endif
