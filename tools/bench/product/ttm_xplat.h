/* Multiplies the fibers of a mode by a matrix with the kernels of [XPLAT]
 * (tools/bench/rivals/cpu/xplat.h), from fiber pointers that are built from the layout of the mode.
 * The whole result stays in memory. */
#ifndef SLC_TOOLS_BENCH_TTM_XPLAT_H
#define SLC_TOOLS_BENCH_TTM_XPLAT_H

#include "tools/bench/product/ttm_mode.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/bench/rivals/cpu/xplat.h"

struct ttm_xplat {
    const struct ttm_mode *mode; /* borrowed */
    struct slc_coo list;         /* the nonzeros in the order of the layout */
    struct slc_csf csf;
    struct slc_matrix rows; /* a row per fiber */
};

/* Builds the fibers of `mode`. Needs: *xplat is all-zero; ttm_mode_start was called, and `mode`
 * stays started until ttm_xplat_destroy. Sets *fits to false, and builds nothing, if nonzeros and
 * rows would exceed `memory_bytes`, or if there are too many nonzeros for the kernels. The caller
 * must call ttm_xplat_destroy, also after an error. Errors: those of decoding; SLC_ERR_MEMORY. */
enum slc_status ttm_xplat_create(struct ttm_xplat *xplat,
                                 struct ttm_mode *mode,
                                 uint64_t memory_bytes,
                                 bool *fits,
                                 struct slc_error *err) SLC_NODISCARD;
void ttm_xplat_destroy(struct ttm_xplat *xplat);

/* Multiplies by the matrix of the mode once. */
enum slc_status ttm_xplat_run(struct ttm_xplat *xplat,
                              enum slc_xplat_kernel kernel,
                              struct slc_error *err) SLC_NODISCARD;

/* Computes the last result again, by a simple loop over the list in f64. Returns the largest
 * difference of an element, relative to the sum of the magnitudes of its terms; infinity if the
 * numbers of rows differ, or if an element is NaN. */
double ttm_xplat_error(const struct ttm_xplat *xplat);

#endif
