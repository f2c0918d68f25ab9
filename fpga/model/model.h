/* Model of the FPGA designs of fpga/design: the resources that a design needs, whether it fits a
 * device, and its cycles on a tensor, from a few counts of the tensor. The model does not run the
 * design; tests compare its cycles with those that fpga/design counts.
 *
 * Sources: [XPLAT] sections 4 and 5.3 for the designs, the DSPs, the operations (Table 3) and the
 * device. Nothing was placed, routed or run on a device: the clock is an assumption, and a
 * request of a random row is assumed to cost the memory no more than its beats, so the model is an
 * upper bound. */
#ifndef SLC_FPGA_MODEL_H
#define SLC_FPGA_MODEL_H

#include "fpga/parameters.h"

#include <stdint.h>

struct slc_fpga_device {
    uint32_t dsps;         /* each multiplies and adds once per cycle */
    uint32_t ram_blocks;   /* of 512 words of 32 bits */
    uint32_t shell_blocks; /* RAM blocks of what surrounds a design: memory controllers, host */
    double usable_ram;     /* share of the RAM blocks that designs and the shell can use */
    double clock_hz;
};

/* The device of [XPLAT] section 5: an Arria 10 GX 1150. Its load units move at most 32 columns per
 * cycle (section 5.3). Its DSPs multiply and accumulate in 4 cycles, and add to the same sum in
 * every cycle ([IntelMac]; unlike the designs, they flush subnormal numbers to 0). The latency of
 * the memory is an assumption; it only matters at the start and the end. */
extern const struct slc_fpga_device slc_fpga_arria10;
enum {
    SLC_FPGA_ARRIA10_BEAT_WORDS = 32,
    SLC_FPGA_ARRIA10_MULTIPLY_LATENCY = 3,
    SLC_FPGA_ARRIA10_ADD_LATENCY = 1,
    SLC_FPGA_ARRIA10_MEMORY_LATENCY = 100
};

/* The tensor and matrix that a design multiplies. TTM uses no slices. */
struct slc_fpga_work {
    uint64_t slices, empty_slices; /* the first number includes the second */
    uint64_t fibers, empty_fibers;
    uint64_t nnz;
    uint64_t matrix_rows; /* of the matrix that meets the nonzeros */
};

struct slc_fpga_resources {
    uint64_t dsps, ram_blocks;
};

/* What limits the throughput of a design. */
enum slc_fpga_limit { SLC_FPGA_LIMIT_PORT, SLC_FPGA_LIMIT_FIRST_STAGE, SLC_FPGA_LIMIT_LAST_STAGE };

struct slc_fpga_estimate {
    uint64_t cycles; /* from the first request to the last write */
    enum slc_fpga_limit limit;
    uint64_t beats; /* that the memory port moves */
    uint64_t flops; /* multiplications and additions, [XPLAT] Table 3 */
};

/* Returns the DSPs and RAM blocks of a design, including the shell. */
struct slc_fpga_resources slc_fpga_model_resources(enum slc_fpga_design design,
                                                   const struct slc_fpga_parameters *parameters,
                                                   const struct slc_fpga_device *device,
                                                   uint64_t matrix_rows);

/* Returns NULL if a device has the resources, else the name of the one that is missing: "DSPs" or
 * "RAM blocks". */
const char *slc_fpga_model_missing(const struct slc_fpga_resources *resources,
                                   const struct slc_fpga_device *device);

/* Returns the cycles and operations of a design. Needs: memory_latency + beat_words is at most
 * SLC_FPGA_FIFO_WORDS, and multiply_latency + add_latency is well below SLC_FPGA_FIFO_ROWS, so that
 * the FIFOs hide the latencies. */
struct slc_fpga_estimate slc_fpga_model_estimate(enum slc_fpga_design design,
                                                 const struct slc_fpga_parameters *parameters,
                                                 const struct slc_fpga_work *work);

#endif
