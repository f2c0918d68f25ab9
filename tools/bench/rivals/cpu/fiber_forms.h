/* Baselines: MTTKRP over tiles of whole fibers (layout fiber-n), with atomic additions.
 *
 * Two kernels compute from a mode-n fiber, whose nonzeros x differ only in index i_n, for output
 * mode m:
 *
 *   atomic-fiber    SLC_ATOMIC_FIBER    does the common work of a fiber's nonzeros only once. If
 *                   m != n, the sum of x * A(n)(i_n, r) over the fiber is multiplied by the rows of
 *                   the other factors and added to one row of the output. If m = n, the product
 *                   h(r) of the rows of the other factors is formed once, and every nonzero adds
 *                   x * h(r) to row i_n.
 *   atomic-nonzero  SLC_ATOMIC_NONZERO  computes each nonzero alone, with the arithmetic of kernel
 *                   genten-b (coo.h).
 *
 * Neither kernel is from a paper; xplat.h has MTTKRPs over fibers without atomic additions. The
 * kernels add to the output atomically, one column at a time, because any tile may have
 * nonzeros of any output row: fibers of layout fiber-n are in the order of keys. (In formats that
 * store slices, an output row can have one owner.) A fiber that continues in the next tile or chunk
 * is processed in parts.
 *
 * `sluice bench mttkrp --kernel` compares the kernels with those of sluice. No other command uses
 * them, no plan counts their memory, and no backend has them as a strategy. Unlike the kernels of
 * coo.h, they read tiles of a tile stream, from memory or from a drive.
 *
 * Call slc_fiber_mttkrp_begin; then slc_fiber_mttkrp_tile once for each tile, in any order and from
 * any number of threads; then slc_fiber_mttkrp_end. */
#ifndef SLC_CPU_FIBER_FORMS_H
#define SLC_CPU_FIBER_FORMS_H

#include "base/backend.h"
#include "cpu/kernel/kernels.h"

enum slc_fiber_form { SLC_ATOMIC_FIBER, SLC_ATOMIC_NONZERO, SLC_FIBER_FORMS };

const char *slc_fiber_form_name(enum slc_fiber_form form); /* "atomic-fiber", "atomic-nonzero" */

/* A running MTTKRP. */
struct slc_fiber_mttkrp {
    enum slc_fiber_form form;
    struct slc_mttkrp_job job;
    const struct slc_kernel_set *set; /* kernel set that was in use when the MTTKRP began */
    struct slc_matrix ones;           /* row of ones, used if there is only one mode */
};

/* Begins the MTTKRP of `job` (base/backend.h), which it copies. Ignores the strategy of the job.
 * job->workers threads clear the output. Needs: *run is all-zero. The caller must call
 * slc_fiber_mttkrp_end, also after an error. Errors: SLC_ERR_USAGE for a job that does not match
 * its matrices; SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
enum slc_status slc_fiber_mttkrp_begin(struct slc_fiber_mttkrp *run,
                                       enum slc_fiber_form form,
                                       const struct slc_mttkrp_job *job,
                                       struct slc_error *err) SLC_NODISCARD;

/* Adds the nonzeros of a tile. Call it once per tile. If the tile has no runs (next_fibers is NULL,
 * for example because the mode of the fibers has one index), every nonzero is a fiber. Threads:
 * several threads may call it at the same time. Order: sums have no fixed order. Products have the
 * type of the factors. f32 outputs are summed in f32, because additions go directly to the output;
 * only the sums of SLC_ATOMIC_FIBER over a fiber are in f64. Errors: SLC_ERR_USAGE for a tile that
 * does not match the job; those of decoding. The output is undefined after an error. */
enum slc_status slc_fiber_mttkrp_tile(const struct slc_fiber_mttkrp *run,
                                      struct slc_tile_view *tile,
                                      struct slc_error *err) SLC_NODISCARD;

/* Releases the memory of an MTTKRP. *run may be all-zero. */
void slc_fiber_mttkrp_end(struct slc_fiber_mttkrp *run);

#endif
