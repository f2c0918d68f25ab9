/* Writes the manifest, the last file of a new store. */
#ifndef SLC_CONVERT_BUILD_MANIFEST_H
#define SLC_CONVERT_BUILD_MANIFEST_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

#include <stdint.h>

struct slc_build_manifest {
    const struct slc_files *files;
    const char *folder; /* contains the block file, blco.blk */
    unsigned order;
    const uint64_t *dims;
    enum slc_codec codec;
    enum slc_duplicates duplicates;
    bool keep_zeros;
    unsigned index_base;
    /* Callback and its context, as in struct slc_builder_options. */
    enum slc_status (*attach)(void *context,
                              const char *folder,
                              struct slc_manifest *manifest,
                              struct slc_error *err);
    void *attached;
    /* provides counts of entries, duplicates and zeros, and the summary */
    const struct slc_builder_report *report;
};

/* Sets the counts in `origin` (or in its last append, if it has any) and writes the manifest.
 * Errors: SLC_ERR_MEMORY and errors of file operations. */
enum slc_status slc_build_manifest_write(const struct slc_build_manifest *built,
                                         struct slc_store_origin *origin,
                                         struct slc_error *err) SLC_NODISCARD;

#endif
