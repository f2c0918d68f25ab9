/* Pushes the nonzeros of a store to a builder, with the indices of the original input if modes are
 * relabelled. */
#ifndef SLC_CONVERT_STORE_PUSH_H
#define SLC_CONVERT_STORE_PUSH_H

#include "convert/forecast/store_trial.h"
#include "storage/manifest/labels.h"
#include "storage/manifest/store.h"
#include "storage/scan/store_scan.h"

#include <stdint.h>

struct slc_store_push {
    struct slc_store store;
    const struct slc_layout_info *info;
    /* Maps indices of the store to indices of the input; empty if they are equal. */
    struct slc_labels labels[SLC_MAX_ORDER];
};

/* Ownership: release with slc_store_push_close, which accepts an all-zero struct. Errors: those of
 * slc_store_open_within. */
enum slc_status slc_store_push_open(struct slc_store_push *push,
                                    const struct slc_files *files,
                                    const char *path,
                                    uint64_t memory_bytes,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_store_push_close(struct slc_store_push *push);
/* Frees the index and the labels, but leaves the files of the store open. */
void slc_store_push_free(struct slc_store_push *push);

/* Returns the bytes of the open store, its labels, and a scan by this number of workers. */
uint64_t slc_store_push_bytes(const struct slc_store_push *push, unsigned workers);

/* Reads the labels and passes all nonzeros to `fn` with the indices of the input, like
 * slc_store_scan. */
enum slc_status slc_store_push_scan(struct slc_store_push *push,
                                    unsigned workers,
                                    const struct slc_stop *stop,
                                    slc_scan_fn *fn,
                                    void *context,
                                    struct slc_error *err) SLC_NODISCARD;

/* Reads the labels and runs a trial (store_trial.h) whose sample has the indices of the input.
 * Errors: those of slc_store_labels and slc_store_trial. */
enum slc_status slc_store_push_try(struct slc_store_push *push,
                                   double seconds,
                                   struct slc_store_sample *sample,
                                   struct slc_store_trial *trial,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
