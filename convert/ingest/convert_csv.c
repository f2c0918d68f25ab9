/* Reads a table as the input of a conversion and provides its rows. */
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/build/resume/build_folder.h"
#include "convert/ingest/arrow/arrow.h"
#include "convert/ingest/convert_internal.h"
#include "convert/ingest/csv/csv.h"
#include "convert/ingest/csv/csv_names.h"
#include "storage/manifest/names.h"

/* Checks, before anything is read, that the budget suffices for reading a table with few strings,
 * and for sorting its rows and writing its names afterwards. `fixed`: memory that reading needs in
 * addition to that of the table. */
static enum slc_status check_budget(struct slc_conversion *c, uint64_t fixed, struct slc_error *err)
{
    /* Reserve for names, and because the process may be a few pages larger in the next run. */
    const uint64_t spare = UINT64_C(1) << 20;
    const uint64_t least = UINT64_C(4) << 20;

    c->names_bytes = slc_names_memory_bytes(0);
    const uint64_t later =
        slc_conversion_least_bytes(c) + c->header.order * (uint64_t)SLC_DICTIONARY_FIXED_BYTES;
    const uint64_t need = slc_max_u64(fixed + least, later + spare);

    return c->memory_bytes < need
               ? slc_fail_budget(err, c->memory_bytes, need + spare, "this conversion")
               : SLC_OK;
}

enum slc_status slc_conversion_request_csv(struct slc_conversion *c,
                                           struct slc_csv_request *request,
                                           struct slc_csv_old *old,
                                           struct slc_error *err)
{
    /* Memory that every conversion needs: the smallest set of pieces, and code that becomes
     * resident. */
    const uint64_t fixed = c->resident_bytes + c->info.memory_bytes +
                           slc_conversion_old_bytes(c, 1) + (UINT64_C(12) << 20);
    const struct slc_convert_options *options = c->options;

    if (options->append) {
        SLC_TRY(slc_conversion_old_table(c, old, err));
    }
    const struct slc_csv_spec *spec = options->append ? &c->recalled : options->csv;
    c->header.order = spec->order;
    SLC_TRY(check_budget(c, fixed, err));
    *request = (struct slc_csv_request){
        .spec = spec,
        .old = options->append ? old : NULL,
        .input = c->input,
        .feed = options->arrow != NULL ? slc_arrow_feed(options->arrow) : NULL,
        .name = options->input,
        .spool = {.files = options->files,
                  .folder = options->temp_folder,
                  .output = options->output,
                  .max_bytes = options->max_temp},
        .buffer = c->job.pieces[0].buffer.data,
        .buffer_bytes = SLC_PIECE_BYTES,
        .memory_bytes = c->memory_bytes - fixed,
        .threads = options->threads ? options->threads : slc_team_default_workers(),
        .stop = options->stop,
        .progress = options->progress,
        .context = options->context};
    return SLC_OK;
}

/* Counts the memory that the producer of a stream still holds as memory outside of the conversion,
 * but at most the memory that the budget leaves for it. */
static void count_producer(struct slc_conversion *c)
{
    const uint64_t now = slc_memory_resident();
    const uint64_t outside = c->memory_bytes - (slc_conversion_least_bytes(c) - c->resident_bytes);

    c->resident_bytes = slc_max_u64(c->resident_bytes, slc_min_u64(now, outside));
}

enum slc_status slc_conversion_open_csv(struct slc_conversion *c, struct slc_error *err)
{
    const struct slc_convert_options *options = c->options;
    struct slc_csv_request request;
    struct slc_csv_old old;
    struct slc_csv_report report;

    SLC_TRY(slc_conversion_request_csv(c, &request, &old, err));
    if (options->arrow != NULL && options->output != NULL && !options->append) {
        /* Check the output before a stream is read, because a stream can be read only once. */
        SLC_TRY(slc_build_folder_check(slc_files_or_system(options->files), options->output,
                                       options->overwrite, err));
    }
    SLC_TRY(slc_csv_open(&request, &c->header, &c->csv, &c->job.source, &report, err));
    c->report->skipped = report.skipped;
    c->csv_bytes = report.text_bytes;
    c->info.memory_bytes += report.memory_bytes;
    c->names_bytes = report.names_bytes;
    c->build.attach = slc_csv_attach;
    c->build.attached = c->csv;
    if (options->max_temp > 0) {
        c->build.max_temp = slc_max_u64(
            options->max_temp - slc_min_u64(report.spooled_bytes, options->max_temp), 1);
    }
    if (options->arrow != NULL && slc_conversion_least_bytes(c) <= c->memory_bytes) {
        count_producer(c);
    }
    enum slc_status status = slc_row_source_next(c->job.source, &c->job.pieces[0], err);
    c->complete = status == SLC_OK && slc_row_source_lines(c->job.source) == c->header.nnz;
    return status;
}
