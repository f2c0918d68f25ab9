/* Implements the second half of the builder: defines the final keys (build_keys.c), passes the
 * buckets (build_queue.c) to the pipeline that sorts and encodes them, splits buckets that are
 * larger than a sort area, and writes the manifest. */
#include "convert/build/builder.h"
#include "convert/build/builder_internal.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/build/build_manifest.h"
#include "convert/build/build_memory.h"
#include "convert/build/build_output.h"
#include "convert/build/build_pipeline.h"
#include "convert/build/build_split.h"
#include "convert/build/build_tiles.h"

#include <assert.h>

struct finish {
    struct slc_builder *builder;
    struct slc_sort_plan plan;
    struct slc_build_queue queue;
    struct slc_sort_memory memory;
    struct slc_ahead_memory ahead;
    struct slc_buffer ahead_memory;
    struct slc_buffer areas;
    uint8_t **chunk_data;
    struct slc_buffer chunk_memory;
    struct slc_writer *writer;
    struct slc_tiles *tiles;
    struct slc_output *output;
    struct slc_build_progress *progress; /* NULL: the build is not resumable */
    struct slc_writer_kept kept;         /* blocks that an earlier run wrote */
    /* the last recorded progress that covers only kept nonzeros */
    struct slc_build_fact fact;
    struct slc_builder_report *report;
};

/* Plans one thread more than workers if chunks were spilled and every bucket still fits an area. */
static struct slc_sort_memory
plan_memory(const struct finish *finish, uint64_t needed, bool spilled)
{
    const struct slc_builder *builder = finish->builder;
    const struct slc_builder_options *options = &builder->options;
    uint64_t resident = slc_spill_resident_bytes(builder->spill);
    unsigned most = slc_sort_workers(options, spilled);
    struct slc_sort_memory plan = slc_sort_memory_plan(options, most, resident, needed);

    return plan.area_bytes >= needed
               ? plan
               : slc_sort_memory_plan(options, options->workers, resident, needed);
}

/* Divides the memory of the sort. Chunks that are in memory stay there if they and the sort fit the
 * budget together; otherwise they are written to the spill file. */
static enum slc_status divide_memory(struct finish *finish, bool regroup, struct slc_error *err)
{
    struct slc_builder *builder = finish->builder;
    uint64_t needed = 0;
    enum slc_status status = SLC_OK;

    for (uint32_t i = 0; i < finish->queue.top->count; i++) {
        needed = slc_max_u64(needed, finish->queue.top->buckets[i].area_bytes);
    }
    finish->memory = plan_memory(finish, needed, slc_spill_written_bytes(builder->spill) > 0);
    if (finish->memory.workers == 0 || finish->memory.area_bytes < needed || regroup) {
        uint64_t start = slc_clock_ns();

        status = slc_spill_shrink(builder->spill, err);
        finish->report->spill_seconds += slc_seconds_since(start);
        finish->memory = plan_memory(finish, regroup ? UINT64_MAX : needed, true);
    }
    if (slc_spill_written_bytes(builder->spill) > 0) {
        finish->ahead = slc_ahead_memory_plan(&builder->options, &finish->memory,
                                              slc_spill_resident_bytes(builder->spill),
                                              slc_spill_chunk_bytes(builder->spill));
    }
    return status;
}

/* Allocates the sort areas. Reuses the memory of the scatter buffers if it is large enough, because
 * its pages are mapped already. */
static enum slc_status allocate_areas(struct finish *finish, struct slc_error *err)
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

/* Opens the block file. New blocks follow those that an earlier run wrote, if any. */
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
                                               /* The journal is kept until the store is recorded as
                                                * complete. */
                                               .keep_journal = true};
    enum slc_status status = SLC_OK;

    if (!builder->folder.keep) {
        return slc_writer_open(&options, &finish->writer, err);
    }
    finish->progress = slc_calloc(1, sizeof *finish->progress);
    SLC_TRY(slc_check_memory(finish->progress != NULL, err, "to record the progress of the sort"));
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
allocate_memory(struct finish *finish, bool regroup, const uint64_t *dims, struct slc_error *err)
{
    struct slc_builder *builder = finish->builder;

    SLC_TRY(divide_memory(finish, regroup, err));
    unsigned workers = finish->memory.workers;
    assert(workers > 0);
    SLC_TRY(allocate_areas(finish, err));
    SLC_TRY(slc_buffer_create(&finish->chunk_memory, (size_t)workers * SLC_BUILD_FETCH_BYTES,
                              SLC_PAGES_SMALL, err));
    if (finish->ahead.buffers > 0) {
        SLC_TRY(slc_buffer_create(&finish->ahead_memory,
                                  (size_t)finish->ahead.buffers * finish->ahead.buffer_bytes,
                                  SLC_PAGES_SMALL, err));
    }
    finish->chunk_data = slc_calloc(workers, sizeof *finish->chunk_data);
    char *path = slc_path_join(builder->folder.part, SLC_BLCO_NAME);
    if (finish->chunk_data == NULL || path == NULL) {
        slc_free(path);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for sorting with %u threads", workers);
    }
    for (unsigned i = 0; i < workers; i++) {
        finish->chunk_data[i] =
            (uint8_t *)finish->chunk_memory.data + (size_t)i * SLC_BUILD_FETCH_BYTES;
    }
    enum slc_status status = open_writer(finish, path, dims, err);
    slc_free(path);
    if (status == SLC_OK && finish->progress != NULL) {
        status = slc_build_progress_load(finish->progress, finish->kept.nnz, &finish->fact, err);
        /* Recorded progress does not apply to regrouped buckets, which are all split again. */
        if (regroup) {
            finish->fact = (struct slc_build_fact){.buckets = 0};
        }
        finish->queue.top->next =
            (uint32_t)slc_min_u64(finish->fact.buckets, finish->queue.top->count);
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

/* Splits the first `count` buckets of the queue together, and replaces them with their parts. */
static enum slc_status split_front(struct finish *finish, uint32_t count, struct slc_error *err)
{
    struct slc_build_level *top = finish->queue.top;
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
    SLC_TRY(status);
    finish->report->recursions++;
    parts[part_count - 1].completes = top->buckets[top->next + count - 1].completes;
    top->next += count;
    return slc_build_queue_push(&finish->queue, parts, part_count, err);
}

/* Writes all buckets. Each call of the pipeline ends at the next bucket that must be split. */
static enum slc_status write_buckets(struct finish *finish, struct slc_error *err)
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
                                            .queue = &finish->queue,
                                            .builder = &finish->builder->options,
                                            .entries = finish->report->entries};
    enum slc_status status = SLC_OK;
    const struct slc_bucket *bucket;

    while (status == SLC_OK && (bucket = slc_build_queue_front(&finish->queue)) != NULL) {
        status = slc_stop_check(finish->plan.stop, err);
        if (status != SLC_OK) {
            break;
        }
        if (bucket->area_bytes > finish->memory.area_bytes) {
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

/* Ends the writer, and keeps the blocks if a later run can resume after them. */
static void end_writer(struct finish *finish, enum slc_status status)
{
    if (finish->writer != NULL && finish->progress != NULL &&
        slc_build_keeps(finish->builder, status)) {
        struct slc_error second = SLC_ERROR_INIT;

        /* Ignore a second fault: a later run verifies the kept blocks. */
        (void)!slc_writer_suspend(finish->writer, &second);
    } else {
        slc_writer_abandon(finish->writer);
    }
}

static void end_finish(struct finish *finish, enum slc_status status)
{
    slc_build_queue_clear(&finish->queue);
    end_writer(finish, status);
    slc_free(finish->progress);
    slc_output_destroy(finish->output);
    slc_tiles_destroy(finish->tiles);
    slc_buffer_destroy(&finish->areas);
    slc_buffer_destroy(&finish->ahead_memory);
    slc_buffer_destroy(&finish->chunk_memory);
    slc_free(finish->chunk_data);
    slc_build_keys_destroy(finish->builder, &finish->plan);
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
                                     .keep_zeros = builder->options.keep_zeros,
                                     .transforms = builder->options.transforms.count > 0
                                                       ? &builder->options.transforms
                                                       : NULL,
                                     .stop = builder->options.stop},
                            .queue = {.plan = &finish.plan},
                            .report = report};
    bool regroup = false;
    enum slc_status status = slc_build_keys(builder, dims, &finish.plan, report, &regroup, err);

    SLC_THEN(status, slc_build_queue_fill(&finish.queue, builder, regroup, &report->buckets, err));
    SLC_THEN(status, allocate_memory(&finish, regroup, dims, err));
    if (status == SLC_OK && regroup) {
        status = split_front(&finish, finish.queue.top->count, err);
    }
    SLC_THEN(status, write_buckets(&finish, err));
    if (status == SLC_OK) {
        struct slc_writer *writer = finish.writer;
        uint64_t start = slc_clock_ns();

        finish.writer = NULL;
        fill_report(&finish);
        status = slc_writer_finish(writer, &report->summary, err);
        report->write_seconds += slc_seconds_since(start);
    }
    end_finish(&finish, status); /* frees memory that `attach` needs for names */
    if (status == SLC_OK) {
        status = slc_build_manifest_write(
            &(struct slc_build_manifest){.files = builder->options.files,
                                         .folder = builder->folder.part,
                                         .order = builder->order,
                                         .dims = dims,
                                         .codec = builder->options.codec,
                                         .duplicates = builder->options.duplicates,
                                         .keep_zeros = builder->options.keep_zeros,
                                         .index_base = index_base,
                                         .attach = builder->options.attach,
                                         .attached = builder->options.attached,
                                         .report = report},
            origin, err);
    }
    return status;
}

enum slc_status
slc_build_drop_spill(struct slc_builder *builder, bool recorded, struct slc_error *err)
{
    enum slc_status status = slc_build_drop_commits(builder, recorded, err);

    slc_build_release_push_memory(builder);
    return status == SLC_OK && builder->options.resumable
               ? slc_state_remove(builder->options.files, builder->folder.part, SLC_SPILL_NAME, err)
               : status;
}

enum slc_status slc_builder_finish_plain(struct slc_builder *builder,
                                         unsigned index_base,
                                         const uint64_t *dims,
                                         struct slc_store_origin *origin,
                                         struct slc_builder_report *report,
                                         struct slc_error *err)
{
    *report = (struct slc_builder_report){.resumed = builder->resumed};
    enum slc_status status = slc_build_store(builder, index_base, dims, origin, report, err);
    SLC_THEN(status, slc_build_drop_spill(builder, false, err));
    SLC_THEN(status, slc_build_folder_publish(&builder->folder, err));
    report->commit_seconds = builder->commit_cost_seconds;
    slc_builder_end(builder, status);
    return status;
}
