/* Measures the kernels of `bench roofline` on the CPU. Defines the tables of all kernels. */
#include "tools/bench/roofline/roofline.h"

#include "base/error/clock.h"
#include "base/error/error.h"
#include "base/memory/memory.h"
#include "cpu/cpu.h"
#include "engine/plan/plan.h"
#include "storage/block/reader.h"
#include "tools/bench/measure/resident.h"
#include "tools/bench/measure/run.h"
#include "tools/bench/mttkrp/mttkrp_group.h"
#include "tools/bench/mttkrp/mttkrp_model.h"
#include "tools/bench/product/ttm_mode.h"
#include "tools/bench/product/ttv_kernels.h"
#include "tools/progress/console.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { INDEX_BYTES = 4, SUM_BYTES = 8 };

void roofline_name_tensor(const struct operands *operands, unsigned which, char *name, size_t bytes)
{
    const char *path = operands->text[which];
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL && slash[1] != '\0' ? slash + 1 : path;
    size_t length = strlen(base);

    for (unsigned i = 0; i < operands->count; i++) {
        const char *other = strrchr(operands->text[i], '/');

        if (i != which && strcmp(other != NULL ? other + 1 : operands->text[i], base) == 0) {
            base = path;
            length = strlen(path);
        }
    }
    if (length > 4 && strcmp(base + length - 4, ".slc") == 0) {
        length -= 4;
    }
    (void)snprintf(name, bytes, "%.*s", (int)length, base);
}

json_t *roofline_add_row(json_t *rows, const struct roofline_job *job, unsigned mode)
{
    json_t *row = bench_add_row(rows);

    slc_json_set_text(row, "tensor", job->tensor);
    slc_json_set_text(row, "case", job->case_name);
    slc_json_set_text(row, "kernel", job->kernel);
    slc_json_set_count(row, "rank", job->rank);
    slc_json_set_count(row, "mode", mode + 1);
    return row;
}

enum slc_status roofline_leave_out(const struct roofline_job *job,
                                   unsigned first,
                                   unsigned count,
                                   enum slc_status status,
                                   struct slc_error *err)
{
    char mode[32];

    if (status != SLC_ERR_BUDGET) {
        return status;
    }
    for (unsigned n = first; n < first + count; n++) {
        slc_json_set_text(roofline_add_row(job->left_out, job, n), "why", err->message);
    }
    (void)snprintf(mode, sizeof mode, " in mode %u", first + 1);
    console_note("%s (%s): %s at rank %u is left out%s: %s", job->tensor, job->case_name,
                 job->kernel, job->rank, count == 1 ? mode : "", err->message);
    slc_error_clear(err);
    return SLC_OK;
}

/* Operations and bytes of an MTTKRP, with N modes, rank R, elements of v bytes and sums of 8 bytes.
 * V is the set of modes that vary within a run of nonzeros.
 *
 *   operations         N R per nonzero
 *   row(m)             R v bytes, read; for the output mode 2 R 8 bytes, read and written
 *   bytes per nonzero  v + sum over m in V of (4 + row(m))
 *   bytes per run      4 + sum over the other modes of (4 + row(m))
 *
 * Without runs, V is the set of all modes, and there are no bytes per run. The model ignores that
 * an output row stays in registers if neighbouring nonzeros use it; it overestimates the bytes by
 * up to two rows per nonzero. */
/* How nonzeros form runs. */
struct runs {
    uint32_t varying; /* bit m is set if mode m varies within a run; 0 without runs */
    double nnz_per_run;
};

/* Returns the bytes that one MTTKRP of `mode` moves, by the model above. */
static double moved_bytes(const struct roofline_job *job, unsigned mode, const struct runs *runs)
{
    const struct slc_manifest *manifest = &job->session->store.manifest;
    const double value = slc_value_bytes(job->precision);
    double each = value;
    double run = runs->varying != 0 ? INDEX_BYTES : 0;

    for (unsigned m = 0; m < manifest->order; m++) {
        const double row = m == mode ? 2.0 * job->rank * SUM_BYTES : job->rank * value;
        const bool varies = runs->varying == 0 || (runs->varying >> m & 1) != 0;

        *(varies ? &each : &run) += INDEX_BYTES + row;
    }
    return (double)manifest->nnz * (each + run / runs->nnz_per_run);
}

static void set_mttkrp(const struct roofline_job *job,
                       unsigned mode,
                       const struct bench_mttkrp_cell *cell,
                       const struct runs *runs,
                       struct roofline_point *point)
{
    const struct slc_manifest *manifest = &job->session->store.manifest;
    const uint64_t row_bytes = bench_model_row_bytes(job->precision, job->rank);

    point->measured = cell->measured;
    point->times = bench_samples_summary(&cell->samples);
    point->flop = (double)manifest->nnz * manifest->order * job->rank;
    point->bytes = moved_bytes(job, mode, runs);
    point->rows_bytes = bench_model_set_bytes(manifest, row_bytes);
    point->strategy = slc_conflict_name(cell->choice.chosen);
    point->nnz_per_run = runs->nnz_per_run;
    if (runs->varying != 0) {
        (void)format_modes(point->form, runs->varying);
    } else {
        (void)snprintf(point->form, sizeof point->form, "plain");
    }
}

/* Numbers of runs and of nonzeros in the tiles of each worker. */
struct counting {
    uint64_t runs[SLC_MAX_THREADS];
    uint64_t nnz[SLC_MAX_THREADS];
};

static enum slc_status
count_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct counting *counting = context;
    struct slc_fiber_view fibers = {.nnz = tile->nnz, .runs = tile->nnz};

    if (tile->next_fibers == NULL) {
        counting->runs[worker] += tile->nnz;
        counting->nnz[worker] += tile->nnz;
        return SLC_OK;
    }
    while (fibers.nnz > 0) {
        SLC_TRY(tile->next_fibers(tile, BENCH_CHUNK_NNZ, &fibers, err));
        counting->runs[worker] += fibers.runs;
        counting->nnz[worker] += fibers.nnz;
    }
    return SLC_OK;
}

/* Counts the runs of the nonzeros in the order of the store, as its tiles deliver them. */
static enum slc_status
count_runs(const struct roofline_job *job, struct runs *runs, struct slc_error *err)
{
    struct slc_session *session = job->session;
    const struct slc_layout_info *info = slc_reader_info(session->store.reader);
    struct slc_pass pass = {.tiles = {.consumer = {.tile = count_tile}}};
    uint64_t run_count = 0, nnz = 0;

    *runs = (struct runs){.nnz_per_run = 1};
    if (info->keys.run.bits == 0 || info->order == 1 || info->nnz == 0) {
        return SLC_OK;
    }
    struct counting *counting = slc_calloc(1, sizeof *counting);
    SLC_TRY(slc_check_memory(counting != NULL, err, "for counting runs"));
    pass.tiles.consumer.context = counting;
    enum slc_status status = bench_scan_start(session, SLC_IO_AUTO, job->threads, 0, err);
    SLC_THEN(status, slc_stream_pass(session->stream, &pass, err));
    slc_session_stop(session);
    for (unsigned i = 0; i < SLC_MAX_THREADS; i++) {
        run_count += counting->runs[i];
        nnz += counting->nnz[i];
    }
    slc_free(counting);
    SLC_TRY(status);
    runs->varying = UINT32_C(1) << info->keys.run.mode;
    runs->nnz_per_run = (double)nnz / (double)run_count;
    return SLC_OK;
}

/* Measures one variant of the MTTKRP in all modes. */
static enum slc_status measure_variant(const struct roofline_job *job,
                                       struct bench_mttkrp_variant variant,
                                       struct bench_mttkrp_group *group,
                                       struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                       struct slc_error *err)
{
    *group = (struct bench_mttkrp_group){.rank = job->rank,
                                         .threads = job->threads,
                                         .precision = job->precision,
                                         .memory_bytes = job->memory_bytes,
                                         .mode_begin = job->mode_begin,
                                         .mode_end = job->mode_end,
                                         .warm_up = job->warm_up,
                                         .repeats = job->repeats,
                                         .variant_count = 1,
                                         .variants = {variant}};
    return bench_mttkrp_measure(job->session, group, cells, err);
}

static enum slc_status new_cells(struct bench_mttkrp_cell (**cells)[SLC_MAX_ORDER],
                                 struct slc_error *err)
{
    *cells = slc_calloc(1, sizeof **cells);
    return slc_check_memory(*cells != NULL, err, "for samples");
}

static enum slc_status
measure_copies(const struct roofline_job *job, struct roofline_point *points, struct slc_error *err)
{
    const struct slc_plan *plan = &job->session->plan;
    /* The variant is optional. A tensor of one mode has no replicas, so the variant is omitted. If
     * the replicas exceed the budget, it is omitted with a note. */
    const struct bench_mttkrp_variant variant = {.instruction_set = job->instruction_set,
                                                 .conflict = SLC_CONFLICT_REPLICA,
                                                 .optional = true};
    struct bench_mttkrp_cell(*cells)[SLC_MAX_ORDER] = NULL;
    struct bench_mttkrp_group group = {.mode_end = 0};
    enum slc_status status = new_cells(&cells, err);

    SLC_THEN(status, measure_variant(job, variant, &group, cells, err));
    for (unsigned n = job->mode_begin;
         status == SLC_OK && n < group.mode_end && group.variant_count > 0; n++) {
        const struct runs runs = {group.copies[n].varying, group.copies[n].nnz_per_run};

        set_mttkrp(job, n, &cells[0][n], &runs, &points[n]);
    }
    if (status == SLC_OK && plan->copies_wanted_bytes > 0) {
        status = slc_fail(err, SLC_ERR_BUDGET,
                          "replicas need %" PRIu64 " MiB, but the rest of the budget is %" PRIu64
                          " MiB: raise --memory",
                          plan->copies_wanted_bytes >> 20, plan->copies_room_bytes >> 20);
    }
    slc_free(cells);
    return status;
}

static enum slc_status
measure_stream(const struct roofline_job *job, struct roofline_point *points, struct slc_error *err)
{
    const struct bench_mttkrp_variant variant = {.instruction_set = job->instruction_set,
                                                 .conflict = SLC_CONFLICT_AUTO};
    struct bench_mttkrp_cell(*cells)[SLC_MAX_ORDER] = NULL;
    struct bench_mttkrp_group group = {.mode_end = 0};
    struct runs runs;
    enum slc_status status = new_cells(&cells, err);

    SLC_THEN(status, count_runs(job, &runs, err));
    SLC_THEN(status, measure_variant(job, variant, &group, cells, err));
    for (unsigned n = job->mode_begin; status == SLC_OK && n < group.mode_end; n++) {
        set_mttkrp(job, n, &cells[0][n], &runs, &points[n]);
    }
    slc_free(cells);
    return status;
}

/* Operations and bytes of TTM, with rank R, N modes and elements of v bytes. The two kernels
 * compute fiber by fiber from blocks as stored, which they decode each time.
 *
 *   operations       2 R per nonzero
 *   row(U)           R v bytes of a row of the matrix U, read; a row of the output has 2 R 8 bytes,
 *                    read and written
 *   ttm-fiber        v + 4 + row(U) bytes per nonzero, 4 (N - 1) + 2 R 8 per fiber
 *   ttm-nonzero      v + 8 + row(U) + 2 R 8 bytes per nonzero, with the number of its row
 *
 * The rows of U are reused, rows of the output are not. */
static void set_ttm(const struct roofline_job *job,
                    const struct ttm_mode *mode,
                    enum slc_ttm_form form,
                    struct roofline_point *point)
{
    const struct slc_layout_info *info = slc_reader_info(mode->order.reader);
    const double value = slc_value_bytes(job->precision);
    const double sums = 2.0 * job->rank * SUM_BYTES;
    const double each = value + INDEX_BYTES + job->rank * value;
    const double nnz = (double)info->nnz;

    point->measured = true;
    point->flop = 2.0 * nnz * job->rank;
    point->rows_bytes =
        info->dims[mode->options.mode] * bench_model_row_bytes(job->precision, job->rank);
    point->strategy = slc_ttm_form_name(form);
    if (form == SLC_TTM_FIBERS) {
        point->bytes =
            nnz * each + (double)mode->fibers * (INDEX_BYTES * (info->order - 1.0) + sums);
        point->nnz_per_run = nnz / (double)mode->fibers;
        (void)snprintf(point->form, sizeof point->form, "%u", mode->options.mode + 1);
    } else {
        point->bytes = nnz * (each + INDEX_BYTES + sums);
        point->nnz_per_run = 1;
        (void)snprintf(point->form, sizeof point->form, "plain");
    }
}

static enum slc_status measure_ttm_mode(const struct roofline_job *job,
                                        struct ttm_mode *mode,
                                        enum slc_ttm_form form,
                                        struct roofline_point *point,
                                        struct slc_error *err)
{
    struct bench_samples samples = {.count = 0};

    if (!slc_cpu_force_instruction_set(job->instruction_set)) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "instruction set %s is not available on this machine",
                        job->instruction_set);
    }
    (void)(slc_decoder_force(job->instruction_set) || slc_decoder_force("portable"));
    enum slc_status status = ttm_mode_start(mode, job->rank, err);
    for (unsigned i = 0; i < job->warm_up + job->repeats && status == SLC_OK; i++) {
        const uint64_t start_ns = slc_clock_ns();

        status = ttm_mode_run(mode, form, err);
        if (i >= job->warm_up) {
            bench_samples_add(&samples, slc_seconds_since(start_ns));
        }
    }
    if (status == SLC_OK) {
        set_ttm(job, mode, form, point);
        point->times = bench_samples_summary(&samples);
    }
    (void)slc_cpu_force_instruction_set(NULL);
    (void)slc_decoder_force(NULL);
    return status;
}

static enum slc_status measure_form(const struct roofline_job *job,
                                    enum slc_ttm_form form,
                                    struct roofline_point *points,
                                    struct slc_error *err)
{
    const struct slc_store *store = &job->session->store;
    struct ttm_mode *mode = slc_calloc(1, sizeof *mode);
    enum slc_status status = slc_check_memory(mode != NULL, err, "for a benchmark");

    for (unsigned n = job->mode_begin;
         n < job->mode_end && store->manifest.nnz > 0 && status == SLC_OK; n++) {
        const struct ttm_mode_options options = {.mode = n,
                                                 .threads = job->threads,
                                                 .precision = job->precision,
                                                 .memory_bytes = job->memory_bytes,
                                                 .temp_dir = job->temp_dir};

        status = ttm_mode_open(mode, store, &options, err);
        SLC_THEN(status, measure_ttm_mode(job, mode, form, &points[n], err));
        ttm_mode_close(mode);
        status = roofline_leave_out(job, n, 1, status, err);
    }
    slc_free(mode);
    return status;
}

static enum slc_status measure_ttm_fiber(const struct roofline_job *job,
                                         struct roofline_point *points,
                                         struct slc_error *err)
{
    return measure_form(job, SLC_TTM_FIBERS, points, err);
}

static enum slc_status measure_ttm_nonzero(const struct roofline_job *job,
                                           struct roofline_point *points,
                                           struct slc_error *err)
{
    return measure_form(job, SLC_TTM_NONZEROS, points, err);
}

/* Measures SpTV from fibers in memory (cpu/fiber/sptv.h), only at rank 1 and in f64.
 * Operations and bytes, with v bytes per stored value and i bytes per index:
 *
 *   operations         2 per nonzero
 *   bytes per nonzero  v + i + 8: value, index, element of the vector
 *   bytes per fiber    2 + 8: position of the sum, sum
 *
 * A list of few nonzeros (cpu/fiber/sptv_block.h) has no positions. Instead it has 4
 * bytes for each nonzero that is not the first of its fiber: the number of the fiber. The model
 * counts neither padding nor the copy of a shortened vector. */
static enum slc_status measure_sptv_mode(const struct roofline_job *job,
                                         struct ttv_job *ttv,
                                         struct roofline_point *point,
                                         struct slc_error *err)
{
    const struct slc_sptv *form = ttv_job_form(ttv, TTV_SLUICE);
    const double nnz = (double)form->nnz;
    const double fibers = (double)form->fibers;
    struct bench_samples samples = {.count = 0};
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < job->warm_up + job->repeats && status == SLC_OK; i++) {
        const uint64_t start_ns = slc_clock_ns();
        double ignored;

        status = ttv_job_run(ttv, TTV_SLUICE, job->threads, &ignored, err);
        if (i >= job->warm_up) {
            bench_samples_add(&samples, slc_seconds_since(start_ns));
        }
    }
    point->measured = status == SLC_OK;
    point->times = bench_samples_summary(&samples);
    point->flop = 2 * nnz;
    point->bytes = nnz * (slc_value_bytes(form->value_type) + form->index_bytes + 8.0);
    point->bytes += form->few.fibers > 0 ? (nnz - fibers) * 4 + fibers * 8 : fibers * (2 + 8);
    point->rows_bytes = form->used * sizeof(double);
    point->strategy = "fibers";
    point->nnz_per_run = nnz / fibers;
    (void)snprintf(point->form, sizeof point->form, "%u", ttv->fibers.mode + 1);
    return status;
}

static enum slc_status
measure_sptv(const struct roofline_job *job, struct roofline_point *points, struct slc_error *err)
{
    static const bool wanted[TTV_KERNELS] = {[TTV_SLUICE] = true};
    const struct slc_manifest *manifest = &job->session->store.manifest;
    const struct ttv_switches switches = {.keep_empty = false};
    struct ttv_tensor tensor = {.order = 0};

    if (job->rank != 1 || job->precision != SLC_F64 || manifest->nnz == 0) {
        return SLC_OK;
    }
    if (ttv_tensor_bytes(manifest) > job->memory_bytes) {
        return slc_fail(err, SLC_ERR_BUDGET,
                        "nonzeros in memory need %" PRIu64 " MiB: raise --memory",
                        ttv_tensor_bytes(manifest) >> 20);
    }
    enum slc_status status = ttv_tensor_load(&tensor, &job->session->store, err);
    for (unsigned n = job->mode_begin; n < job->mode_end && status == SLC_OK; n++) {
        struct ttv_job ttv = {.session = NULL};

        status = ttv_job_create(&ttv, &tensor, n, wanted, &switches, 0, err);
        SLC_THEN(status, measure_sptv_mode(job, &ttv, &points[n], err));
        ttv_job_destroy(&ttv);
    }
    ttv_tensor_destroy(&tensor);
    return status;
}

/* ---- the tables */

const struct roofline_kernel roofline_kernels[] = {
    {"mttkrp-copies", SLC_DIST_DENSE_SLICES, measure_copies},
    {"mttkrp-stream", SLC_DIST_DENSE_SLICES, measure_stream},
    {"sptv", SLC_DIST_DENSE_FIBERS, measure_sptv},
    {"ttm-fiber", SLC_DIST_DENSE_FIBERS, measure_ttm_fiber},
    {"ttm-nonzero", SLC_DIST_DENSE_FIBERS, measure_ttm_nonzero},
};
const unsigned roofline_kernel_count = sizeof roofline_kernels / sizeof roofline_kernels[0];

const struct roofline_kernel roofline_device_kernels[] = {
    {"mttkrp", SLC_DIST_DENSE_SLICES, roofline_device_mttkrp},
    {"sptv", SLC_DIST_DENSE_FIBERS, roofline_device_product},
    {"ttm-fibers", SLC_DIST_DENSE_FIBERS, roofline_device_product},
    {"ttm-nonzeros", SLC_DIST_DENSE_FIBERS, roofline_device_product},
};
const unsigned roofline_device_kernel_count =
    sizeof roofline_device_kernels / sizeof roofline_device_kernels[0];

_Static_assert(sizeof roofline_kernels / sizeof roofline_kernels[0] <= ROOFLINE_KERNELS_MAX,
               "raise ROOFLINE_KERNELS_MAX");
