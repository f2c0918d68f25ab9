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

/* The job of a kernel. If exact.words is NULL, sums are ordinary f64 sums in `output`, added in any
 * order. Otherwise sums are exact, and their bits depend only on the layout, the rank and the
 * precision. The calls for exact sums are, in this order:
 *  1. slc_exact_sum_largest for each factor, then slc_exact_sum_begin.
 *  2. slc_gpu_mttkrp_batch for each batch, on any streams that wait for step 1.
 *  3. slc_exact_sum_finish, which stores the sums in the output.
 * The squares of the values that are added to exact sums are summed in the fault record
 * (records.h). */
struct slc_gpu_mttkrp {
    unsigned order, mode;
    uint32_t rank;
    enum slc_value_type precision; /* type of the factors; products and sums are f64 */
    /* all factors have the same pitch; the factor of `mode` is not read */
    struct slc_gpu_matrix factor[SLC_MAX_ORDER];
    /* f64 matrix to which sums are added. With exact sums, only output.rows is used. output.split
     * is slc_gpu_mttkrp_split() or 0; with 0, additions take up to twice (f32: four times) the
     * time, because they cover only parts of sectors of 32 bytes. */
    struct slc_gpu_matrix output;
    struct slc_exact_sum exact;
};

/* Returns the split of the output with which additions cover whole sectors; 0 if the rank permits
 * none. */
static inline uint32_t slc_gpu_mttkrp_split(uint32_t rank, enum slc_value_type precision)
{
    const uint32_t width = precision == SLC_F64 ? 2 : 4; /* columns that a warp lane loads */

    return rank % width == 0 ? width : 0;
}

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
