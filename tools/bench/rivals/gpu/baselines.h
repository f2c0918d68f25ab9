/*
 * Baselines: MTTKRP over lists in the device's memory with the kernels of other programs. Private
 * to gpu/.
 *
 * They are reimplemented from the papers and are measured in the same run as the kernels of sluice;
 * no command computes with them. Choices that a paper leaves open are options (lists.h), or are
 * described below.
 *
 * BLCO is [Nguyen2022]: the form of its section 4
 * (tools/bench/rivals/gpu/blco.h), the kernels of 5.1 and 5.2, the choice of 5.3 with the
 * configuration of 6.1.3. A work-group is a thread block, a tile a warp. It reads the block of its
 * nonzeros from the form's map, and the block's upper bits once.
 *
 *   blco-registers  Each tile: indices are decoded, equal output rows sorted together (match_any,
 *                   counting sort), coordinates exchanged through shared memory. Then lanes process
 *                   columns: a row's sum in a register and one atomic addition per row and column.
 *   blco-stash      The hierarchical form: sums of rows are added to a stash in shared memory,
 *                   which all tiles of the work-group share, and at the end of the work-group to
 *                   one of several copies of the output. The copies are added up at the end.
 *   blco            Its choice: blco-stash for a mode with fewer rows than the device has
 *                   multiprocessors, otherwise blco-registers.
 *   blco-queues     The same choice out of memory: the form stays in the host's memory and is
 *                   streamed (tools/bench/rivals/gpu/blco.h).
 *
 * The authors' program differs from the paper and is a second form:
 *
 *   blco-code-registers  Work-groups of one warp.
 *   blco-code-stash      The same, with a small direct-mapped stash for the warp alone: a row that
 *                        is displaced by another is added to a copy of the output immediately.
 *   blco-code            The choice of 5.3 between these two.
 *
 * The paper uses one nonzero per thread for registers, two for the hierarchical form on NVIDIA
 * devices, and a copy of the output for each graphics processing cluster. It names neither the size
 * of a work-group nor that of the stash. Its figure 7 has several tiles in a work-group: the
 * default is eight, 256 threads, a size that divides the threads of every multiprocessor. The stash
 * has a place for each row of the mode. Its size is limited to half of the shared memory that a
 * block may have, and at least 48 KiB, so that two work-groups share a multiprocessor.
 *
 * AMPED is [Wijeratne2025]. Its sections 3.2 and 3.3 divide the rows
 * of the output mode into partitions of as many rows as there are devices, and keep a copy of the
 * tensor for each mode in which the nonzeros of a partition are consecutive.
 *
 *   amped           Every multiprocessor computes an equal share of that copy. A block has R x T
 *                   threads, one per column for each of T nonzeros, R x T = 1024 (sections 4.5,
 *                   5.1.5), and each adds its product to the output atomically. Beyond 32 columns
 *                   a thread computes every 32nd. All partitions of a device are one launch; the
 *                   paper's one launch per partition would be as many kernels as there are rows.
 *
 * GenTen is [Phipps2019], in the names of
 * tools/bench/rivals/cpu/coo.h. Teams of 128 threads; a member of a team computes 128 consecutive
 * nonzeros, one block of columns after the other, with the sizes of its tables 3 and 4. Coordinates
 * and permutations have 32 bits, and the weights of a model, which MTTKRP does not need, are left
 * out: both favour GenTen.
 *
 *   genten-a        MTTKRP-A (figure 1): the product in an array in shared memory, all elements
 *                   added atomically.
 *   genten-b        MTTKRP-B (figure 3): products in registers, up to 4 columns per thread.
 *   genten-c        MTTKRP-C (figure 4): the same through a permutation that sorts by output row: a
 *                   row's sum in registers, added once, atomically only at the ends of the 128.
 *
 * Over fibers of one mode, with atomic additions to the output (fiber_forms.h explains how they
 * differ from the kernels of XPLAT). A vector of up to 32 threads computes a fiber or a nonzero, in
 * blocks of 256.
 *
 *   atomic-fiber    Multiplies the rows that a fiber's nonzeros share once per fiber.
 *   atomic-nonzero  Computes each nonzero alone.
 *
 *     prepare (once per kernel and mode) -> run .. -> destroy
 */
#ifndef SLC_GPU_BASELINES_H
#define SLC_GPU_BASELINES_H

#include "gpu/mttkrp/mttkrp.h"
#include "tools/bench/rivals/gpu/blco.h"
#include "tools/bench/rivals/gpu/fibers.h"
#include "tools/bench/rivals/gpu/lists.h"

/* BLCO's kernels come first, up to SLC_GPU_BLCO_CODE: is_blco (baselines.cu) needs this. */
enum slc_gpu_kernel {
    SLC_GPU_BLCO_REGISTERS,
    SLC_GPU_BLCO_STASH,
    SLC_GPU_BLCO,
    SLC_GPU_BLCO_QUEUES,
    SLC_GPU_BLCO_CODE_REGISTERS,
    SLC_GPU_BLCO_CODE_STASH,
    SLC_GPU_BLCO_CODE,
    SLC_GPU_AMPED,
    SLC_GPU_GENTEN_EACH,
    SLC_GPU_GENTEN_TILES,
    SLC_GPU_GENTEN_PERMUTED,
    SLC_GPU_ATOMIC_FIBER,
    SLC_GPU_ATOMIC_NONZERO,
    SLC_GPU_KERNELS
};

const char *slc_gpu_kernel_name(enum slc_gpu_kernel kernel); /* as above; "?" if unknown */
/* SLC_GPU_KERNELS for an unknown name. */
enum slc_gpu_kernel slc_gpu_kernel_parse(const char *name);

/* GenTen's sizes for a rank: threads per nonzero, and columns of a block of its factors. */
struct slc_gpu_genten_blocking {
    uint32_t vector, columns;
};

/* Table 3 for SLC_GPU_GENTEN_EACH, table 4 for the other two. Needs: a rank of at least 1. */
struct slc_gpu_genten_blocking slc_gpu_genten_blocking(enum slc_gpu_kernel kernel, uint32_t rank);

/*
 * Graphics processing clusters of a device, at least 1. CUDA does not report them: they follow from
 * the number of multiprocessors and the number in a complete cluster of the chip, by compute
 * capability. Products have some multiprocessors disabled, but no fewer clusters than their
 * multiprocessors need. A100 7, H100 SXM and H200 8.
 */
uint32_t slc_gpu_clusters(const struct slc_gpu_machine *machine);

/* A tensor in the forms of the kernels: the caller sets the first five fields, prepare the rest. */
struct slc_gpu_forms {
    struct slc_gpu_host_list list;         /* borrowed */
    const uint64_t *dims;                  /* the mode sizes; borrowed */
    struct slc_gpu_lists_options options;  /* accepted by slc_gpu_lists_create */
    const struct slc_gpu_machine *machine; /* borrowed */
    cudaStream_t stream;                   /* for all copies and launches */
    struct slc_gpu_coo coo;
    struct slc_gpu_coo partitioned; /* AMPED's copy for one mode */
    unsigned partitioned_mode;
    struct slc_gpu_blco blco;
    struct slc_gpu_blco_queues queues;
    struct slc_gpu_fibers fibers;
    void *copies; /* of an output */
    uint64_t copies_bytes;
    /* Seconds to build each form, including copies to the device. */
    double coo_seconds, permutation_seconds[SLC_MAX_ORDER], partitioned_seconds, blco_seconds,
        queues_seconds, fibers_seconds;
};

/*
 * The kernel that computes `kernel` for the job: BLCO's choice is resolved to one of two, every
 * other kernel is unchanged.
 */
enum slc_gpu_kernel slc_gpu_baseline_chosen(enum slc_gpu_kernel kernel,
                                            const struct slc_gpu_mttkrp *job,
                                            const struct slc_gpu_machine *machine);

/*
 * Builds the forms that `kernel` needs for `job` and that do not exist yet: once, before anything
 * is measured. Needs: the other fields zero. Owns: slc_gpu_forms_destroy, also after an error.
 * Errors: those of building the forms.
 */
cudaError_t slc_gpu_forms_prepare(struct slc_gpu_forms *forms,
                                  enum slc_gpu_kernel kernel,
                                  const struct slc_gpu_mttkrp *job);
void slc_gpu_forms_destroy(struct slc_gpu_forms *forms);

/*
 * The cost of the form from which a kernel computes a mode, after prepare. The seconds of genten-c
 * are those of the permutation: its list is the form of genten-a.
 */
struct slc_gpu_form_cost {
    double seconds;
    double bytes; /* per nonzero, in either memory */
};
struct slc_gpu_form_cost
slc_gpu_forms_cost(const struct slc_gpu_forms *forms, enum slc_gpu_kernel kernel, unsigned mode);

/*
 * Adds the MTTKRP of a tensor to the job's output without changing its padding. Values of either
 * type; products and sums in the type of the output. Order: sums in no fixed order. Errors:
 * cudaErrorInvalidValue if the order of the tensor and the job differ, or the tensor was not
 * prepared; those of launches.
 */
cudaError_t slc_gpu_baseline_run(enum slc_gpu_kernel kernel,
                                 const struct slc_gpu_forms *forms,
                                 const struct slc_gpu_mttkrp *job);

#endif
