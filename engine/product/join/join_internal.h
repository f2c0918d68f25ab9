/* State that the files of slc_join (engine/product/join/join.h) share. join.c checks the parts,
 * join_stores.c joins stores, and join_arrays.c joins .npy files. */
#ifndef SLC_ENGINE_JOIN_INTERNAL_H
#define SLC_ENGINE_JOIN_INTERNAL_H

#include "engine/product/join/join.h"
#include "engine/product/part_record.h"

struct slc_joining {
    const struct slc_join_options *options;
    struct slc_join_report *report;
    struct slc_part_record record; /* of one part; all parts have the same lines up to "parts" */
    unsigned count;
    const char **paths;     /* in the order of the parts */
    struct slc_part *parts; /* numbers and keys, in the same order */
};

/* Joins stores, folders with two .npy files, or .npy files. */
enum slc_status slc_join_stores(struct slc_joining *joining, struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_join_fibers(struct slc_joining *joining, struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_join_rows(struct slc_joining *joining, struct slc_error *err) SLC_NODISCARD;

/* Sets *value to the number in a line of the record, at most `most`. Errors: SLC_ERR_FORMAT. */
enum slc_status slc_join_number(const struct slc_joining *joining,
                                const char *name,
                                uint64_t most,
                                uint64_t *value,
                                struct slc_error *err) SLC_NODISCARD;

#endif
