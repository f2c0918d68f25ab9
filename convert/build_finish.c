/*
 * The second half of the builder: gives the buckets in key order to the pipeline that sorts and
 * encodes them; splits those that are larger than a sort area. Then the manifest.
 */
#include "convert/builder_internal.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "convert/build_fibers.h"
#include "convert/build_manifest.h"
#include "convert/build_memory.h"
#include "convert/build_output.h"
#include "convert/build_pipeline.h"
#include "convert/build_split.h"
#include "convert/build_tiles.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Buckets still to be written, in key order: the parts of a split bucket stand before the rest. */
struct level {
    struct level *below;
    struct slc_bucket *buckets;
    uint32_t count;
    uint32_t next;
};

struct finish {
    struct slc_builder *builder;
    struct slc_sort_plan plan;
    struct slc_recoder *recoders; /* per frame */
    struct level *top;
    struct slc_sort_memory memory;
    struct slc_ahead_memory ahead;
    struct slc_buffer ahead_memory;
    struct slc_buffer areas;
    uint8_t **chunk_data;
    struct slc_buffer chunk_memory;
    struct slc_writer *writer;
    struct slc_tiles *tiles;
    struct slc_output *output;
    struct slc_build_progress *progress; /* NULL: the build cannot be resumed */
    struct slc_writer_kept kept;         /* what an earlier run wrote */
    struct slc_build_fact fact;          /* the last about no more than that */
    struct slc_builder_report *report;
    uint64_t taken; /* entries of the buckets that are being sorted, or are in the file */
};

/* Every coordinate pushed against the base and the lengths; workers kept the ranges. */
static enum slc_status
check_ranges(const struct finish *finish, const uint64_t *dims, struct slc_error *err)
{
    const struct slc_builder *builder = finish->builder;
    unsigned base = (unsigned)finish->plan.index_base;
    unsigned mode, worker;

    for (mode = 0; mode < builder->order; mode++) {
        for (worker = 0; worker < builder->options.workers; worker++) {
            const struct slc_builder_worker *w = &builder->workers[worker];

            if (w->frame == NULL) {
                continue; /* pushed nothing */
            }
            if (w->smallest[mode] < base) {
                return slc_fail(err, SLC_ERR_INPUT,
                                "index %" PRIu64 " occurs in mode %u, but indices start at %u",
                                w->smallest[mode], mode + 1, base);
            }
            if (w->largest[mode] - base >= dims[mode]) {
                return slc_fail(err, SLC_ERR_INPUT,
                                "index %" PRIu64 " occurs in mode %u, whose length is %" PRIu64
                                " with indices from %u",
                                w->largest[mode], mode + 1, dims[mode], base);
            }
        }
    }
    return SLC_OK;
}

static enum slc_status
push_level(struct finish *finish, struct slc_bucket *buckets, uint32_t count, struct slc_error *err)
{
    struct level *level = slc_malloc(sizeof *level);

    if (level == NULL) {
        slc_free(buckets);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a list of buckets");
    }
    *level = (struct level){finish->top, buckets, count, 0};
    finish->top = level;
    return SLC_OK;
}

static void pop_level(struct finish *finish)
{
    struct level *level = finish->top;

    finish->top = level->below;
    slc_free(level->buckets);
    slc_free(level);
}

/* The key of a splitter. False for one that the sample had and the lengths do not allow. */
static bool splitter_key(const struct finish *finish, uint32_t splitter, slc_u128 *key)
{
    const struct slc_splitters *splitters = &finish->builder->splitters;
    const uint64_t *coords = splitters->coords + (size_t)splitter * splitters->order;
    unsigned mode;

    for (mode = 0; mode < splitters->order; mode++) {
        if (slc_bits_for_length(coords[mode] + 1) > finish->plan.layout.mode_bits[mode]) {
            return false;
        }
    }
    *key = slc_key_encode(&finish->plan.layout, coords);
    return true;
}

/* What keys the buckets hold, as far as splitters tell; all are possible in regrouped ones. */
static void set_ranges(const struct finish *finish, struct slc_bucket *buckets, bool regroup)
{
    uint32_t count = finish->builder->bucket_count;
    unsigned bits = finish->plan.layout.bits;
    slc_u128 most = bits == 0 ? 0 : ~(slc_u128)0 >> (128 - bits);
    slc_u128 first = 0;
    slc_u128 next = 0;
    uint32_t i;

    for (i = 0; i < count; i++) {
        bool bounded = !regroup && i + 1 < count && splitter_key(finish, i, &next);

        buckets[i].first = first;
        buckets[i].last = bounded ? next - 1 : most;
        first = bounded ? next : first;
    }
}

/* The buckets that the push filled become the first level; its buffers are given back. */
static enum slc_status take_buckets(struct finish *finish, bool regroup, struct slc_error *err)
{
    struct slc_builder *builder = finish->builder;
    uint32_t count = builder->bucket_count;
    struct slc_bucket *buckets = slc_calloc(count, sizeof *buckets);
    uint32_t i;

    if (buckets == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %u buckets", count);
    }
    for (i = 0; i < count; i++) {
        buckets[i].chain = builder->chains[i];
        buckets[i].completes = regroup ? 0 : i + 1;
        finish->report->buckets += buckets[i].chain.entries > 0;
    }
    set_ranges(finish, buckets, regroup);
    slc_free(builder->chains);
    builder->chains = NULL;
    slc_splitters_destroy(&builder->splitters);
    return push_level(finish, buckets, count, err);
}

static uint64_t need_of(const struct finish *finish, const struct slc_bucket *bucket)
{
    return slc_bucket_area_bytes(&finish->plan, bucket);
}

/* With one more thread where areas stay large enough for every bucket then. */
static struct slc_sort_memory
plan_memory(const struct finish *finish, uint64_t wanted, bool spilled)
{
    const struct slc_builder *builder = finish->builder;
    const struct slc_builder_options *options = &builder->options;
    uint64_t resident = slc_spill_resident_bytes(builder->spill);
    unsigned most = slc_sort_workers(options, spilled);
    struct slc_sort_memory plan = slc_sort_memory_plan(options, most, resident, wanted);

    return plan.area_bytes >= wanted
               ? plan
               : slc_sort_memory_plan(options, options->workers, resident, wanted);
}

/* Divides memory: chunks that are still in memory stay there if sorting fits beside them. */
static enum slc_status divide_memory(struct finish *finish, bool regroup, struct slc_error *err)
{
    struct slc_builder *builder = finish->builder;
    uint64_t wanted = 0;
    enum slc_status status = SLC_OK;
    uint32_t i;

    for (i = 0; i < finish->top->count; i++) {
        wanted = slc_max_u64(wanted, need_of(finish, &finish->top->buckets[i]));
    }
    finish->memory = plan_memory(finish, wanted, slc_spill_written_bytes(builder->spill) > 0);
    if (finish->memory.workers == 0 || finish->memory.area_bytes < wanted || regroup) {
        uint64_t start = slc_clock_ns();

        status = slc_spill_shrink(builder->spill, err);
        finish->report->spill_seconds += slc_seconds_since(start);
        finish->memory = plan_memory(finish, regroup ? UINT64_MAX : wanted, true);
    }
    if (slc_spill_written_bytes(builder->spill) > 0) {
        finish->ahead = slc_ahead_memory_plan(&builder->options, &finish->memory,
                                              slc_spill_resident_bytes(builder->spill),
                                              slc_spill_chunk_bytes(builder->spill));
    }
    return status;
}

/* In the memory that rows were scattered to, if there is enough: its pages are there already. */
static enum slc_status take_areas(struct finish *finish, struct slc_error *err)
{
    struct slc_buffer *scattered = &finish->builder->scatter_memory;
    uint64_t area_bytes = finish->memory.area_bytes;
    uint64_t bytes = finish->memory.workers * area_bytes;

    if (scattered->bytes >= bytes) {
        finish->areas = *scattered;
        *scattered = (struct slc_buffer)SLC_BUFFER_INIT;
        slc_buffer_shrink(&finish->areas, bytes);
        return SLC_OK;
    }
    slc_buffer_destroy(scattered);
    return slc_buffer_create(
        &finish->areas, bytes,
        area_bytes >= SLC_BUILD_HUGE_AREA_BYTES ? SLC_PAGES_HUGE : SLC_PAGES_SMALL, err);
}

/* The block file, behind what an earlier run wrote of it where the build can be resumed. */
static enum slc_status
open_writer(struct finish *finish, const char *path, const uint64_t *dims, struct slc_error *err)
{
    struct slc_builder *builder = finish->builder;
    const struct slc_writer_options options = {.files = builder->options.files,
                                               .path = path,
                                               .layout = SLC_LAYOUT_BLCO,
                                               .order = builder->order,
                                               .dims = dims,
                                               .run = finish->plan.layout.run,
                                               .relabelled_modes =
                                                   builder->options.relabelled_modes,
                                               .codec = builder->options.codec,
                                               .block_bytes = builder->options.block_bytes,
                                               /* Until the store is noted to be complete. */
                                               .keep_journal = true};
    enum slc_status status;

    if (!builder->folder.keep) {
        return slc_writer_open(&options, &finish->writer, err);
    }
    finish->progress = slc_calloc(1, sizeof *finish->progress);
    if (finish->progress == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory to note how far the sort is");
    }
    finish->progress->files = builder->options.files;
    finish->progress->folder = builder->folder.part;
    finish->progress->tag = slc_build_tag(builder);
    finish->progress->seconds = slc_build_interval(builder);
    status =
        slc_writer_resume(&options, finish->progress->tag, 1, &finish->writer, &finish->kept, err);
    finish->report->kept_nnz = finish->kept.nnz;
    return status;
}

static enum slc_status
take_memory(struct finish *finish, bool regroup, const uint64_t *dims, struct slc_error *err)
{
    struct slc_builder *builder = finish->builder;
    unsigned workers, i;
    char *path;
    enum slc_status status = divide_memory(finish, regroup, err);

    if (status != SLC_OK) {
        return status;
    }
    workers = finish->memory.workers;
    assert(workers > 0);
    status = take_areas(finish, err);
    if (status == SLC_OK) {
        status = slc_buffer_create(&finish->chunk_memory, (size_t)workers * SLC_BUILD_FETCH_BYTES,
                                   SLC_PAGES_SMALL, err);
    }
    if (status == SLC_OK && finish->ahead.buffers > 0) {
        status = slc_buffer_create(&finish->ahead_memory,
                                   (size_t)finish->ahead.buffers * finish->ahead.buffer_bytes,
                                   SLC_PAGES_SMALL, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    finish->chunk_data = slc_calloc(workers, sizeof *finish->chunk_data);
    path = slc_path_join(builder->folder.part, SLC_BLCO_NAME);
    if (finish->chunk_data == NULL || path == NULL) {
        slc_free(path);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for sorting with %u threads", workers);
    }
    for (i = 0; i < workers; i++) {
        finish->chunk_data[i] =
            (uint8_t *)finish->chunk_memory.data + (size_t)i * SLC_BUILD_FETCH_BYTES;
    }
    status = open_writer(finish, path, dims, err);
    slc_free(path);
    if (status == SLC_OK && finish->progress != NULL) {
        status = slc_build_progress_load(finish->progress, finish->kept.nnz, &finish->fact, err);
        /* Where buckets are put together, all of them are sorted once more. */
        if (regroup) {
            finish->fact = (struct slc_build_fact){.buckets = 0};
        }
        finish->top->next = (uint32_t)slc_min_u64(finish->fact.buckets, finish->top->count);
    }
    if (status == SLC_OK) {
        status = slc_tiles_create(&(struct slc_tiles_options){.layout = &finish->plan.layout,
                                                              .codec = builder->options.codec,
                                                              .dims = dims,
                                                              .workers = workers,
                                                              .writer = finish->writer},
                                  &finish->tiles, err);
    }
    if (status == SLC_OK) {
        status = slc_output_create(
            &(struct slc_output_options){.plan = &finish->plan,
                                         .dims = dims,
                                         .workers = workers,
                                         .tiles = finish->tiles,
                                         .fact = finish->fact,
                                         .written = finish->kept.nnz - finish->fact.nnz,
                                         .last_key = finish->kept.last_key,
                                         .progress = finish->progress},
            &finish->output, err);
    }
    return status;
}

/* Splits `count` buckets at the front of the top level and puts the parts in their place. */
static enum slc_status split_front(struct finish *finish, uint32_t count, struct slc_error *err)
{
    struct level *top = finish->top;
    uint64_t start = slc_clock_ns();
    struct slc_bucket *parts = NULL;
    uint32_t part_count = 0;
    struct slc_split_options options = {.plan = &finish->plan,
                                        .workers = finish->memory.workers,
                                        .area_bytes = finish->memory.area_bytes,
                                        .memory = finish->areas.data,
                                        .memory_bytes =
                                            finish->memory.workers * finish->memory.area_bytes,
                                        .chunk_data = finish->chunk_data};
    enum slc_status status =
        slc_build_split(&options, &top->buckets[top->next], count, &parts, &part_count, err);

    finish->report->spill_seconds += slc_seconds_since(start);
    if (status != SLC_OK) {
        return status;
    }
    finish->report->recursions++;
    parts[part_count - 1].completes = top->buckets[top->next + count - 1].completes;
    top->next += count;
    return push_level(finish, parts, part_count, err);
}

/* The next bucket in key order, NULL at the end. It stays on its level until `next` is moved. */
static struct slc_bucket *front(struct finish *finish)
{
    while (finish->top != NULL && finish->top->next == finish->top->count) {
        pop_level(finish);
    }
    return finish->top == NULL ? NULL : &finish->top->buckets[finish->top->next];
}

/* For the pipeline: the front bucket, unless it has to be split first. */
static bool next_bucket(void *context, struct slc_bucket *bucket)
{
    struct finish *finish = context;
    const struct slc_builder_options *options = &finish->builder->options;
    struct slc_bucket *next = front(finish);

    if (next == NULL || need_of(finish, next) > finish->memory.area_bytes) {
        return false;
    }
    *bucket = *next;
    finish->top->next++;
    finish->taken += next->chain.entries;
    if (options->progress != NULL) {
        options->progress(options->context, "sort", finish->taken, finish->report->entries);
    }
    return true;
}

/* Buckets to the file, as many at a time as stand before one that has to be split. */
static enum slc_status run(struct finish *finish, struct slc_error *err)
{
    struct slc_pipeline_options pipeline = {.plan = &finish->plan,
                                            .workers = finish->memory.workers,
                                            .areas = finish->areas.data,
                                            .area_bytes = finish->memory.area_bytes,
                                            .chunk_data = finish->chunk_data,
                                            .ahead_memory = finish->ahead_memory.data,
                                            .ahead_buffers = finish->ahead.buffers,
                                            .ahead_bytes = finish->ahead.buffer_bytes,
                                            .tiles = finish->tiles,
                                            .output = finish->output,
                                            .next = next_bucket,
                                            .context = finish};
    enum slc_status status = SLC_OK;
    const struct slc_bucket *bucket;

    while (status == SLC_OK && (bucket = front(finish)) != NULL) {
        if (need_of(finish, bucket) > finish->memory.area_bytes) {
            status = split_front(finish, 1, err);
        } else {
            slc_spill_freeze(finish->plan.spill, true);
            status = slc_pipeline_run(&pipeline, &finish->report->sort_seconds, err);
            slc_spill_freeze(finish->plan.spill, false);
        }
    }
    return status == SLC_OK ? slc_output_finish(finish->output, err) : status;
}

static void fill_report(struct finish *finish)
{
    const struct slc_sort_counts *counts = slc_output_counts(finish->output);
    struct slc_builder_report *report = finish->report;

    report->duplicates = counts->duplicates;
    report->explicit_zeros = counts->explicit_zeros;
    report->rounded_values = counts->rounded_values;
    report->spill_bytes = slc_spill_written_bytes(finish->builder->spill);
    report->spill_seconds += slc_spill_seconds(finish->builder->spill);
    slc_tiles_seconds(finish->tiles, &report->encode_seconds, &report->write_seconds);
}

/* Whether buckets were cut for another base or another run, which is said. */
static bool must_regroup(const struct finish *finish)
{
    const struct slc_builder *builder = finish->builder;
    const struct slc_fiber_run *run = &finish->report->fibers.run;
    const struct slc_fiber_run *assumed = &builder->splitters.run;
    unsigned base = (unsigned)finish->plan.index_base;

    if (builder->bucket_count == 1 || finish->report->entries == 0) {
        return false;
    }
    if (base != builder->options.assumed_base) {
        slc_log(SLC_LOG_NOTE,
                "indices start at %u, not at %u as the sample suggested: sorting again", base,
                builder->options.assumed_base);
        return true;
    }
    if (run->mode != assumed->mode || run->bits != assumed->bits) {
        slc_log(SLC_LOG_NOTE, "fibers are kept together otherwise than the sample suggested: "
                              "sorting again");
        return true;
    }
    return false;
}

/* From the keys of every frame to final ones. */
static enum slc_status make_recoders(struct finish *finish, struct slc_error *err)
{
    const struct slc_key_frames *frames = &finish->builder->frames;
    enum slc_status status = SLC_OK;

    finish->recoders = slc_calloc(frames->count + (size_t)1, sizeof *finish->recoders);
    if (finish->recoders == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %u widths of keys", frames->count);
    }
    for (uint32_t i = 0; i < frames->count && status == SLC_OK; i++) {
        const struct slc_key_frame *frame = frames->list[i];

        if (frame->hopeless) {
            /* Lengths that are within reach after all: they end where the base makes a bit. */
            status = slc_fail(err, SLC_ERR_UNSUPPORTED,
                              "indices from %u need more than %d bits together: state the index "
                              "base and the lengths, so that no wrong one is tried",
                              (unsigned)frame->index_base, SLC_MAX_KEY_BITS);
        } else {
            status = slc_recoder_init(&finish->recoders[i], &frame->layout, frame->index_base,
                                      &finish->plan.layout, &finish->plan.tables,
                                      finish->plan.index_base, err);
        }
    }
    finish->plan.recoders = finish->recoders;
    finish->plan.frame_count = frames->count;
    finish->plan.resumed = finish->builder->resumed;
    return status;
}

/* Flushes what workers still hold and prepares keys; *regroup: buckets were cut for others. */
static enum slc_status
prepare(struct finish *finish, const uint64_t *dims, bool *regroup, struct slc_error *err)
{
    struct slc_builder *builder = finish->builder;
    unsigned worker;
    enum slc_status status = slc_scatter_flush_all(&builder->scatter, err);

    for (worker = 0; worker < builder->options.workers; worker++) {
        finish->report->entries += builder->workers[worker].entries;
    }
    if (status == SLC_OK) {
        status = check_ranges(finish, dims, err);
    }
    if (finish->plan.index_base != builder->options.assumed_base) {
        slc_buffer_destroy(&builder->scatter_memory); /* counting once more takes memory, too */
    }
    if (status == SLC_OK) {
        status = slc_build_fibers_settle(builder, (unsigned)finish->plan.index_base,
                                         &finish->report->fibers, err);
    }
    if (status == SLC_OK) {
        status = slc_key_layout_init_run(&finish->plan.layout, builder->order, dims,
                                         finish->report->fibers.run, err);
    }
    if (status == SLC_OK) {
        status = slc_key_tables_init(&finish->plan.tables, &finish->plan.layout, err);
    }
    if (status == SLC_OK) {
        status = make_recoders(finish, err);
    }
    finish->plan.spill = builder->spill;
    *regroup = status == SLC_OK && must_regroup(finish);
    return status;
}

/* Blocks stay where a later run can go on behind them. */
static void end_writer(struct finish *finish, enum slc_status status)
{
    if (finish->writer != NULL && finish->progress != NULL &&
        slc_build_keeps(finish->builder, status)) {
        struct slc_error second = SLC_ERROR_INIT;

        /* The first fault is what the caller hears of; a later run verifies what was kept. */
        (void)!slc_writer_suspend(finish->writer, &second);
    } else {
        slc_writer_abandon(finish->writer);
    }
}

static void end(struct finish *finish, enum slc_status status)
{
    while (finish->top != NULL) {
        pop_level(finish);
    }
    end_writer(finish, status);
    slc_free(finish->progress);
    slc_output_destroy(finish->output);
    slc_tiles_destroy(finish->tiles);
    slc_buffer_destroy(&finish->areas);
    slc_buffer_destroy(&finish->ahead_memory);
    slc_buffer_destroy(&finish->chunk_memory);
    slc_free(finish->chunk_data);
    for (uint32_t i = 0; finish->recoders != NULL && i < finish->builder->frames.count; i++) {
        slc_recoder_destroy(&finish->recoders[i]);
    }
    slc_free(finish->recoders);
    slc_key_tables_destroy(&finish->plan.tables);
}

enum slc_status slc_build_store(struct slc_builder *builder,
                                unsigned index_base,
                                const uint64_t *dims,
                                struct slc_store_origin *origin,
                                struct slc_builder_report *report,
                                struct slc_error *err)
{
    struct finish finish = {.builder = builder,
                            .plan = {.index_base = index_base,
                                     .duplicates = builder->options.duplicates,
                                     .value = builder->options.value,
                                     .transforms = builder->options.transforms.count > 0
                                                       ? &builder->options.transforms
                                                       : NULL},
                            .report = report};
    enum slc_status status;
    bool regroup = false;

    status = prepare(&finish, dims, &regroup, err);
    if (status == SLC_OK) {
        status = take_buckets(&finish, regroup, err);
    }
    if (status == SLC_OK) {
        status = take_memory(&finish, regroup, dims, err);
    }
    if (status == SLC_OK && regroup) {
        status = split_front(&finish, finish.top->count, err);
    }
    if (status == SLC_OK) {
        status = run(&finish, err);
    }
    if (status == SLC_OK) {
        struct slc_writer *writer = finish.writer;
        uint64_t start = slc_clock_ns();

        finish.writer = NULL;
        fill_report(&finish);
        status = slc_writer_finish(writer, &report->summary, err);
        report->write_seconds += slc_seconds_since(start);
    }
    if (status == SLC_OK) {
        status = slc_build_manifest_write(
            &(struct slc_build_manifest){.files = builder->options.files,
                                         .folder = builder->folder.part,
                                         .order = builder->order,
                                         .dims = dims,
                                         .codec = builder->options.codec,
                                         .duplicates = builder->options.duplicates,
                                         .index_base = index_base,
                                         .attach = builder->options.attach,
                                         .attached = builder->options.attached,
                                         .report = report},
            origin, err);
    }
    end(&finish, status);
    return status;
}
