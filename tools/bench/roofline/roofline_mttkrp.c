/*
 * MTTKRP under the roofs. With N modes, rank R, elements of v bytes, sums of 8 bytes, and V the
 * modes that vary within a run of nonzeros:
 *
 *   operations       N R a nonzero
 *   row(m)           R v bytes, read; of the output 2 R 8, read and written
 *   bytes a nonzero  v + sum over m in V of (4 + row(m))
 *   bytes a run      4 + sum over the other modes of (4 + row(m))
 *
 * Without runs V holds all modes, and nothing is paid for a run.
 * Neighbours whose output row a kernel keeps in registers are not looked for, so that bytes are
 * counted too high there by up to two rows a nonzero.
 */
#include "tools/bench/roofline/roofline_kernels.h"

#include "base/memory/memory.h"
#include "engine/plan/plan.h"
#include "storage/block/reader.h"
#include "tools/bench/measure/scan.h"
#include "tools/bench/mttkrp/mttkrp_group.h"
#include "tools/bench/mttkrp/mttkrp_model.h"
#include "tools/progress/console.h"

#include <inttypes.h>
#include <stdio.h>

enum { OFFSET_BYTES = 4, SUM_BYTES = 8 };

/* How nonzeros are brought together. */
struct runs {
    uint32_t varying; /* bit m: mode m varies within a run; 0: there are none */
    double nnz_per_run;
};

/* Bytes of one run of an MTTKRP in `mode`. */
static double moved_bytes(const struct roofline_job *job, unsigned mode, const struct runs *runs)
{
    const struct slc_manifest *manifest = &job->session->store.manifest;
    const double value = slc_value_bytes(job->precision);
    double each = value;
    double run = runs->varying != 0 ? OFFSET_BYTES : 0;

    for (unsigned m = 0; m < manifest->order; m++) {
        const double row = m == mode ? 2.0 * job->rank * SUM_BYTES : job->rank * value;
        const bool varies = runs->varying == 0 || (runs->varying >> m & 1) != 0;

        *(varies ? &each : &run) += OFFSET_BYTES + row;
    }
    return (double)manifest->nnz * (each + run / runs->nnz_per_run);
}

static void set_point(const struct roofline_job *job,
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

/* Counts the runs of tiles, a counter for each worker. */
struct counting {
    uint64_t runs[SLC_MAX_THREADS];
    uint64_t nnz[SLC_MAX_THREADS];
};

static enum slc_status
count_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct counting *counting = context;
    struct slc_fiber_view fibers = {.nnz = tile->nnz, .runs = tile->nnz};
    enum slc_status status = SLC_OK;

    if (tile->next_fibers == NULL) {
        counting->runs[worker] += tile->nnz;
        counting->nnz[worker] += tile->nnz;
        return SLC_OK;
    }
    while (status == SLC_OK && fibers.nnz > 0) {
        status = tile->next_fibers(tile, BENCH_CHUNK_NNZ, &fibers, err);
        if (status == SLC_OK) {
            counting->runs[worker] += fibers.runs;
            counting->nnz[worker] += fibers.nnz;
        }
    }
    return status;
}

/* The runs of the store's own order, as its tiles deliver them. */
static enum slc_status
count_runs(const struct roofline_job *job, struct runs *runs, struct slc_error *err)
{
    struct slc_session *session = job->session;
    const struct slc_layout_info *info = slc_reader_info(session->store.reader);
    struct counting *counting;
    struct slc_pass pass = {.tiles = {.consumer = {.tile = count_tile}}};
    uint64_t run_count = 0, nnz = 0;
    enum slc_status status;

    *runs = (struct runs){.nnz_per_run = 1};
    if (info->keys.run.bits == 0 || info->order == 1 || info->nnz == 0) {
        return SLC_OK;
    }
    counting = slc_calloc(1, sizeof *counting);
    if (counting == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for counting runs");
    }
    pass.tiles.consumer.context = counting;
    status = bench_scan_start(session, SLC_IO_AUTO, job->threads, 0, err);
    if (status == SLC_OK) {
        status = slc_stream_pass(session->stream, &pass, err);
    }
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

/* One variant in all modes. */
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
                                         .mode_end = job->session->store.manifest.order,
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
    return *cells != NULL ? SLC_OK : slc_fail(err, SLC_ERR_MEMORY, "no memory for samples");
}

enum slc_status roofline_mttkrp_copies(const struct roofline_job *job,
                                       struct roofline_point *points,
                                       struct slc_error *err)
{
    const struct slc_plan *plan = &job->session->plan;
    /* Optional: left out where there are no copies of one mode, and with a note
       where the budget has no room for them. */
    const struct bench_mttkrp_variant variant = {.instruction_set = job->instruction_set,
                                                 .conflict = SLC_CONFLICT_REPLICA,
                                                 .optional = true};
    struct bench_mttkrp_cell(*cells)[SLC_MAX_ORDER] = NULL;
    struct bench_mttkrp_group group = {.mode_end = 0};
    enum slc_status status = new_cells(&cells, err);

    if (status == SLC_OK) {
        status = measure_variant(job, variant, &group, cells, err);
    }
    for (unsigned n = 0; status == SLC_OK && n < group.mode_end && group.variant_count > 0; n++) {
        const struct runs runs = {group.copies[n].varying, group.copies[n].nnz_per_run};

        set_point(job, n, &cells[0][n], &runs, &points[n]);
    }
    if (status == SLC_OK && plan->copies_wanted_bytes > 0) {
        status = slc_fail(err, SLC_ERR_BUDGET,
                          "copies per mode would take %" PRIu64
                          " MiB, and the budget leaves %" PRIu64 "; give more by --memory",
                          plan->copies_wanted_bytes >> 20, plan->copies_room_bytes >> 20);
    }
    slc_free(cells);
    return status;
}

enum slc_status roofline_mttkrp_stream(const struct roofline_job *job,
                                       struct roofline_point *points,
                                       struct slc_error *err)
{
    const struct bench_mttkrp_variant variant = {.instruction_set = job->instruction_set,
                                                 .conflict = SLC_CONFLICT_AUTO};
    struct bench_mttkrp_cell(*cells)[SLC_MAX_ORDER] = NULL;
    struct bench_mttkrp_group group = {.mode_end = 0};
    struct runs runs;
    enum slc_status status = new_cells(&cells, err);

    if (status == SLC_OK) {
        status = count_runs(job, &runs, err);
    }
    if (status == SLC_OK) {
        status = measure_variant(job, variant, &group, cells, err);
    }
    for (unsigned n = 0; status == SLC_OK && n < group.mode_end; n++) {
        set_point(job, n, &cells[0][n], &runs, &points[n]);
    }
    slc_free(cells);
    return status;
}
