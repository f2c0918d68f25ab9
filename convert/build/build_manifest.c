#include "convert/build/build_manifest.h"

#include "base/memory/memory.h"

#include <stdio.h>
#include <string.h>

enum slc_status slc_build_manifest_write(const struct slc_build_manifest *built,
                                         struct slc_store_origin *origin,
                                         struct slc_error *err)
{
    const struct slc_builder_report *report = built->report;
    const struct slc_writer_summary *summary = &report->summary;
    struct slc_manifest *manifest = slc_calloc(1, sizeof *manifest);

    SLC_TRY(slc_check_memory(manifest != NULL, err, "for the manifest"));
    if (origin->appended_count == 0) {
        origin->index_base = built->index_base;
        origin->entries_read = report->entries;
        origin->duplicates = report->duplicates;
        origin->explicit_zeros = report->explicit_zeros;
        snprintf(origin->duplicate_policy, sizeof origin->duplicate_policy, "%s",
                 slc_duplicates_name(built->duplicates));
    } else {
        origin->entries_read += origin->appended[origin->appended_count - 1].entries;
        origin->duplicates += report->duplicates;
        origin->explicit_zeros += report->explicit_zeros;
    }
    origin->keeps_zeros = built->keep_zeros;
    manifest->order = built->order;
    memcpy(manifest->dims, built->dims, built->order * sizeof *built->dims);
    manifest->nnz = summary->nnz;
    manifest->value_type = summary->value_type;
    manifest->sum_of_squares = summary->sum_of_squares;
    manifest->content_sum = summary->content_sum;
    manifest->values = summary->values;
    manifest->origin = *origin;
    manifest->layout_count = 1;
    struct slc_store_layout *layout = &manifest->layouts[0];
    snprintf(layout->file, sizeof layout->file, SLC_BLCO_NAME);
    layout->layout = SLC_LAYOUT_BLCO;
    layout->codec = built->codec;
    layout->file_bytes = summary->file_bytes;
    layout->block_count = summary->block_count;
    layout->index_bytes = summary->index_bytes;
    layout->header_hash = summary->header_hash;
    enum slc_status status = built->attach != NULL
                                 ? built->attach(built->attached, built->folder, manifest, err)
                                 : SLC_OK;
    SLC_THEN(status, slc_manifest_write(built->files, built->folder, manifest, err));
    slc_free(manifest);
    return status;
}
