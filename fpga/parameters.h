/* Parameters that the FPGA designs (fpga/design) and their model (fpga/model) share. A *beat* is
 * the words that the memory port moves in one cycle; a *MAC lane* is a multiplier and an adder. */
#ifndef SLC_FPGA_PARAMETERS_H
#define SLC_FPGA_PARAMETERS_H

#include "base/memory/checked.h"

#include <stdint.h>

/* The designs of [XPLAT] section 4, Figure 1. */
enum slc_fpga_design {
    SLC_FPGA_TTM,         /* TTM, rows of the matrix are loaded from memory */
    SLC_FPGA_TTM_ON_CHIP, /* TTM, the matrix is first loaded into on-chip memory */
    SLC_FPGA_MTTKRP,      /* MTTKRP of a tensor of order 3, in two stages of MAC lanes */
    SLC_FPGA_DESIGNS
};

struct slc_fpga_parameters {
    uint32_t cols;       /* columns of the matrices */
    uint32_t lanes;      /* unroll factor: MAC lanes of a stage, 1 to cols */
    uint32_t beat_words; /* words of 32 bits per beat */
    /* cycles from a request to its data, from a product's operands to the product, and from the
       operands of an addition to the sum; each at least 1 */
    uint32_t memory_latency, multiply_latency, add_latency;
};

/* Depths of the FIFOs. An Arria 10 RAM block has 512 words of 32 bits or more, so a shallower FIFO
 * in RAM blocks would save none. In 32 rows of sums, the results that a pipeline holds are few. */
enum { SLC_FPGA_FIFO_WORDS = 512, SLC_FPGA_FIFO_BEATS = 512, SLC_FPGA_FIFO_ROWS = 32 };

/* Returns the beats of a row of a matrix. Each row begins with a new beat. */
static inline uint32_t slc_fpga_row_beats(const struct slc_fpga_parameters *parameters)
{
    return (uint32_t)slc_div_up_u64(parameters->cols, parameters->beat_words);
}

/* Returns the cycles in which the lanes of a stage multiply one row. */
static inline uint32_t slc_fpga_row_passes(const struct slc_fpga_parameters *parameters)
{
    return (uint32_t)slc_div_up_u64(parameters->cols, parameters->lanes);
}

#endif
