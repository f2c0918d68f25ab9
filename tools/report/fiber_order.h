/* Opens whole fibers of a mode for a command (engine/product/fiber_order.h), with a note if
 * nonzeros must be sorted. */
#ifndef SLC_TOOLS_FIBER_ORDER_H
#define SLC_TOOLS_FIBER_ORDER_H

#include "engine/product/fiber_order.h"

#include <stdbool.h>
#include <stdint.h>

struct fiber_order_options {
    unsigned mode;         /* counted from 0 */
    uint64_t memory_bytes; /* 0: 80 % of memory */
    unsigned threads;      /* 0: one per processor */
    const char *output;    /* the temporary store is OUTPUT.fibers.tmp */
    const char *temp_dir;  /* folder of temporary files; NULL: next to the temporary store */
    bool quiet;            /* print no note about sorting */
};

/* Opens the layout. While a temporary store is built, a signal removes it and ends the process.
 * The caller must call fiber_order_close, which accepts a zeroed struct. Errors: as
 * slc_fiber_order_open. */
enum slc_status fiber_order_open(struct slc_fiber_order *order,
                                 const struct slc_store *store,
                                 const struct fiber_order_options *options,
                                 struct slc_error *err) SLC_NODISCARD;

/* Closes the layout and removes the temporary store. Prints a note if removing it fails. */
void fiber_order_close(struct slc_fiber_order *order);

#endif
