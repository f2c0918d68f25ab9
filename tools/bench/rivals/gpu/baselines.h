/* Baselines: MTTKRP on a GPU with the kernels of other programs, over a list of coordinates or
 * forms that are built from it. Only files of this folder and tests include this header.
 *
 * The kernels are reimplemented from the papers. `sluice bench device` measures them in the same
 * run as the kernels of sluice; no other command uses them. Where a paper leaves a choice open, it
 * is an option (lists.h) or is described below.
 *
 * BLCO is [Nguyen2022]: the form of section 4 (tools/bench/rivals/gpu/blco.h), the kernels of
 * sections 5.1 and 5.2, and the choice of section 5.3 with the configuration of section 6.1.3. A
 * work-group is a thread block, and a warp computes one tile at a time. A work-group finds the BLCO
 * block of its nonzeros in a map, and reads the upper bits of this block once.
 *
 *   blco-registers  For each tile, indices are decoded, nonzeros are sorted so that equal
 *                   output rows are adjacent (match_any, counting sort), and coordinates are
 *                   exchanged through shared memory. Then each warp lane processes a column:
 *                   it keeps the sum of a row in a register, and performs one atomic
 *                   addition per row.
 *   blco-stash      The hierarchical kernel: sums of rows are added to a stash in shared
 *                   memory, which all tiles of the work-group share. At the end of the
 *                   work-group, the stash is added to one of several copies of the output.
 *                   At the end of the MTTKRP, the copies are added up.
 *   blco            The choice of section 5.3: blco-stash if the mode has fewer rows than the
 *                   device has multiprocessors, otherwise blco-registers.
 *   blco-queues     As blco, for tensors that exceed device memory: the form stays
 *                   in host memory and is streamed (tools/bench/rivals/gpu/blco.h).
 *
 * The authors' program differs from the paper, so its kernels are baselines too:
 *
 *   blco-code-registers  As blco-registers, with work-groups of one warp.
 *   blco-code-stash      Work-groups of one warp, with a small direct-mapped stash: a row that
 *                        another row displaces is immediately added to a copy of the output.
 *   blco-code            The choice of section 5.3 between the two kernels above.
 *
 * The paper uses one nonzero per thread with registers, two with the hierarchical kernel on NVIDIA
 * devices, and a copy of the output for each graphics processing cluster. The paper specifies
 * neither the size of a work-group nor the size of the stash; in its figure 7, a work-group has
 * several tiles. The default here is a work-group of eight warps, or 256 threads, which divides the
 * number of threads of every multiprocessor. The stash has a place for each row of the mode, but is
 * limited to half of the shared memory that a thread block may have (or 48 KiB, if that is more),
 * so that two work-groups fit on a multiprocessor.
 *
 * AMPED is [Wijeratne2025]. In sections 3.2 and 3.3, the rows of the output mode are divided into
 * partitions, which have as many rows as there are devices. For each mode there is a copy of the
 * tensor in which the nonzeros of a partition are consecutive.
 *
 *   amped           Every multiprocessor computes an equal share of the copy of the mode. A
 *                   thread block has R x T = 1024 threads (sections 4.5, 5.1.5): one per
 *                   column for each of T nonzeros. Each thread adds its product to the output
 *                   atomically. With more than 32 columns, a thread computes every 32nd
 *                   column. One launch computes all partitions of a device. The paper has a
 *                   launch per partition, which on one device would be a launch per row.
 *
 * GenTen is [Phipps2019], with the names of tools/bench/rivals/cpu/coo.h. A team has 128 threads. A
 * member of a team computes 128 consecutive nonzeros, one block of columns after the other, with
 * the sizes of tables 3 and 4 of the paper. Two differences favour GenTen: coordinates and
 * permutations have 32 bits, and the weights of a model, which MTTKRP does not need, are omitted.
 *
 *   genten-a        MTTKRP-A (figure 1): the product of a nonzero is in an array in shared
 *                   memory, and all its elements are added atomically.
 *   genten-b        MTTKRP-B (figure 3): products are in registers, up to 4 columns per thread.
 *   genten-c        MTTKRP-C (figure 4): nonzeros are read through a permutation that sorts
 *                   them by output row. The sum of a row is kept in registers and added once,
 *                   atomically only for the first and the last row of the 128 nonzeros.
 *
 * The MTTKRPs of [XPLAT] (xplat.h) compute from slices of fibers, and need 3 modes or more:
 *
 *   xplat-element   Listing 3: a thread computes an element of the output.
 *   xplat-row       Listing 4: a thread computes a row of the output.
 *
 * Two kernels of sluice's own compute from fibers of one mode, with atomic additions to the output
 * (tools/bench/rivals/cpu/fiber_forms.h). A vector of up to 32 threads computes a fiber or a
 * nonzero; thread blocks have 256 threads.
 *
 *   atomic-fiber    Multiplies the common rows of a fiber's nonzeros only once.
 *   atomic-nonzero  Computes each nonzero alone.
 *
 * Call slc_gpu_forms_prepare once for each kernel and mode, then slc_gpu_baseline_run any number of
 * times, and slc_gpu_forms_destroy at the end. */
#ifndef SLC_GPU_BASELINES_H
#define SLC_GPU_BASELINES_H

#include "gpu/mttkrp/mttkrp.h"
#include "tools/bench/rivals/gpu/blco.h"
#include "tools/bench/rivals/gpu/fibers.h"
#include "tools/bench/rivals/gpu/lists.h"
#include "tools/bench/rivals/gpu/xplat.h"

/* BLCO's kernels must come first, up to SLC_GPU_BLCO_CODE, because is_blco (baselines.cu) compares
 * numbers. */
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
    SLC_GPU_XPLAT_ELEMENT,
    SLC_GPU_XPLAT_ROW,
    SLC_GPU_ATOMIC_FIBER,
    SLC_GPU_ATOMIC_NONZERO,
    SLC_GPU_KERNELS
};

const char *slc_gpu_kernel_name(enum slc_gpu_kernel kernel); /* returns a name above, or "?" */
/* Returns the kernel with a name above, SLC_GPU_KERNELS for an unknown name. */
enum slc_gpu_kernel slc_gpu_kernel_parse(const char *name);

/* GenTen's sizes for a rank: threads per nonzero, and columns per block of columns. */
struct slc_gpu_genten_blocking {
    uint32_t vector, columns;
};

/* Returns the sizes of table 3 for SLC_GPU_GENTEN_EACH, and of table 4 for the other two kernels.
 * Needs: a rank of at least 1. */
struct slc_gpu_genten_blocking slc_gpu_genten_blocking(enum slc_gpu_kernel kernel, uint32_t rank);

/* Returns the number of graphics processing clusters of a device, at least 1. CUDA does not report
 * this number. It is derived from the number of multiprocessors of the device, and from the number
 * of multiprocessors in a complete cluster of its compute capability. Devices are sold with some
 * multiprocessors disabled, but have at least the clusters that their multiprocessors need. The
 * result is 7 for A100, and 8 for H100 SXM and H200. */
uint32_t slc_gpu_clusters(const struct slc_gpu_machine *machine);

/* A tensor in the forms that the kernels read. The caller sets the first five members;
 * slc_gpu_forms_prepare sets the other members. */
struct slc_gpu_forms {
    struct slc_gpu_host_list list;         /* borrowed */
    const uint64_t *dims;                  /* mode sizes; borrowed */
    struct slc_gpu_lists_options options;  /* as slc_gpu_lists_create accepts them */
    const struct slc_gpu_machine *machine; /* borrowed */
    cudaStream_t stream;                   /* stream of all copies and launches */
    struct slc_gpu_coo coo;
    struct slc_gpu_coo partitioned; /* AMPED's copy of the tensor for one mode */
    unsigned partitioned_mode;
    struct slc_gpu_blco blco;
    struct slc_gpu_blco_queues queues;
    struct slc_gpu_fibers fibers;
    struct slc_gpu_csf csf; /* slices of one mode */
    void *copies;           /* copies of the output for kernels with a stash */
    uint64_t copies_bytes;
    /* seconds to build each form, including its copy to the device */
    double coo_seconds, permutation_seconds[SLC_MAX_ORDER], partitioned_seconds, blco_seconds,
        queues_seconds, fibers_seconds, csf_seconds;
};

/* Returns the kernel that computes the job if `kernel` is requested: if BLCO chooses between two
 * kernels by the mode size, the chosen one; otherwise `kernel`. */
enum slc_gpu_kernel slc_gpu_baseline_chosen(enum slc_gpu_kernel kernel,
                                            const struct slc_gpu_mttkrp *job,
                                            const struct slc_gpu_machine *machine);

/* Builds the forms that `kernel` needs for `job` and that do not exist yet. Call it before any
 * measurement. Needs: members that the caller does not set are zero before the first call. The
 * caller must call slc_gpu_forms_destroy, also after an error. Errors: those of building the
 * forms. */
cudaError_t slc_gpu_forms_prepare(struct slc_gpu_forms *forms,
                                  enum slc_gpu_kernel kernel,
                                  const struct slc_gpu_mttkrp *job);
void slc_gpu_forms_destroy(struct slc_gpu_forms *forms);

/* slc_gpu_forms_cost returns the cost of the form from which a kernel computes a mode. Needs: the
 * form has been prepared. For genten-c, the seconds exclude the list, which genten-a has too; they
 * are the time to build the permutation. */
struct slc_gpu_form_cost {
    double seconds;
    double bytes; /* bytes per nonzero, in device or host memory */
};
struct slc_gpu_form_cost
slc_gpu_forms_cost(const struct slc_gpu_forms *forms, enum slc_gpu_kernel kernel, unsigned mode);

/* Adds the MTTKRP of a tensor to the output of the job, without changing the padding of the output.
 * The kernels of [XPLAT] store to the output instead. Values are f32 or f64; products, sums and the
 * output are f64. Order: sums have no fixed order. Errors: cudaErrorInvalidValue if tensor and job
 * have different orders, or if the tensor was not prepared; those of launches. */
cudaError_t slc_gpu_baseline_run(enum slc_gpu_kernel kernel,
                                 const struct slc_gpu_forms *forms,
                                 const struct slc_gpu_mttkrp *job);

#endif
