/* Baselines: TTM and MTTKRP with the algorithms of [XPLAT] section 3, over compressed sparse fibers
 * (csf.h).
 *
 *   xplat-element  SLC_XPLAT_TTM_ELEMENT     listing 1: a unit of work is an element of the output
 *   xplat-fiber    SLC_XPLAT_TTM_FIBER       listing 2: a unit of work is a fiber, that is, a row
 *                                            of the output
 *   xplat-element  SLC_XPLAT_MTTKRP_ELEMENT  listing 3: a unit of work is an element of the output
 *   xplat-row      SLC_XPLAT_MTTKRP_ROW      listing 4: a unit of work is a slice, that is, a row
 * of the output
 *
 * A unit sums in registers and stores each of its elements once. Units share no element, so there
 * are no atomic additions. TTM adds up the matrix rows of a fiber's nonzeros, each times the value.
 * MTTKRP does the same for each fiber of a slice, multiplies the sum by the rows of the fiber's
 * indices, and adds the product to the sum of the slice. As in the paper, products and sums have
 * the type of the matrices, and a unit is never divided, however long its fiber or slice is.
 *
 * The paper has three modes, so that a fiber of a slice has one index, and one row multiplies its
 * sum. With N modes, the N - 2 rows of the fiber's indices are multiplied first.
 *
 * SYCL compilers for CPUs run neighbouring units in the lanes of a vector, which the paper reports
 * for its element-centric kernels (section 5.1). Here a vector computes as many neighbouring
 * elements as it has lanes. The other two kernels keep up to SLC_XPLAT_VECTORS vectors of a row in
 * registers. With more columns, or with fewer registers, they traverse the fiber or slice once per
 * part of the row; in the paper, the compiler puts a longer row in memory.
 *
 * `sluice bench mttkrp --kernel xplat` and `sluice bench ttm` compare these kernels with those of
 * sluice. No other command uses them. */
#ifndef SLC_RIVALS_XPLAT_H
#define SLC_RIVALS_XPLAT_H

#include "base/backend.h"
#include "tools/bench/rivals/cpu/csf.h"

enum slc_xplat_kernel {
    SLC_XPLAT_TTM_ELEMENT,
    SLC_XPLAT_TTM_FIBER,
    SLC_XPLAT_MTTKRP_ELEMENT,
    SLC_XPLAT_MTTKRP_ROW,
    SLC_XPLAT_KERNELS
};

const char *slc_xplat_kernel_name(enum slc_xplat_kernel kernel); /* "xplat-element", .. */

/* Computes the TTM of `csf`, built by slc_csf_create_fibers, with `workers` threads:
 *   rows(f, r) = sum of (x * matrix(i_n, r)) over the nonzeros x of fiber f
 * `rows` has a row per fiber, and the type and columns of `matrix`; every element is overwritten.
 * The order of the sums is that of the nonzeros, so the bits do not depend on the threads. `kernel`
 * is one of the first two. Cost: 2 nnz R operations; the elements of the fibers are read once per
 * vector of a row (element), or once per SLC_XPLAT_VECTORS vectors (fiber). Errors: SLC_ERR_USAGE
 * for matrices that do not match; SLC_ERR_SYSTEM, SLC_ERR_MEMORY. */
enum slc_status slc_xplat_ttm(const struct slc_csf *csf,
                              enum slc_xplat_kernel kernel,
                              const struct slc_matrix *matrix,
                              struct slc_matrix *rows,
                              unsigned workers,
                              struct slc_error *err) SLC_NODISCARD;

/* Computes the MTTKRP of `job` (base/backend.h) from `csf`, built by slc_csf_create_slices for
 * job->mode, with job->workers threads. Overwrites every element of the output, also of empty
 * slices; ignores the strategy of the job. Order of sums, errors: as above. `kernel` is one of the
 * last two. Cost: 2 (nnz + (N - 2) fibers) R operations. */
enum slc_status slc_xplat_mttkrp(const struct slc_csf *csf,
                                 enum slc_xplat_kernel kernel,
                                 const struct slc_mttkrp_job *job,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
