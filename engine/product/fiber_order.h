/*
 * The layout of a store in which the fibers of a mode are whole: one that it has, or that of a
 * temporary store, which is sorted from it within a budget and removed at the end.
 */
#ifndef SLC_ENGINE_FIBER_ORDER_H
#define SLC_ENGINE_FIBER_ORDER_H

#include "base/block.h"
#include "base/error/stop.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_fiber_order_options {
    unsigned mode;               /* from 0 */
    uint64_t memory_bytes;       /* 0: 80 % of slc_memory_total() */
    unsigned threads;            /* 0: one per processor */
    const char *output;          /* a temporary store is OUTPUT.fibers.tmp, a name that no store has
                                    that a user would miss: one that is there is replaced */
    const char *temp_folder;     /* for what does not fit in memory; NULL: beside it */
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    /* May be NULL. Called before a temporary store is made at `path`. */
    void (*sorting)(void *context, const char *path);
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_fiber_order {
    const struct slc_store *store; /* the one that was given */
    struct slc_reader *reader;     /* of the layout */
    struct slc_store made;         /* the temporary one; all zero: none. Its modes are numbered as
                                      the input's are */
    char *path;                    /* of it; NULL: none */
    int lock;                      /* of its folder, which keeps others from replacing it */
};

/*
 * Opens the layout. Owns: slc_fiber_order_close, which takes an all-zero struct. Errors:
 * SLC_ERR_UNSUPPORTED for a mode that is too long for a temporary store, naming what to do; those
 * of making and opening it; nothing is left of it then.
 */
enum slc_status slc_fiber_order_open(struct slc_fiber_order *order,
                                     const struct slc_store *store,
                                     const struct slc_fiber_order_options *options,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Whether a temporary store can be made for a mode of that length. Errors: SLC_ERR_UNSUPPORTED,
 * naming what to do.
 */
enum slc_status slc_fiber_order_check(const struct slc_store *store,
                                      unsigned mode,
                                      struct slc_error *err) SLC_NODISCARD;

/* Removes a temporary store, finished or not. Errors: SLC_ERR_IO where some of it is left. */
enum slc_status slc_fiber_order_remove(const struct slc_files *files,
                                       const char *path,
                                       struct slc_error *err) SLC_NODISCARD;

/* Closes the layout and removes the temporary store. Errors: as slc_fiber_order_remove. */
enum slc_status slc_fiber_order_close(struct slc_fiber_order *order,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
