/* Streams the nonzeros of a store through a model. All workers share one heap of the nonzeros with
 * the highest scores. A worker compares a nonzero with the lowest score of the heap without the
 * lock, and takes the lock only for the few nonzeros that reach this score. Sums of tiles are added
 * in file order, so that they do not depend on threads. */
#include "engine/product/residuals.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/squares.h"
#include "engine/plan/plan_sizes.h"
#include "engine/stream/relabel.h"
#include "storage/manifest/labels.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNK = 1024,
    /* Most and fewest numbers that the selection of quantiles keeps in memory. */
    CAPACITY_MOST = 1 << 20,
    CAPACITY_LEAST = 1 << 12,
    /* Memory for small objects and for pages of libraries that are touched later. */
    OVERHEAD_BYTES = 2 << 20,
    /* Resident memory differs by less than this between two runs of a command, and while the
     * factors are read. */
    RESIDENT_SPREAD_BYTES = 2 << 20
};

/* Sums of one tile, or of all tiles. */
struct sums {
    struct slc_squares squares, values;
    double magnitudes, residuals, deviances, largest;
};

struct residuals_run {
    const struct slc_residuals_options *options;
    struct slc_residuals *out;
    const struct slc_layout_info *info;
    struct slc_tile_stream tiles;
    struct slc_labels labels[SLC_MAX_ORDER];
    const uint32_t *index[SLC_MAX_ORDER]; /* index of the input by index of the store; or NULL */
    struct slc_quantiles quantiles;
    unsigned workers;
    uint64_t capacity; /* numbers that the quantiles may keep */
    bool first_pass;
    uint64_t tiles_done; /* used with atomic operations */
    pthread_mutex_t lock;
    /* Score that a nonzero must reach to be listed; used with atomic operations. */
    double threshold;
    struct sums total;
    struct sums tile[SLC_MAX_THREADS]; /* sums of each worker's current tile */
};

/* Returns true if `a` is listed before `b`. */
static bool is_before(const struct slc_residual *a, const struct slc_residual *b, unsigned order)
{
    if (a->score != b->score) {
        return a->score > b->score;
    }
    for (unsigned n = 0; n < order; n++) {
        if (a->index[n] != b->index[n]) {
            return a->index[n] < b->index[n];
        }
    }
    return false;
}

/* Moves `moved` down from position `at` of a heap whose first element is the last of the list. */
static void sift(struct slc_residual *heap,
                 uint64_t count,
                 uint64_t at,
                 const struct slc_residual *moved,
                 unsigned order)
{
    for (uint64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&heap[child], &heap[child + 1], order)) {
            child++;
        }
        if (!is_before(moved, &heap[child], order)) {
            break;
        }
        heap[at] = heap[child];
    }
    heap[at] = *moved;
}

/* Adds a nonzero to the list if its score is high enough. */
static void list_nonzero(struct residuals_run *run, const struct slc_residual *found)
{
    struct slc_residuals *out = run->out;
    const unsigned order = run->info->order;

    (void)pthread_mutex_lock(&run->lock);
    if (out->count < run->options->top) {
        uint64_t at = out->count++;

        for (; at > 0 && is_before(&out->top[(at - 1) / 2], found, order); at = (at - 1) / 2) {
            out->top[at] = out->top[(at - 1) / 2];
        }
        out->top[at] = *found;
    } else if (is_before(found, &out->top[0], order)) {
        sift(out->top, out->count, 0, found, order);
    }
    if (out->count == run->options->top) {
        __atomic_store(&run->threshold, &out->top[0].score, __ATOMIC_RELAXED);
    }
    (void)pthread_mutex_unlock(&run->lock);
}

/* Sorts the heap into the order of the list. */
static void sort_list(struct slc_residuals *out)
{
    for (uint64_t end = out->count; end > 1; end--) {
        const struct slc_residual last = out->top[end - 1];

        out->top[end - 1] = out->top[0];
        sift(out->top, end - 1, 0, &last, out->order);
    }
}

/* Returns the score of a nonzero, or a negative number if it cannot be listed. */
static double score_of(enum slc_residual_score score, const struct slc_residual *found)
{
    const double residual = found->value - found->model;

    switch (score) {
    case SLC_RESIDUAL_ABSOLUTE:
        return fabs(residual);
    case SLC_RESIDUAL_RELATIVE:
        return residual == 0.0 ? 0.0 : fabs(residual / found->value);
    case SLC_RESIDUAL_ABOVE:
        return residual > 0.0 ? residual : -1.0;
    case SLC_RESIDUAL_BELOW:
        return residual < 0.0 ? -residual : -1.0;
    case SLC_RESIDUAL_DEVIANCE:
        return found->deviance;
    }
    return -1.0;
}

static enum slc_status fail_not_finite(const struct residuals_run *run,
                                       const struct slc_residual *at,
                                       struct slc_error *err)
{
    char text[SLC_MAX_ORDER * 21 + 1];
    size_t used = 0;

    for (unsigned n = 0; n < run->info->order; n++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, n > 0 ? "," : "",
                                 at->index[n] + 1);
    }
    return slc_fail(err, SLC_ERR_NUMERIC,
                    "the residual of nonzero (%s) is not finite: its value is %g, and the value of "
                    "the model is %g",
                    text, at->value, at->model);
}

/* Computes one residual, and adds it to the sums, the quantiles and the list. */
static enum slc_status add_nonzero(struct residuals_run *run,
                                   unsigned worker,
                                   struct slc_residual *found,
                                   struct slc_error *err)
{
    struct sums *sums = &run->tile[worker];
    double threshold;

    const struct slc_model_view *model = run->options->model;
    const double m = slc_model_value(model, found->index);

    found->model = slc_loss_mean(model->loss, m);
    const double residual = found->value - found->model;
    if (!isfinite(residual)) {
        return fail_not_finite(run, found, err);
    }
    slc_quantiles_add(&run->quantiles, worker, residual);
    if (!run->first_pass) {
        return SLC_OK;
    }
    found->deviance = slc_loss_accepts(model->loss, found->value)
                          ? slc_loss_deviance(model->loss, model->huber, found->value, m)
                          : (double)NAN;
    sums->deviances += found->deviance;
    slc_squares_add(&sums->squares, residual);
    sums->magnitudes += fabs(residual);
    sums->residuals += residual;
    slc_squares_add(&sums->values, found->value);
    sums->largest = fmax(sums->largest, fabs(residual));
    found->score = score_of(run->options->score, found);
    __atomic_load(&run->threshold, &threshold, __ATOMIC_RELAXED);
    /* The comparison is >=, because among infinite scores, indices decide which are listed. */
    if (found->score >= threshold && run->options->top > 0) {
        list_nonzero(run, found);
    }
    return SLC_OK;
}

static void report_progress(const struct residuals_run *run, uint64_t done)
{
    if (run->options->progress != NULL) {
        run->options->progress(run->options->context, run->first_pass ? "residuals" : "quantiles",
                               done, run->info->tile_count);
    }
}

static enum slc_status
add_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct residuals_run *run = context;
    const uint64_t done = __atomic_add_fetch(&run->tiles_done, 1, __ATOMIC_RELAXED);
    struct slc_chunk_view chunk = {.nnz = 1};
    struct slc_residual found = {.score = 0.0};

    if (worker == 0) {
        report_progress(run, done);
    }
    run->tile[worker] = (struct sums){.largest = 0.0};
    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, CHUNK, &chunk, err));
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            for (unsigned n = 0; n < tile->order; n++) {
                const uint64_t stored = tile->corner[n] + chunk.offset[n][i];

                found.index[n] = run->index[n] != NULL ? run->index[n][stored] : stored;
            }
            found.value = ((const double *)chunk.values)[i];
            SLC_TRY(add_nonzero(run, worker, &found, err));
        }
    }
    return SLC_OK;
}

/* Adds the sums of the worker's tile to the totals. Called in file order of the tiles. */
static bool add_sums(void *context, unsigned worker)
{
    struct residuals_run *run = context;
    const struct sums *tile = &run->tile[worker];

    slc_squares_add_sum(&run->total.squares, &tile->squares);
    slc_squares_add_sum(&run->total.values, &tile->values);
    run->total.magnitudes += tile->magnitudes;
    run->total.residuals += tile->residuals;
    run->total.deviances += tile->deviances;
    run->total.largest = fmax(run->total.largest, tile->largest);
    return true;
}

static enum slc_status check_options(const struct slc_residuals_options *options,
                                     struct slc_error *err)
{
    const struct slc_manifest *manifest = &options->store->manifest;
    const struct slc_model_view *model = options->model;

    if (options->top > SLC_RESIDUALS_TOP_MAX || options->quantile_count > SLC_QUANTILES_MAX) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%" PRIu64 " nonzeros and %u quantiles: at most %d nonzeros and %d "
                        "quantiles are possible",
                        options->top, options->quantile_count, SLC_RESIDUALS_TOP_MAX,
                        SLC_QUANTILES_MAX);
    }
    for (unsigned i = 0; i < options->quantile_count; i++) {
        if (!(options->quantiles[i] >= 0.0 && options->quantiles[i] <= 1.0)) {
            return slc_fail(err, SLC_ERR_USAGE, "quantile %g is not between 0 and 1",
                            options->quantiles[i]);
        }
    }
    if (options->threads == 0 || options->threads > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads requested; 1 to %d are possible",
                        options->threads, SLC_MAX_THREADS);
    }
    if (manifest->order != model->order) {
        return slc_fail_file(err, SLC_ERR_INPUT, options->store->path,
                             "the store has %u modes, but the model has %u", manifest->order,
                             model->order);
    }
    for (unsigned n = 0; n < model->order; n++) {
        const uint64_t stored = manifest->dims[n], rows = model->factors[n]->rows;

        if (stored != rows) {
            return slc_fail_file(err, SLC_ERR_INPUT, options->store->path,
                                 "mode %u has %" PRIu64 " indices in the store, but %" PRIu64
                                 " in the model: %s",
                                 n + 1, stored, rows,
                                 stored > rows ? "if the store has grown since the run, make a new "
                                                 "run that starts from this one"
                                               : "the model was made from another tensor");
        }
    }
    return SLC_OK;
}

static struct slc_tile_stream tiles_of(const struct slc_residuals_options *options)
{
    return (struct slc_tile_stream){.files = options->store->files,
                                    .io = options->io,
                                    .read_limit = options->read_limit,
                                    .stop = options->stop};
}

/* Returns the memory that the call allocates. `capacity` is the size of the buffer of the quantiles
 * in numbers. */
static uint64_t
added_bytes(const struct slc_residuals_options *options, unsigned workers, uint64_t capacity)
{
    const struct slc_tile_stream tiles = tiles_of(options);
    uint64_t bytes = OVERHEAD_BYTES + options->outside_bytes;

    bytes = slc_plan_plus(bytes, slc_relabel_all_bytes(slc_reader_info(options->store->reader)));
    bytes = slc_plan_plus(
        bytes, slc_buffer_footprint(options->top * sizeof(struct slc_residual), SLC_PAGES_SMALL));
    bytes = slc_plan_plus(bytes,
                          slc_quantiles_memory_bytes(options->quantile_count, workers, capacity));
    return slc_plan_plus(
        bytes, slc_tile_stream_memory_bytes(&tiles, options->store->reader, workers, true));
}

static uint64_t budget_of(const struct slc_residuals_options *options)
{
    return options->memory_bytes != 0 ? options->memory_bytes : slc_memory_total() / 5 * 4;
}

/* Names a budget that will also suffice when `need` is measured again. */
static enum slc_status
fail_budget(const struct slc_residuals_options *options, uint64_t need, struct slc_error *err)
{
    return slc_fail_budget(err, budget_of(options), slc_plan_plus(need, RESIDENT_SPREAD_BYTES),
                           "listing %" PRIu64 " residuals of this store", options->top);
}

enum slc_status slc_residuals_check_memory(const struct slc_residuals_options *options,
                                           uint64_t more_bytes,
                                           struct slc_error *err)
{
    const uint64_t nnz = slc_reader_info(options->store->reader)->nnz;
    const uint64_t added = added_bytes(options, 1, slc_min_u64(nnz, CAPACITY_LEAST));
    const uint64_t need = slc_plan_plus(slc_plan_plus(slc_memory_resident(), more_bytes), added);

    return need > budget_of(options) ? fail_budget(options, need, err) : SLC_OK;
}

/* Chooses the number of workers and the buffer of the quantiles, and assigns the rest of the budget
 * to the stream. */
static enum slc_status
fit_memory(struct residuals_run *run, uint64_t *stream_bytes, struct slc_error *err)
{
    const struct slc_residuals_options *options = run->options;
    const uint64_t budget = budget_of(options);
    uint64_t need;

    run->workers = options->threads;
    run->capacity = slc_min_u64(run->info->nnz, CAPACITY_MOST);
    while ((need = slc_plan_plus(slc_memory_resident(),
                                 added_bytes(options, run->workers, run->capacity))) > budget) {
        if (run->capacity > CAPACITY_LEAST) {
            run->capacity /= 2;
        } else if (run->workers > 1) {
            run->workers--;
        } else {
            return fail_budget(options, need, err);
        }
    }
    *stream_bytes =
        slc_tile_stream_memory_bytes(&run->tiles, options->store->reader, run->workers, true) +
        budget - need;
    return SLC_OK;
}

static enum slc_status allocate_memory(struct residuals_run *run, struct slc_error *err)
{
    const struct slc_residuals_options *options = run->options;
    const uint64_t bytes = options->top * sizeof(struct slc_residual);

    SLC_TRY(slc_buffer_create(&run->out->memory, bytes, SLC_PAGES_SMALL, err));
    run->out->top = run->out->memory.data;
    run->threshold = options->top > 0 ? 0.0 : INFINITY;
    SLC_TRY(slc_relabel_names(options->store, SLC_MAX_ORDER, run->labels, run->index, err));
    return slc_quantiles_open(&run->quantiles, options->quantile_count, options->quantiles,
                              run->info->nnz, run->workers, run->capacity, err);
}

/* Makes passes over the store until the quantiles are known. */
static enum slc_status
run_passes(struct residuals_run *run, uint64_t stream_bytes, struct slc_error *err)
{
    struct slc_tile_steps steps = {.context = run, .decode = add_tile, .in_turn = add_sums};

    run->first_pass = true;
    do {
        run->tiles_done = 0;
        report_progress(run, 0);
        SLC_TRY(slc_tile_stream_run(&run->tiles, run->options->store->reader, run->workers,
                                    stream_bytes, &steps, err));
        run->out->passes++;
        run->out->bytes_read += run->tiles.stats.bytes_read;
        run->first_pass = false;
        steps.in_turn = NULL;
    } while (!slc_quantiles_end_pass(&run->quantiles));
    return SLC_OK;
}

/* Fills in the result. Fails if a norm or a sum exceeds the largest number. */
static enum slc_status fill_result(const struct residuals_run *run, struct slc_error *err)
{
    const struct sums *total = &run->total;
    struct slc_residuals *out = run->out;
    const double nnz = (double)slc_max_u64(out->nnz, 1);

    out->norm = slc_squares_root(&total->squares, 1.0);
    out->values_norm = slc_squares_root(&total->values, 1.0);
    if (!isfinite(out->norm) || !isfinite(out->values_norm)) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "the norm of the residuals is %g, and that of the values %g: scale values "
                        "and model",
                        out->norm, out->values_norm);
    }
    if (!isfinite(total->magnitudes)) {
        return slc_fail(err, SLC_ERR_NUMERIC,
                        "the sum of the magnitudes of the residuals is %g: scale values and model",
                        total->magnitudes);
    }
    out->rmse = slc_squares_root(&total->squares, nnz);
    out->mae = total->magnitudes / nnz;
    out->mean = total->residuals / nnz;
    out->deviance = total->deviances / nnz;
    out->largest = total->largest;
    out->threads = run->workers;
    out->quantile_count = run->options->quantile_count;
    for (unsigned i = 0; i < out->quantile_count; i++) {
        out->quantile[i] = slc_quantiles_get(&run->quantiles, i);
    }
    sort_list(out);
    return SLC_OK;
}

static enum slc_status compute_residuals(struct residuals_run *run, struct slc_error *err)
{
    uint64_t stream_bytes = 0;
    enum slc_status status = fit_memory(run, &stream_bytes, err);

    SLC_THEN(status, allocate_memory(run, err));
    SLC_THEN(status, run_passes(run, stream_bytes, err));
    SLC_THEN(status, fill_result(run, err));
    slc_quantiles_close(&run->quantiles);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_labels_destroy(&run->labels[n]);
    }
    return status;
}

enum slc_status slc_residuals_find(const struct slc_residuals_options *options,
                                   struct slc_residuals *residuals,
                                   struct slc_error *err)
{
    memset(residuals, 0, sizeof *residuals);
    SLC_TRY(check_options(options, err));
    struct residuals_run *run = slc_calloc(1, sizeof *run);
    SLC_TRY(slc_check_memory(run != NULL, err, "for residuals"));
    run->options = options;
    run->out = residuals;
    run->info = slc_reader_info(options->store->reader);
    run->tiles = tiles_of(options);
    residuals->order = run->info->order;
    residuals->nnz = run->info->nnz;
    /* With default attributes, this call cannot fail on Linux. */
    (void)pthread_mutex_init(&run->lock, NULL);
    enum slc_status status = compute_residuals(run, err);
    (void)pthread_mutex_destroy(&run->lock);
    slc_free(run);
    return status;
}

void slc_residuals_destroy(struct slc_residuals *residuals)
{
    slc_buffer_destroy(&residuals->memory);
    residuals->top = NULL;
    residuals->count = 0;
}
