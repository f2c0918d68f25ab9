/* Finds the index of a name in a mode. The table holds a hash for each name; the names themselves
 * stay in their file and are read to check a match. */
#ifndef SLC_STORAGE_NAME_INDEX_H
#define SLC_STORAGE_NAME_INDEX_H

#include "base/error/error.h"
#include "base/memory/memory.h"
#include "storage/manifest/names.h"

#include <stdint.h>

struct slc_name_index {
    struct slc_names *names; /* borrowed */
    uint64_t mask;           /* number of slots - 1 */
    struct slc_buffer memory;
};

/* Returns the bytes that slc_name_index_create maps for `count` names. */
uint64_t slc_name_index_memory_bytes(uint64_t count);

/* Reads the names of indices 0 to `count` - 1, or of all indices if there are fewer names.
 * `names` must stay open. Ownership: release with slc_name_index_destroy, which accepts an all-zero
 * struct. Errors: those of slc_names_get; SLC_ERR_MEMORY. */
enum slc_status slc_name_index_create(struct slc_name_index *index,
                                      struct slc_names *names,
                                      uint64_t count,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_name_index_destroy(struct slc_name_index *index);

/* Sets *found to the smallest index with this name, or to UINT64_MAX if there is none. Errors:
 * those of slc_names_get. */
enum slc_status slc_name_index_find(const struct slc_name_index *index,
                                    const char *name,
                                    size_t bytes,
                                    uint64_t *found,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
