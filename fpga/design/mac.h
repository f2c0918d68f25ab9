/* A stage of MAC lanes: multiplies rows and adds the products, for each fiber (slice) in order.
 *
 * A stage gets a stream of rows with one multiplicand each, and the ends of the fibers: fiber f
 * covers the rows from the end of fiber f - 1 to the end of fiber f. In the first stage of a
 * design, the multiplicand is the value of a nonzero. In the second stage of MTTKRP it is a row of
 * sums of the first stage, and the stage adds up the fibers of a slice.
 *
 * Order: each sum starts at +0 and adds the products in the order of the stream, each rounded to
 * f32, then the sum rounded to f32, as Listings 2 and 4 of [XPLAT] do. So the bits do not depend on
 * the parameters. Without a nonzero the sum is +0.
 *
 * Timing: the lanes multiply `lanes` columns per cycle, so a row needs several passes, which follow
 * one another. The row waits for the sums of the row before it, if both belong to the same fiber,
 * so rows of a fiber follow each other after max(passes, adder latency) cycles. The first row of a
 * fiber does not wait; an empty fiber costs the passes of one row. */
#ifndef SLC_FPGA_MAC_H
#define SLC_FPGA_MAC_H

#include "fpga/design/fifo.h"
#include "fpga/parameters.h"

#include <stdint.h>

struct slc_fpga_mac {
    struct slc_fpga_fifo *ends;          /* ends of fibers (slices) */
    struct slc_fpga_fifo *multiplicands; /* items of 1 word, or of `cols` words */
    struct slc_fpga_fifo *rows;          /* items are beats */
    struct slc_fpga_fifo *sums;          /* output: items of `cols` words */
    uint64_t first, next;                /* rows of the stream: first of the fiber, next */
    uint32_t pass;                       /* next pass over the row */
    uint64_t ready; /* cycle in which the sums of the row before may be continued */
    float *sum;     /* cols */
};

/* Allocates the registers of a stage; the caller sets the FIFOs. The caller must call
 * slc_fpga_mac_destroy, also after an error; it accepts an all-zero struct. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_fpga_mac_create(struct slc_fpga_mac *mac,
                                    const struct slc_fpga_parameters *parameters,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_fpga_mac_destroy(struct slc_fpga_mac *mac);

/* Simulates cycle `now`: begins a row if its operands have arrived, or continues a row. */
void slc_fpga_mac_step(struct slc_fpga_mac *mac,
                       const struct slc_fpga_parameters *parameters,
                       uint64_t now);

#endif
