/*
 * A store whose nonzeros go to a builder: what that takes beside the builder, and indices as the
 * input had them where modes are relabelled.
 */
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
    struct slc_labels labels[SLC_MAX_ORDER]; /* back to the input's; empty: it has those */
};

/* Owns: slc_store_push_close, which takes an all-zero struct. Errors: slc_store_open_within. */
enum slc_status slc_store_push_open(struct slc_store_push *push,
                                    const struct slc_files *files,
                                    const char *path,
                                    uint64_t memory_bytes,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_store_push_close(struct slc_store_push *push);

/* What the open store, its labels and a scan by so many workers take. */
uint64_t slc_store_push_bytes(const struct slc_store_push *push, unsigned workers);

/*
 * Reads labels, and gives all nonzeros to `fn` under the indices of the input, as slc_store_scan.
 */
enum slc_status slc_store_push_scan(struct slc_store_push *push,
                                    unsigned workers,
                                    const struct slc_stop *stop,
                                    slc_scan_fn *fn,
                                    void *context,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Reads labels and makes a trial (store_trial.h) whose sample has the indices of the input. Errors:
 * those of both.
 */
enum slc_status slc_store_push_try(struct slc_store_push *push,
                                   double seconds,
                                   struct slc_store_sample *sample,
                                   struct slc_store_trial *trial,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
