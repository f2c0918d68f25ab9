#include "convert/ingest/names/names_append.h"

#include "storage/manifest/names.h"

#include <string.h>

/* The names of a mode by its map, beside those that the store has. */
static enum slc_status read_map(const struct slc_names_append *append,
                                unsigned mode,
                                const char *folder,
                                struct slc_manifest *manifest,
                                struct slc_error *err)
{
    const struct slc_names_carry *old = &append->old;
    const struct slc_store_names *listed = slc_names_carry_find(old, mode);
    struct slc_names *names = NULL;
    enum slc_status status =
        listed != NULL ? slc_names_open(old->files, old->store, listed, &names, err) : SLC_OK;

    SLC_THEN(status, slc_name_maps_attach_mode(append->maps, mode, names, folder, manifest, err));
    slc_names_close(names);
    SLC_TRY(status);
    if (manifest->titles[mode][0] == '\0') {
        memcpy(manifest->titles[mode], old->titles[mode], sizeof manifest->titles[mode]);
    }
    return SLC_OK;
}

enum slc_status slc_names_append(void *context,
                                 const char *folder,
                                 struct slc_manifest *manifest,
                                 struct slc_error *err)
{
    const struct slc_names_append *append = context;

    for (unsigned mode = 0; mode < manifest->order; mode++) {
        SLC_TRY(append->maps != NULL && append->maps->path[mode] != NULL
                    ? read_map(append, mode, folder, manifest, err)
                    : slc_names_carry_mode(&append->old, mode, folder, manifest, err));
    }
    return SLC_OK;
}
