/* Names of indices and titles of modes, of a store that is made of another one. */
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
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    unsigned names_count;
    struct slc_store_names names[SLC_MAX_ORDER];
    char titles[SLC_MAX_ORDER][SLC_TITLE_BYTES];
    unsigned modes[SLC_MAX_ORDER];   /* mode k of the new store is mode modes[k] of that one */
    const struct slc_ranges *ranges; /* by mode of that one: those that are left, numbered anew;
                                        NULL, or none of a mode: all, as they are. Borrowed */
};

/* All names of the store in the folder, where they are. */
void slc_names_carry_init(struct slc_names_carry *carry,
                          const struct slc_files *files,
                          const char *store,
                          const struct slc_manifest *manifest);

/* Bytes that slc_names_carry takes at most, and those that names as they are on average take. */
uint64_t slc_names_carry_bytes(const struct slc_names_carry *carry);
uint64_t slc_names_carry_touched(const struct slc_names_carry *carry);

/* About how many bytes of names go to a store with modes of these lengths, and are read for it. */
uint64_t
slc_names_carry_length(const struct slc_names_carry *carry, unsigned order, const uint64_t *dims);

/* The names that the store has of a mode of its own; NULL: none. Borrowed. */
const struct slc_store_names *slc_names_carry_find(const struct slc_names_carry *carry,
                                                   unsigned mode);

/* Title and names of mode `mode` of the new store, as the following does of all. */
enum slc_status slc_names_carry_mode(const struct slc_names_carry *carry,
                                     unsigned mode,
                                     const char *folder,
                                     struct slc_manifest *manifest,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * The builder's `attach`, with a struct slc_names_carry as its context: writes the names to the new
 * store, and lists them. Errors: those of slc_names_open, slc_names_get and of writing.
 */
enum slc_status slc_names_carry(void *context,
                                const char *folder,
                                struct slc_manifest *manifest,
                                struct slc_error *err) SLC_NODISCARD;

#endif
