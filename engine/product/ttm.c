/* Multiplies the tiles of a stream with a matrix. The worker whose tile has the ordinal run->next
 * has the turn. Only this worker may access the members of struct run after `next`. */
#include "engine/product/ttm_impl.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

struct worker {
    int64_t *stage;  /* coordinates of fibers, SLC_TTM_STAGE_FIBERS x (N - 1) */
    float *narrow;   /* slc_ttm_stage_rows rows, converted to f32 */
    double *carried; /* row of the fiber that is written before the current piece */
    uint64_t carried_coords[SLC_MAX_ORDER];
    uint64_t turn_ns;
};

/* Fibers that were computed from a tile, or from a part of it, on the CPU or on a lane.
 * Borrowed. */
struct piece {
    uint64_t count;
    /* number of complete fibers: the last fiber is not counted if it may continue */
    uint64_t complete;
    const double *rows; /* the row of fiber f starts at rows[f * pitch] */
    uint64_t pitch;
    /* Coordinates per mode; if NULL, `offset` and `corner` are used. */
    const uint64_t *coords[SLC_MAX_ORDER];
    const uint32_t *offset[SLC_MAX_ORDER];
    const uint64_t *corner;
};

struct run {
    const struct slc_ttm_options *options;
    const struct slc_ttm_job *job;
    struct slc_npy_pair *pair;
    struct worker *workers;
    struct slc_buffer memory; /* memory of stages and carried rows */
    struct slc_ttm_output *outputs;
    /* NULL if no device is used; then every worker has its own output */
    struct slc_products *products;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool aborted;
    uint64_t next;   /* number, within the pass, of the tile that has the turn */
    uint64_t fibers; /* number of fibers of the result that have row numbers */
    bool carries;    /* true if the last fiber may continue in the next tile */
    double *carry;
    uint64_t carry_coords[SLC_MAX_ORDER];
};

/* Waits until all tiles of the pass before `tile` have assigned row numbers to their fibers. */
static enum slc_status wait_turn(struct run *run,
                                 struct worker *worker,
                                 const struct slc_tile_view *tile,
                                 struct slc_error *err)
{
    const struct slc_part *part = run->options->part;
    const uint64_t ordinal =
        part != NULL ? slc_part_ordinal(part, tile->block, tile->ordinal) : tile->ordinal;
    const uint64_t start_ns = slc_clock_ns();

    pthread_mutex_lock(&run->mutex);
    while (run->next != ordinal && !run->aborted) {
        pthread_cond_wait(&run->changed, &run->mutex);
    }
    bool aborted = run->aborted;
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

/* Fills `stage` with the coordinates of `count` fibers of a piece in one mode, as indices of the
 * input, starting with fiber `from`. */
static void stage_mode(const struct run *run,
                       const struct piece *piece,
                       unsigned mode,
                       uint64_t from,
                       uint64_t count,
                       int64_t *stage)
{
    const uint32_t *index = run->options->index[mode];
    const unsigned others = run->job->order - 1;
    const uint64_t *coords = piece->coords[mode];
    const uint32_t *offset = piece->offset[mode];

    if (coords == NULL) {
        for (uint64_t f = 0; f < count; f++) {
            stage[f * others] = (int64_t)(piece->corner[mode] + offset[from + f]);
        }
    } else {
        for (uint64_t f = 0; f < count; f++) {
            stage[f * others] = (int64_t)coords[from + f];
        }
    }
    for (uint64_t f = 0; f < count && index != NULL; f++) {
        stage[f * others] = (int64_t)index[stage[f * others]];
    }
}

/* Writes the coordinates of the fibers from .. end - 1 of a piece. In the result, fiber `from` has
 * the row number `first`. */
static enum slc_status write_coords(struct run *run,
                                    const struct worker *worker,
                                    uint64_t first,
                                    const struct piece *piece,
                                    uint64_t from,
                                    uint64_t end,
                                    struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    while (from < end && status == SLC_OK && run->job->order > 1) {
        const uint64_t fibers = slc_min_u64(end - from, SLC_TTM_STAGE_FIBERS);
        unsigned k = 0;

        for (unsigned m = 0; m < run->job->order; m++) {
            if (m != run->job->mode) {
                stage_mode(run, piece, m, from, fibers, worker->stage + k++);
            }
        }
        status = slc_npy_pair_write_coords(run->pair, first, fibers, worker->stage, err);
        first += fibers;
        from += fibers;
    }
    return status;
}

/* Writes rows to the result. If the result is f32, the f64 rows are rounded in batches first. */
static enum slc_status write_rows(struct run *run,
                                  const struct worker *worker,
                                  uint64_t first,
                                  uint64_t count,
                                  const double *rows,
                                  uint64_t pitch,
                                  struct slc_error *err)
{
    const uint32_t cols = run->job->matrix->cols;
    enum slc_status status = SLC_OK;

    if (run->job->matrix->type == SLC_F64) {
        return slc_npy_pair_write_rows(run->pair, first, count, rows, pitch * sizeof *rows, err);
    }
    while (count > 0 && status == SLC_OK) {
        const uint64_t some = slc_min_u64(count, slc_ttm_stage_rows(run->job));

        for (uint64_t f = 0; f < some; f++) {
            for (uint32_t r = 0; r < cols; r++) {
                worker->narrow[f * cols + r] = (float)rows[f * pitch + r];
            }
        }
        status = slc_npy_pair_write_rows(run->pair, first, some, worker->narrow,
                                         cols * sizeof *worker->narrow, err);
        first += some;
        count -= some;
        rows += some * pitch;
    }
    return status;
}

static uint64_t coord_of(const struct piece *piece, unsigned mode, uint64_t f)
{
    return piece->coords[mode] != NULL ? piece->coords[mode][f]
                                       : piece->corner[mode] + piece->offset[mode][f];
}

/* Returns true if the carried fiber continues in the piece. Needs: the worker has the turn. */
static bool continues_carry(const struct run *run, const struct piece *piece)
{
    for (unsigned m = 0; m < run->job->order; m++) {
        if (m != run->job->mode && coord_of(piece, m, 0) != run->carry_coords[m]) {
            return false;
        }
    }
    return run->carries;
}

/* Adds `rest` (may be NULL) to the carried fiber, which is then complete, and moves it to the
 * worker. Needs: the worker has the turn. */
static void complete_carry(struct run *run, struct worker *worker, const double *rest)
{
    for (uint32_t r = 0; r < run->job->matrix->cols; r++) {
        worker->carried[r] = rest != NULL ? run->carry[r] + rest[r] : run->carry[r];
    }
    memcpy(worker->carried_coords, run->carry_coords, sizeof run->carry_coords);
    run->carries = false;
}

/* Carries the last fiber of the piece, which may continue in the next tile. If a fiber is already
 * carried, it is the same fiber, and the rows are added. Needs: the worker has the turn. */
static void carry_last(struct run *run, const struct piece *piece)
{
    const uint64_t last = piece->count - 1;
    const double *row = piece->rows + last * piece->pitch;

    for (uint32_t r = 0; r < run->job->matrix->cols; r++) {
        run->carry[r] = run->carries ? run->carry[r] + row[r] : row[r];
    }
    for (unsigned m = 0; m < run->job->order; m++) {
        run->carry_coords[m] = m != run->job->mode ? coord_of(piece, m, last) : 0;
    }
    run->carries = true;
}

/* Writes one fiber, whose row and coordinates are arguments. */
static enum slc_status write_carried(struct run *run,
                                     const struct worker *worker,
                                     uint64_t number,
                                     const uint64_t *coords,
                                     const double *row,
                                     struct slc_error *err)
{
    struct piece piece = {.count = 1};

    for (unsigned m = 0; m < run->job->order; m++) {
        piece.coords[m] = &coords[m];
    }
    SLC_TRY(write_coords(run, worker, number, &piece, 0, 1, err));
    return write_rows(run, worker, number, 1, row, run->job->matrix->cols, err);
}

/* Writes the complete fibers of a piece. At the end of the tile, carries the last fiber and passes
 * the turn to the next tile before it copies rows. Needs: the worker has the turn. */
static enum slc_status write_piece(struct run *run,
                                   struct worker *worker,
                                   const struct piece *piece,
                                   bool at_end,
                                   struct slc_error *err)
{
    const bool same = continues_carry(run, piece);
    /* The carried fiber is written before the piece. If the piece begins with the same fiber, the
     * row of the piece is added to the carried row, and is not written again. */
    const bool before = run->carries && !(same && piece->complete == 0);
    const uint64_t from = before && same;
    const uint64_t first = run->fibers + before;
    enum slc_status status = SLC_OK;

    if (before) {
        complete_carry(run, worker, same ? piece->rows : NULL);
    }
    run->fibers = first + piece->complete - from;
    if (at_end) {
        carry_last(run, piece);
        pass_turn(run);
    }
    if (before) {
        status =
            write_carried(run, worker, first - 1, worker->carried_coords, worker->carried, err);
    }
    SLC_THEN(status, write_coords(run, worker, first, piece, from, piece->complete, err));
    SLC_TRY(status);
    return write_rows(run, worker, first, piece->complete - from, piece->rows + from * piece->pitch,
                      piece->pitch, err);
}

static bool is_in_part(const struct run *run, const struct piece *piece, uint64_t f)
{
    uint64_t coords[SLC_MAX_ORDER] = {0};

    for (unsigned m = 0; m < run->job->order; m++) {
        coords[m] = m != run->job->mode ? coord_of(piece, m, f) : 0;
    }
    return slc_part_holds(run->options->part, coords);
}

/* Removes the fibers that are outside of the part. The others are adjacent, because fibers have the
 * order of their keys. The last of them is complete if others followed it, but at the end of a tile
 * the last fiber is carried nevertheless. */
static void restrict_piece(const struct run *run, struct piece *piece, bool at_end)
{
    uint64_t from = 0, end = piece->count;

    while (from < end && !is_in_part(run, piece, from)) {
        from++;
    }
    while (end > from && !is_in_part(run, piece, end - 1)) {
        end--;
    }
    piece->complete = end - from - (end > from && (at_end || end == piece->count));
    piece->count = end - from;
    piece->rows += from * piece->pitch;
    for (unsigned m = 0; m < run->job->order; m++) {
        piece->coords[m] += from;
    }
}

/* Writes all fibers of an output except the last fiber, which stays in the output. */
static enum slc_status write_output(struct run *run,
                                    struct worker *worker,
                                    struct slc_ttm_output *output,
                                    bool at_end,
                                    struct slc_error *err)
{
    struct piece piece = {.count = output->count,
                          .complete = output->count - 1,
                          .rows = output->rows,
                          .pitch = output->pitch};

    for (unsigned m = 0; m < run->job->order; m++) {
        piece.coords[m] = output->coords[m];
    }
    if (run->options->part != NULL) {
        restrict_piece(run, &piece, at_end);
    }
    enum slc_status status = SLC_OK;
    if (piece.count > 0) {
        status = write_piece(run, worker, &piece, at_end, err);
    } else if (at_end) {
        pass_turn(run);
    }
    slc_ttm_keep_last(output);
    return status;
}

/* Writes all fibers of a tile that a lane multiplied. */
static enum slc_status write_fibers(struct run *run,
                                    unsigned number,
                                    const struct slc_tile_view *tile,
                                    struct slc_device_fibers *fibers,
                                    struct slc_error *err)
{
    struct worker *worker = &run->workers[number];
    enum slc_status status = wait_turn(run, worker, tile, err);

    while (status == SLC_OK) {
        const bool at_end = !fibers->more;
        struct piece piece = {.count = fibers->count,
                              .complete = fibers->count - at_end,
                              .rows = fibers->sums,
                              .pitch = run->job->matrix->cols,
                              .corner = tile->corner};

        memcpy(piece.offset, fibers->offset, sizeof piece.offset);
        status = write_piece(run, worker, &piece, at_end, err);
        if (at_end) {
            break;
        }
        SLC_THEN(status, slc_products_more(run->products, number, fibers, err));
    }
    return status;
}

/* Multiplies the tile on the CPU. Sets *busy_ns to the computing time, which excludes waiting. */
static enum slc_status multiply_here(struct run *run,
                                     struct worker *worker,
                                     struct slc_ttm_output *output,
                                     struct slc_tile_view *tile,
                                     uint64_t *busy_ns,
                                     struct slc_error *err)
{
    enum slc_status status = SLC_OK;
    uint64_t start_ns = slc_clock_ns();
    bool in_turn = false;
    uint32_t nnz = 1;

    *busy_ns = 0;
    output->count = 0;
    while (nnz > 0 && status == SLC_OK) {
        if (slc_ttm_has_capacity(output)) {
            status = slc_ttm_next(run->job, tile, output, &nnz, err);
            continue;
        }
        *busy_ns += slc_clock_ns() - start_ns;
        if (!in_turn) {
            status = wait_turn(run, worker, tile, err);
            in_turn = status == SLC_OK;
        }
        SLC_THEN(status, write_output(run, worker, output, false, err));
        start_ns = slc_clock_ns();
    }
    *busy_ns += slc_clock_ns() - start_ns;
    SLC_TRY(status);
    if (!in_turn) {
        SLC_TRY(wait_turn(run, worker, tile, err));
    }
    return write_output(run, worker, output, true, err);
}

static enum slc_status
multiply_tile(void *context, unsigned number, struct slc_tile_view *tile, struct slc_error *err)
{
    struct run *run = context;
    struct worker *worker = &run->workers[number];
    struct slc_device_fibers fibers;
    uint64_t busy_ns;
    unsigned place;

    if (run->products == NULL) {
        return multiply_here(run, worker, &run->outputs[number], tile, &busy_ns, err);
    }
    enum slc_status status =
        slc_products_begin_tile(run->products, number, tile, &place, &fibers, err);
    SLC_TRY(status);
    if (fibers.count > 0) {
        status = write_fibers(run, number, tile, &fibers, err);
    } else {
        status = multiply_here(run, worker, &run->outputs[place], tile, &busy_ns, err);
        slc_products_computed(run->products, number, busy_ns);
    }
    slc_products_end_tile(run->products, number);
    return status;
}

static void abort_run(void *context)
{
    struct run *run = context;

    pthread_mutex_lock(&run->mutex);
    run->aborted = true;
    pthread_cond_broadcast(&run->changed);
    pthread_mutex_unlock(&run->mutex);
    if (run->products != NULL) {
        slc_products_abort(run->products);
    }
    slc_npy_pair_abort(run->pair);
}

/* Divides run->memory into stages and carried rows. */
static void divide_memory(struct run *run)
{
    double *at = run->memory.data;

    run->carry = at;
    at += slc_ttm_row_doubles(run->job);
    for (unsigned w = 0; w < run->options->workers; w++) {
        struct worker *worker = &run->workers[w];

        worker->carried = at;
        at += slc_ttm_row_doubles(run->job);
        worker->stage = (int64_t *)(void *)at;
        at += slc_ttm_coord_doubles(run->job);
        worker->narrow = (float *)(void *)at;
        at += slc_ttm_narrow_doubles(run->job);
    }
}

static enum slc_status allocate_memory(struct run *run, struct slc_error *err)
{
    const struct slc_ttm_options *options = run->options;
    const unsigned outputs = options->division.outputs;

    SLC_TRY(slc_buffer_create(&run->memory, slc_ttm_small_bytes(run->job, options->workers),
                              SLC_PAGES_SMALL, err));
    run->workers = slc_calloc(options->workers, sizeof *run->workers);
    run->outputs = slc_calloc(slc_max_u64(outputs, 1), sizeof *run->outputs);
    SLC_TRY(slc_check_memory(run->workers != NULL && run->outputs != NULL, err, "for %u workers",
                             options->workers));
    divide_memory(run);
    for (unsigned w = 0; w < outputs; w++) {
        SLC_TRY(slc_ttm_output_create(&run->outputs[w], run->job, options->division.room, err));
    }
    return SLC_OK;
}

static enum slc_status
open_products(struct run *run, const struct slc_stream *stream, struct slc_error *err)
{
    const struct slc_ttm_options *options = run->options;
    struct slc_products_options products = {.device = options->device,
                                            .threads = options->division.outputs,
                                            .workers = options->workers,
                                            .reader = slc_stream_reader(stream, options->layout),
                                            .in_order = true};

    if (options->device == NULL) {
        return SLC_OK;
    }
    products.plan = &options->plan->gpu;
    products.hybrid = options->plan->request.hybrid;
    products.matrices[run->job->mode] = run->job->matrix;
    return slc_products_open(&products, &run->products, err);
}

static void release_memory(struct run *run)
{
    slc_products_close(run->products);
    for (unsigned w = 0; w < run->options->division.outputs && run->outputs != NULL; w++) {
        slc_ttm_output_destroy(&run->outputs[w]);
    }
    slc_free(run->outputs);
    slc_free(run->workers);
    slc_buffer_destroy(&run->memory);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->mutex);
}

/* Runs the pass, and then writes the fiber that the last tile carried. */
static enum slc_status
multiply_layout(struct run *run, struct slc_stream *stream, struct slc_error *err)
{
    const struct slc_ttm_options *options = run->options;
    const struct slc_part *part = options->part;
    const struct slc_pass pass = {
        .tiles = {.consumer = {.tile = multiply_tile, .wake = abort_run, .context = run},
                  .blocks = part != NULL ? part->blocks : NULL,
                  .block_count = part != NULL ? part->block_count : 0},
        .layout = options->layout,
        .stop = options->stop,
        .progress = options->progress,
        .progress_context = options->progress_context};

    SLC_TRY(slc_stream_pass(stream, &pass, err));
    if (run->carries) {
        run->carries = false;
        SLC_TRY(write_carried(run, &run->workers[0], run->fibers++, run->carry_coords, run->carry,
                              err));
    }
    return SLC_OK;
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
                                                .buffer_bytes = options->division.buffer_bytes,
                                                .coord_buffers = options->division.coord_buffers,
                                                .row_buffers = options->division.row_buffers};
    struct run run = {.options = options, .job = &options->job};

    assert(options->job.mode < options->job.order && options->division.room > 0);
    pthread_mutex_init(&run.mutex, NULL);
    pthread_cond_init(&run.changed, NULL);
    memset(report, 0, sizeof *report);
    enum slc_status status = allocate_memory(&run, err);
    if (status == SLC_OK) {
        status = open_products(&run, stream, err);
        report->device_refused = status != SLC_OK;
    }
    SLC_THEN(status, slc_npy_pair_create(&output, &run.pair, err));
    SLC_THEN(status, multiply_layout(&run, stream, err));
    for (unsigned w = 0; run.workers != NULL && w < options->workers; w++) {
        report->turn_seconds += (double)run.workers[w].turn_ns * 1e-9;
    }
    report->fibers = run.fibers;
    if (run.products != NULL) {
        slc_products_report(run.products, &report->products);
    }
    release_memory(&run);
    SLC_THEN(status, slc_npy_pair_finish(run.pair, report->fibers, err));
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
