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
    const char *store;           /* the folder with the names; borrowed */
    const struct slc_stop *stop; /* stops with SLC_ERR_INTERRUPTED; may be NULL */
    unsigned names_count;
    struct slc_store_names names[SLC_MAX_ORDER];
    char titles[SLC_MAX_ORDER][SLC_TITLE_BYTES];
    unsigned modes[SLC_MAX_ORDER]; /* mode k of the new store is mode modes[k] of the old store */
    /* Per mode of the old store: the indices that are kept and renumbered; NULL or an empty
     * range: all indices, not renumbered. Borrowed. */
    const struct slc_ranges *ranges;
};

/* Initializes `carry` to copy all names of the store in the folder unchanged. */
void slc_names_carry_init(struct slc_names_carry *carry,
                          const struct slc_files *files,
                          const char *store,
                          const struct slc_manifest *manifest);

/* Largest memory of slc_names_carry, and its memory for names of average length. */
uint64_t slc_names_carry_bytes(const struct slc_names_carry *carry);
uint64_t slc_names_carry_touched(const struct slc_names_carry *carry);

/* Estimated bytes of names read for, and written to, a store with these mode sizes. */
uint64_t
slc_names_carry_length(const struct slc_names_carry *carry, unsigned order, const uint64_t *dims);

/* The names of a mode of the old store; NULL: none. Borrowed. */
const struct slc_store_names *slc_names_carry_find(const struct slc_names_carry *carry,
                                                   unsigned mode);

/* Like slc_names_carry, for mode `mode` of the new store only. */
enum slc_status slc_names_carry_mode(const struct slc_names_carry *carry,
                                     unsigned mode,
                                     const char *folder,
                                     struct slc_manifest *manifest,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * The builder's `attach`, with a struct slc_names_carry as its context: writes the names to the new
 * store and lists them in the manifest. Errors: those of slc_names_open, slc_names_get and of
 * writing.
 */
enum slc_status slc_names_carry(void *context,
                                const char *folder,
                                struct slc_manifest *manifest,
                                struct slc_error *err) SLC_NODISCARD;

#endif
