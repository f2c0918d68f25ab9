/*
 * Names of indices of a store that grows: those that it has, and of modes with a map those of all
 * indices as they are then.
 */
#ifndef SLC_CONVERT_NAMES_APPEND_H
#define SLC_CONVERT_NAMES_APPEND_H

#include "convert/ingest/names/name_maps.h"
#include "convert/reshape/names_carry.h"

struct slc_names_append {
    struct slc_names_carry old;       /* of all modes, in their order */
    const struct slc_name_maps *maps; /* NULL: none has one. Borrowed */
};

/*
 * The builder's `attach`, with a struct slc_names_append as its context. A map has a line for every
 * index of its mode; a name that the store has stays. A mode is called what its map says, or as
 * before. Errors: SLC_ERR_INPUT with file and line where the map has another name for an index than
 * the store; those of slc_names_carry and slc_name_maps_attach.
 */
enum slc_status slc_names_append(void *context,
                                 const char *folder,
                                 struct slc_manifest *manifest,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
