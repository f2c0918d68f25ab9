/* Contracts a store with vectors. Workers contract tiles (contract_tile.h) in one scan of the
 * store. Sums are written directly if they arrive in the order of the result; otherwise they are
 * sorted first. If every mode is contracted, each tile yields one number, and these numbers are
 * added in file order. */
#include "engine/product/contract.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "engine/product/contract_internal.h"
#include "storage/scan/tile_scan.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    /* Memory for records and paths, and for reading an array. */
    OVERHEAD_BYTES = 1 << 20
};

static enum slc_status check_options(const struct slc_contract_options *options,
                                     struct slc_error *err)
{
    if (options->more_count >= SLC_CONTRACT_RESULTS_MAX) {
        return slc_fail(err, SLC_ERR_USAGE, "%u vectors for one mode; 1 to %d are possible",
                        options->more_count + 1, SLC_CONTRACT_RESULTS_MAX);
    }
    if (options->threads == 0 || options->threads > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads requested; 1 to %d are possible",
                        options->threads, SLC_MAX_THREADS);
    }
    return SLC_OK;
}

/* Divides the modes into contracted modes, which have a vector, and kept modes. */
static enum slc_status divide_modes(struct slc_contract_run *c, struct slc_error *err)
{
    const struct slc_contract_options *options = c->options;
    const unsigned order = c->info->order;
    bool contracted[SLC_MAX_ORDER] = {false};

    c->job.order = order;
    for (unsigned k = 0; k < options->vector_count; k++) {
        const unsigned mode = options->vectors[k].mode;

        if (mode >= order) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "mode %u does not exist; the tensor has modes 1 to %u", mode + 1,
                            order);
        }
        if (contracted[mode]) {
            return slc_fail(err, SLC_ERR_USAGE, "mode %u has two vectors; only one is allowed",
                            mode + 1);
        }
        contracted[mode] = true;
        c->job.vector_mode[c->job.vector_count++] = mode;
    }
    c->job.results = 1 + options->more_count;
    for (unsigned mode = 0; mode < order; mode++) {
        if (!contracted[mode]) {
            c->report->dims[c->job.kept_count] = c->info->dims[mode];
            c->job.kept_mode[c->job.kept_count++] = mode;
        }
    }
    c->report->order = c->job.kept_count;
    if (options->more_count > 0 && (c->job.vector_count != 1 || c->job.kept_count == 0)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "several vectors need exactly one mode to multiply, and another mode that "
                        "remains");
    }
    if (c->job.kept_count == 0 && options->output != NULL) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "every mode has a vector, so the result is a number and the store %s cannot be written",
            options->output);
    }
    if (c->job.kept_count > 0 && options->output == NULL) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "%u of %u modes have no vector, so the result is a tensor and needs an output store",
            c->job.kept_count, order);
    }
    return SLC_OK;
}

/* Returns the bytes of the vectors and of the index maps of relabelled modes. */
static uint64_t operand_bytes(const struct slc_contract_run *c)
{
    const struct slc_manifest *manifest = &c->store.manifest;
    uint64_t bytes = 0, vectors;

    for (unsigned k = 0; k < c->job.vector_count; k++) {
        if (!slc_add_u64(bytes, slc_operand_bytes(&c->operands[k]), &bytes)) {
            return UINT64_MAX;
        }
    }
    if (c->job.results > 1) {
        const uint64_t vector = slc_matrix_footprint(SLC_F64, slc_contract_vector_rows(c), 1);
        const uint64_t columns =
            c->products != NULL
                ? slc_matrix_footprint(SLC_F64, slc_contract_vector_rows(c), c->job.results)
                : 0;

        if (!slc_mul_u64(vector, c->job.results - 1, &vectors) ||
            !slc_add_u64(vectors, columns, &vectors) || !slc_add_u64(bytes, vectors, &bytes)) {
            return UINT64_MAX;
        }
    }
    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        const uint64_t length = c->info->dims[manifest->permutations[i].mode];

        if (!slc_add_u64(bytes, slc_labels_memory_bytes(length), &bytes)) {
            return UINT64_MAX;
        }
    }
    return bytes;
}

static uint64_t fixed_bytes(const struct slc_contract_run *c)
{
    uint64_t bytes;

    return slc_add_u64(c->report->process_bytes + OVERHEAD_BYTES +
                           slc_names_carry_bytes(&c->names) +
                           (c->job.part != NULL ? slc_part_memory_bytes(c->info) : 0),
                       operand_bytes(c), &bytes)
               ? bytes
               : UINT64_MAX / 2;
}

/* Sets the number of threads and the sizes that depend on it. With `threads` 0, plans for the
 * fewest possible workers. */
static enum slc_status
use_threads(struct slc_contract_run *run, unsigned threads, struct slc_error *err)
{
    const struct slc_tile_products *products = run->products;
    struct slc_products_plan plan = {.workers = threads > 0 ? threads : 1};
    enum slc_status status = SLC_OK;

    if (products != NULL) {
        struct slc_used used[SLC_MAX_ORDER] = {{.end = 0}};
        uint32_t modes = 0;

        for (unsigned k = 0; k < run->job.vector_count; k++) {
            modes |= UINT32_C(1) << run->job.vector_mode[k];
            used[run->job.vector_mode[k]] = run->operands[k].used;
        }
        status = products->plan(products->self, run->reader, modes, used, run->job.results, threads,
                                &plan, err);
    }
    run->threads = threads > 0 ? threads : 1;
    run->workers = plan.workers;
    run->products_bytes = plan.host_bytes;
    return status;
}

enum slc_status slc_contract_fit_threads(struct slc_contract_run *run,
                                         slc_contract_needs_fn *needs_of,
                                         const void *context,
                                         uint64_t *least,
                                         uint64_t *needs,
                                         struct slc_error *err)
{
    unsigned threads = run->options->threads;
    enum slc_status status = use_threads(run, 0, err);

    *least = needs_of(run, context);
    while (status == SLC_OK) {
        status = use_threads(run, threads, err);
        *needs = needs_of(run, context);
        if (*needs <= run->budget_bytes || threads-- == 0) {
            break;
        }
    }
    return status;
}

uint64_t slc_contract_scan_bytes(const struct slc_contract_run *run)
{
    struct slc_tile_stream *stream = run->options->stream;
    const unsigned workers = run->workers;

    return (stream != NULL ? slc_tile_stream_memory_bytes(stream, run->reader, workers, true)
                           : slc_tile_scan_memory_bytes(run->info, workers)) +
           slc_buffer_footprint(workers * slc_contract_tile_bytes(&run->job), SLC_PAGES_SMALL) +
           run->products_bytes;
}

void slc_contract_set_spare(struct slc_contract_run *run, uint64_t bytes)
{
    struct slc_tile_stream *stream = run->options->stream;

    run->spare_bytes = 0;
    if (stream != NULL) {
        const uint64_t least =
            slc_tile_stream_memory_bytes(stream, run->reader, run->workers, true);
        const uint64_t most =
            slc_tile_stream_memory_bytes(stream, run->reader, run->workers, false);

        run->spare_bytes = slc_min_u64(bytes, most - least);
        if (run->job.part != NULL && slc_contract_has_short(run)) {
            run->report->part_bytes =
                2 * run->part.bytes - slc_tile_stream_kept_bytes(stream, run->reader, run->workers,
                                                                 least + run->spare_bytes);
        }
    }
}

static void report_progress(const struct slc_contract_run *run, uint64_t done)
{
    if (run->options->progress != NULL) {
        run->options->progress(run->options->context, "multiply", done, run->tiles);
    }
}

void slc_contract_count_tile(struct slc_contract_run *run, unsigned worker)
{
    const uint64_t done = __atomic_add_fetch(&run->tiles_done, 1, __ATOMIC_RELAXED);

    if (worker == 0) {
        report_progress(run, done);
    }
}

enum slc_status slc_contract_scan(struct slc_contract_run *run,
                                  const struct slc_tile_steps *steps,
                                  struct slc_error *err)
{
    struct slc_tile_stream *stream = run->options->stream;
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status;

    /* Worker 0 reports progress. Report once here, because the other workers may claim all tiles
     * before worker 0 starts. */
    report_progress(run, run->tiles_done);
    if (stream != NULL) {
        status = slc_tile_stream_pass(stream, steps, err);
    } else {
        status = slc_tile_scan(&(struct slc_tile_scan_options){.files = run->store.files,
                                                               .reader = run->reader,
                                                               .workers = run->workers,
                                                               .last_row = UINT64_MAX,
                                                               .stop = run->options->stop},
                               steps, err);
    }
    run->report->scan_seconds += slc_seconds_since(start_ns);
    return status;
}

enum slc_status
slc_contract_fail_budget(const struct slc_contract_run *run, uint64_t least, struct slc_error *err)
{
    least = slc_min_u64(least, run->least_ordered);
    if (run->job.vector_count == 0) {
        return slc_fail_budget(err, run->budget_bytes, least + SLC_CONTRACT_MARGIN,
                               "sorting the nonzeros of this tensor");
    }
    return slc_fail_budget(err, run->budget_bytes, least + SLC_CONTRACT_MARGIN,
                           "multiplying this tensor (%" PRIu64 " MiB for vectors)",
                           slc_div_up_u64(operand_bytes(run), UINT64_C(1) << 20));
}

enum slc_status slc_contract_one(struct slc_contract_run *run,
                                 unsigned worker,
                                 struct slc_tile_view *tile,
                                 slc_contract_sink_fn *sink,
                                 void *context,
                                 struct slc_error *err)
{
    struct slc_contract_given given = {.products = run->products};
    uint64_t zeros[SLC_CONTRACT_RESULTS_MAX] = {0};
    char *memory = run->memory.data;
    enum slc_status status = SLC_OK;

    slc_contract_count_tile(run, worker);
    if (run->products != NULL) {
        SLC_TRY(run->products->take(run->products->self, worker, tile, &given.fibers, err));
    }
    status = slc_contract_tile(&run->job, tile, given.fibers.count > 0 ? &given : NULL,
                               memory + worker * slc_contract_tile_bytes(&run->job), sink, context,
                               worker, zeros, err);
    for (unsigned r = 0; r < run->job.results; r++) {
        (void)__atomic_add_fetch(&run->zeros[r], zeros[r], __ATOMIC_RELAXED);
    }
    if (run->products != NULL) {
        run->products->leave(run->products->self, worker);
    }
    return status;
}

static enum slc_status add_sums(void *context,
                                unsigned worker,
                                unsigned result,
                                const struct slc_entries *entries,
                                struct slc_error *err)
{
    struct slc_contract_run *c = context;

    (void)result;
    (void)err;
    for (uint32_t i = 0; i < entries->count; i++) {
        c->worker[worker].tile_sum += entries->values[i];
    }
    return SLC_OK;
}

/* Stores the sum of one tile. Every tile has its own element, so tiles may arrive in any order. */
static enum slc_status
sum_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_contract_run *c = context;
    double *sums = c->sums.data;

    c->worker[worker].tile_sum = 0;
    enum slc_status status = slc_contract_one(c, worker, tile, add_sums, c, err);
    sums[tile->ordinal] = c->worker[worker].tile_sum;
    return status;
}

static uint64_t sums_bytes(const struct slc_contract_run *c)
{
    return c->info->tile_count * sizeof(double);
}

static uint64_t bytes_for_number(const struct slc_contract_run *c, const void *context)
{
    (void)context;
    return c->fixed_bytes + slc_buffer_footprint(sums_bytes(c), SLC_PAGES_SMALL) +
           slc_contract_scan_bytes(c);
}

static enum slc_status contract_to_number(struct slc_contract_run *c, struct slc_error *err)
{
    const struct slc_tile_steps steps = {.context = c, .decode = sum_tile};
    uint64_t least, needs;

    SLC_TRY(slc_contract_fit_threads(c, bytes_for_number, NULL, &least, &needs, err));
    c->report->least_bytes = least + SLC_CONTRACT_MARGIN;
    if (needs > c->budget_bytes) {
        return slc_contract_fail_budget(c, least, err);
    }
    slc_contract_set_spare(c, c->budget_bytes - needs);
    if (c->options->dry_run) {
        return SLC_OK;
    }
    enum slc_status status = slc_contract_start(c, false, err);
    SLC_THEN(status, slc_buffer_create(&c->sums, sums_bytes(c), SLC_PAGES_SMALL, err));
    SLC_THEN(status, slc_contract_scan(c, &steps, err));
    SLC_TRY(status);
    for (uint64_t t = 0; t < c->info->tile_count; t++) {
        c->report->scalar += ((const double *)c->sums.data)[t];
    }
    if (!isfinite(c->report->scalar)) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "the products sum to %g, beyond the range of f64: scale the vectors",
                        c->report->scalar);
    }
    return SLC_OK;
}

/* Chooses the layout to read: the layout with whole fibers of a contracted mode, because it yields
 * the fewest sums. If there are several such layouts, the first vector's mode decides. If there is
 * none, `blco` is read. Fiber runs are used if the tiles of the chosen layout have runs of a
 * contracted mode. */
static enum slc_status choose_layout(struct slc_contract_run *c, struct slc_error *err)
{
    struct slc_reader *reader = NULL;

    for (unsigned k = 0; k < c->job.vector_count && reader == NULL; k++) {
        SLC_TRY(
            slc_store_open_fibers(&c->store, c->job.vector_mode[k], c->budget_bytes, &reader, err));
    }
    c->reader = reader != NULL ? reader : c->store.reader;
    c->info = slc_reader_info(c->reader);
    c->report->layout = c->info->layout;
    c->report->layout_mode = c->info->layout_mode;
    c->report->layout_fibers = c->info->fiber_count;
    c->report->layout_fibers_possible = 1;
    for (unsigned n = 0; n < c->info->order; n++) {
        c->report->layout_fibers_possible *=
            n != c->info->layout_mode ? (double)c->info->dims[n] : 1;
    }
    c->report->layout_blocks = c->info->block_count;
    c->report->layout_bytes = c->info->file_bytes;
    const struct slc_fiber_run *fibers = &c->info->keys.run;
    for (unsigned k = 0; k < c->job.vector_count; k++) {
        if (fibers->bits > 0 && fibers->mode == c->job.vector_mode[k]) {
            c->job.fiber_tiles = true;
            c->job.fiber_vector = k;
        }
    }
    return SLC_OK;
}

/* Prepares the vectors for the chosen layout. */
static void init_operands(struct slc_contract_run *c)
{
    for (unsigned k = 0; k < c->job.vector_count; k++) {
        const unsigned mode = c->job.vector_mode[k];
        struct slc_operand *operand = &c->operands[k];

        slc_operand_init(operand, c->reader, mode);
        c->report->used[k].first = operand->first;
        c->report->used[k].last = operand->last;
        c->report->used[k].held =
            slc_operand_is_short(operand) ? operand->used.count : operand->length;
        c->report->used[k].relabelled = (c->info->relabelled_modes >> mode & 1) != 0;
    }
    if (c->options->stream != NULL) {
        c->options->stream->keep_blocks = slc_contract_has_short(c);
    }
}

/* Returns an upper bound for the number of nonzeros of the result: the number of its cells, the
 * number of nonzeros of the store, or the number of whole fibers, whichever is smallest. */
static uint64_t most_sums(const struct slc_contract_run *c)
{
    uint64_t most = c->info->nnz;
    uint64_t cells = 1;

    if (c->info->layout == SLC_LAYOUT_FIBER) {
        most = c->info->fiber_count;
    }
    for (unsigned k = 0; k < c->job.kept_count; k++) {
        if (!slc_mul_u64(cells, c->report->dims[k], &cells)) {
            return most;
        }
    }
    return slc_min_u64(most, cells);
}

static enum slc_status contract_store(struct slc_contract_run *c, struct slc_error *err)
{
    struct slc_key_layout layout;

    SLC_TRY(divide_modes(c, err));
    enum slc_status status = choose_layout(c, err);
    SLC_THEN(status, slc_contract_open_part(c, err));
    SLC_TRY(status);
    init_operands(c);
    if (c->options->names && c->job.kept_count > 0) {
        slc_names_carry_init(&c->names, c->store.files, c->store.path, &c->store.manifest);
        c->names.stop = c->options->stop;
        memcpy(c->names.modes, c->job.kept_mode, c->job.kept_count * sizeof c->names.modes[0]);
    }
    c->report->sums_most = most_sums(c);
    c->report->process_bytes = slc_memory_resident();
    c->products = c->job.vector_count > 0 ? c->options->products : NULL;
    c->fixed_bytes = fixed_bytes(c);
    c->least_ordered = UINT64_MAX;
    c->fibers = c->options->fibers;
    c->run = c->options->run;
    bool keeps_order = c->job.kept_count > 0 && slc_contract_keeps_order(c, &layout);
    if (keeps_order) {
        /* If the sums are sorted nevertheless, by request or for lack of memory, the result has the
         * same order as without sorting. */
        c->fibers = layout.run.bits > 0 ? SLC_FIBERS_GIVEN : SLC_FIBERS_NONE;
        c->run = layout.run;
    }
    if (c->job.kept_count == 0) {
        status = contract_to_number(c, err);
    } else {
        if (keeps_order && !c->options->sort) {
            status = slc_contract_fits_ordered(c, &layout, &c->report->ordered, err);
        }
        SLC_THEN(status, c->report->ordered ? slc_contract_ordered(c, &layout, err)
                                            : slc_contract_sorted(c, err));
    }
    c->report->threads = c->threads;
    c->report->workers = c->workers;
    c->report->zero_sums = c->zeros[0];
    for (unsigned r = 0; r < c->options->more_count; r++) {
        c->options->more[r].zero_sums = c->zeros[r + 1];
    }
    return status;
}

enum slc_status slc_contract(const struct slc_contract_options *options,
                             struct slc_contract_report *report,
                             struct slc_error *err)
{
    enum slc_status status = check_options(options, err);

    *report = (struct slc_contract_report){.order = 0};
    SLC_TRY(status);
    struct slc_contract_run *c = slc_calloc(1, sizeof *c);
    SLC_TRY(slc_check_memory(c != NULL, err, "to multiply a tensor"));
    c->options = options;
    c->report = report;
    c->budget_bytes =
        options->memory_bytes == 0 ? slc_memory_total() / 5 * 4 : options->memory_bytes;
    status = slc_store_open_within(options->files, options->store, c->budget_bytes, &c->store, err);
    if (status == SLC_OK) {
        c->reader = c->store.reader;
        c->info = slc_reader_info(c->reader);
        report->nnz = c->info->nnz;
        status = contract_store(c, err);
        slc_contract_release(c);
        slc_contract_close_part(c);
        slc_store_close_layout(&c->store, c->reader);
        slc_store_close(&c->store);
    }
    slc_free(c);
    return status;
}
