/* Reads a table as the input of a conversion and provides its rows. */
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "convert/ingest/arrow/arrow.h"
#include "convert/ingest/convert_internal.h"
#include "convert/ingest/csv/csv.h"

enum slc_status slc_conversion_request_csv(struct slc_conversion *c,
                                           struct slc_csv_request *request,
                                           struct slc_csv_old *old,
                                           struct slc_error *err)
{
    /* Memory that every conversion needs: the smallest set of pieces, and code that becomes
     * resident. */
    const uint64_t fixed = c->resident_bytes + c->info.memory_bytes +
                           slc_conversion_old_bytes(c, 1) + (UINT64_C(12) << 20);
    const uint64_t least = UINT64_C(4) << 20;
    const struct slc_convert_options *options = c->options;

    if (c->memory_bytes < fixed + least) {
        return slc_fail_budget(err, c->memory_bytes, fixed + least, "this conversion");
    }
    *request = (struct slc_csv_request){
        .spec = options->csv,
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
    if (options->append) {
        const enum slc_status status = slc_conversion_old_table(c, old, err);

        request->spec = &c->recalled;
        request->old = old;
        return status;
    }
    return SLC_OK;
}

enum slc_status slc_conversion_open_csv(struct slc_conversion *c, struct slc_error *err)
{
    const struct slc_convert_options *options = c->options;
    struct slc_csv_request request;
    struct slc_csv_old old;
    struct slc_csv_report report;

    SLC_TRY(slc_conversion_request_csv(c, &request, &old, err));
    SLC_TRY(slc_csv_open(&request, &c->header, &c->csv, &c->job.source, &report, err));
    c->report->skipped = report.skipped;
    c->csv_bytes = report.text_bytes;
    c->info.memory_bytes += report.memory_bytes;
    c->build.attach = slc_csv_attach;
    c->build.attached = c->csv;
    if (options->max_temp > 0) {
        c->build.max_temp = slc_max_u64(
            options->max_temp - slc_min_u64(report.spooled_bytes, options->max_temp), 1);
    }
    enum slc_status status = slc_row_source_next(c->job.source, &c->job.pieces[0], err);
    c->complete = status == SLC_OK && slc_row_source_lines(c->job.source) == c->header.nnz;
    return status;
}
