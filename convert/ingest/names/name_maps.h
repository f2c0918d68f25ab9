/*
 * Text files with the names of a mode's indices, a name a line, as FROSTT has them beside its
 * tensors: mode-1-users.map. Plain or compressed.
 */
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
    char *path[SLC_MAX_ORDER]; /* NULL: none for that mode */
    char title[SLC_MAX_ORDER][SLC_TITLE_BYTES];
    uint64_t memory_bytes; /* of reading the one that takes most, and writing its names */
    uint64_t identity;     /* of all of them, whatever was written to them since makes another */
};

/*
 * Adds what `where` says to all-zero maps, or to those of an earlier call: a folder, in which files
 * mode-K-TITLE.map or mode-K.map are looked for (.gz, .xz, .. may follow), or K=FILE for mode K
 * from 1. `files` may be NULL. Owns: slc_name_maps_destroy, also after an error. Errors:
 * SLC_ERR_USAGE where a mode has two, or a folder none; those of slc_input_open.
 */
enum slc_status slc_name_maps_add(struct slc_name_maps *maps,
                                  const struct slc_files *files,
                                  const char *where,
                                  struct slc_error *err) SLC_NODISCARD;
void slc_name_maps_destroy(struct slc_name_maps *maps);

/* Errors: SLC_ERR_USAGE where there are names for a mode that a tensor of this order has not. */
enum slc_status slc_name_maps_check_order(const struct slc_name_maps *maps,
                                          unsigned order,
                                          struct slc_error *err) SLC_NODISCARD;

/*
 * The same of one mode that has a map; where `old` is not NULL the names that it has are those of
 * its indices. Errors: SLC_ERR_INPUT where the map has another name for one of these.
 */
enum slc_status slc_name_maps_attach_mode(const struct slc_name_maps *maps,
                                          unsigned mode,
                                          struct slc_names *old,
                                          const char *folder,
                                          struct slc_manifest *manifest,
                                          struct slc_error *err) SLC_NODISCARD;

/*
 * Reads all maps and puts their names into the store that is being built in `folder`: `attach` of
 * struct slc_builder_options, `maps` its context. Line i is the name of index i - 1; a carriage
 * return before its end is no part of it. Errors: SLC_ERR_INPUT with file and line where there
 * are fewer lines than indices, or more, or a line is no name (storage/manifest/names.h); those of
 * files.
 */
enum slc_status slc_name_maps_attach(void *maps,
                                     const char *folder,
                                     struct slc_manifest *manifest,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
