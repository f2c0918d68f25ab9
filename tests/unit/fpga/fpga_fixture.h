/* Random tensors with empty slices, empty fibers and long fibers, for the FPGA designs. */
#ifndef SLC_TESTS_FPGA_FIXTURE_H
#define SLC_TESTS_FPGA_FIXTURE_H

#include "base/matrix.h"
#include "fpga/design/design.h"
#include "fpga/model/model.h"

#include <stdbool.h>

enum fpga_shape {
    FPGA_MIXED, /* slices and fibers of every length, from empty to long */
    FPGA_SHORT, /* one nonzero per fiber */
    FPGA_LONG,  /* hundreds of nonzeros per fiber */
    FPGA_SHAPES
};

struct fpga_problem {
    struct slc_fpga_tensor tensor; /* points to the arrays below */
    uint32_t *slice_ptr, *fiber_ptr, *fiber_index, *index;
    float *value;
    uint32_t *slice; /* of each fiber */
    struct slc_fpga_work work;
    struct slc_matrix matrix, fiber_matrix; /* f32 */
};

/* Makes a tensor of about `nnz` nonzeros whose matrices have `rows` rows. If `integers`, all
 * numbers are small integers, so that f32 sums are exact. The caller must call fpga_destroy. */
void fpga_create(struct fpga_problem *problem,
                 enum fpga_shape shape,
                 uint64_t seed,
                 uint32_t nnz,
                 uint32_t rows,
                 uint32_t cols,
                 bool integers);
void fpga_destroy(struct fpga_problem *problem);

/* Runs a design with a new output, which the caller must destroy; returns its counts. */
struct slc_fpga_count fpga_run(const struct fpga_problem *problem,
                               enum slc_fpga_design design,
                               const struct slc_fpga_parameters *parameters,
                               struct slc_matrix *output);

/* The paper's device, with a lane per column and a short memory latency. */
struct slc_fpga_parameters fpga_parameters(uint32_t cols);

#endif
