/* Resumes conversions after an interruption. This file stores the position in the text with each
 * commit, and returns to that position in a later run.
 *
 * A commit records the line up to which the builder has received the text. It also records a
 * summary of this text: the number of rows, their smallest and largest indices, and the places that
 * may determine the index base. Dialect, header and mode sizes are not recorded, but read again
 * from the beginning of the text. The identity of the build ensures that the text is the same. A
 * pipe has no identity, so its conversion starts from the beginning. The committed text of a
 * compressed file is decompressed again, but not parsed. */
#include "convert/ingest/convert_internal.h"

#include "base/error/log.h"
#include "base/hash.h"
#include "convert/publish/build_complete.h"

#include <string.h>

enum slc_status slc_conversion_identify(struct slc_conversion *c, struct slc_error *err)
{
    struct slc_build_identity *identity = &c->build.identity;
    enum slc_status status =
        c->input != NULL ? slc_input_identity(c->input, &identity->input, err) : SLC_OK;

    if (status == SLC_OK && c->values) {
        uint64_t both[2] = {identity->input, 0};

        status = slc_input_identity(c->values, &both[1], err);
        identity->input = both[0] && both[1] ? slc_hash64(both, sizeof both) | 1 : 0;
    }
    identity->options = slc_conversion_options_hash(c->options);
    /* An append is not resumable: a commit covers only the text, and the old store may change in
     * the meantime. */
    c->build.resumable = identity->input != 0 && !c->options->append;
    c->build.completable = identity->input != 0;
    c->build.note_complete = c->options->again;
    c->build.restart = c->options->restart;
    c->build.commit_seconds = c->options->commit_seconds;
    return status;
}

static void pass_mark(struct slc_state *state, bool reading, struct slc_mark *mark)
{
    mark->set = slc_state_pass(state, reading, mark->set, 1) != 0;
    slc_state_pass_number(state, reading, &mark->sequence);
    slc_state_pass_number(state, reading, &mark->line);
    slc_state_pass_number(state, reading, &mark->column);
    mark->mode = (unsigned)slc_state_pass(state, reading, mark->mode, SLC_MAX_ORDER - 1);
    slc_state_pass_number(state, reading, &mark->index);
}

/* Commits all text before piece number `sequence`, or the whole text if `sequence` is 0. */
static enum slc_status
commit_rows(struct slc_parse_job *job, uint64_t sequence, struct slc_error *err)
{
    struct slc_state note = {.bytes = NULL};
    struct slc_parse_totals totals;

    slc_parse_totals(job, &totals);
    slc_state_put(&note, sequence);
    slc_state_put(&note, job->text_bytes);
    slc_state_put(&note, sequence == 0 ? 0 : slc_row_source_lines(job->source));
    slc_state_put(&note, totals.row_count);
    slc_state_put(&note, totals.line_count);
    for (unsigned m = 0; m < job->header->order; m++) {
        slc_state_put(&note, totals.smallest[m]);
        slc_state_put(&note, totals.largest[m]);
    }
    pass_mark(&note, false, &job->zero);
    pass_mark(&note, false, &job->at_length);
    enum slc_status status = slc_builder_commit(job->builder, &note, err);
    slc_state_destroy(&note);
    return status;
}

enum slc_status slc_conversion_commit_all(struct slc_conversion *c, struct slc_error *err)
{
    return slc_builder_commit_due(c->job.builder, true) ? commit_rows(&c->job, 0, err) : SLC_OK;
}

/* Reads up to the position of the commit and fills the first piece from there. Sets *there to false
 * if the text has no such position. */
static enum slc_status fill_first(struct slc_conversion *c,
                                  uint64_t sequence,
                                  uint64_t offset,
                                  uint64_t lines,
                                  bool *there,
                                  struct slc_error *err)
{
    struct slc_piece *first = &c->job.pieces[0];
    enum slc_status status = slc_row_source_go_to(c->job.source, offset, lines, first, there, err);

    first->sequence = sequence;
    first->offset = offset;
    return status == SLC_OK && *there ? slc_row_source_next(c->job.source, first, err) : status;
}

enum slc_status
slc_conversion_resume(struct slc_conversion *c, bool *resumed, struct slc_error *err)
{
    struct slc_parse_job *job = &c->job;
    struct slc_parser *parser = &job->parsers[0];
    struct slc_state *note = slc_builder_resumed(job->builder);
    enum slc_status status = SLC_OK;

    *resumed = false;
    job->commit = c->build.resumable ? commit_rows : NULL;
    if (note == NULL) {
        return SLC_OK;
    }
    uint64_t sequence = slc_state_get(note, UINT64_MAX);
    uint64_t offset = slc_state_get(note, UINT64_MAX);
    uint64_t lines = slc_state_get(note, UINT64_MAX);
    parser->row_count = slc_state_get(note, UINT64_MAX);
    parser->line_count = slc_state_get(note, UINT64_MAX);
    for (unsigned m = 0; m < c->header.order; m++) {
        parser->smallest[m] = slc_state_get(note, UINT64_MAX);
        parser->largest[m] = slc_state_get(note, UINT64_MAX);
    }
    pass_mark(note, true, &job->zero);
    pass_mark(note, true, &job->at_length);
    *resumed = !note->bad;
    slc_state_destroy(note);
    job->all_read = sequence == 0;
    job->text_bytes = offset;
    if (*resumed && !job->all_read) {
        status = fill_first(c, sequence, offset, lines, resumed, err);
    }
    return status;
}

static void pass_report(struct slc_state *note, bool reading, struct slc_convert_report *report)
{
    uint64_t *const numbers[] = {&report->input_bytes, &report->text_bytes, &report->lines,
                                 &report->skipped,     &report->old_nnz,    &report->entries};

    report->dialect =
        (enum slc_dialect)slc_state_pass(note, reading, report->dialect, SLC_DIALECT_LAST);
    report->order = (unsigned)slc_state_pass(note, reading, report->order, SLC_MAX_ORDER);
    report->dims_declared = slc_state_pass(note, reading, report->dims_declared, 1) != 0;
    report->index_base = (unsigned)slc_state_pass(note, reading, report->index_base, 1);
    report->base_assumed = slc_state_pass(note, reading, report->base_assumed, 1) != 0;
    if (reading) {
        slc_state_get_bytes(note, report->base_reason, sizeof report->base_reason);
    } else {
        slc_state_put_bytes(note, report->base_reason, sizeof report->base_reason);
    }
    for (unsigned m = 0; m < report->order; m++) {
        report->dims[m] = slc_state_pass(note, reading, report->dims[m], SLC_MAX_MODE_LENGTH);
        slc_state_pass_number(note, reading, &report->smallest[m]);
    }
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        slc_state_pass_number(note, reading, numbers[i]);
    }
}

void slc_conversion_save_report(const struct slc_conversion *c, struct slc_state *note)
{
    slc_state_put(note, slc_conversion_old_content(c));
    pass_report(note, false, c->report);
}

/* Restores the report. Returns false if the record is damaged. */
static bool load_report(struct slc_state *note, struct slc_convert_report *report)
{
    pass_report(note, true, report);
    /* Terminate the text, because it is printed. */
    report->base_reason[sizeof report->base_reason - 1] = '\0';
    for (char *at = report->base_reason; *at != '\0'; at++) {
        *at = *at < ' ' || *at > '~' ? '?' : *at;
    }
    return !note->bad && report->order > 0;
}

enum slc_status
slc_conversion_complete(struct slc_conversion *c, bool *complete, struct slc_error *err)
{
    struct slc_convert_report *report = c->report;
    struct slc_complete_left left;
    enum slc_status status = slc_complete_find(&c->build, &left, complete, err);

    if (status != SLC_OK || !*complete) {
        return status;
    }
    uint64_t content = slc_state_get(&left.note, UINT64_MAX);
    if (!load_report(&left.note, report) ||
        (!left.placed && content != slc_conversion_old_content(c))) {
        slc_complete_left_end(&left);
        *complete = false;
        return SLC_OK;
    }
    slc_log(SLC_LOG_NOTE, "resuming an interrupted run: the store is complete");
    report->compression = c->info.compression;
    report->workers = c->job.workers;
    report->build.resumed = true;
    status = slc_complete_left_finish(&left, err);
    report->build = left.report;
    slc_conversion_count_layouts(c, left.placed);
    report->build.resumed = report->build.completed = true;
    return status;
}
