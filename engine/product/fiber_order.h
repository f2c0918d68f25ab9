/*
 * A layout that keeps the fibers of a mode whole: one of the store's, or that of a temporary store,
 * which is sorted from it within a budget and removed at the end.
 */
#ifndef SLC_ENGINE_FIBER_ORDER_H
#define SLC_ENGINE_FIBER_ORDER_H

#include "base/block.h"
#include "base/error/stop.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_fiber_order_options {
    unsigned mode;         /* from 0 */
    uint64_t memory_bytes; /* 0: 80 % of slc_memory_total() */
    unsigned threads;      /* 0: one per processor */
    /* A temporary store is OUTPUT.fibers.tmp, a name that user stores do not have: an existing one
     * is replaced. */
    const char *output;
    const char *temp_folder;     /* for spilled data; NULL: the folder of the temporary store */
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    /* May be NULL. Called before a temporary store is created at `path`. */
    void (*sorting)(void *context, const char *path);
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_fiber_order {
    const struct slc_store *store; /* the caller's store */
    struct slc_reader *reader;     /* of the layout */
    /* The temporary store; all zero: none. Its modes are in the order of the input. */
    struct slc_store made;
    char *path; /* its path; NULL: none */
    int lock;   /* of its folder, keeps other runs from replacing it */
};

/*
 * Opens the layout. Owns: release with slc_fiber_order_close, which accepts an all-zero struct.
 * Errors: SLC_ERR_UNSUPPORTED for a mode that is too long for a temporary store, with the remedy;
 * those of creating and opening it; nothing of it is left then.
 */
enum slc_status slc_fiber_order_open(struct slc_fiber_order *order,
                                     const struct slc_store *store,
                                     const struct slc_fiber_order_options *options,
                                     struct slc_error *err) SLC_NODISCARD;

/* Checks that a temporary store can be created for the mode. Errors: SLC_ERR_UNSUPPORTED, with the
 * remedy. */
enum slc_status slc_fiber_order_check(const struct slc_store *store,
                                      unsigned mode,
                                      struct slc_error *err) SLC_NODISCARD;

/* Removes a temporary store, finished or not. Errors: SLC_ERR_IO if some of it is left. */
enum slc_status slc_fiber_order_remove(const struct slc_files *files,
                                       const char *path,
                                       struct slc_error *err) SLC_NODISCARD;

/* Closes the layout and removes the temporary store. Errors: as slc_fiber_order_remove. */
enum slc_status slc_fiber_order_close(struct slc_fiber_order *order,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
