/* Text files with the names of a mode's indices, one name per line, plain or compressed. FROSTT
 * distributes such files with its tensors (mode-1-users.map). */
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
    char *path[SLC_MAX_ORDER]; /* NULL: no names for that mode */
    char title[SLC_MAX_ORDER][SLC_TITLE_BYTES];
    /* Memory for reading the file that needs the most and for writing its names. */
    uint64_t memory_bytes;
    uint64_t identity; /* hash of all files and their versions */
};

/*
 * Adds the maps of `where` to `maps`, which is all-zero before the first call. `where` is a folder
 * with files mode-K-TITLE.map or mode-K.map (.gz, .xz, .. may follow), or K=FILE for mode K,
 * counted from 1. `files` may be NULL. Owns: slc_name_maps_destroy, also after an error. Errors:
 * SLC_ERR_USAGE if a mode has two maps or a folder has none; those of slc_input_open.
 */
enum slc_status slc_name_maps_add(struct slc_name_maps *maps,
                                  const struct slc_files *files,
                                  const char *where,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_name_maps_destroy(struct slc_name_maps *maps);

/* Errors: SLC_ERR_USAGE if there are names for a mode that a tensor of this order does not have. */
enum slc_status slc_name_maps_check_order(const struct slc_name_maps *maps,
                                          unsigned order,
                                          struct slc_error *err) SLC_NODISCARD;

/* Like slc_name_maps_attach, for one mode that has a map. If `old` is not NULL, the map must agree
 * with the names in `old`. Errors: SLC_ERR_INPUT if the map has another name for an index of `old`.
 */
enum slc_status slc_name_maps_attach_mode(const struct slc_name_maps *maps,
                                          unsigned mode,
                                          struct slc_names *old,
                                          const char *folder,
                                          struct slc_manifest *manifest,
                                          struct slc_error *err) SLC_NODISCARD;

/*
 * Reads all maps and writes their names to the store being built in `folder`: `attach` of struct
 * slc_builder_options, with `maps` as its context. Line i is the name of index i - 1, without a
 * final carriage return. Errors: SLC_ERR_INPUT with file and line if the number of lines differs
 * from the mode size or a line is not a valid name (storage/manifest/names.h); errors of file
 * operations.
 */
enum slc_status slc_name_maps_attach(void *maps,
                                     const char *folder,
                                     struct slc_manifest *manifest,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
