/* Multiplies decoded fibers of a mode by a matrix: with a plain loop, and with the kernels of
 * [XPLAT] (tools/bench/rivals/cpu/xplat.h). The fiber pointers are built from the layout of the
 * mode. The whole result stays in memory. */
#ifndef SLC_TOOLS_BENCH_TTM_FIBERS_H
#define SLC_TOOLS_BENCH_TTM_FIBERS_H

#include "tools/bench/product/ttm_mode.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/bench/rivals/cpu/xplat.h"

struct ttm_fibers {
    const struct ttm_mode *mode; /* borrowed */
    struct slc_coo list;         /* the nonzeros in the order of the layout */
    struct slc_csf csf;
    struct slc_buffer row_of; /* row of each nonzero (32 bits each) */
    struct slc_matrix rows;   /* a row per fiber */
};

/* Builds the fibers of `mode`. Needs: *fibers is all-zero; ttm_mode_start was called, and `mode`
 * stays started until ttm_fibers_destroy. Sets *fits to false if nonzeros and rows would exceed
 * `memory_bytes`, or if the tensor is too large for 32-bit indices; then nothing can be multiplied.
 * The caller must call ttm_fibers_destroy, also after an error. Errors: those of decoding;
 * SLC_ERR_MEMORY. */
enum slc_status ttm_fibers_create(struct ttm_fibers *fibers,
                                  struct ttm_mode *mode,
                                  uint64_t memory_bytes,
                                  bool *fits,
                                  struct slc_error *err) SLC_NODISCARD;
void ttm_fibers_destroy(struct ttm_fibers *fibers);

/* Multiplies by the matrix of the mode once, with a kernel of [XPLAT]. */
enum slc_status ttm_fibers_run(struct ttm_fibers *fibers,
                               enum slc_xplat_kernel kernel,
                               struct slc_error *err) SLC_NODISCARD;

/* Multiplies once with a loop over the nonzeros in the order of the fibers, which adds each nonzero
 * to its row in memory. Threads share no row. Needs: a matrix in f64. */
enum slc_status ttm_fibers_loop(struct ttm_fibers *fibers, struct slc_error *err) SLC_NODISCARD;

/* Computes the last result again, element by element, from the list in f64. Returns the largest
 * difference of an element, relative to the sum of the magnitudes of its terms; infinity if the
 * numbers of rows differ, or if an element is NaN. */
double ttm_fibers_error(const struct ttm_fibers *fibers);

#endif
