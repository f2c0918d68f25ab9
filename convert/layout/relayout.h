/* Adds and drops additional layouts of an existing store, one at a time. Whenever the process ends,
 * the store is valid and has the layouts that its manifest lists. If an interrupted build is
 * requested again, it resumes. */
#ifndef SLC_CONVERT_RELAYOUT_H
#define SLC_CONVERT_RELAYOUT_H

#include "base/error/error.h"
#include "convert/layout/sorted_build.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_relayout_options {
    const struct slc_files *files; /* NULL: operations of the operating system */
    const char *store;             /* X.slc */
    uint64_t memory_bytes;         /* budget of the whole process */
    unsigned workers;
    uint64_t stripe_unit;        /* whole pages; 0: SLC_STRIPE_UNIT */
    bool reads_only;             /* make plans only: do not lock, sync or change the store */
    bool locked;                 /* the caller has locked the store */
    const struct slc_stop *stop; /* may be NULL */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total); /* or NULL */
    void *context; /* argument of progress */
    /* Called for each layout that is built, as in struct slc_sorted_options. */
    void (*planned)(void *context, const struct slc_sorted_plan *plan);
    void *planned_context;
};

/* A store that is locked against changes of its layouts by other runs. */
struct slc_relayout {
    struct slc_relayout_options options;
    struct slc_store store; /* store.manifest is kept up to date */
    int lock;
};

/* Opens the store, and locks it unless options.reads_only or options.locked is set. Ownership:
 * release with slc_relayout_close, which accepts an all-zero struct. Errors: those of
 * slc_store_open_within; SLC_ERR_IO if another run is changing the layouts. */
enum slc_status slc_relayout_open(const struct slc_relayout_options *options,
                                  struct slc_relayout *layouts,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_relayout_close(struct slc_relayout *layouts);

/* Builds the layout of this kind (sorted or fiber) and mode, which the store must not have yet, and
 * lists it in the manifest. Progress is reported in nonzeros. Errors: those of slc_sorted_build and
 * of file operations. After an error, the store is unchanged. */
enum slc_status slc_relayout_add(struct slc_relayout *layouts,
                                 enum slc_layout_kind kind,
                                 unsigned mode,
                                 struct slc_sorted_report *report,
                                 struct slc_error *err) SLC_NODISCARD;

/* Plans what slc_relayout_add would do, without changing the store. Ownership:
 * release with slc_sorted_plan_destroy. */
enum slc_status slc_relayout_plan(const struct slc_relayout *layouts,
                                  enum slc_layout_kind kind,
                                  unsigned mode,
                                  struct slc_sorted_plan *plan,
                                  struct slc_error *err) SLC_NODISCARD;

/* Removes the layout from the manifest and deletes its file, or deletes the files that an
 * interrupted build of the layout left. Errors: SLC_ERR_USAGE if the store has neither the layout
 * nor files that an interrupted build left; those of file operations. */
enum slc_status slc_relayout_drop(struct slc_relayout *layouts,
                                  enum slc_layout_kind kind,
                                  unsigned mode,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
