/* See engine/ttm.h. Whatever follows `next` in struct run belongs to the worker whose turn it is.
 */
#include "engine/ttm.h"

#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"
#include "engine/assert.h"

#include <pthread.h>
#include <string.h>

enum {
    /* A buffer of the result: long enough for a drive to write it at its full rate. */
    BUFFER_BYTES = 1 << 20,
    /* Fibers whose coordinates are put together at a time. */
    STAGE_FIBERS = 1024,
    /* Room for a whole tile of the shortest fibers, so that a worker waits for its turn only at
     * the end. */
    ROOM_MAX = SLC_TILE_NNZ + SLC_TTM_CHUNK_FIBERS,
    /* Of the result, more buffers than bridge a pause of the drive gain nothing. */
    BUFFERS_MAX = 256
};

struct worker {
    struct slc_ttm_output output;
    int64_t *stage;  /* STAGE_FIBERS x (N - 1) */
    double *carried; /* a row that goes before those of the output */
    uint64_t carried_coords[SLC_MAX_ORDER];
    uint64_t turn_ns;
};

struct run {
    const struct slc_ttm_options *options;
    const struct slc_ttm_job *job;
    struct slc_npy_pair *pair;
    struct worker *workers;
    struct slc_buffer memory; /* stages and rows that are carried */

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool aborted;
    uint64_t next;   /* tile whose turn it is */
    uint64_t fibers; /* of the result, that have an owner */
    bool carries;    /* whether the tiles so far end in a fiber that may go on: .. */
    double *carry;
    uint64_t carry_coords[SLC_MAX_ORDER];
};

static uint64_t row_doubles(const struct slc_ttm_job *job)
{
    /* Rows begin on lines of the cache, as those of a matrix do. */
    return slc_div_up_u64(job->matrix->pitch, 8) * 8;
}

/* Of stages and rows that are carried. */
static uint64_t small_bytes(const struct slc_ttm_job *job, unsigned workers)
{
    const uint64_t stage = (uint64_t)STAGE_FIBERS * (job->order - 1) * sizeof(int64_t);

    return workers * stage + (workers + UINT64_C(1)) * row_doubles(job) * sizeof(double);
}

uint64_t slc_ttm_memory_bytes(const struct slc_ttm_job *job,
                              unsigned workers,
                              const struct slc_ttm_share *share)
{
    const uint64_t parts[] = {
        slc_buffer_footprint(small_bytes(job, workers), SLC_PAGES_SMALL),
        slc_output_ring_memory_bytes(share->buffer_bytes, share->coord_buffers),
        slc_output_ring_memory_bytes(share->buffer_bytes, share->row_buffers)};
    uint64_t bytes;
    bool fits = slc_mul_u64(workers, slc_ttm_output_bytes(job, share->room), &bytes);

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        fits = fits && slc_add_u64(bytes, parts[i], &bytes);
    }
    return fits ? bytes : UINT64_MAX;
}

static const struct slc_ttm_share least_share = {.room = SLC_TTM_CHUNK_FIBERS + 1,
                                                 .buffer_bytes = BUFFER_BYTES,
                                                 .coord_buffers = SLC_OUTPUT_RING_BUFFERS_MIN,
                                                 .row_buffers = SLC_OUTPUT_RING_BUFFERS_MIN};

uint64_t slc_ttm_memory_min(const struct slc_ttm_job *job, unsigned workers)
{
    return slc_ttm_memory_bytes(job, workers, &least_share);
}

/* More room for fibers, from half of `bytes`: for the rest, workers wait while the drive is behind.
 */
static void widen_room(const struct slc_ttm_job *job,
                       unsigned workers,
                       uint64_t bytes,
                       struct slc_ttm_share *share)
{
    const uint64_t fiber_bytes = (job->matrix->pitch + job->order - UINT64_C(1)) * sizeof(double);
    const uint64_t most = bytes / 2 / workers / fiber_bytes;

    /* An output rounds its room up to eights, and its memory to whole pages. */
    if (most > 2 * SLC_PAGE_BYTES / fiber_bytes + 8) {
        share->room = slc_min_u64(share->room + most / 8 * 8, ROOM_MAX);
    }
}

void slc_ttm_divide(const struct slc_ttm_job *job,
                    unsigned workers,
                    uint64_t bytes,
                    struct slc_ttm_share *share)
{
    const uint64_t least = slc_ttm_memory_min(job, workers);
    const uint64_t row = (uint64_t)job->matrix->cols * slc_value_bytes(job->matrix->type);
    const uint64_t coords = (job->order - UINT64_C(1)) * sizeof(int64_t);
    uint64_t buffers;

    *share = least_share;
    if (bytes <= least) {
        return;
    }
    widen_room(job, workers, bytes - least, share);
    SLC_ASSERT(slc_ttm_memory_bytes(job, workers, share) <= bytes);
    buffers = (bytes - slc_ttm_memory_bytes(job, workers, share)) / BUFFER_BYTES;
    share->row_buffers += (uint32_t)slc_min_u64(buffers * row / (row + coords), BUFFERS_MAX);
    share->coord_buffers += (uint32_t)slc_min_u64(buffers * coords / (row + coords), BUFFERS_MAX);
}

enum slc_status slc_ttm_plan(const struct slc_layouts *layouts,
                             const struct slc_plan_request *request,
                             struct slc_plan *plan,
                             struct slc_ttm_share *share,
                             struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    struct slc_plan_request wanted = *request;
    enum slc_status status;

    wanted.operation = SLC_OP_TTM;
    wanted.schedule = SLC_SCHEDULE_FILE;
    wanted.cache = false;
    status = slc_plan_make(layouts, &wanted, plan, err);
    if (status == SLC_OK) {
        const struct slc_matrix shape = {.type = request->precision,
                                         .rows = info->dims[request->mode],
                                         .cols = request->rank,
                                         .pitch =
                                             slc_matrix_pitch(request->precision, request->rank)};
        const struct slc_ttm_job job = {
            .order = info->order, .mode = request->mode, .matrix = &shape};
        const uint64_t others = plan->total_bytes - plan->output_bytes;

        slc_ttm_divide(&job, plan->threads, plan->budget_bytes - others, share);
        plan->output_bytes = slc_ttm_memory_bytes(&job, plan->threads, share);
        plan->total_bytes = others + plan->output_bytes;
    }
    return status;
}

/* Waits until all tiles before `ordinal` have said which fibers are theirs. */
static enum slc_status
wait_turn(struct run *run, struct worker *worker, uint64_t ordinal, struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    bool aborted;

    pthread_mutex_lock(&run->mutex);
    while (run->next != ordinal && !run->aborted) {
        pthread_cond_wait(&run->changed, &run->mutex);
    }
    aborted = run->aborted;
    pthread_mutex_unlock(&run->mutex);
    worker->turn_ns += slc_clock_ns() - start_ns;
    return aborted ? slc_fail(err, SLC_ERR_INTERRUPTED,
                              "the computation was stopped while tile %llu waited for its turn",
                              (unsigned long long)ordinal)
                   : SLC_OK;
}

static void pass_turn(struct run *run)
{
    pthread_mutex_lock(&run->mutex);
    run->next++;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
}

/* The index in the input of a fiber's coordinate. */
static int64_t index_of(const struct slc_ttm_options *options, unsigned mode, uint64_t coord)
{
    return (int64_t)(options->index[mode] != NULL ? options->index[mode][coord] : coord);
}

/* Puts the coordinates of `count` fibers, which begin at coords[m] + from, a stage at a time. */
static enum slc_status put_coords(struct run *run,
                                  const struct worker *worker,
                                  uint64_t first,
                                  uint64_t count,
                                  const uint64_t *const *coords,
                                  struct slc_error *err)
{
    const unsigned others = run->job->order - 1;
    enum slc_status status = SLC_OK;

    for (uint64_t done = 0; done < count && status == SLC_OK && others > 0;) {
        const uint64_t fibers = slc_min_u64(count - done, STAGE_FIBERS);
        unsigned k = 0;

        for (unsigned m = 0; m < run->job->order; m++) {
            if (m == run->job->mode) {
                continue;
            }
            for (uint64_t f = 0; f < fibers; f++) {
                worker->stage[f * others + k] = index_of(run->options, m, coords[m][done + f]);
            }
            k++;
        }
        status = slc_npy_pair_put_coords(run->pair, first + done, fibers, worker->stage, err);
        done += fibers;
    }
    return status;
}

/* Puts rows, which are f64 in memory; where the result is f32 they are rounded in place. */
static enum slc_status
put_rows(struct run *run, uint64_t first, uint64_t count, double *rows, struct slc_error *err)
{
    const struct slc_matrix *matrix = run->job->matrix;

    for (uint64_t f = 0; f < count && matrix->type == SLC_F32; f++) {
        unsigned char *row = (unsigned char *)(rows + f * matrix->pitch);

        for (uint32_t r = 0; r < matrix->cols; r++) {
            double wide;
            float narrow;

            memcpy(&wide, row + r * sizeof wide, sizeof wide);
            narrow = (float)wide;
            memcpy(row + r * sizeof narrow, &narrow, sizeof narrow);
        }
    }
    return slc_npy_pair_put_rows(run->pair, first, count, rows, matrix->pitch * sizeof(double),
                                 err);
}

static bool same_fiber(const struct run *run, const struct slc_ttm_output *output)
{
    for (unsigned m = 0; m < run->job->order; m++) {
        if (m != run->job->mode && output->coords[m][0] != run->carry_coords[m]) {
            return false;
        }
    }
    return true;
}

/*
 * What was carried is added to the first row of the output where the fiber goes on there; else it
 * is complete, and handed to the worker: true. It is the worker's turn.
 */
static bool take_carry(struct run *run, struct worker *worker)
{
    const uint64_t bytes = run->job->matrix->pitch * sizeof(double);

    if (!run->carries) {
        return false;
    }
    run->carries = false;
    if (same_fiber(run, &worker->output)) {
        for (uint32_t r = 0; r < run->job->matrix->pitch; r++) {
            worker->output.rows[r] = run->carry[r] + worker->output.rows[r];
        }
        return false;
    }
    memcpy(worker->carried, run->carry, bytes);
    memcpy(worker->carried_coords, run->carry_coords, sizeof run->carry_coords);
    return true;
}

/* The last fiber of the output may go on in the next tile. It is the worker's turn. */
static void leave_carry(struct run *run, const struct slc_ttm_output *output)
{
    const uint64_t last = output->count - 1;

    memcpy(run->carry, output->rows + last * output->pitch, output->pitch * sizeof(double));
    for (unsigned m = 0; m < run->job->order; m++) {
        run->carry_coords[m] = m != run->job->mode ? output->coords[m][last] : 0;
    }
    run->carries = true;
}

/* Puts one fiber, with a row of its own. */
static enum slc_status put_carried(struct run *run,
                                   const struct worker *worker,
                                   uint64_t number,
                                   const uint64_t *coords,
                                   double *row,
                                   struct slc_error *err)
{
    const uint64_t *columns[SLC_MAX_ORDER];
    enum slc_status status;

    for (unsigned m = 0; m < run->job->order; m++) {
        columns[m] = &coords[m];
    }
    status = put_coords(run, worker, number, 1, columns, err);
    return status == SLC_OK ? put_rows(run, number, 1, row, err) : status;
}

/*
 * Puts all fibers of the output but the last, in the worker's turn; at the end of the tile that one
 * is carried on, and the turn passes before anything is copied.
 */
static enum slc_status
put_output(struct run *run, struct worker *worker, bool at_end, struct slc_error *err)
{
    struct slc_ttm_output *output = &worker->output;
    const uint64_t complete = output->count - 1;
    const bool carried = take_carry(run, worker);
    const uint64_t first = run->fibers + carried;
    const uint64_t *columns[SLC_MAX_ORDER];
    enum slc_status status = SLC_OK;

    run->fibers = first + complete;
    if (at_end) {
        leave_carry(run, output);
        pass_turn(run);
    }
    for (unsigned m = 0; m < run->job->order; m++) {
        columns[m] = output->coords[m];
    }
    if (carried) {
        status = put_carried(run, worker, first - 1, worker->carried_coords, worker->carried, err);
    }
    if (status == SLC_OK) {
        status = put_coords(run, worker, first, complete, columns, err);
    }
    if (status == SLC_OK) {
        status = put_rows(run, first, complete, output->rows, err);
    }
    slc_ttm_keep_last(output);
    return status;
}

static enum slc_status
multiply_tile(void *context, unsigned number, struct slc_tile_view *tile, struct slc_error *err)
{
    struct run *run = context;
    struct worker *worker = &run->workers[number];
    enum slc_status status = SLC_OK;
    bool in_turn = false;
    uint32_t nnz = 1;

    worker->output.count = 0;
    while (nnz > 0 && status == SLC_OK) {
        if (slc_ttm_has_room(&worker->output)) {
            status = slc_ttm_next(run->job, tile, &worker->output, &nnz, err);
            continue;
        }
        if (!in_turn) {
            status = wait_turn(run, worker, tile->ordinal, err);
            in_turn = status == SLC_OK;
        }
        if (status == SLC_OK) {
            status = put_output(run, worker, false, err);
        }
    }
    if (status == SLC_OK && !in_turn) {
        status = wait_turn(run, worker, tile->ordinal, err);
    }
    return status == SLC_OK ? put_output(run, worker, true, err) : status;
}

static void abort_run(void *context)
{
    struct run *run = context;

    pthread_mutex_lock(&run->mutex);
    run->aborted = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
    slc_npy_pair_abort(run->pair);
}

static enum slc_status take_memory(struct run *run, struct slc_error *err)
{
    const struct slc_ttm_options *options = run->options;
    const uint64_t stage = (uint64_t)STAGE_FIBERS * (run->job->order - 1);
    enum slc_status status = slc_buffer_create(
        &run->memory, small_bytes(run->job, options->workers), SLC_PAGES_SMALL, err);
    double *rows = run->memory.data;
    int64_t *stages;

    if (status != SLC_OK) {
        return status;
    }
    run->carry = rows;
    stages = (int64_t *)(void *)(rows + (options->workers + UINT64_C(1)) * row_doubles(run->job));
    run->workers = slc_calloc(options->workers, sizeof *run->workers);
    if (run->workers == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %u workers", options->workers);
    }
    for (unsigned w = 0; w < options->workers && status == SLC_OK; w++) {
        run->workers[w].carried = rows + (w + UINT64_C(1)) * row_doubles(run->job);
        run->workers[w].stage = stages + w * stage;
        status = slc_ttm_output_create(&run->workers[w].output, run->job, options->share.room, err);
    }
    return status;
}

static void release(struct run *run)
{
    for (unsigned w = 0; w < run->options->workers && run->workers != NULL; w++) {
        slc_ttm_output_destroy(&run->workers[w].output);
    }
    slc_free(run->workers);
    slc_buffer_destroy(&run->memory);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->mutex);
}

/* The pass, and the fiber that its last tile has carried on. */
static enum slc_status multiply(struct run *run, struct slc_stream *stream, struct slc_error *err)
{
    const struct slc_ttm_options *options = run->options;
    const struct slc_pass pass = {.tile = multiply_tile,
                                  .abort = abort_run,
                                  .context = run,
                                  .layout = options->layout,
                                  .stop = options->stop,
                                  .progress = options->progress,
                                  .progress_context = options->progress_context};
    enum slc_status status = slc_stream_pass(stream, &pass, err);

    if (status == SLC_OK && run->carries) {
        run->carries = false;
        status =
            put_carried(run, &run->workers[0], run->fibers++, run->carry_coords, run->carry, err);
    }
    return status;
}

enum slc_status slc_ttm_stream(struct slc_stream *stream,
                               const struct slc_ttm_options *options,
                               struct slc_npy_pair **pair,
                               struct slc_ttm_report *report,
                               struct slc_error *err)
{
    const struct slc_npy_pair_options output = {.files = options->files,
                                                .folder = options->folder,
                                                .modes = options->job.order - 1,
                                                .cols = options->job.matrix->cols,
                                                .type = options->job.matrix->type,
                                                .buffer_bytes = options->share.buffer_bytes,
                                                .coord_buffers = options->share.coord_buffers,
                                                .row_buffers = options->share.row_buffers};
    struct run run = {.options = options, .job = &options->job};
    enum slc_status status;

    SLC_ASSERT(options->job.mode < options->job.order && options->share.room > 0);
    pthread_mutex_init(&run.mutex, NULL);
    pthread_cond_init(&run.changed, NULL);
    *report = (struct slc_ttm_report){.fibers = 0};
    status = take_memory(&run, err);
    if (status == SLC_OK) {
        status = slc_npy_pair_create(&output, &run.pair, err);
    }
    if (status == SLC_OK) {
        status = multiply(&run, stream, err);
    }
    for (unsigned w = 0; run.workers != NULL && w < options->workers; w++) {
        report->turn_seconds += (double)run.workers[w].turn_ns * 1e-9;
    }
    report->fibers = run.fibers;
    release(&run);
    if (status == SLC_OK) {
        status = slc_npy_pair_finish(run.pair, report->fibers, err);
    }
    if (run.pair != NULL) {
        slc_npy_pair_stats(run.pair, &report->output);
    }
    if (status != SLC_OK) {
        slc_npy_pair_destroy(run.pair);
        return status;
    }
    *pair = run.pair;
    return SLC_OK;
}
