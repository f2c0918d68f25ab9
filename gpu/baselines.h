/*
 * Baselines: MTTKRP over lists in the device's memory as the field computes it. Private to gpu/.
 *
 * Written anew from what papers say, and kept to be measured beside the kernels of sluice in the
 * same run: nothing else computes by them. Where a paper does not say what a kernel needs to know,
 * there is an option, or it stands below.
 *
 * BLCO is Nguyen et al., ICS 2022 (arXiv 2201.12523), section 5. One warp is a thread block.
 *   blco-registers  Each 32 neighbours of the list's order: indices taken apart, equal output rows
 *                   brought together (match_any, counting sort), coordinates through shared memory,
 *                   then lanes over the columns, a row's sum in a register and one atomic addition
 *                   per row and column. Several tiles of 32 one after the other: coarsening.
 *   blco-stash      Its hierarchical form: sums of a tile's rows go to a small direct-mapped stash
 *                   in shared memory, and from there, when another row takes the place, to one of
 *                   several copies of the output, which are added up at the end.
 *   blco            Its choice: blco-stash for modes of as many rows as there are multiprocessors
 *                   or fewer. How many tiles, rows in the stash and copies it takes could not be
 *                   looked up: options.
 *
 * AMPED is Wijeratne et al., ICPP 2025 (arXiv 2507.15121), section 4.
 *   amped           Every multiprocessor takes an equal share of the nonzeros, in the list's order;
 *                   a block has R x 32 threads, R for each of 32 nonzeros, one per column, and each
 *                   adds its product to the output atomically. Beyond 32 columns a thread takes
 *                   every 32nd, for a block has at most 1024 threads.
 *
 * GENTEN is Phipps and Kolda, SISC 2019 (arXiv 1809.09175), section 4, in the names of cpu/coo.h.
 * Teams of 128 threads; a nonzero has as many of them as the largest power of two within R. That
 * these are what its tables 3 and 4 give could not be checked against the paper; the sizes are
 * those that the authors' public program has for this architecture.
 *   genten-a        A nonzero for each vector of up to 8 threads, its product formed in an array in
 *                   shared memory, 32 columns at a time, all elements added atomically.
 *   genten-b        128 nonzeros one after the other for each vector of up to 32 threads, products
 *                   in registers, up to 4 columns for a thread.
 *   genten-c        The same through a permutation that sorts by output row: a row's sum in
 *                   registers, added once, atomically only at the ends of the 128.
 *
 * XPLAT is "Exploring the Limits of Cross-Platform Sparse Tensor Processing", listings 3 and 4, as
 * cpu/fiber_forms.h reads them, over fibers of one mode. Which threads take what on a device is
 * ours: a vector of up to 32 for each fiber or nonzero, in blocks of 256.
 *   fiber-rows      What the rows of a fiber have in common once a fiber.
 *   fiber-elements  Every nonzero on its own.
 *
 *     prepare (for each kernel and mode, whatever is not there yet) -> run .. -> destroy
 */
#ifndef SLC_GPU_BASELINES_H
#define SLC_GPU_BASELINES_H

#include "gpu/blco.h"
#include "gpu/fibers.h"
#include "gpu/mttkrp.h"

enum slc_gpu_kernel {
    SLC_GPU_BLCO_REGISTERS,
    SLC_GPU_BLCO_STASH,
    SLC_GPU_BLCO,
    SLC_GPU_AMPED,
    SLC_GPU_GENTEN_EACH,
    SLC_GPU_GENTEN_TILES,
    SLC_GPU_GENTEN_PERMUTED,
    SLC_GPU_FIBER_ROWS,
    SLC_GPU_FIBER_ELEMENTS,
    SLC_GPU_KERNELS
};

const char *slc_gpu_kernel_name(enum slc_gpu_kernel kernel); /* as above; "?" for none */
/* SLC_GPU_KERNELS for a name that is none's. */
enum slc_gpu_kernel slc_gpu_kernel_parse(const char *name);

/* 0: what stands behind. */
struct slc_gpu_baseline_options {
    uint32_t coarsening; /* tiles of 32 that a warp of BLCO takes: 1; with a stash 16 */
    uint32_t stash_rows; /* 4; fewer where they do not fit into 48 KiB, but 1 */
    uint32_t copies;     /* of the output, with a stash: 8 */
    uint32_t index_bits; /* of BLCO's form: 64 */
    unsigned fiber_mode; /* the mode of XPLAT's fibers, from 0 */
};

/* A tensor in the forms that kernels take: `coo` is the caller's, the others prepare makes. */
struct slc_gpu_forms {
    struct slc_gpu_coo *coo;
    struct slc_gpu_blco blco;
    struct slc_gpu_fibers fibers;
    void *copies; /* of an output */
    uint64_t copies_bytes;
};

/*
 * Makes what `kernel` needs for `job`, as far as it is not there: once, before what is measured,
 * for most of it is made on the host. `dims` are the modes' lengths. Options that forms depend on
 * may not change between calls. Needs: all-zero but for `coo`. Owns: slc_gpu_forms_destroy, also
 * after an error. Errors: those of making the forms.
 */
cudaError_t slc_gpu_forms_prepare(struct slc_gpu_forms *forms,
                                  enum slc_gpu_kernel kernel,
                                  const struct slc_gpu_mttkrp *job,
                                  const uint64_t *dims,
                                  const struct slc_gpu_baseline_options *options,
                                  const struct slc_gpu_machine *machine,
                                  cudaStream_t stream);
/* Leaves the list to the caller. */
void slc_gpu_forms_destroy(struct slc_gpu_forms *forms);

/*
 * Adds the MTTKRP of a tensor to the job's output, whose padding stays as it is. Values of either
 * type; products and sums in the type of the output. Order: sums in no fixed order. Errors:
 * cudaErrorInvalidValue where the tensor has another order than the job, or was not prepared; those
 * of launches.
 */
cudaError_t slc_gpu_baseline_run(enum slc_gpu_kernel kernel,
                                 const struct slc_gpu_forms *forms,
                                 const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_baseline_options *options,
                                 const struct slc_gpu_machine *machine,
                                 cudaStream_t stream);

#endif
