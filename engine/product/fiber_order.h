/* Opens a layout that keeps the fibers of a mode whole: a layout of the store or, if the store has
 * none, of a temporary store. The temporary store is sorted from the store within a budget and
 * removed at the end. */
#ifndef SLC_ENGINE_FIBER_ORDER_H
#define SLC_ENGINE_FIBER_ORDER_H

#include "base/block.h"
#include "base/error/stop.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_fiber_order_options {
    unsigned mode;         /* mode whose fibers are whole, 0-based */
    uint64_t memory_bytes; /* 0: 80 % of slc_memory_total() */
    unsigned threads;      /* 0: one per processor */
    /* A temporary store is created at OUTPUT.fibers.tmp. Anything that a killed run left there is
     * replaced. */
    const char *output;
    const char *temp_folder; /* folder for spilled data; NULL: the folder of the temporary store */
    /* A stop request ends sorting with SLC_ERR_INTERRUPTED; may be NULL. */
    const struct slc_stop *stop;
    /* Called before a temporary store is created at `path`; may be NULL. */
    void (*sorting)(void *context, const char *path);
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_fiber_order {
    const struct slc_store *store; /* the caller's store */
    struct slc_reader *reader;     /* reader of the layout */
    /* The temporary store; all zero if there is none. Its indices are those of the input. */
    struct slc_store made;
    char *path; /* path of the temporary store; NULL if there is none */
    int lock;   /* lock of the temporary store's folder, so that no other run replaces it */
};

/* Opens the layout. Ownership: release with slc_fiber_order_close, which accepts an all-zero
 * struct. Errors: those of creating and opening the temporary store; SLC_ERR_UNSUPPORTED if the
 * mode is too large for a temporary store (the message asks to add the layout to the store first).
 * After an error no temporary store is left. */
enum slc_status slc_fiber_order_open(struct slc_fiber_order *order,
                                     const struct slc_store *store,
                                     const struct slc_fiber_order_options *options,
                                     struct slc_error *err) SLC_NODISCARD;

/* Checks that a temporary store for the mode is possible. Errors: SLC_ERR_UNSUPPORTED; the message
 * asks to add the layout to the store first. */
enum slc_status slc_fiber_order_check(const struct slc_store *store,
                                      unsigned mode,
                                      struct slc_error *err) SLC_NODISCARD;

/* Removes a temporary store at `path`, finished or not. Errors: SLC_ERR_IO if a file could not be
 * removed. */
enum slc_status slc_fiber_order_remove(const struct slc_files *files,
                                       const char *path,
                                       struct slc_error *err) SLC_NODISCARD;

/* Closes the layout and removes the temporary store. Errors: those of slc_fiber_order_remove. */
enum slc_status slc_fiber_order_close(struct slc_fiber_order *order,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
