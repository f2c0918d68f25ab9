/*
 * Further layouts of an existing store, added and dropped one at a time. Whatever ends the process,
 * and whenever, the store is valid with the layouts its manifest lists; a build that was
 * interrupted goes on when it is asked for again.
 */
#ifndef SLC_CONVERT_RELAYOUT_H
#define SLC_CONVERT_RELAYOUT_H

#include "base/error/error.h"
#include "convert/layout/sorted_build.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_relayout_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *store;             /* X.slc */
    uint64_t memory_bytes;         /* everything the process holds */
    unsigned workers;
    uint64_t stripe_unit;        /* whole pages; 0: SLC_STRIPE_UNIT */
    bool reads_only;             /* for plans alone: nothing is locked, synced or changed */
    bool locked;                 /* the caller has the store locked */
    const struct slc_stop *stop; /* may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total); /* or NULL */
    void *context; /* of progress */
    /* As slc_sorted_options has them: of each layout that is built. */
    void (*planned)(void *context, const struct slc_sorted_plan *plan);
    void *planned_context;
};

/* A store whose layouts nobody else changes meanwhile. */
struct slc_relayout {
    struct slc_relayout_options options;
    struct slc_store store; /* its manifest is kept up to date */
    int lock;
};

/*
 * Opens the store, and locks it unless options.reads_only or options.locked. Owns:
 * slc_relayout_close, which takes an all-zero struct. Errors: those of slc_store_open_within;
 * SLC_ERR_IO where another run changes the layouts.
 */
enum slc_status slc_relayout_open(const struct slc_relayout_options *options,
                                  struct slc_relayout *layouts,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_relayout_close(struct slc_relayout *layouts);

/*
 * Builds the layout of that kind (sorted or fiber) and mode, which the store does not have, and
 * lists it in the manifest. Progress is in nonzeros. Errors: those of slc_sorted_build, and of
 * files; the store is then as it was.
 */
enum slc_status slc_relayout_add(struct slc_relayout *layouts,
                                 enum slc_layout_kind kind,
                                 unsigned mode,
                                 struct slc_sorted_report *report,
                                 struct slc_error *err) SLC_NODISCARD;

/* What that would do; slc_sorted_plan_destroy. */
enum slc_status slc_relayout_plan(const struct slc_relayout *layouts,
                                  enum slc_layout_kind kind,
                                  unsigned mode,
                                  struct slc_sorted_plan *plan,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Takes the layout out of the manifest and removes its file, or what an interrupted build of it
 * left. Errors: SLC_ERR_USAGE where there is neither; those of files.
 */
enum slc_status slc_relayout_drop(struct slc_relayout *layouts,
                                  enum slc_layout_kind kind,
                                  unsigned mode,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
