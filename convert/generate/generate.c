/* Generates entries in pieces of fixed size. A worker generates a piece, and formats it into its
 * text buffer or pushes it to the builder with the number of the piece as the sequence. */
#include "convert/generate/generate.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "base/thread/turns.h"
#include "convert/build/build_memory.h"
#include "convert/build/builder.h"
#include "convert/export/text_output.h"
#include "convert/forecast/build_forecast.h"
#include "convert/generate/random_tensor.h"
#include "convert/number/format.h"
#include "convert/publish/build_complete.h"
#include "storage/file/files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PIECE_ENTRIES = 8192,
    SAMPLE_ENTRIES = 32768,
    TEXT_BYTES = 1 << 20,
    OVERHEAD_BYTES = 2 << 20,         /* pages of the program that are touched after planning */
    WORKER_OVERHEAD_BYTES = 256 << 10 /* stack and allocator of a worker */
};

struct generation {
    const struct slc_generate_options *options;
    const struct slc_files *files;
    unsigned workers;      /* fewer than requested if memory is short */
    uint64_t memory_bytes; /* memory left for text buffers or the builder */
    struct slc_random_tensor tensor;
    struct slc_buffer columns; /* per worker: one column per mode, and the values */
    struct slc_turns turns;
    struct slc_error *worker_errors;
    /* for text: per worker and mode, the number of slices up to the last nonempty one */
    uint64_t (*slices)[SLC_MAX_ORDER];
    struct slc_text_output text;
    bool store;
    struct slc_builder *builder; /* NULL: the output is text */
};

static uint64_t columns_bytes(const struct generation *g)
{
    return (uint64_t)(g->options->order + 1) * PIECE_ENTRIES * 8;
}

struct piece {
    uint64_t *coords[SLC_MAX_ORDER];
    const uint64_t *view[SLC_MAX_ORDER];
    double *values;
    uint32_t count;
};

static void locate_piece(const struct generation *g, unsigned worker, struct piece *piece)
{
    void *memory = (char *)g->columns.data + worker * columns_bytes(g);
    uint64_t *columns = memory;
    void *values = columns + (size_t)g->options->order * PIECE_ENTRIES;

    for (unsigned mode = 0; mode < g->options->order; mode++) {
        piece->coords[mode] = columns + (size_t)mode * PIECE_ENTRIES;
        piece->view[mode] = piece->coords[mode];
    }
    piece->values = values;
}

static void draw_piece(const struct generation *g, uint64_t number, struct piece *piece)
{
    uint64_t begin = number * PIECE_ENTRIES;

    piece->count = (uint32_t)slc_min_u64(PIECE_ENTRIES, g->options->nnz - begin);
    slc_random_tensor_coords(&g->tensor, begin, 1, piece->count, piece->coords);
    slc_random_tensor_values(&g->tensor, piece->view, piece->count, piece->values);
}

static enum slc_status push_piece(struct generation *g,
                                  unsigned worker,
                                  uint64_t number,
                                  const struct piece *piece,
                                  struct slc_error *err)
{
    struct slc_entries entries = {.order = g->options->order,
                                  .count = piece->count,
                                  .values = piece->values,
                                  .sequence = number};

    memcpy(entries.coords, piece->view, sizeof piece->view);
    return slc_builder_push(g->builder, worker, &entries, err);
}

static char *format_row(char *out, unsigned order, const struct piece *piece, uint32_t i)
{
    for (unsigned mode = 0; mode < order; mode++) {
        out += slc_format_u64(out, piece->coords[mode][i] + 1);
        *out++ = ' ';
    }
    out += slc_format_f64(out, piece->values[i]);
    *out++ = '\n';
    return out;
}

static void note_slices(const struct piece *piece, unsigned order, uint64_t *slices)
{
    for (unsigned mode = 0; mode < order; mode++) {
        for (uint32_t i = 0; i < piece->count; i++) {
            slices[mode] = slc_max_u64(slices[mode], piece->coords[mode][i] + 1);
        }
    }
}

/* Formats a piece. If the text exceeds the buffer, waits for its turn and writes while it
 * formats. */
static enum slc_status write_piece(struct generation *g,
                                   unsigned worker,
                                   uint64_t number,
                                   const struct piece *piece,
                                   struct slc_error *err)
{
    char *buffer = slc_text_output_buffer(&g->text, worker);
    char *limit = buffer + g->text.buffer_bytes - SLC_FORMAT_ROW_BYTES;
    char *out = buffer;
    bool has_turn = false;
    uint32_t i = 0;

    note_slices(piece, g->options->order, g->slices[worker]);
    while (i < piece->count) {
        for (; i < piece->count && out <= limit; i++) {
            out = format_row(out, g->options->order, piece, i);
        }
        if (!has_turn && !slc_turns_wait(&g->turns, number)) {
            return SLC_ERR_INTERRUPTED; /* another worker failed */
        }
        has_turn = true;
        SLC_TRY(slc_text_output_write(&g->text, buffer, (size_t)(out - buffer), err));
        out = buffer;
    }
    slc_turns_done(&g->turns);
    return SLC_OK;
}

static void report_progress(const struct generation *g, uint64_t done)
{
    if (g->options->progress != NULL) {
        g->options->progress(g->options->context, "generate", slc_min_u64(done, g->options->nnz),
                             g->options->nnz);
    }
}

static void generate_pieces(void *context, unsigned worker, unsigned workers)
{
    struct generation *g = context;
    struct slc_error *err = &g->worker_errors[worker];
    uint64_t pieces = slc_div_up_u64(g->options->nnz, PIECE_ENTRIES);
    uint64_t number;
    struct piece piece;

    (void)workers;
    locate_piece(g, worker, &piece);
    while (slc_turns_take_ticket(&g->turns, &number) && number < pieces) {
        enum slc_status status = slc_stop_check(g->options->stop, err);

        if (status != SLC_OK) {
            slc_turns_stop(&g->turns);
            return;
        }
        draw_piece(g, number, &piece);
        status = g->builder != NULL ? push_piece(g, worker, number, &piece, err)
                                    : write_piece(g, worker, number, &piece, err);
        if (status != SLC_OK) {
            if (status != SLC_ERR_INTERRUPTED) {
                err->status = status;
            }
            slc_turns_stop(&g->turns);
            return;
        }
        if (worker == 0) {
            report_progress(g, (number + 1) * PIECE_ENTRIES);
        }
    }
}

static enum slc_status run_workers(struct generation *g, struct slc_error *err)
{
    unsigned workers = g->workers;

    SLC_TRY(slc_buffer_create(&g->columns, workers * columns_bytes(g), SLC_PAGES_SMALL, err));
    g->worker_errors = slc_calloc(workers, sizeof *g->worker_errors);
    SLC_TRY(slc_check_memory(g->worker_errors != NULL, err, "for %u workers", workers));
    for (unsigned i = 0; i < workers; i++) {
        slc_error_clear(&g->worker_errors[i]);
    }
    SLC_TRY(slc_turns_init(&g->turns, err));
    /* The first worker, which reports progress, may start after the others have finished. */
    report_progress(g, 0);
    enum slc_status status = slc_team_run(workers, generate_pieces, g, err);
    slc_turns_destroy(&g->turns);
    for (unsigned i = 0; i < workers && status == SLC_OK; i++) {
        status = g->worker_errors[i].status;
        if (status != SLC_OK && err != NULL) {
            *err = g->worker_errors[i];
        }
    }
    /* Free the columns before the store is sorted. */
    slc_buffer_destroy(&g->columns);
    return status;
}

/* True if the last slices of a mode have no nonzeros. */
static bool ends_empty(const struct generation *g)
{
    bool empty = false;

    for (unsigned mode = 0; mode < g->options->order; mode++) {
        uint64_t slices = 0;

        for (unsigned worker = 0; worker < g->workers; worker++) {
            slices = slc_max_u64(slices, g->slices[worker][mode]);
        }
        empty = empty || slices < g->options->dims[mode];
    }
    return empty;
}

static enum slc_status
generate_text(struct generation *g, struct slc_generate_report *report, struct slc_error *err)
{
    const struct slc_generate_options *options = g->options;
    uint64_t share = g->memory_bytes / g->workers & ~(uint64_t)(SLC_PAGE_BYTES - 1);

    g->slices = slc_calloc(g->workers, sizeof *g->slices);
    SLC_TRY(slc_check_memory(g->slices != NULL, err, "for %u workers", g->workers));
    enum slc_status status =
        slc_text_output_open(&g->text, g->files, options->output, options->overwrite, g->workers,
                             slc_min_u64(share, TEXT_BYTES), err);

    SLC_THEN(status, run_workers(g, err));
    if (status == SLC_OK) {
        report->text_bytes = g->text.bytes;
        report->dims_lost = ends_empty(g);
        status = slc_text_output_finish(&g->text, err);
    } else {
        slc_text_output_abandon(&g->text);
    }
    return status;
}

/* Passes evenly spaced entries to the builder as a sample, so that buckets are about equal. */
static enum slc_status pass_sample(struct generation *g, struct slc_error *err)
{
    unsigned order = g->options->order;
    uint32_t count = (uint32_t)slc_min_u64(g->options->nnz, SAMPLE_ENTRIES);
    struct slc_entries sample = {.order = order, .count = count};
    uint64_t *columns[SLC_MAX_ORDER];

    if (count == 0) {
        return SLC_OK;
    }
    uint64_t *memory = slc_malloc((size_t)count * order * sizeof *memory);
    SLC_TRY(slc_check_memory(memory != NULL, err, "for a sample of %u entries", count));
    for (unsigned mode = 0; mode < order; mode++) {
        columns[mode] = memory + (size_t)mode * count;
        sample.coords[mode] = columns[mode];
    }
    slc_random_tensor_coords(&g->tensor, 0, g->options->nnz / count, count, columns);
    enum slc_status status = slc_builder_sample(g->builder, &sample, count, g->options->nnz, err);
    slc_free(memory);
    return status;
}

static enum slc_status generate_store(struct generation *g,
                                      const struct slc_builder_options *build,
                                      struct slc_generate_report *report,
                                      struct slc_error *err)
{
    const struct slc_generate_options *options = g->options;
    struct slc_store_origin origin = {.dialect = "generate", .writer = "sluice " SLC_VERSION};

    SLC_TRY(slc_check_open_files(err));
    SLC_TRY(slc_builder_create(build, options->order, &g->builder, err));
    enum slc_status status = pass_sample(g, err);
    SLC_THEN(status, run_workers(g, err));
    if (status != SLC_OK) {
        slc_builder_abandon(g->builder);
        return status;
    }
    snprintf(origin.source, sizeof origin.source, "nnz %" PRIu64 " rank %u seed %" PRIu64,
             options->nnz, options->rank, options->seed);
    return slc_builder_finish(g->builder, 0, options->dims, &origin, &report->build, err);
}

/* Divides the memory. Uses as many of the requested workers as fit. First come their columns and
 * the smallest builder, or the smallest text buffers. At most half of the remaining memory goes to
 * factor tables, which only save time; the rest goes to the text buffers or to the builder. */
static enum slc_status
divide_memory(struct generation *g, struct slc_builder_options *build, struct slc_error *err)
{
    const struct slc_generate_options *options = g->options;
    uint64_t budget =
        options->memory_bytes == 0 ? slc_memory_total() / 5 * 4 : options->memory_bytes;
    uint64_t resident = slc_memory_resident() + OVERHEAD_BYTES;
    uint64_t fixed = 0;
    uint64_t least = 0;

    for (g->workers = options->threads; g->workers >= 1; g->workers--) {
        build->workers = g->workers;
        fixed = resident + g->workers * (WORKER_OVERHEAD_BYTES + columns_bytes(g));
        least = fixed + (g->store ? slc_builder_memory_min(build, options->order)
                                  : (uint64_t)g->workers * 4 * SLC_PAGE_BYTES);
        if (least <= budget) {
            break;
        }
    }
    if (g->workers == 0) {
        return slc_fail_budget(err, budget, least + (UINT64_C(1) << 20), "generating this tensor");
    }
    SLC_TRY(slc_random_tensor_init(&g->tensor, options, (budget - least) / 2, err));
    build->caller_bytes = fixed + slc_random_tensor_memory_bytes(&g->tensor);
    g->memory_bytes = budget - build->caller_bytes;
    return SLC_OK;
}

static bool is_store(const char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    return length > 4 && memcmp(path + length - 4, ".slc", 4) == 0;
}

/* Returns the options of the builder. With a model, equal coordinates are one observation, so the
 * first entry is kept; without a model, their values are summed. */
static struct slc_builder_options build_options(const struct slc_generate_options *options)
{
    return (struct slc_builder_options){.files = options->files,
                                        .output = options->output,
                                        .publishing = options->publishing,
                                        .stop = options->stop,
                                        .progress = options->progress,
                                        .context = options->context,
                                        .temp_folder = options->temp_folder,
                                        .overwrite = options->overwrite,
                                        .codec = options->codec,
                                        .value = SLC_VALUE_AUTO,
                                        .duplicates = options->rank > 0 ? SLC_DUPLICATES_KEEP_FIRST
                                                                        : SLC_DUPLICATES_SUM,
                                        .block_bytes = options->block_bytes,
                                        .fibers = options->fibers,
                                        .run = options->run,
                                        .relabel = options->relabel,
                                        .max_temp = options->max_temp};
}

/* Checks the options and divides memory. */
static enum slc_status
start_generation(struct generation *g, struct slc_builder_options *build, struct slc_error *err)
{
    const struct slc_generate_options *options = g->options;

    if (options->threads == 0 || options->threads > SLC_MAX_THREADS || options->order == 0 ||
        options->order > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%u modes with %u threads: there must be 1 to %d modes and 1 to %d threads",
                        options->order, options->threads, SLC_MAX_ORDER, SLC_MAX_THREADS);
    }
    enum slc_status status = divide_memory(g, build, err);
    build->memory_bytes = g->memory_bytes;
    return status;
}

static void end_generation(struct generation *g)
{
    slc_buffer_destroy(&g->columns);
    slc_free(g->worker_errors);
    slc_free(g->slices);
    slc_random_tensor_destroy(&g->tensor);
}

enum slc_status slc_generate(const struct slc_generate_options *options,
                             struct slc_generate_report *report,
                             struct slc_error *err)
{
    struct generation g = {.options = options,
                           .files = slc_files_or_system(options->files),
                           .store = is_store(options->output),
                           .text = {.fd = -1}};
    struct slc_builder_options build = build_options(options);
    enum slc_status status = start_generation(&g, &build, err);

    *report = (struct slc_generate_report){.entries = options->nnz, .store = g.store};
    SLC_THEN(status,
             g.store ? generate_store(&g, &build, report, err) : generate_text(&g, report, err));
    end_generation(&g);
    return status;
}

/* Returns the bytes of the text of a piece. */
static uint64_t text_bytes_of(const struct generation *g, const struct piece *piece)
{
    char row[SLC_FORMAT_ROW_BYTES];
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < piece->count; i++) {
        bytes += (uint64_t)(format_row(row, g->options->order, piece, i) - row);
    }
    return bytes;
}

/* Generates the first piece twice, measures the time of the second run, and extrapolates. */
static enum slc_status time_piece(struct generation *g,
                                  const struct slc_builder_options *build,
                                  struct slc_generate_forecast *f,
                                  struct slc_error *err)
{
    const double nnz = (double)g->options->nnz;
    struct slc_entries sample = {.order = g->options->order};
    struct slc_build_job job = {.build = build,
                                .sample = &sample,
                                .dims = g->options->dims,
                                .expected = g->options->nnz,
                                .entries = g->options->nnz};
    struct slc_build_forecast built = {.store_bytes = 0};
    struct piece piece;
    uint64_t start_ns = 0;
    enum slc_status status = slc_buffer_create(&g->columns, columns_bytes(g), SLC_PAGES_SMALL, err);

    if (status != SLC_OK || g->options->nnz == 0) {
        return status;
    }
    locate_piece(g, 0, &piece);
    for (unsigned k = 0; k < 2; k++) {
        start_ns = slc_clock_ns();
        draw_piece(g, 0, &piece);
    }
    if (!g->store) {
        f->output_bytes = (uint64_t)((double)text_bytes_of(g, &piece) / piece.count * nnz);
    }
    f->draw_seconds = slc_seconds_since(start_ns) / piece.count * nnz / g->workers;
    if (!g->store) {
        return SLC_OK;
    }
    sample.count = piece.count;
    sample.values = piece.values;
    job.stretches = piece.count;
    memcpy(sample.coords, piece.view, sizeof piece.view);
    status = slc_build_forecast(&job, &built, err);
    f->push_bytes = built.push_bytes;
    f->sort_bytes = built.sort_bytes;
    f->spill_bytes = built.spill_bytes;
    f->output_bytes = built.store_bytes;
    f->scatter_seconds = built.scatter_seconds;
    f->sort_seconds = built.sort_seconds;
    f->encode_seconds = built.encode_seconds;
    return status;
}

enum slc_status slc_generate_forecast(const struct slc_generate_options *options,
                                      struct slc_generate_forecast *forecast,
                                      struct slc_error *err)
{
    struct generation g = {.options = options,
                           .files = slc_files_or_system(options->files),
                           .store = is_store(options->output),
                           .text = {.fd = -1}};
    struct slc_builder_options build = build_options(options);
    enum slc_status status = start_generation(&g, &build, err);

    *forecast = (struct slc_generate_forecast){.store = g.store, .workers = g.workers};
    if (status == SLC_OK) {
        const uint64_t share = g.memory_bytes / g.workers & ~(uint64_t)(SLC_PAGE_BYTES - 1);

        forecast->fixed_bytes = slc_memory_resident() + g.workers * columns_bytes(&g);
        forecast->text_memory_bytes = g.store ? 0 : g.workers * slc_min_u64(share, TEXT_BYTES);
        status = time_piece(&g, &build, forecast, err);
    }
    end_generation(&g);
    return status;
}
