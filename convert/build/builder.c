/* Creates a builder, pushes entries and ends the builder. Entries are pushed in batches of
 * SLC_KEY_BATCH: first the buckets of a batch are found, then its rows are scattered. */
#include "convert/build/builder.h"

#include "base/column_range.h"
#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/build_fibers.h"
#include "convert/build/build_memory.h"
#include "convert/build/builder_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the path of the spill file. In the user's folder, its name is unique per run. */
static char *spill_path(const struct slc_builder *builder, const char *temp_folder)
{
    char name[64];

    if (temp_folder == NULL) {
        return slc_path_join(builder->folder.part, SLC_SPILL_NAME);
    }
    snprintf(name, sizeof name, "sluice-spill-%ld-%" PRIx64 ".tmp", (long)getpid(), slc_clock_ns());
    return slc_path_join(temp_folder, name);
}

static enum slc_status
check_options(const struct slc_builder_options *options, unsigned order, struct slc_error *err)
{
    if (order == 0 || order > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "a tensor of %u modes: must be 1 to %d", order,
                        SLC_MAX_ORDER);
    }
    if (options->workers == 0 || options->workers > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads: must be 1 to %d", options->workers,
                        SLC_MAX_THREADS);
    }
    if (options->assumed_base > 1) {
        return slc_fail(err, SLC_ERR_USAGE, "index base %u: must be 0 or 1", options->assumed_base);
    }
    if (options->block_bytes != 0 && (options->block_bytes < SLC_MIN_BLOCK_BYTES ||
                                      options->block_bytes > SLC_MAX_BLOCK_BYTES)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a block size of %" PRIu64 " bytes: must be %" PRIu64 " to %" PRIu64,
                        options->block_bytes, SLC_MIN_BLOCK_BYTES, SLC_MAX_BLOCK_BYTES);
    }
    uint64_t least = slc_builder_memory_min(options, order);
    if (options->memory_bytes < least) {
        return slc_fail_budget(err, options->memory_bytes, least,
                               "building a store of %u modes with %u threads", order,
                               options->workers);
    }
    return SLC_OK;
}

/* Reports a missing temporary folder at once, because the spill file may be created much later. */
static enum slc_status check_temp_folder(const struct slc_builder_options *options,
                                         struct slc_error *err)
{
    struct slc_file_stat stat;

    if (options->temp_folder == NULL) {
        return SLC_OK;
    }
    int code = options->files->stat_path(options->files->self, options->temp_folder, &stat);
    if (code >= 0 && stat.kind != 'd') {
        code = -ENOTDIR;
    }
    return slc_check_call(code, err, options->temp_folder, "temporary folder");
}

enum slc_status slc_builder_create(const struct slc_builder_options *options,
                                   unsigned order,
                                   struct slc_builder **builder,
                                   struct slc_error *err)
{
    SLC_TRY(check_options(options, order, err));
    struct slc_builder *b = slc_calloc(1, sizeof *b);
    SLC_TRY(slc_check_memory(b != NULL, err, "for the builder"));
    b->options = *options;
    b->options.files = slc_files_or_system(options->files);
    /* A spill file in a folder of the user's choice must not remain, because its owner would be
     * unknown. */
    b->options.resumable = options->resumable && options->temp_folder == NULL;
    b->completable = options->resumable || options->completable;
    b->order = order;
    b->workers = slc_calloc(options->workers, sizeof *b->workers);
    enum slc_status status = slc_check_memory(b->workers != NULL, err, "for the builder");
    SLC_THEN(status, check_temp_folder(&b->options, err));
    SLC_THEN(status, slc_build_folder_create(&b->folder, b->options.files, options->output,
                                             options->overwrite, b->completable, err));
    if (status == SLC_OK) {
        const char *temp = options->temp_folder;

        b->spill_path = spill_path(b, temp);
        b->temp_folder = temp != NULL ? slc_strdup(temp) : NULL;
        status = slc_check_memory(b->spill_path != NULL && (temp == NULL || b->temp_folder != NULL),
                                  err, "for the path of the spill file");
    }
    if (status == SLC_OK) {
        b->options.output = NULL;
        b->options.temp_folder = NULL;
        status = slc_build_fibers_start(b, err);
    }
    SLC_THEN(status, slc_builder_restore(b, err));
    if (status == SLC_OK && !b->resumed) {
        status = slc_build_allocate_push_memory(b, 1, NULL, err);
    }
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

/* Returns at most SLC_SPLITTER_SAMPLE_MAX evenly spaced rows of the sample, after subtracting the
 * assumed index base. */
static uint64_t *
sample_rows(const struct slc_entries *sample, unsigned order, unsigned base, uint32_t *count)
{
    uint32_t taken = (uint32_t)slc_min_u64(sample->count, SLC_SPLITTER_SAMPLE_MAX);
    uint64_t *rows = slc_malloc(((size_t)taken + 1) * order * sizeof *rows);

    for (uint32_t i = 0; rows != NULL && i < taken; i++) {
        uint64_t at = (uint64_t)i * sample->count / taken;

        for (unsigned mode = 0; mode < order; mode++) {
            uint64_t coord = sample->coords[mode][at];

            rows[(size_t)i * order + mode] = coord >= base ? coord - base : 0;
        }
    }
    *count = taken;
    return rows;
}

enum slc_status slc_builder_sample(struct slc_builder *builder,
                                   const struct slc_entries *sample,
                                   uint32_t stretches,
                                   uint64_t entries_expected,
                                   struct slc_error *err)
{
    struct slc_fiber_run run;
    uint32_t count;

    assert(sample->order == builder->order && !builder->resumed);
    builder->entries_expected = entries_expected;
    slc_build_release_push_memory(builder);
    slc_splitters_destroy(&builder->splitters);
    uint64_t *rows = sample_rows(sample, builder->order, builder->options.assumed_base, &count);
    SLC_TRY(slc_check_memory(rows != NULL, err, "for a sample of %u coordinates", count));
    uint32_t buckets = slc_build_bucket_count(&builder->options, sample, entries_expected);
    enum slc_status status = slc_build_fibers_assume(
        builder, rows, count, stretches < count ? stretches : count, entries_expected, &run, err);
    SLC_THEN(status, slc_splitters_choose(&builder->splitters, builder->order, run, rows, count,
                                          buckets, err));
    slc_free(rows);
    SLC_TRY(status);
    return slc_build_allocate_push_memory(builder, builder->splitters.count + 1, NULL, err);
}

/* Extends the worker's ranges of coordinates to include the entries, and changes to a larger key
 * frame if necessary. */
static enum slc_status fit_frame(struct slc_builder *builder,
                                 unsigned worker,
                                 const struct slc_entries *entries,
                                 struct slc_error *err)
{
    struct slc_builder_worker *w = &builder->workers[worker];

    if (w->frame == NULL) {
        memset(w->smallest, 0xff, sizeof w->smallest);
    }
    for (unsigned mode = 0; mode < builder->order; mode++) {
        slc_column_range(entries->coords[mode], entries->count, &w->smallest[mode],
                         &w->largest[mode]);
    }
    SLC_TRY(
        slc_key_frames_fit(&builder->frames, w->frame, w->smallest, w->largest, &w->frame, err));
    if (!w->frame->hopeless && builder->scatter.workers[worker].frame != w->frame->number) {
        SLC_TRY(
            slc_scatter_frame(&builder->scatter, worker, w->frame->number, w->frame->ranges, err));
    }
    return SLC_OK;
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

    assert(worker < builder->options.workers && entries->order == builder->order);
    if (entries->count == 0) {
        return SLC_OK;
    }
    enum slc_status status = slc_stop_check(builder->options.stop, err);
    SLC_THEN(status, fit_frame(builder, worker, entries, err));
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

void slc_builder_set_note(struct slc_builder *builder, const struct slc_state *note)
{
    builder->last_note = note;
}
