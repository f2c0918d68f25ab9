/*
 * See convert/build/builder.h: creation, pushing, and the ends. Entries are handled in batches of
 * SLC_KEY_BATCH: the buckets of a batch are found together, then its rows are scattered.
 */
#include "convert/build/builder.h"

#include "base/column_range.h"
#include "base/error/clock.h"
#include "base/error/log.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/build_fibers.h"
#include "convert/build/build_memory.h"
#include "convert/build/builder_internal.h"
#include "convert/build/resume/build_complete.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const duplicate_names[] = {
    [SLC_DUPLICATES_SUM] = "sum",
    [SLC_DUPLICATES_ERROR] = "error",
    [SLC_DUPLICATES_KEEP_FIRST] = "keep-first",
    [SLC_DUPLICATES_KEEP_LAST] = "keep-last",
};

enum { DUPLICATE_NAMES = sizeof duplicate_names / sizeof duplicate_names[0] };

const char *slc_duplicates_name(enum slc_duplicates policy)
{
    return (unsigned)policy < DUPLICATE_NAMES ? duplicate_names[policy] : "?";
}

bool slc_duplicates_parse(const char *name, enum slc_duplicates *policy)
{
    unsigned i;

    for (i = 0; i < DUPLICATE_NAMES; i++) {
        if (strcmp(name, duplicate_names[i]) == 0) {
            *policy = (enum slc_duplicates)i;
            return true;
        }
    }
    return false;
}

/* In a folder of the user's choice the name must not meet that of another run. */
static char *spill_path(const struct slc_builder *builder, const char *temp_folder)
{
    char name[64];

    if (temp_folder == NULL) {
        return slc_path_join(builder->folder.part, SLC_SPILL_NAME);
    }
    snprintf(name, sizeof name, "sluice-spill-%ld-%" PRIx64 ".tmp", (long)getpid(), slc_clock_ns());
    return slc_path_join(temp_folder, name);
}

void slc_build_release_push_memory(struct slc_builder *builder)
{
    slc_key_frames_destroy(&builder->frames);
    slc_spill_destroy(builder->spill);
    slc_buffer_destroy(&builder->scatter_memory);
    slc_free(builder->chains);
    builder->spill = NULL;
    builder->chains = NULL;
}

enum slc_status slc_build_take_push_memory(struct slc_builder *builder,
                                           uint32_t buckets,
                                           const struct slc_spill_extent *kept,
                                           struct slc_error *err)
{
    struct slc_push_memory plan =
        slc_push_memory_plan(&builder->options, builder->order, buckets, builder->entries_expected);
    struct slc_spill_options spill_options = {.files = builder->options.files,
                                              .path = builder->spill_path,
                                              .max_bytes = builder->options.max_temp,
                                              .segment_bytes = plan.segment_bytes,
                                              .segment_count = plan.segment_count,
                                              .keep = builder->options.resumable};
    enum slc_status status;

    if (kept != NULL && kept->segments > 0) {
        const uint64_t bytes = (uint64_t)plan.segment_bytes * plan.segment_count;

        spill_options.extent = *kept;
        spill_options.segment_bytes = kept->segment_bytes;
        spill_options.segment_count = (uint32_t)(bytes / kept->segment_bytes);
    }

    assert(plan.shape.buckets == buckets);
    builder->bucket_count = buckets;
    slc_key_frames_init(&builder->frames, builder->order, &builder->splitters,
                        builder->options.assumed_base);
    builder->chains = slc_calloc(buckets, sizeof *builder->chains);
    if (builder->chains == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %u buckets", buckets);
    }
    status = slc_buffer_create(&builder->scatter_memory, slc_scatter_bytes(&plan.shape),
                               SLC_PAGES_MIXED, err);
    if (status == SLC_OK) {
        status = slc_spill_create(&spill_options, &builder->spill, err);
    }
    if (status == SLC_OK) {
        slc_scatter_init(&builder->scatter, &plan.shape, builder->spill, builder->chains,
                         builder->scatter_memory.data);
    }
    return status;
}

static enum slc_status
check_options(const struct slc_builder_options *options, unsigned order, struct slc_error *err)
{
    uint64_t least;

    if (order == 0 || order > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "a tensor of %u modes: 1 to %d are possible", order,
                        SLC_MAX_ORDER);
    }
    if (options->workers == 0 || options->workers > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads: 1 to %d are possible", options->workers,
                        SLC_MAX_THREADS);
    }
    if (options->assumed_base > 1) {
        return slc_fail(err, SLC_ERR_USAGE, "index base %u: 0 and 1 are possible",
                        options->assumed_base);
    }
    if (options->block_bytes != 0 && (options->block_bytes < SLC_MIN_BLOCK_BYTES ||
                                      options->block_bytes > SLC_MAX_BLOCK_BYTES)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a block size of %" PRIu64 " bytes: %" PRIu64 " to %" PRIu64
                        " are possible",
                        options->block_bytes, SLC_MIN_BLOCK_BYTES, SLC_MAX_BLOCK_BYTES);
    }
    least = slc_builder_memory_min(options, order);
    if (options->memory_bytes < least) {
        return slc_fail_budget(err, options->memory_bytes, least,
                               "building a store of %u modes with %u threads", order,
                               options->workers);
    }
    return SLC_OK;
}

/* The spill file may be needed late: a folder that is not there should be noticed at once. */
static enum slc_status check_temp_folder(const struct slc_builder_options *options,
                                         struct slc_error *err)
{
    struct slc_file_stat stat;
    int code;

    if (options->temp_folder == NULL) {
        return SLC_OK;
    }
    code = options->files->stat_path(options->files->self, options->temp_folder, &stat);
    if (code >= 0 && stat.kind != 'd') {
        code = -ENOTDIR;
    }
    return code < 0 ? slc_fail_errno(err, -code, options->temp_folder, "temporary folder") : SLC_OK;
}

enum slc_status slc_builder_create(const struct slc_builder_options *options,
                                   unsigned order,
                                   struct slc_builder **builder,
                                   struct slc_error *err)
{
    struct slc_builder *b;
    enum slc_status status = check_options(options, order, err);

    if (status != SLC_OK) {
        return status;
    }
    b = slc_calloc(1, sizeof *b);
    if (b == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the builder");
    }
    b->options = *options;
    b->options.files = slc_files_or_system(options->files);
    /* In a folder that others use, too, nothing is left behind: nobody would know whose it is. */
    b->options.resumable = options->resumable && options->temp_folder == NULL;
    b->completable = options->resumable || options->completable;
    b->order = order;
    b->workers = slc_calloc(options->workers, sizeof *b->workers);
    if (b->workers == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for the builder");
        goto cleanup;
    }
    status = check_temp_folder(&b->options, err);
    if (status == SLC_OK) {
        status = slc_build_folder_begin(&b->folder, b->options.files, options->output,
                                        options->overwrite, b->completable, err);
    }
    if (status != SLC_OK) {
        goto cleanup;
    }
    b->spill_path = spill_path(b, options->temp_folder);
    if (options->temp_folder != NULL) {
        b->temp_folder = slc_strdup(options->temp_folder);
    }
    if (b->spill_path == NULL || (options->temp_folder != NULL && b->temp_folder == NULL)) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for the path of the spill file");
        goto cleanup;
    }
    b->options.output = NULL;
    b->options.temp_folder = NULL;
    status = slc_build_fibers_start(b, err);
    if (status == SLC_OK) {
        status = slc_builder_take_left(b, err);
    }
    if (status == SLC_OK && !b->resumed) {
        status = slc_build_take_push_memory(b, 1, NULL, err);
    }

cleanup:
    if (status != SLC_OK) {
        slc_builder_end(b, status);
        return status;
    }
    *builder = b;
    return SLC_OK;
}

void slc_builder_abandon(struct slc_builder *builder)
{
    if (builder != NULL) {
        builder->folder.keep = false;
    }
    slc_build_destroy(builder);
}

void slc_build_destroy(struct slc_builder *builder)
{
    if (builder == NULL) {
        return;
    }
    slc_build_release_push_memory(builder);
    slc_buffer_destroy(&builder->fiber_memory);
    slc_splitters_destroy(&builder->splitters);
    slc_state_destroy(&builder->note);
    slc_build_folder_end(&builder->folder);
    slc_free(builder->temp_folder);
    slc_free(builder->spill_path);
    slc_free(builder->workers);
    slc_free(builder);
}

enum {
    /* Records whose first distribution stays near: more buckets cost the push as much again. */
    CACHE_BUCKET_ENTRIES = 256 << 10
};

/* Evenly spaced rows of the sample, at most SLC_SPLITTER_SAMPLE_MAX, less the assumed base. */
static uint64_t *
sample_rows(const struct slc_entries *sample, unsigned order, unsigned base, uint32_t *count)
{
    uint32_t taken = (uint32_t)slc_min_u64(sample->count, SLC_SPLITTER_SAMPLE_MAX);
    uint64_t *rows = slc_malloc(((size_t)taken + 1) * order * sizeof *rows);
    uint32_t i;
    unsigned mode;

    for (i = 0; rows != NULL && i < taken; i++) {
        uint64_t at = (uint64_t)i * sample->count / taken;

        for (mode = 0; mode < order; mode++) {
            uint64_t coord = sample->coords[mode][at];

            rows[(size_t)i * order + mode] = coord >= base ? coord - base : 0;
        }
    }
    *count = taken;
    return rows;
}

/*
 * Buckets so that one fills about six tenths of a sort area, for samples are uneven; several per
 * worker where there is work to share; no more than the sample can place.
 */
uint32_t slc_build_buckets_wanted(const struct slc_builder_options *options,
                                  const struct slc_entries *sample,
                                  uint64_t entries_expected)
{
    uint64_t resident = (uint64_t)SLC_SPILL_SEGMENTS_MIN * SLC_BUILD_CHUNK_BYTES * 4;
    bool spilled = !slc_push_stays_in_memory(options, entries_expected);
    struct slc_sort_memory plan =
        slc_sort_memory_plan(options, slc_sort_workers(options, spilled), resident, UINT64_MAX);
    uint64_t area = slc_max_u64(plan.area_bytes, SLC_BUILD_AREA_BYTES_MIN);
    uint64_t buckets = 256; /* entries unknown: enough for some hundred times the area */
    unsigned bits = 0;
    unsigned mode;
    uint32_t i;

    for (mode = 0; mode < sample->order; mode++) {
        uint64_t largest = 0;

        for (i = 0; i < sample->count; i++) {
            largest = slc_max_u64(largest, sample->coords[mode][i]);
        }
        bits += slc_bits_for_length(largest == UINT64_MAX ? largest : largest + 1);
    }
    if (entries_expected > 0) {
        /* A record and its copy, with its share of a run. */
        uint64_t each = bits > 62 ? 50 : 34;

        buckets = entries_expected / (area / each * 6 / 10 + 1) + 1;
        if (!spilled) {
            buckets = slc_max_u64(buckets, entries_expected / CACHE_BUCKET_ENTRIES);
        }
        if (entries_expected >= UINT64_C(16) * SLC_TILE_NNZ) {
            buckets = slc_max_u64(buckets, UINT64_C(4) * options->workers);
        }
    }
    buckets = slc_min_u64(buckets, slc_min_u64(sample->count / 8 + 1, SLC_BUCKETS_MAX));
    return slc_push_memory_plan(options, sample->order, (uint32_t)buckets, 0).shape.buckets;
}

enum slc_status slc_builder_sample(struct slc_builder *builder,
                                   const struct slc_entries *sample,
                                   uint32_t stretches,
                                   uint64_t entries_expected,
                                   struct slc_error *err)
{
    struct slc_fiber_run run;
    enum slc_status status;
    uint32_t count, buckets;
    uint64_t *rows;

    assert(sample->order == builder->order && !builder->resumed);
    builder->entries_expected = entries_expected;
    slc_build_release_push_memory(builder);
    slc_splitters_destroy(&builder->splitters);
    rows = sample_rows(sample, builder->order, builder->options.assumed_base, &count);
    if (rows == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a sample of %u coordinates", count);
    }
    buckets = slc_build_buckets_wanted(&builder->options, sample, entries_expected);
    status = slc_build_fibers_assume(builder, rows, count, stretches < count ? stretches : count,
                                     entries_expected, &run, err);
    if (status == SLC_OK) {
        status = slc_splitters_choose(&builder->splitters, builder->order, run, rows, count,
                                      buckets, err);
    }
    slc_free(rows);
    if (status == SLC_OK) {
        status = slc_build_take_push_memory(builder, builder->splitters.count + 1, NULL, err);
    }
    return status;
}

/* Widens the worker's ranges; its frame becomes one that they fit. */
static enum slc_status fit_frame(struct slc_builder *builder,
                                 unsigned worker,
                                 const struct slc_entries *entries,
                                 struct slc_error *err)
{
    struct slc_builder_worker *w = &builder->workers[worker];
    enum slc_status status;

    if (w->frame == NULL) {
        memset(w->smallest, 0xff, sizeof w->smallest);
    }
    for (unsigned mode = 0; mode < builder->order; mode++) {
        slc_column_range(entries->coords[mode], entries->count, &w->smallest[mode],
                         &w->largest[mode]);
    }
    status =
        slc_key_frames_fit(&builder->frames, w->frame, w->smallest, w->largest, &w->frame, err);
    if (status == SLC_OK && !w->frame->hopeless) {
        status =
            slc_scatter_frame(&builder->scatter, worker, w->frame->number, w->frame->ranges, err);
    }
    return status;
}

static enum slc_status scatter_batch(struct slc_builder *builder,
                                     unsigned worker,
                                     const struct slc_entries *entries,
                                     uint32_t begin,
                                     uint32_t count,
                                     struct slc_error *err)
{
    const struct slc_key_frame *frame = builder->workers[worker].frame;
    uint64_t lo[SLC_KEY_BATCH];
    uint64_t hi[SLC_KEY_BATCH];
    uint32_t buckets[SLC_KEY_BATCH];
    const struct slc_scatter_batch batch = {.count = count,
                                            .ordinal = entries->first + begin,
                                            .buckets = buckets,
                                            .key_lo = lo,
                                            .key_hi = hi,
                                            .values = entries->values + begin};

    slc_key_tables_form(&frame->tables, entries->coords, begin, count, frame->index_base, lo, hi);
    slc_splitter_keys_find(&frame->splitters, lo, hi, count, buckets);
    return slc_scatter_add(&builder->scatter, worker, &batch, err);
}

enum slc_status slc_builder_push(struct slc_builder *builder,
                                 unsigned worker,
                                 const struct slc_entries *entries,
                                 struct slc_error *err)
{
    struct slc_scatter *scatter = &builder->scatter;
    enum slc_status status;

    assert(worker < builder->options.workers && entries->order == builder->order);
    if (entries->count == 0) {
        return SLC_OK;
    }
    status = slc_stop_check(builder->options.stop, err);
    if (status == SLC_OK) {
        status = fit_frame(builder, worker, entries, err);
    }
    if (entries->first == 0 || scatter->workers[worker].sequence != entries->sequence) {
        slc_scatter_piece(scatter, worker, entries->sequence);
    }
    for (uint32_t begin = 0; begin < entries->count && status == SLC_OK; begin += SLC_KEY_BATCH) {
        uint32_t count = (uint32_t)slc_min_u64(SLC_KEY_BATCH, entries->count - begin);

        if (builder->options.fibers == SLC_FIBERS_AUTO) {
            slc_fiber_counts_add(&builder->workers[worker].fibers, entries->coords, begin, count,
                                 builder->options.assumed_base);
        }
        if (!builder->workers[worker].frame->hopeless) {
            status = scatter_batch(builder, worker, entries, begin, count, err);
        }
    }
    builder->workers[worker].entries += entries->count;
    return status;
}

void slc_builder_note(struct slc_builder *builder, const struct slc_state *note)
{
    builder->last_note = note;
}

/*
 * What is no part of the finished store goes: memory, a spill file that has a name, and what names
 * it.
 */
static enum slc_status drop_spill(struct slc_builder *builder, bool noted, struct slc_error *err)
{
    enum slc_status status = slc_build_drop_commits(builder, noted, err);

    slc_build_release_push_memory(builder);
    return status == SLC_OK && builder->options.resumable
               ? slc_state_remove(builder->options.files, builder->folder.part, SLC_SPILL_NAME, err)
               : status;
}

/* Whether what has been done is worth the syncs that it takes to have it outlive a crash. */
static bool is_worth_noting(const struct slc_builder *builder)
{
    return builder->completable &&
           (builder->folder.keep || builder->options.note_complete ||
            slc_seconds_since(builder->start_ns) >= slc_build_interval(builder));
}

/*
 * Notes that the store is complete. After a commit that has to succeed, for the commit is dropped
 * then; without one, more can be lost where it does not, and all is well where nothing else fails.
 */
static enum slc_status note_complete(const struct slc_builder *builder,
                                     struct slc_complete *complete,
                                     struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;

    if (!is_worth_noting(builder)) {
        return SLC_OK;
    }
    if (builder->folder.keep) {
        complete->noted = true;
        return slc_complete_note(complete, err);
    }
    complete->noted = slc_complete_note(complete, &fault) == SLC_OK;
    if (!complete->noted) {
        /* What may be there of it would get into the store. */
        (void)!slc_state_remove(complete->folder->files, complete->folder->part,
                                SLC_COMPLETE_STATE_NAME, &fault);
    }
    return SLC_OK;
}

enum slc_status slc_builder_finish(struct slc_builder *builder,
                                   unsigned index_base,
                                   const uint64_t *dims,
                                   struct slc_store_origin *origin,
                                   struct slc_builder_report *report,
                                   struct slc_error *err)
{
    struct slc_builder_options options = builder->options;
    const bool relabels = options.relabel != SLC_RELABEL_NONE;
    struct slc_complete complete = {.options = &options,
                                    .folder = &builder->folder,
                                    .stage = relabels ? SLC_COMPLETE_PLAIN : SLC_COMPLETE_WHOLE,
                                    .report = report,
                                    .note = builder->last_note};
    enum slc_status status;

    *report = (struct slc_builder_report){.resumed = builder->resumed};
    /* A second sort is given memory and temporary folder of the first. */
    options.temp_folder = builder->temp_folder;
    status = slc_build_store(builder, index_base, dims, origin, report, err);
    if (status == SLC_OK) {
        status = note_complete(builder, &complete, err);
    }
    if (status == SLC_OK) {
        status = drop_spill(builder, complete.noted, err);
    }
    if (status == SLC_OK) {
        status = slc_complete_finish(&complete, err);
    }
    report->commit_seconds = builder->commit_cost_seconds;
    slc_builder_end(builder, status);
    return status;
}
