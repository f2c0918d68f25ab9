/* The manifest of a store that was just built: its last file. */
#ifndef SLC_CONVERT_BUILD_MANIFEST_H
#define SLC_CONVERT_BUILD_MANIFEST_H

#include "base/error/error.h"
#include "convert/build/build_types.h"

#include <stdint.h>

struct slc_build_manifest {
    const struct slc_files *files;
    const char *folder; /* with the block file, blco.blk */
    unsigned order;
    const uint64_t *dims;
    enum slc_codec codec;
    enum slc_duplicates duplicates;
    unsigned index_base;
    /* As of struct slc_builder_options. */
    enum slc_status (*attach)(void *context,
                              const char *folder,
                              struct slc_manifest *manifest,
                              struct slc_error *err);
    void *attached;
    const struct slc_builder_report *report; /* entries, duplicates, zeros and the summary */
};

/* Fills in the counts of `origin`, or adds those of what was appended last, and writes the
 * manifest. Errors: SLC_ERR_MEMORY, those of files.
 */
enum slc_status slc_build_manifest_write(const struct slc_build_manifest *built,
                                         struct slc_store_origin *origin,
                                         struct slc_error *err) SLC_NODISCARD;

#endif
