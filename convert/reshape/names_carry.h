/* Copies names of indices and titles of modes to a store that is made from another store. */
#ifndef SLC_CONVERT_NAMES_CARRY_H
#define SLC_CONVERT_NAMES_CARRY_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "convert/reshape/ranges.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_names_carry {
    const struct slc_files *files;
    const char *store;           /* folder of the old store; borrowed */
    const struct slc_stop *stop; /* stops with SLC_ERR_INTERRUPTED; may be NULL */
    unsigned names_count;
    struct slc_store_names names[SLC_MAX_ORDER];
    char titles[SLC_MAX_ORDER][SLC_TITLE_BYTES];
    unsigned modes[SLC_MAX_ORDER]; /* mode k of the new store is mode modes[k] of the old store */
    /* One per mode of the old store, borrowed: the indices that are kept and renumbered. NULL, or
     * no range for a mode: all indices are kept and not renumbered. */
    const struct slc_ranges *ranges;
};

/* Initializes `carry` to copy all names and titles of `store`, which has this manifest,
 * unchanged. */
void slc_names_carry_init(struct slc_names_carry *carry,
                          const struct slc_files *files,
                          const char *store,
                          const struct slc_manifest *manifest);

/* Return the memory of slc_names_carry in bytes: the most for any names, and the memory for names
 * of average length. */
uint64_t slc_names_carry_bytes(const struct slc_names_carry *carry);
uint64_t slc_names_carry_touched(const struct slc_names_carry *carry);

/* Returns the estimated bytes of names, read and written, for a new store with these mode sizes. */
uint64_t
slc_names_carry_length(const struct slc_names_carry *carry, unsigned order, const uint64_t *dims);

/* Returns the names of a mode of the old store, borrowed; NULL if the mode has no names. */
const struct slc_store_names *slc_names_carry_find(const struct slc_names_carry *carry,
                                                   unsigned mode);

/* Like slc_names_carry, but copies only the names of mode `mode` of the new store. */
enum slc_status slc_names_carry_mode(const struct slc_names_carry *carry,
                                     unsigned mode,
                                     const char *folder,
                                     struct slc_manifest *manifest,
                                     struct slc_error *err) SLC_NODISCARD;

/* Writes the names to the new store and lists them in the manifest. Serves as the builder's
 * `attach` callback; `context` is a struct slc_names_carry. Errors: those of slc_names_open, of
 * slc_names_get, and of writing files. */
enum slc_status slc_names_carry(void *context,
                                const char *folder,
                                struct slc_manifest *manifest,
                                struct slc_error *err) SLC_NODISCARD;

#endif
