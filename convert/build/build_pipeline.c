/* Sorts and encodes buckets. An area is in one of four states: free, taken (its bucket is being
 * sorted), sorted, or lent (cut into tiles, some of which are not in the file yet). The lock of
 * struct slc_tiles protects the state of the pipeline.
 *
 * Sorted buckets are cut into tiles in key order, by any worker that finds the next bucket sorted.
 * If a bucket cannot be sorted, the error is reported only when the bucket's turn to be cut comes.
 * The reported error is therefore the error of the first such bucket in key order, for any number
 * of workers.
 *
 * The next bucket to be sorted is chosen early, so that its chunks can be read ahead. */
#include "convert/build/build_pipeline.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/build/builder_internal.h"

enum area_state { AREA_FREE, AREA_TAKEN, AREA_SORTED, AREA_LENT };

struct area {
    enum area_state state;
    uint64_t ordinal; /* ordinal of its bucket */
    struct slc_bucket bucket;
    struct slc_sorted sorted;
    uint32_t borrowed; /* number of its tiles that are not in the file yet */
    struct slc_error err;
};

struct pipeline {
    const struct slc_pipeline_options *options;
    struct area *areas;
    struct slc_read_ahead *ahead;     /* NULL: no reading ahead */
    struct slc_bucket upcoming;       /* the next bucket to be sorted, unless `exhausted` */
    struct slc_read_request *request; /* requests the chunks of `upcoming` */
    uint64_t next_sort;               /* ordinal of the next bucket to be sorted */
    uint64_t next_cut;
    bool cutting;   /* a worker is cutting buckets into tiles; at most one at a time */
    bool exhausted; /* there is no upcoming bucket */
    uint64_t sort_ns;
};

/* Returns a free area; NULL: none. */
static struct area *free_area(const struct pipeline *pipeline)
{
    for (unsigned i = 0; i < pipeline->options->workers; i++) {
        struct area *area = &pipeline->areas[i];

        if (area->state == AREA_LENT && area->borrowed == 0) {
            area->state = AREA_FREE;
        }
        if (area->state == AREA_FREE) {
            return area;
        }
    }
    return NULL;
}

static bool all_free(const struct pipeline *pipeline)
{
    for (unsigned i = 0; i < pipeline->options->workers; i++) {
        const struct area *area = &pipeline->areas[i];

        if (area->state != AREA_FREE && (area->state != AREA_LENT || area->borrowed > 0)) {
            return false;
        }
    }
    return true;
}

/* Returns the area of the next bucket to be cut; NULL if that bucket is not sorted yet. */
static struct area *next_to_cut(const struct pipeline *pipeline)
{
    for (unsigned i = 0; i < pipeline->options->workers; i++) {
        struct area *area = &pipeline->areas[i];

        if (area->state == AREA_SORTED && area->ordinal == pipeline->next_cut) {
            return area;
        }
    }
    return NULL;
}

/* Cuts sorted buckets whose turn it is, unless another worker is cutting. */
static void cut_sorted(struct pipeline *pipeline, unsigned worker)
{
    const struct slc_pipeline_options *options = pipeline->options;
    struct area *area;

    if (pipeline->cutting) {
        return;
    }
    pipeline->cutting = true;
    while (!slc_tiles_failed(options->tiles) && (area = next_to_cut(pipeline)) != NULL) {
        slc_tiles_unlock(options->tiles);
        if (area->err.status == SLC_OK) {
            area->err.status = slc_output_add(options->output, worker, &area->bucket, &area->sorted,
                                              &area->borrowed, &area->err);
        }
        slc_tiles_lock(options->tiles);
        if (area->err.status != SLC_OK) {
            slc_tiles_fail(options->tiles, &area->err);
        }
        area->state = AREA_LENT;
        pipeline->next_cut++;
    }
    pipeline->cutting = false;
    slc_tiles_wake(options->tiles);
}

/* Makes the next bucket of the queue the upcoming bucket and requests its chunks. */
static void look_ahead(struct pipeline *pipeline)
{
    const struct slc_pipeline_options *options = pipeline->options;

    pipeline->exhausted =
        !slc_build_queue_next(options->queue, options->area_bytes, &pipeline->upcoming);
    if (pipeline->exhausted) {
        return;
    }
    if (options->builder->progress != NULL) {
        options->builder->progress(options->builder->context, "sort", options->queue->taken,
                                   options->entries);
    }
    if (pipeline->ahead != NULL) {
        pipeline->request = slc_read_ahead_request(pipeline->ahead, pipeline->upcoming.chain.last);
    }
}

/* Sorts the upcoming bucket. Returns false if there is no such bucket or no free area. */
static bool sort_next(struct pipeline *pipeline, unsigned worker)
{
    const struct slc_pipeline_options *options = pipeline->options;
    struct area *area = pipeline->exhausted ? NULL : free_area(pipeline);
    struct slc_bucket_source source = {options->chunk_data[worker], pipeline->ahead, NULL};
    uint8_t *memory = options->areas;

    if (area == NULL) {
        return false;
    }
    area->bucket = pipeline->upcoming;
    source.request = pipeline->request;
    area->state = AREA_TAKEN;
    area->ordinal = pipeline->next_sort++;
    slc_error_clear(&area->err);
    look_ahead(pipeline);
    slc_tiles_unlock(options->tiles);
    uint64_t start = slc_clock_ns();
    memory += (uint64_t)(area - pipeline->areas) * options->area_bytes;
    area->err.status =
        slc_bucket_sort(options->plan, &area->bucket, memory, &source, &area->sorted, &area->err);
    start = slc_clock_ns() - start;
    slc_tiles_lock(options->tiles);
    pipeline->sort_ns += start;
    area->state = AREA_SORTED;
    cut_sorted(pipeline, worker);
    return true;
}

static void pipeline_worker(void *context, unsigned worker, unsigned workers)
{
    struct pipeline *pipeline = context;
    struct slc_tiles *tiles = pipeline->options->tiles;

    (void)workers;
    slc_tiles_lock(tiles);
    while (!slc_tiles_failed(tiles)) {
        struct slc_error err = SLC_ERROR_INIT;

        if (slc_stop_check(pipeline->options->plan->stop, &err) != SLC_OK) {
            slc_tiles_fail(tiles, &err);
            break;
        }
        if (sort_next(pipeline, worker) || slc_tiles_encode_next(tiles, worker)) {
            continue;
        }
        if (pipeline->exhausted && all_free(pipeline)) {
            break;
        }
        slc_tiles_wait(tiles);
    }
    slc_tiles_unlock(tiles);
}

enum slc_status slc_pipeline_run(const struct slc_pipeline_options *options,
                                 double *sort_seconds,
                                 struct slc_error *err)
{
    struct pipeline pipeline = {.options = options};
    enum slc_status status = SLC_OK;

    pipeline.areas = slc_calloc(options->workers, sizeof *pipeline.areas);
    SLC_TRY(slc_check_memory(pipeline.areas != NULL, err, "for sorting with %u threads",
                             options->workers));
    if (options->ahead_buffers > 0) {
        /* One request per worker for the bucket being loaded, and one for the upcoming bucket. */
        status = slc_read_ahead_create(
            &(struct slc_read_ahead_options){.spill = options->plan->spill,
                                             .requests = options->workers + 1,
                                             .memory = options->ahead_memory,
                                             .buffers = options->ahead_buffers,
                                             .buffer_bytes = options->ahead_bytes},
            &pipeline.ahead, err);
    }
    if (status == SLC_OK) {
        look_ahead(&pipeline);
        status = slc_team_run(options->workers, pipeline_worker, &pipeline, err);
    }
    SLC_THEN(status, slc_tiles_status(options->tiles, err));
    slc_read_ahead_destroy(pipeline.ahead);
    *sort_seconds += (double)pipeline.sort_ns * 1e-9;
    slc_free(pipeline.areas);
    return status;
}
