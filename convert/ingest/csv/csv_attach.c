/* Writes names of indices and titles of modes of a table to its store. */
#include "base/error/stop.h"
#include "convert/ingest/csv/csv_internal.h"
#include "storage/manifest/names.h"

#include <inttypes.h>
#include <stdio.h>

/* Context of a walk over a dictionary: the writer that receives the names. */
struct naming {
    const struct slc_stop *stop;
    struct slc_names_writer *writer;
};

static enum slc_status
add_name(void *context, const char *text, size_t bytes, struct slc_error *err)
{
    const struct naming *naming = context;

    SLC_TRY(slc_stop_check(naming->stop, err));
    return slc_names_writer_add(naming->writer, text, bytes, err);
}

static enum slc_status add_names(const struct slc_csv *csv,
                                 unsigned m,
                                 struct slc_names_writer *writer,
                                 struct slc_error *err)
{
    const struct slc_csv_item *item = &csv->spec->items[m];

    if (item->rule == SLC_CSV_STRINGS) {
        struct naming naming = {csv->stop, writer};

        return slc_dictionary_walk(csv->dictionaries[m], add_name, &naming, err);
    }
    for (uint64_t i = 0; i < csv->dims[m]; i++) {
        const int64_t bin = csv->lowest[m] + (int64_t)i;
        char name[SLC_CSV_BIN_BYTES];
        size_t bytes;

        if (item->rule == SLC_CSV_INTEGER) {
            bytes = (size_t)snprintf(name, sizeof name, "%" PRIu64, i);
        } else if (item->rule == SLC_CSV_TIME) {
            bytes = slc_time_name(item->unit, bin, name);
        } else {
            bytes = slc_csv_bin_name(item, bin, name);
        }
        SLC_TRY(slc_stop_check(csv->stop, err));
        SLC_TRY(slc_names_writer_add(writer, name, bytes, err));
    }
    return SLC_OK;
}

enum slc_status slc_csv_attach(void *context,
                               const char *folder,
                               struct slc_manifest *manifest,
                               struct slc_error *err)
{
    const struct slc_csv *csv = context;
    enum slc_status status = SLC_OK;

    for (unsigned m = 0; m < manifest->order && status == SLC_OK; m++) {
        struct slc_names_writer *writer;

        (void)snprintf(manifest->titles[m], sizeof manifest->titles[m], "%s",
                       csv->spec->items[m].title);
        if (!slc_csv_is_named(&csv->spec->items[m], csv->dims[m])) {
            continue;
        }
        status = slc_names_writer_open(csv->files, folder, m, &writer, err);
        if (status != SLC_OK) {
            break;
        }
        status = add_names(csv, m, writer, err);
        if (status != SLC_OK) {
            slc_names_writer_abandon(writer);
            break;
        }
        status = slc_names_writer_finish(writer, &manifest->names[manifest->names_count], err);
        manifest->names_count += status == SLC_OK;
    }
    return status;
}
