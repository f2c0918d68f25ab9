/* Reshapes a store in one scan. Each worker moves the kept rows to the front of its columns,
 * renumbers their indices, and pushes them with the columns in the new order. A row is a
 * nonzero. */
#include "convert/reshape/reshape.h"

#include "base/memory/memory.h"
#include "convert/build/build_memory.h"
#include "convert/build/builder.h"
#include "convert/publish/build_complete.h"
#include "convert/reshape/names_carry.h"
#include "convert/reshape/store_push.h"
#include "storage/file/files.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Allowance for small objects, paths and the first pages of stacks. */
    OVERHEAD_BYTES = 1 << 20
};

struct reshaping {
    const struct slc_reshape_options *options;
    struct slc_reshape_report *report;
    struct slc_store_push push;
    struct slc_names_carry names;
    struct slc_ranges *ranges; /* ranges of each mode, within the mode size */
    unsigned modes[SLC_MAX_ORDER];
    struct slc_builder *builder;
    uint64_t rows_seen;
};

/* Checks the ranges of a mode, sets their open ends, and sets *left to the mode size of the
 * result. */
static enum slc_status
clip_ranges(struct reshaping *r, unsigned mode, uint64_t *left, struct slc_error *err)
{
    const uint64_t length = r->push.info->dims[mode];
    const unsigned base = r->options->from_zero ? 0 : 1;
    struct slc_ranges *ranges = &r->ranges[mode];

    *left = length;
    if (r->options->ranges != NULL) {
        *ranges = r->options->ranges[mode];
    }
    if (ranges->count > 0) {
        *left = 0;
    }
    for (unsigned i = 0; i < ranges->count; i++) {
        struct slc_range *range = &ranges->range[i];
        const uint64_t last = range->last == UINT64_MAX ? length - 1 : range->last;

        if (range->first >= length || last >= length) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "index %" PRIu64 " of mode %u does not exist: the mode has %" PRIu64
                            " indices, which start at %u",
                            (range->first >= length ? range->first : last) + base, mode + base,
                            length, base);
        }
        range->last = last;
        range->before = *left;
        *left += last - range->first + 1;
    }
    if (r->options->keep_indices) {
        *left = length;
    }
    return SLC_OK;
}

/* Sets modes and mode sizes of the result. */
static enum slc_status set_modes(struct reshaping *r, struct slc_error *err)
{
    const struct slc_reshape_options *options = r->options;
    const unsigned order = r->push.info->order;
    const unsigned base = options->from_zero ? 0 : 1;
    uint64_t lengths[SLC_MAX_ORDER];
    uint64_t seen = 0;
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < SLC_MAX_ORDER && options->ranges != NULL; n++) {
        if (options->ranges[n].count > 0 && n >= order) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "mode %u does not exist; the tensor has modes %u to %u", n + base, base,
                            order - 1 + base);
        }
    }
    for (unsigned n = 0; n < order && status == SLC_OK; n++) {
        r->modes[n] = options->mode_count > 0 && n < options->mode_count ? options->modes[n] : n;
        seen |= r->modes[n] < order ? UINT64_C(1) << r->modes[n] : 0;
        status = clip_ranges(r, n, &lengths[n], err);
    }
    if (status == SLC_OK && options->mode_count > 0 &&
        (options->mode_count != order || seen != (UINT64_C(1) << order) - 1)) {
        return slc_fail(err, SLC_ERR_USAGE, "the order must name each of the modes %u to %u once",
                        base, order - 1 + base);
    }
    r->report->order = order;
    for (unsigned k = 0; k < order && status == SLC_OK; k++) {
        r->report->dims[k] = lengths[r->modes[k]];
    }
    return status;
}

/* Renumbers an index unless `keep_indices`. Returns false if the index is not kept. */
static bool renumber_index(const struct slc_ranges *ranges, bool keep_indices, uint64_t *index)
{
    unsigned low = 0, high = ranges->count;

    /* Find the last range that begins at or before the index. */
    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;

        if (ranges->range[middle].first <= *index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    if (*index < ranges->range[low].first || *index > ranges->range[low].last) {
        return false;
    }
    if (!keep_indices) {
        *index = ranges->range[low].before + (*index - ranges->range[low].first);
    }
    return true;
}

/* Moves the kept rows to the front of the columns. Returns their number. */
static uint32_t compact_rows(const struct reshaping *r, struct slc_scan_rows *rows)
{
    const unsigned order = r->report->order;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < rows->count; i++) {
        bool left = true;

        for (unsigned n = 0; n < order && left; n++) {
            uint64_t index = rows->coords[n][i];

            left = r->ranges[n].count == 0 ||
                   renumber_index(&r->ranges[n], r->options->keep_indices, &index);
            rows->coords[n][kept] = index;
        }
        rows->values[kept] = rows->values[i];
        kept += left;
    }
    return kept;
}

static enum slc_status
push_rows(void *context, unsigned worker, struct slc_scan_rows *rows, struct slc_error *err)
{
    struct reshaping *r = context;
    const uint64_t seen = __atomic_add_fetch(&r->rows_seen, rows->count, __ATOMIC_RELAXED);
    struct slc_entries entries = {
        .order = r->report->order, .values = rows->values, .sequence = rows->sequence};

    if (worker == 0 && r->options->progress != NULL) {
        r->options->progress(r->options->context, "read", seen, r->push.info->nnz);
    }
    entries.count = compact_rows(r, rows);
    for (unsigned k = 0; k < entries.order; k++) {
        entries.coords[k] = rows->coords[r->modes[k]];
    }
    return entries.count > 0 ? slc_builder_push(r->builder, worker, &entries, err) : SLC_OK;
}

/* Divides the memory: as many of the requested workers as fit next to the smallest builder; the
 * builder gets the rest. */
static enum slc_status divide_memory(const struct reshaping *r,
                                     uint64_t budget_bytes,
                                     struct slc_builder_options *build,
                                     struct slc_error *err)
{
    const uint64_t fixed_bytes = slc_memory_resident() + OVERHEAD_BYTES +
                                 SLC_MAX_ORDER * (uint64_t)sizeof(struct slc_ranges);
    uint64_t need = 0;

    for (build->workers = r->options->threads; build->workers >= 1; build->workers--) {
        build->caller_bytes = fixed_bytes + slc_names_carry_bytes(&r->names) +
                              slc_store_push_bytes(&r->push, build->workers);
        need = build->caller_bytes + slc_builder_memory_min(build, r->report->order);
        if (need <= budget_bytes) {
            build->memory_bytes = budget_bytes - build->caller_bytes;
            return SLC_OK;
        }
    }
    return slc_fail_budget(err, budget_bytes, need + (UINT64_C(1) << 20),
                           "sorting the nonzeros of this tensor");
}

/* Sets the builder's options, including its memory and the names to carry. */
static enum slc_status prepare_build(struct reshaping *r,
                                     uint64_t budget_bytes,
                                     struct slc_builder_options *out,
                                     struct slc_error *err)
{
    const struct slc_reshape_options *options = r->options;
    struct slc_builder_options build = {.files = options->files,
                                        .output = options->output,
                                        .publishing = options->publishing,
                                        .stop = options->stop,
                                        .progress = options->progress,
                                        .context = options->context,
                                        .temp_folder = options->temp_folder,
                                        .overwrite = options->overwrite,
                                        .codec = options->codec,
                                        .value = SLC_VALUE_AUTO,
                                        .duplicates = SLC_DUPLICATES_ERROR,
                                        .keep_zeros = r->push.store.manifest.origin.keeps_zeros,
                                        .transforms = options->transforms,
                                        .block_bytes = options->block_bytes,
                                        .fibers = options->fibers,
                                        .run = options->run,
                                        .relabel = options->relabel,
                                        .max_temp = options->max_temp};

    slc_names_carry_init(&r->names, r->push.store.files, options->store, &r->push.store.manifest);
    r->names.stop = options->stop;
    memcpy(r->names.modes, r->modes, r->report->order * sizeof r->modes[0]);
    r->names.ranges = options->keep_indices ? NULL : r->ranges;
    build.attach = slc_names_carry;
    build.attached = &r->names;
    if (build.codec == 0) {
        build.codec = r->push.info->codec;
    }
    if (options->keep_numbering) {
        build.relabel =
            r->push.store.manifest.permutation_count > 0 ? SLC_RELABEL_FREQUENCY : SLC_RELABEL_NONE;
    }
    enum slc_status status = divide_memory(r, budget_bytes, &build, err);
    *out = build;
    return status;
}

static enum slc_status
build_store(struct reshaping *r, uint64_t budget_bytes, struct slc_error *err)
{
    const struct slc_reshape_options *options = r->options;
    struct slc_builder_options build;
    struct slc_store_origin origin = {.writer = "sluice " SLC_VERSION};
    enum slc_status status = prepare_build(r, budget_bytes, &build, err);

    memcpy(origin.transforms, r->push.store.manifest.origin.transforms, sizeof origin.transforms);
    slc_transforms_format(&options->transforms, origin.transforms, sizeof origin.transforms);
    SLC_TRY(status);
    SLC_TRY(slc_check_open_files(err));
    SLC_TRY(slc_builder_create(&build, r->report->order, &r->builder, err));
    status = slc_store_push_scan(&r->push, build.workers, options->stop, push_rows, r, err);
    if (status != SLC_OK) {
        slc_builder_abandon(r->builder);
        return status;
    }
    /* Free the memory of the open store before the sort; its names are copied after the sort. */
    slc_store_push_free(&r->push);
    (void)snprintf(origin.source, sizeof origin.source, "%s", options->store);
    (void)snprintf(origin.dialect, sizeof origin.dialect, "%s", options->verb);
    return slc_builder_finish(r->builder, 0, r->report->dims, &origin, &r->report->build, err);
}

/* A function that is called when the modes and mode sizes of the result are known. */
typedef enum slc_status
run_fn(struct reshaping *r, uint64_t budget_bytes, void *context, struct slc_error *err);

static enum slc_status
run_build(struct reshaping *r, uint64_t budget_bytes, void *context, struct slc_error *err)
{
    (void)context;
    return build_store(r, budget_bytes, err);
}

/* Opens the store, determines the modes and ranges of the result, and calls `run`. */
static enum slc_status reshape_store(const struct slc_reshape_options *options,
                                     run_fn *run,
                                     void *context,
                                     struct slc_reshape_report *report,
                                     struct slc_error *err)
{
    const uint64_t budget_bytes =
        options->memory_bytes == 0 ? slc_memory_total() / 5 * 4 : options->memory_bytes;
    enum slc_status status;

    *report = (struct slc_reshape_report){.nnz = 0};
    if (options->threads == 0 || options->threads > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads: must be 1 to %d", options->threads,
                        SLC_MAX_THREADS);
    }
    struct reshaping *r = slc_calloc(1, sizeof *r);
    SLC_TRY(slc_check_memory(r != NULL, err, "for a new store"));
    r->options = options;
    r->report = report;
    r->ranges = slc_calloc(SLC_MAX_ORDER, sizeof *r->ranges);
    if (r->ranges == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for ranges of indices");
    } else {
        status = slc_store_push_open(&r->push, options->files, options->store, budget_bytes, err);
    }
    if (status == SLC_OK) {
        report->nnz = r->push.info->nnz;
        status = set_modes(r, err);
    }
    SLC_THEN(status, run(r, budget_bytes, context, err));
    slc_store_push_close(&r->push);
    slc_free(r->ranges);
    slc_free(r);
    return status;
}

enum slc_status slc_reshape(const struct slc_reshape_options *options,
                            struct slc_reshape_report *report,
                            struct slc_error *err)
{
    return reshape_store(options, run_build, NULL, report, err);
}

struct forecasting {
    double seconds;
    struct slc_reshape_forecast *forecast;
};

/* Sets *entries to the sampled nonzeros that belong to the result, in the form in which they are
 * pushed. */
static void keep_sample(const struct reshaping *r,
                        const struct slc_store_sample *sample,
                        struct slc_entries *entries)
{
    struct slc_scan_rows rows = {.count = sample->count, .values = sample->values};

    memcpy(rows.coords, sample->coords, sizeof rows.coords);
    *entries = (struct slc_entries){
        .order = r->report->order, .count = compact_rows(r, &rows), .values = rows.values};
    for (unsigned k = 0; k < entries->order; k++) {
        entries->coords[k] = rows.coords[r->modes[k]];
    }
}

/* Estimates the size of the new store from the bytes per nonzero of the old store. If values or the
 * codec change, a sample is encoded with the old and with the new values and codec, and the
 * estimate is multiplied by the ratio of the new size to the old size. */
static enum slc_status estimate_store(const struct reshaping *r,
                                      struct slc_build_job *job,
                                      double *values,
                                      struct slc_reshape_forecast *f,
                                      struct slc_error *err)
{
    const struct slc_layout_info *info = r->push.info;
    const struct slc_transforms *transforms = &r->options->transforms;
    struct slc_builder_options same = *job->build;
    struct slc_build_job before = *job;
    struct slc_build_forecast old;
    double ratio = 1;

    same.codec = info->codec;
    before.build = &same;
    enum slc_status status = slc_build_forecast(&before, &old, err);
    for (uint32_t i = 0; i < job->sample->count && transforms->count > 0; i++) {
        const double changed = slc_transforms_apply(transforms, values[i]);

        /* The forecast keeps an invalid value, which slc_reshape will report. */
        values[i] = isfinite(changed) ? changed : values[i];
    }
    SLC_THEN(status, slc_build_forecast(job, &f->built, err));
    if (status == SLC_OK && old.store_bytes > 0 && f->built.store_bytes > 0) {
        ratio = (double)f->built.store_bytes / (double)old.store_bytes;
    }
    /* Four pages that every store has: before and after the blocks, and for the manifest. */
    f->built.store_bytes =
        4 * SLC_PAGE_BYTES + f->names_bytes +
        (uint64_t)(ratio * (double)info->file_bytes * (double)f->kept / (double)f->nnz);
    return status;
}

static enum slc_status forecast_build(struct reshaping *r,
                                      const struct slc_builder_options *build,
                                      struct slc_store_sample *sample,
                                      const struct forecasting *of,
                                      struct slc_error *err)
{
    struct slc_reshape_forecast *f = of->forecast;
    struct slc_store_trial trial;
    struct slc_entries entries;
    struct slc_build_job job = {
        .build = build, .sample = &entries, .dims = r->report->dims, .unsampled = true};
    enum slc_status status = slc_store_push_try(&r->push, of->seconds, sample, &trial, err);

    if (status != SLC_OK || sample->count == 0) {
        return status;
    }
    keep_sample(r, sample, &entries);
    /* If no sampled nonzero is kept, assume that half a nonzero of the sample is kept. */
    f->kept = (uint64_t)((entries.count > 0 ? (double)entries.count : 0.5) / sample->count *
                         (double)f->nnz);
    f->scan_seconds = trial.decode_seconds * (double)f->nnz / build->workers;
    job.entries = f->kept;
    return entries.count > 0 && f->kept > 0 ? estimate_store(r, &job, sample->values, f, err)
                                            : SLC_OK;
}

static enum slc_status
run_forecast(struct reshaping *r, uint64_t budget_bytes, void *context, struct slc_error *err)
{
    const struct forecasting *of = context;
    struct slc_reshape_forecast *f = of->forecast;
    const unsigned order = r->report->order;
    struct slc_store_sample sample = {.capacity = SLC_TILE_NNZ};
    struct slc_builder_options build;

    SLC_TRY(prepare_build(r, budget_bytes, &build, err));
    *f = (struct slc_reshape_forecast){
        .order = order,
        .nnz = r->report->nnz,
        .names_bytes = slc_names_carry_length(&r->names, order, r->report->dims),
        .fixed_bytes = slc_memory_resident() + slc_names_carry_touched(&r->names)};
    f->read_bytes = r->push.info->file_bytes + f->names_bytes;
    memcpy(f->dims, r->report->dims, sizeof f->dims);
    f->scan_bytes = f->fixed_bytes + slc_store_scan_memory_bytes(r->push.info, build.workers);
    uint64_t *memory = slc_malloc((order + UINT64_C(1)) * sample.capacity * sizeof *memory);
    SLC_TRY(slc_check_memory(memory != NULL, err, "for a sample of the store"));
    for (unsigned n = 0; n < order; n++) {
        sample.coords[n] = memory + (size_t)n * sample.capacity;
    }
    sample.values = (double *)(void *)(memory + (size_t)order * sample.capacity);
    enum slc_status status = forecast_build(r, &build, &sample, of, err);
    slc_free(memory);
    return status;
}

enum slc_status slc_reshape_forecast(const struct slc_reshape_options *options,
                                     double seconds,
                                     struct slc_reshape_forecast *forecast,
                                     struct slc_error *err)
{
    struct forecasting of = {.seconds = seconds, .forecast = forecast};
    struct slc_reshape_report report;

    *forecast = (struct slc_reshape_forecast){.order = 0};
    return reshape_store(options, run_forecast, &of, &report, err);
}
