/* Converts a tensor to a store. The steps, in this order, determine:
 *
 *   1. the dialect and its header, from the first piece of a text or the header of a binary file;
 *   2. mode sizes: --dims, otherwise the header, otherwise (after reading) the data;
 *   3. the number of parsers that fit in memory, and the memory that the builder may use;
 *   4. the borders of the builder's buckets and the assumed index base, from a sample of
 *      coordinates (convert_sample.c);
 *   5. all rows, which are parsed and passed to the builder (convert_parse.c);
 *   6. the final index base and mode sizes. Then the builder sorts and writes the store. */
#include "convert/ingest/convert.h"

#include "base/error/clock.h"
#include "base/error/log.h"
#include "base/key.h"
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "convert/build/build_memory.h"
#include "convert/ingest/convert_internal.h"
#include "convert/ingest/csv/csv.h"
#include "convert/publish/build_complete.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Memory reserved for code and heap that become resident during a run: libarchive, codecs, first
 * pages of thread stacks. */
static const uint64_t overhead_bytes = UINT64_C(6) << 20;
static const uint64_t thread_bytes = UINT64_C(256) << 10;

/* Sets order and mode sizes if the options or the header state them. */
static enum slc_status set_dims(struct slc_conversion *c, struct slc_error *err)
{
    const struct slc_convert_options *options = c->options;
    struct slc_text_header *header = &c->header;
    const uint64_t *dims = header->has_dims ? header->dims : NULL;
    struct slc_key_layout keys;

    if (header->order == 0) {
        if (options->dims_order == 0) {
            return slc_conversion_locate_fault(
                c,
                slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_DIMS,
                               "no entries and no mode sizes: the input is empty or has only "
                               "comments; give the mode sizes to create an empty tensor"),
                err);
        }
        header->order = options->dims_order;
    }
    if (options->dims_order > 0) {
        if (options->dims_order != header->order) {
            return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_DIMS,
                                  "%u mode sizes are given, but %s has %u modes",
                                  options->dims_order, c->info.name, header->order);
        }
        dims = options->dims;
    }
    if (dims && header->symmetry != 0 && dims[0] != dims[1]) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_DIMS,
                              "%" PRIu64 "x%" PRIu64 ": a symmetric matrix must be square", dims[0],
                              dims[1]);
    }
    c->job.dims_declared = dims != NULL;
    for (unsigned m = 0; m < header->order; m++) {
        c->job.lengths[m] = dims ? dims[m] : SLC_MAX_MODE_LENGTH;
    }
    /* Check, before the whole input is read, that keys fit in 128 bits. */
    return dims ? slc_conversion_locate_fault(
                      c, slc_key_layout_init(&keys, header->order, dims, err), err)
                : SLC_OK;
}

/* Sets the index base if the user, the header or the format states it. */
static void set_stated_base(struct slc_conversion *c)
{
    const struct slc_text_header *header = &c->header;

    c->job.index_base = c->options->index_base >= 0 ? c->options->index_base : header->index_base;
    if (c->options->index_base >= 0) {
        snprintf(c->reason, sizeof c->reason, "as specified");
    } else if (header->dialect == SLC_DIALECT_GENTEN ||
               header->dialect == SLC_DIALECT_TENSORTOOLBOX) {
        snprintf(c->reason, sizeof c->reason, "stated by the header");
    } else {
        snprintf(c->reason, sizeof c->reason, "the rule of the %s format",
                 slc_dialect_name(header->dialect));
    }
    c->job.base_reason = c->reason;
}

/* Returns the memory of a run with `workers` parsers, without the builder. */
static uint64_t bytes_without_builder(const struct slc_conversion *c, unsigned workers)
{
    uint64_t each = thread_bytes + slc_parser_bytes(c->header.order, c->header.symmetry != 0) +
                    slc_buffer_footprint(SLC_PIECE_BYTES, SLC_PAGES_SMALL);

    return c->resident_bytes + overhead_bytes + c->info.memory_bytes +
           slc_conversion_old_bytes(c, workers) +
           (c->options->names ? c->options->names->memory_bytes : 0) +
           2 * slc_buffer_footprint(SLC_PIECE_BYTES, SLC_PAGES_SMALL) + workers * each;
}

/* Returns the least memory of the builder, whose memory is free again when names are written. */
static uint64_t least_builder_bytes(const struct slc_conversion *c)
{
    return slc_max_u64(slc_builder_memory_min(&c->build, c->header.order), c->names_bytes);
}

uint64_t slc_conversion_least_bytes(struct slc_conversion *c)
{
    c->build.workers = 1;
    return bytes_without_builder(c, 1) + least_builder_bytes(c);
}

/* Divides the budget. The requested number of parsers is reduced until their memory fits, and the
 * builder gets the remaining memory. */
static enum slc_status plan_memory(struct slc_conversion *c, struct slc_error *err)
{
    unsigned workers = c->options->threads ? c->options->threads : slc_team_default_workers();
    uint64_t need = 0;

    if (workers > SLC_MAX_THREADS) {
        workers = SLC_MAX_THREADS;
    }
    c->build.caller_most_bytes = bytes_without_builder(c, workers);
    for (; workers >= 1; workers--) {
        c->build.workers = workers;
        need = bytes_without_builder(c, workers) + least_builder_bytes(c);
        if (need <= c->memory_bytes) {
            break;
        }
    }
    if (workers == 0) {
        /* State 1 MiB more, because the process may be a few pages larger in the next run. */
        return slc_fail_budget(err, c->memory_bytes, need + (UINT64_C(1) << 20), "this conversion");
    }
    c->job.workers = workers;
    c->build.caller_bytes = bytes_without_builder(c, workers);
    c->build.memory_bytes = c->memory_bytes - c->build.caller_bytes;
    return SLC_OK;
}

/* Allocates the memory of the parsers, and all pieces except the first, which already exists. */
static enum slc_status create_parsers(struct slc_conversion *c, struct slc_error *err)
{
    struct slc_parse_job *job = &c->job;

    struct slc_piece *pieces = slc_realloc(job->pieces, (job->workers + 2) * sizeof *pieces);
    SLC_TRY(slc_check_memory(pieces != NULL, err, "for %u parsers", job->workers));
    job->pieces = pieces;
    memset(pieces + 1, 0, (job->workers + 1) * sizeof *pieces);
    job->piece_count = job->workers + 2;
    job->parsers = slc_calloc(job->workers, sizeof *job->parsers);
    SLC_TRY(slc_check_memory(job->parsers != NULL, err, "for %u parsers", job->workers));
    for (unsigned i = 1; i < job->piece_count; i++) {
        SLC_TRY(slc_buffer_create(&pieces[i].buffer, SLC_PIECE_BYTES, SLC_PAGES_SMALL, err));
    }
    for (unsigned w = 0; w < job->workers; w++) {
        SLC_TRY(slc_parser_create(&job->parsers[w], c->header.order, c->header.symmetry != 0, err));
    }
    return SLC_OK;
}

static void destroy_parsers(struct slc_parse_job *job)
{
    for (unsigned i = 0; i < job->piece_count; i++) {
        slc_buffer_destroy(&job->pieces[i].buffer);
    }
    for (unsigned w = 0; job->parsers && w < job->workers; w++) {
        slc_parser_destroy(&job->parsers[w]);
    }
    slc_free(job->parsers);
    slc_free(job->pieces);
    job->parsers = NULL;
    job->pieces = NULL;
    job->piece_count = 0;
}

/* Determines the index base from the indices, after all rows are read. */
static enum slc_status determine_base(struct slc_conversion *c, struct slc_error *err)
{
    struct slc_parse_job *job = &c->job;
    const struct slc_mark *zero = &job->zero;
    const struct slc_mark *at_length = &job->at_length;

    if (job->index_base >= 0) {
        return SLC_OK;
    }
    if (zero->set && at_length->set) {
        (void)slc_fail(err, SLC_ERR_INPUT,
                       "index %" PRIu64 " of mode %u is beyond the mode size %" PRIu64
                       ": indices start at 0, because line %" PRIu64 " has an index 0",
                       at_length->index, at_length->mode + 1, job->lengths[at_length->mode],
                       zero->line);
        slc_error_locate_text(err, c->info.name, at_length->line, at_length->column);
        return SLC_ERR_INPUT;
    }
    if (zero->set) {
        job->index_base = 0;
        snprintf(c->reason, sizeof c->reason, "index 0 occurs in mode %u, first in line %" PRIu64,
                 zero->mode + 1, zero->line);
    } else if (at_length->set && job->dims_declared) {
        job->index_base = 1;
        snprintf(c->reason, sizeof c->reason,
                 "an index equals the size of mode %u, first in line %" PRIu64, at_length->mode + 1,
                 at_length->line);
    } else if (c->appending != NULL && slc_conversion_old_base(c) >= 0) {
        job->index_base = slc_conversion_old_base(c);
        snprintf(c->reason, sizeof c->reason, "the base of the store's first input");
    } else if (c->header.ambiguous_base && job->row_count > 0) {
        return slc_conversion_locate_fault(
            c,
            slc_fail_field(
                err, SLC_ERR_INPUT, SLC_FIELD_INDEX_BASE,
                "indices may start at 0 (GenTen) or at 1 (Tensor Toolbox): the header "
                "does not state which, and no index is 0 or equal to its mode size; please "
                "give the index base, 0 or 1"),
            err);
    } else {
        job->index_base = (int)slc_dialect_base(c->header.dialect);
        c->report->base_assumed = true;
        snprintf(c->reason, sizeof c->reason, "the convention of the %s format",
                 slc_dialect_name(c->header.dialect));
    }
    return SLC_OK;
}

/* Determines index base and mode sizes after all rows are read, and checks the number of
 * entries. */
static enum slc_status
finalize_input(struct slc_conversion *c, uint64_t *dims, struct slc_error *err)
{
    struct slc_parse_job *job = &c->job;

    if (c->header.has_nnz && c->header.nnz != job->row_count) {
        return slc_conversion_locate_fault(
            c,
            slc_fail(err, SLC_ERR_INPUT, "the header declares %" PRIu64 " entries, found %" PRIu64,
                     c->header.nnz, job->row_count),
            err);
    }
    SLC_TRY(determine_base(c, err));
    if (c->header.ambiguous_base && job->index_base == 1) {
        c->header.dialect = SLC_DIALECT_TENSORTOOLBOX;
    }
    for (unsigned m = 0; m < c->header.order; m++) {
        dims[m] =
            job->dims_declared ? job->lengths[m] : job->largest[m] + 1 - (uint64_t)job->index_base;
    }
    if (!job->dims_declared && c->header.symmetry != 0) {
        dims[0] = dims[1] = slc_max_u64(dims[0], dims[1]);
    }
    return SLC_OK;
}

static void fill_report(struct slc_conversion *c, const uint64_t *dims)
{
    struct slc_convert_report *report = c->report;
    const struct slc_parse_job *job = &c->job;

    report->dialect = c->header.dialect;
    report->compression = c->info.compression;
    report->order = c->header.order;
    /* The mode sizes of a table were found while it was read. */
    report->dims_declared = job->dims_declared && c->csv == NULL;
    report->index_base = (unsigned)job->index_base;
    memcpy(report->base_reason, c->reason, sizeof report->base_reason);
    for (unsigned m = 0; m < c->header.order; m++) {
        report->dims[m] = dims[m];
        report->smallest[m] = job->smallest[m];
    }
    report->input_bytes = slc_row_source_consumed(job->source);
    report->text_bytes = c->csv != NULL ? c->csv_bytes : job->text_bytes;
    report->lines = job->line_count;
    report->workers = job->workers;
    report->read_seconds = job->read_seconds;
    report->parse_seconds = job->parse_seconds;
    report->scatter_seconds = job->scatter_seconds;
    report->text_seconds = slc_seconds_since(c->start_ns);
}

/* Part of a run that starts after plan_memory: a conversion, a forecast or a scan. */
typedef enum slc_status run_fn(struct slc_conversion *c, struct slc_error *err);

/* Parses the whole input and sets index base and mode sizes. Without a builder in the job, the rows
 * are only checked. */
static enum slc_status parse_all(struct slc_conversion *c, uint64_t *dims, struct slc_error *err)
{
    struct slc_error changed = SLC_ERROR_INIT;
    enum slc_status status = slc_parse_run(&c->job, err);

    /* If the file changed during the run, report the change instead of a faulty row, because the
     * rows come from different versions of the file. */
    if ((status == SLC_OK || status == SLC_ERR_INPUT) &&
        ((c->input != NULL && slc_input_check(c->input, &changed) != SLC_OK) ||
         (c->values && slc_input_check(c->values, &changed) != SLC_OK))) {
        status = changed.status;
        if (err != NULL) {
            *err = changed;
        }
    }
    SLC_TRY(status);
    SLC_TRY(finalize_input(c, dims, err));
    if (c->job.builder != NULL && !c->job.all_read) {
        SLC_TRY(slc_conversion_commit_all(c, err));
    }
    fill_report(c, dims);
    return SLC_OK;
}

static enum slc_status run_scan(struct slc_conversion *c, struct slc_error *err)
{
    uint64_t dims[SLC_MAX_ORDER] = {0};

    SLC_TRY(create_parsers(c, err));
    return parse_all(c, dims, err);
}

static enum slc_status run_forecast(struct slc_conversion *c, struct slc_error *err)
{
    SLC_TRY(create_parsers(c, err));
    return slc_conversion_forecast(c, err);
}

/* Creates the builder and resumes an interrupted run, if there is one. */
static enum slc_status start_build(struct slc_conversion *c, struct slc_error *err)
{
    bool resumed = false;

    SLC_TRY(slc_conversion_create_builder(c, err));
    SLC_TRY(slc_conversion_resume(c, &resumed, err));
    c->report->build.resumed = slc_builder_resumed(c->job.builder) != NULL;
    if (!resumed && c->report->build.resumed) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the state of an earlier run belongs to another input");
    }
    if (resumed) {
        slc_log(SLC_LOG_NOTE, "resuming an interrupted run: %s of %" PRIu64 " rows",
                c->job.all_read ? "all" : "the first", c->job.parsers[0].row_count);
    }
    return SLC_OK;
}

/* Fills in the origin of the store, except counts, which are known later. */
static void fill_origin(const struct slc_conversion *c, struct slc_store_origin *origin)
{
    *origin = (struct slc_store_origin){.index_base = (unsigned)c->job.index_base};
    snprintf(origin->source, sizeof origin->source, "%s", c->options->input);
    snprintf(origin->dialect, sizeof origin->dialect, "%s", slc_dialect_name(c->header.dialect));
    snprintf(origin->duplicate_policy, sizeof origin->duplicate_policy, "%s",
             slc_duplicates_name(c->options->duplicates));
    slc_transforms_format(&c->options->transforms, origin->transforms, sizeof origin->transforms);
    if (c->csv != NULL) {
        slc_csv_describe(c->csv, origin->table);
    }
    if (c->appending != NULL) {
        slc_conversion_add_origin(c, origin);
    }
    snprintf(origin->writer, sizeof origin->writer, "sluice %s", SLC_VERSION);
}

static enum slc_status run_build(struct slc_conversion *c, struct slc_error *err)
{
    struct slc_parse_job *job = &c->job;
    uint64_t dims[SLC_MAX_ORDER] = {0};
    struct slc_store_origin origin;
    struct slc_state note = {.bytes = NULL};
    bool complete = false;
    enum slc_status status = slc_conversion_complete(c, &complete, err);

    if (status == SLC_OK && !complete && slc_conversion_knows_input(c)) {
        return slc_complete_clean_up(&c->build, err);
    }
    if (status != SLC_OK || complete) {
        return status;
    }
    status = create_parsers(c, err);
    SLC_THEN(status, start_build(c, err));
    SLC_THEN(status, parse_all(c, dims, err));
    if (status == SLC_OK && c->appending != NULL && slc_conversion_knows_content(c)) {
        slc_builder_abandon(job->builder);
        return slc_complete_clean_up(&c->build, err);
    }
    if (status == SLC_OK && c->appending != NULL) {
        status = slc_conversion_push_old(c, dims, err);
    }
    if (status != SLC_OK) {
        slc_builder_end(job->builder, status);
        return status;
    }
    /* The text has been read completely, so its memory is freed before the sort. */
    destroy_parsers(job);
    fill_origin(c, &origin);
    if (c->options->progress) {
        c->options->progress(c->options->context, "sort", 0, 0);
    }
    slc_conversion_save_report(c, &note);
    slc_builder_set_note(job->builder, &note);
    status = slc_builder_finish(job->builder, (unsigned)job->index_base, dims, &origin,
                                &c->report->build, err);
    slc_conversion_count_layouts(c, false);
    slc_state_destroy(&note);
    return slc_conversion_locate_fault(c, status, err);
}

/* Returns the options of the builder, except its memory. */
static struct slc_builder_options builder_options(const struct slc_convert_options *options)
{
    return (struct slc_builder_options){.files = options->files,
                                        .output = options->output,
                                        .temp_folder = options->temp_folder,
                                        .overwrite = options->overwrite || options->append,
                                        .codec = options->codec,
                                        .value = options->value,
                                        .duplicates = options->duplicates,
                                        .keep_zeros = options->keep_zeros,
                                        .transforms = options->transforms,
                                        .fibers = options->fibers,
                                        .run = options->run,
                                        .relabel = options->relabel,
                                        .block_bytes = options->block_bytes,
                                        .max_temp = options->max_temp,
                                        .attach = options->names ? slc_name_maps_attach : NULL,
                                        .attached = (void *)(uintptr_t)options->names,
                                        .publishing = options->publishing,
                                        .stop = options->stop,
                                        .progress = options->progress,
                                        .context = options->context};
}

/* Opens the input, recognizes its format and header, divides the memory and calls `run`. */
static enum slc_status convert_input(const struct slc_convert_options *options,
                                     run_fn *run,
                                     struct slc_convert_forecast *forecast,
                                     struct slc_convert_report *report,
                                     struct slc_error *err)
{
    struct slc_conversion c = {.options = options,
                               .report = report,
                               .forecast = forecast,
                               .brief = forecast != NULL && forecast->brief,
                               .start_ns = slc_clock_ns()};
    enum slc_status status;

    SLC_TRY(slc_conversion_check_options(options, err));
    memset(report, 0, sizeof *report);
    report->keeps_zeros = options->keep_zeros;
    c.resident_bytes = slc_memory_resident();
    c.memory_bytes = options->memory_bytes ? options->memory_bytes : slc_memory_total() / 5 * 4;
    c.build = builder_options(options);
    status = slc_conversion_open_inputs(&c, err);
    if (status == SLC_OK && run == run_build) {
        status = slc_conversion_identify(&c, err);
    }
    if (status == SLC_OK && options->append) {
        status = slc_conversion_open_old(&c, err);
    }
    if (status != SLC_OK) {
        goto done;
    }
    c.job.header = &c.header;
    c.job.progress = options->progress;
    c.job.context = options->context;
    c.job.stop = options->stop;
    c.job.stored_bytes = c.info.stored_bytes;
    c.job.pieces = slc_calloc(1, sizeof *c.job.pieces);
    if (!c.job.pieces) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory to read the input");
        goto done;
    }
    c.job.piece_count = 1;
    status = slc_conversion_open_rows(&c, err);
    SLC_THEN(status, set_dims(&c, err));
    if (status == SLC_OK && options->names) {
        status = slc_name_maps_check_order(options->names, c.header.order, err);
    }
    if (status == SLC_OK && options->append) {
        status = slc_conversion_locate_fault(&c, slc_conversion_fit_old(&c, err), err);
    }
    if (status == SLC_OK) {
        set_stated_base(&c);
        status = plan_memory(&c, err);
    }
    SLC_THEN(status, run(&c, err));
    report->total_seconds = slc_seconds_since(c.start_ns);

done:
    slc_conversion_close_old(&c);
    destroy_parsers(&c.job);
    slc_row_source_close(c.job.source);
    slc_csv_destroy(c.csv);
    slc_conversion_drop_table(&c);
    slc_input_close(c.values);
    slc_input_close(c.input);
    return status;
}

enum slc_status slc_convert(const struct slc_convert_options *options,
                            struct slc_convert_report *report,
                            struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;

    if (!options->output) {
        return slc_fail(err, SLC_ERR_USAGE, "an output is required");
    }
    enum slc_status status = convert_input(options, run_build, NULL, report, &fault);
    if (status == SLC_ERR_DAMAGED && report->build.resumed) {
        struct slc_convert_options retry = *options;

        slc_log(SLC_LOG_NOTE, "%s: starting anew", fault.message);
        retry.restart = true;
        slc_error_clear(&fault);
        status = convert_input(&retry, run_build, NULL, report, &fault);
    }
    if (status != SLC_OK) {
        slc_error_pass(err, &fault);
    }
    return status;
}

enum slc_status slc_convert_scan(const struct slc_convert_options *options,
                                 struct slc_convert_report *report,
                                 struct slc_error *err)
{
    return convert_input(options, run_scan, NULL, report, err);
}

enum slc_status slc_convert_forecast(const struct slc_convert_options *options,
                                     bool brief,
                                     struct slc_convert_forecast *forecast,
                                     struct slc_error *err)
{
    struct slc_convert_report report;

    *forecast = (struct slc_convert_forecast){.brief = brief};
    return convert_input(options, run_forecast, forecast, &report, err);
}
