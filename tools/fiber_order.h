/*
 * The layout of a store in which the fibers of a mode are whole: one that it has, or that of a
 * temporary store, which is made within the same budget and removed at the end.
 */
#ifndef SLC_TOOLS_FIBER_ORDER_H
#define SLC_TOOLS_FIBER_ORDER_H

#include "engine/layouts.h"
#include "storage/store.h"

#include <stdbool.h>
#include <stdint.h>

struct fiber_order_options {
    unsigned mode;         /* from 0 */
    uint64_t memory_bytes; /* 0: 80 % of memory */
    unsigned threads;      /* 0: one per processor */
    const char *temporary; /* path of the temporary store; one that is there is replaced */
    const char *temp_dir;  /* for what does not fit in memory; NULL: beside it */
    bool quiet;            /* says nothing of sorting */
};

struct fiber_order {
    const struct slc_store *store; /* the one that was given */
    struct slc_reader *reader;     /* of the layout */
    struct slc_store made;         /* the temporary one; all zero: none. Its modes are numbered as
                                      the input's are */
    char *path;                    /* of it; NULL: none */
};

/*
 * Opens the layout. While a temporary store is made, a signal removes it and ends the process.
 * Owns: fiber_order_close, which takes an all-zero struct. Errors: SLC_ERR_UNSUPPORTED for a mode
 * that is too long for a temporary store, naming what to do; those of making and opening it.
 */
enum slc_status fiber_order_open(struct fiber_order *order,
                                 const struct slc_store *store,
                                 const struct fiber_order_options *options,
                                 struct slc_error *err) SLC_NODISCARD;

/* Closes the layout and removes the temporary store. */
void fiber_order_close(struct fiber_order *order);

#endif
