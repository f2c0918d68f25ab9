/* The FPGA designs of [XPLAT] section 4 (Figure 1) as C in the style of high-level synthesis:
 * processes with few registers, connected by bounded FIFOs, all driven by one clock. They compute
 * the same bits as the SystemVerilog in fpga/rtl, and count the cycles that fpga/model predicts.
 * Nothing was placed, routed or run on a device.
 *
 *   TTM      fiber pointers ---------------------------.
 *            indices -> row reader -> rows of matrix --+-> MAC lanes -> rows of fibers -> writer
 *            values -----------------------------------'
 *
 *   MTTKRP   slice pointers ----------------------------------------------.
 *            as TTM, up to the sums of the fibers ------------------------+-> MAC lanes -> writer
 *            indices of fibers -> row reader -> rows of fiber_matrix -----'
 *
 * All readers and the writer share one memory port (memory.h). Priority: indices, values, fiber
 * pointers, indices of fibers, slice pointers, writer, rows of fiber_matrix, rows of matrix. */
#ifndef SLC_FPGA_DESIGN_H
#define SLC_FPGA_DESIGN_H

#include "base/matrix.h"
#include "fpga/parameters.h"

#include <stdint.h>

/* A tensor as the designs read it, in the order of compressed fibers: fiber f has the nonzeros
 * fiber_ptr[f] .. fiber_ptr[f + 1] - 1, slice s the fibers slice_ptr[s] .. slice_ptr[s + 1] - 1.
 * Fibers and slices may be empty. TTM uses no slices and no fiber_index. Borrowed. */
struct slc_fpga_tensor {
    uint32_t slices, fibers, nnz;
    const uint32_t *slice_ptr;   /* slices + 1 */
    const uint32_t *fiber_ptr;   /* fibers + 1 */
    const uint32_t *fiber_index; /* fibers: row of fiber_matrix */
    const uint32_t *index;       /* nnz: row of matrix */
    const float *value;          /* nnz */
};

/* Number of cycles and of beats that the memory port moved. */
struct slc_fpga_count {
    uint64_t cycles, beats;
};

/* Runs a design, cycle by cycle, and overwrites `output`: one row per fiber (TTM) or per slice
 * (MTTKRP). All matrices have type f32 and parameters->cols columns; `fiber_matrix` is NULL for
 * TTM. Order: sums add in the order of the tensor (mac.h). Cost: cycles * (8 + lanes). Errors:
 * SLC_ERR_USAGE for pointers that decrease or do not end at the counts, for indices beyond the rows
 * of a matrix, for matrices of another shape or type, and for parameters out of range;
 * SLC_ERR_MEMORY. */
enum slc_status slc_fpga_run(enum slc_fpga_design design,
                             const struct slc_fpga_parameters *parameters,
                             const struct slc_fpga_tensor *tensor,
                             const struct slc_matrix *matrix,
                             const struct slc_matrix *fiber_matrix,
                             struct slc_matrix *output,
                             struct slc_fpga_count *count,
                             struct slc_error *err) SLC_NODISCARD;

#endif
