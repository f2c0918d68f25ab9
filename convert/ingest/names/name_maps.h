/* Reads maps: text files with the names of the indices of a mode, one name per line, plain or
 * compressed. FROSTT distributes such files with its tensors (mode-1-users.map). */
#ifndef SLC_CONVERT_NAME_MAPS_H
#define SLC_CONVERT_NAME_MAPS_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct slc_names;

struct slc_name_maps {
    const struct slc_files *files;
    char *path[SLC_MAX_ORDER]; /* path of the map of each mode; NULL if the mode has no map */
    char title[SLC_MAX_ORDER][SLC_TITLE_BYTES];
    /* Memory for reading a map and writing its names; the maximum over all maps. */
    uint64_t memory_bytes;
    uint64_t identity; /* hash of the identities of all maps */
};

/* Adds the maps of `where` to `maps`, which is all-zero before the first call. `where` is a folder
 * with files mode-K-TITLE.map or mode-K.map (.gz, .xz and so on may follow), or K=FILE for mode K;
 * K starts at 1. `files` may be NULL. Ownership: release with slc_name_maps_destroy, also after an
 * error. Errors: SLC_ERR_USAGE if a mode has two maps or a folder has no map; those of
 * slc_input_open. */
enum slc_status slc_name_maps_add(struct slc_name_maps *maps,
                                  const struct slc_files *files,
                                  const char *where,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_name_maps_destroy(struct slc_name_maps *maps);

/* Checks that every mode with a map exists in a tensor of order `order`. Errors: SLC_ERR_USAGE. */
enum slc_status slc_name_maps_check_order(const struct slc_name_maps *maps,
                                          unsigned order,
                                          struct slc_error *err) SLC_NODISCARD;

/* Does the same as slc_name_maps_attach for one mode that has a map. If `old` is not NULL, the map
 * must agree with the names in `old`. Errors: SLC_ERR_INPUT if the map has another name for an
 * index of `old`. */
enum slc_status slc_name_maps_attach_mode(const struct slc_name_maps *maps,
                                          unsigned mode,
                                          struct slc_names *old,
                                          const char *folder,
                                          struct slc_manifest *manifest,
                                          struct slc_error *err) SLC_NODISCARD;

/* Reads all maps and writes their names to the store that is being built in `folder`. This is the
 * callback `attach` of struct slc_builder_options, with `maps` as context. Line i (from 1) is the
 * name of index i - 1, without a carriage return at its end. Errors: SLC_ERR_INPUT with file and
 * line if the number of lines differs from the mode size or a line is not a valid name
 * (storage/manifest/names.h); errors of file operations. */
enum slc_status slc_name_maps_attach(void *maps,
                                     const char *folder,
                                     struct slc_manifest *manifest,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
