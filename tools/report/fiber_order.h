/* Whole fibers of a mode for a command (engine/product/fiber_order.h), which says where it has to
 * sort. */
#ifndef SLC_TOOLS_FIBER_ORDER_H
#define SLC_TOOLS_FIBER_ORDER_H

#include "engine/product/fiber_order.h"

#include <stdbool.h>
#include <stdint.h>

struct fiber_order_options {
    unsigned mode;         /* from 0 */
    uint64_t memory_bytes; /* 0: 80 % of memory */
    unsigned threads;      /* 0: one per processor */
    const char *output;    /* a temporary store is OUTPUT.fibers.tmp */
    const char *temp_dir;  /* for what does not fit in memory; NULL: beside it */
    bool quiet;            /* says nothing of sorting */
};

/*
 * Opens the layout. While a temporary store is made, a signal removes it and ends the process.
 * Owns: fiber_order_close, which takes an all-zero struct. Errors: as slc_fiber_order_open.
 */
enum slc_status fiber_order_open(struct slc_fiber_order *order,
                                 const struct slc_store *store,
                                 const struct fiber_order_options *options,
                                 struct slc_error *err) SLC_NODISCARD;

/* Closes the layout and removes the temporary store; a note says so where that fails. */
void fiber_order_close(struct slc_fiber_order *order);

#endif
