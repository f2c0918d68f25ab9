/*
 * Baselines: MTTKRP over tiles of whole fibers (layout fiber-n), with atomic additions.
 *
 * For a mode-n fiber, whose nonzeros agree in all coordinates but i_n, and an output of mode m:
 *
 *   atomic-fiber    SLC_ATOMIC_FIBER    does once per fiber what its nonzeros share. If m != n: the
 *                   sum of x * A(n)(i_n, r) over the fiber is multiplied by the rows of the other
 *                   factors and added to one row of the output. If m = n: the product h(r) of the
 *                   other factors' rows is formed once, and x * h(r) is added to row i_n for every
 *                   nonzero.
 *   atomic-nonzero  SLC_ATOMIC_NONZERO  computes each nonzero alone, with the rows of all its
 *                   coordinates. The arithmetic is that of genten-b (coo.h), in the order of
 *                   fibers.
 *
 * They divide the work by fibers and by nonzeros, as [XPLAT] listings 3 and 4 do, but are not the
 * kernels of that paper.
 *
 * Both add to the output atomically, one column at a time: the fibers of layout fiber-n are in the
 * order of keys, so any tile may have nonzeros of any row. (In formats that store slices, a row of
 * the output can have one owner.) A fiber that continues in the next tile or chunk is processed in
 * parts.
 *
 * They are implemented for comparison with the kernels of sluice (`sluice bench mttkrp --kernel`).
 * No other command uses them, no plan counts their memory, and they are not a strategy of a
 * backend. Unlike the kernels of coo.h, they read tiles as a stream delivers them, from memory or
 * from a drive.
 *
 *     begin -> tile, all tiles in any order from any number of threads -> end
 */
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
    const struct slc_kernel_set *set; /* the kernel set in use when the MTTKRP began */
    struct slc_matrix ones;           /* used only for order 1 */
};

/*
 * Begins the MTTKRP of `job` (base/backend.h), which is copied; ignores the strategy of the job.
 * job->workers threads clear the output. Needs: *run is all-zero. Owns: release with
 * slc_fiber_mttkrp_end, also after an error. Errors: SLC_ERR_USAGE for a job that does not match
 * its matrices; SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status slc_fiber_mttkrp_begin(struct slc_fiber_mttkrp *run,
                                       enum slc_fiber_form form,
                                       const struct slc_mttkrp_job *job,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * Adds a tile. In a tile without runs (next_fibers is NULL, e.g. if the fibers' mode has one
 * index), every nonzero is a fiber. Threads: any number may call it at once, once per tile. Order:
 * sums are in no fixed order, and products in the type of the factors. f32 outputs are summed in
 * f32, because additions go directly to the output; only the sums of SLC_ATOMIC_FIBER over a fiber
 * are in f64. Errors: SLC_ERR_USAGE for a tile that does not match the job; those of decoding. The
 * output is undefined after an error.
 */
enum slc_status slc_fiber_mttkrp_tile(const struct slc_fiber_mttkrp *run,
                                      struct slc_tile_view *tile,
                                      struct slc_error *err) SLC_NODISCARD;

/* Accepts an all-zero struct. */
void slc_fiber_mttkrp_end(struct slc_fiber_mttkrp *run);

#endif
