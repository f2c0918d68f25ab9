/* Measures a group of MTTKRP variants over a store in memory. */
#include "tools/bench/mttkrp/mttkrp_group.h"

#include "base/error/clock.h"
#include "cpu/cpu.h"
#include "engine/executor/replica.h"
#include "engine/stream/mttkrp.h"
#include "storage/block/reader.h"
#include "tools/bench/measure/resident.h"
#include "tools/bench/mttkrp/mttkrp_held.h"

#include <inttypes.h>
#include <math.h>

/* Selects the decoders and kernels of one instruction set, or the portable decoders if the
 * instruction set has no decoders. */
static enum slc_status force_instruction_set(const char *name, struct slc_error *err)
{
    if (!slc_cpu_force_instruction_set(name)) {
        return slc_fail(err, SLC_ERR_USAGE, "this machine does not support the instruction set %s",
                        name);
    }
    (void)(slc_decoder_force(name) || slc_decoder_force("portable"));
    return SLC_OK;
}

/* The tile stream from which a variant of the kernels of sluice reads, and its plan. */
struct source {
    struct slc_stream *stream;
    const struct slc_plan *plan;
};

static struct source source_of(const struct mttkrp_held *run,
                               const struct bench_mttkrp_variant *variant)
{
    if (variant->sorted) {
        return (struct source){run->sorted.stream, &run->sorted.plan};
    }
    return (struct source){run->session->stream, &run->session->plan};
}

/* Returns true if the scratch of this job fits in the budget together with the plan and all data in
 * memory. */
static bool scratch_fits(const struct mttkrp_held *run,
                         const struct slc_plan *plan,
                         const struct slc_mttkrp_job *job,
                         uint64_t *needed_bytes)
{
    const uint64_t left = run->session->plan.budget_bytes - run->group->held_bytes;

    *needed_bytes = run->session->backend->ops->mttkrp_scratch_bytes(job, job->output->rows);
    return *needed_bytes <= plan->scratch_bytes + left;
}

/* Sets the conflict strategy of a job to the strategy of the variant. With `auto`, uses the choice
 * of the plan, which a trial decides once, as in a decomposition. */
static void set_strategy(const struct slc_plan *plan,
                         const struct bench_mttkrp_variant *variant,
                         struct slc_mttkrp_job *job,
                         struct bench_mttkrp_cell *cell)
{
    if (!cell->begun) {
        cell->begun = true;
        cell->choice = plan->choices[job->mode];
        if (variant->conflict != SLC_CONFLICT_AUTO) {
            cell->choice = (struct slc_conflict_choice){.chosen = variant->conflict};
        }
    }
    job->conflict = cell->choice.chosen;
    job->rival = cell->choice.rival;
}

/* Adds the time of a sample and the decoding time of its threads. */
static void add_sample(double seconds, double decode_seconds, struct bench_mttkrp_cell *cell)
{
    bench_samples_add(&cell->samples, seconds);
    cell->wall_seconds += seconds;
    cell->decode_seconds += decode_seconds;
    cell->measured = true;
}

static double decoded_seconds(const struct slc_stream *stream)
{
    struct slc_stream_stats stats;

    slc_stream_stats(stream, &stats);
    return stats.decode_seconds;
}

/* Runs one MTTKRP with a baseline over a list of coordinates, which decodes nothing. */
static enum slc_status measure_listed(const struct mttkrp_held *run,
                                      const struct bench_mttkrp_variant *variant,
                                      struct slc_mttkrp_job *job,
                                      bool counts,
                                      struct bench_mttkrp_cell *cell,
                                      struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();

    SLC_TRY(slc_coo_mttkrp(&run->list, variant->kernel, job, err));
    if (counts) {
        add_sample(slc_seconds_since(start_ns), 0, cell);
    }
    return SLC_OK;
}

/* Runs one MTTKRP with a baseline over slices of fibers, which decodes nothing. */
static enum slc_status measure_slices(const struct mttkrp_held *run,
                                      const struct bench_mttkrp_variant *variant,
                                      struct slc_mttkrp_job *job,
                                      bool counts,
                                      struct bench_mttkrp_cell *cell,
                                      struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();

    SLC_TRY(slc_xplat_mttkrp(&run->slices[job->mode], variant->listing, job, err));
    if (counts) {
        add_sample(slc_seconds_since(start_ns), 0, cell);
    }
    return SLC_OK;
}

static enum slc_status
add_fiber_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    (void)worker;
    return slc_fiber_mttkrp_tile(context, tile, err);
}

/* Runs one MTTKRP with a baseline over whole fibers. */
static enum slc_status measure_fibers(const struct mttkrp_held *run,
                                      const struct bench_mttkrp_variant *variant,
                                      struct slc_mttkrp_job *job,
                                      bool counts,
                                      struct bench_mttkrp_cell *cell,
                                      struct slc_error *err)
{
    struct slc_stream *stream = run->fibers[variant->fiber_mode].stream;
    struct slc_fiber_mttkrp product = {.form = variant->form};
    const struct slc_pass pass = {
        .tiles = {.consumer = {.tile = add_fiber_tile, .context = &product}}};
    const double decoded = decoded_seconds(stream);
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = slc_fiber_mttkrp_begin(&product, variant->form, job, err);

    SLC_THEN(status, slc_stream_pass(stream, &pass, err));
    slc_fiber_mttkrp_end(&product);
    SLC_TRY(status);
    if (counts) {
        add_sample(slc_seconds_since(start_ns), decoded_seconds(stream) - decoded, cell);
    }
    return SLC_OK;
}

/* Runs one MTTKRP with the kernels of sluice. If `counts`, keeps the time as a sample. */
static enum slc_status measure_own(const struct mttkrp_held *run,
                                   const struct bench_mttkrp_variant *variant,
                                   struct slc_mttkrp_job *job,
                                   bool counts,
                                   struct bench_mttkrp_cell *cell,
                                   struct slc_error *err)
{
    const struct source source = source_of(run, variant);
    struct slc_backend *backend = run->session->backend;
    uint64_t needed_bytes;

    job->partitions = source.plan->partitions[job->mode];
    set_strategy(source.plan, variant, job, cell);
    cell->left_out = variant->conflict != SLC_CONFLICT_REPLICA &&
                     !scratch_fits(run, source.plan, job, &needed_bytes);
    if (cell->left_out) {
        return variant->optional ? SLC_OK
                                 : slc_fail(err, SLC_ERR_BUDGET,
                                            "mode %u: strategy %s needs %" PRIu64
                                            " MiB of scratch, more than the rest of the budget",
                                            job->mode + 1, slc_conflict_name(variant->conflict),
                                            needed_bytes >> 20);
    }
    double decoded = decoded_seconds(source.stream);
    uint64_t start_ns = slc_clock_ns();
    SLC_TRY(slc_mttkrp_stream(source.stream, source.plan->mode_layout[job->mode], backend, job,
                              NULL, NULL, NULL, err));
    if (job->rival != SLC_CONFLICT_AUTO) {
        (void)backend->ops->mttkrp_tried(backend, &cell->choice);
        cell->choice.rival = SLC_CONFLICT_AUTO;
    }
    if (counts) {
        add_sample(slc_seconds_since(start_ns), decoded_seconds(source.stream) - decoded, cell);
    }
    return SLC_OK;
}

/* Runs one MTTKRP of one variant. If `counts`, keeps the time as a sample. */
static enum slc_status measure_once(const struct mttkrp_held *run,
                                    const struct bench_mttkrp_variant *variant,
                                    unsigned mode,
                                    unsigned round,
                                    struct bench_mttkrp_cell *cell,
                                    struct slc_error *err)
{
    const bool counts = round >= run->group->warm_up;
    struct slc_matrix output;
    struct slc_mttkrp_job job =
        bench_factors_job(&run->factors, &run->session->store.manifest, mode, &output);
    enum slc_status status;

    job.workers = run->session->plan.threads;
    if (variant->listed) {
        status = measure_listed(run, variant, &job, counts, cell, err);
    } else if (variant->slices) {
        status = measure_slices(run, variant, &job, counts, cell, err);
    } else if (variant->fibers) {
        status = measure_fibers(run, variant, &job, counts, cell, err);
    } else {
        status = measure_own(run, variant, &job, counts, cell, err);
    }
    SLC_TRY(status);
    if (run->group->check && !cell->left_out) {
        cell->error = fmax(cell->error, mttkrp_held_error(run, mode, &output));
    }
    return SLC_OK;
}

static enum slc_status measure_rounds(struct mttkrp_held *run,
                                      struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                      struct slc_error *err)
{
    const struct bench_mttkrp_group *group = run->group;

    for (unsigned i = 0; i < group->warm_up + group->repeats; i++) {
        for (unsigned v = 0; v < group->variant_count; v++) {
            SLC_TRY(force_instruction_set(group->variants[v].instruction_set, err));
            for (unsigned n = group->mode_begin; n < group->mode_end; n++) {
                SLC_TRY(measure_once(run, &group->variants[v], n, i, &cells[v][n], err));
            }
        }
    }
    return SLC_OK;
}

/* Returns true if a variant adds in tile order, for which blocks must arrive in file order. */
static bool needs_file_order(const struct bench_mttkrp_group *group)
{
    for (unsigned v = 0; v < group->variant_count; v++) {
        if (group->variants[v].conflict == SLC_CONFLICT_ORDERED) {
            return true;
        }
    }
    return false;
}

/* Returns ALWAYS if a variant needs replicas, AUTO if one can use replicas, otherwise NEVER. */
static enum slc_copies choose_copies(const struct bench_mttkrp_group *group)
{
    enum slc_copies copies = SLC_COPIES_NEVER;

    for (unsigned v = 0; v < group->variant_count; v++) {
        const struct bench_mttkrp_variant *variant = &group->variants[v];

        if (variant->conflict == SLC_CONFLICT_REPLICA && !variant->optional) {
            return SLC_COPIES_ALWAYS;
        }
        if (variant->conflict == SLC_CONFLICT_REPLICA || variant->best) {
            copies = SLC_COPIES_AUTO;
        }
    }
    return copies;
}

/* Builds the replicas if the plan includes them. With replicas, variants with `best` use them.
 * Without replicas, variants that need them are removed. */
static enum slc_status make_copies(struct slc_session *session,
                                   struct bench_mttkrp_group *group,
                                   const struct slc_matrix *factors,
                                   struct slc_error *err)
{
    const bool copies = session->plan.copies_bytes > 0;
    const uint64_t start_ns = slc_clock_ns();
    unsigned kept = 0;

    for (unsigned v = 0; v < group->variant_count; v++) {
        struct bench_mttkrp_variant variant = group->variants[v];

        if (variant.best && copies) {
            variant.conflict = SLC_CONFLICT_REPLICA;
        }
        if (variant.conflict != SLC_CONFLICT_REPLICA || copies) {
            group->variants[kept++] = variant;
        }
    }
    group->variant_count = kept;
    group->copies_seconds = 0;
    if (copies) {
        SLC_TRY(slc_replica_load(session->stream, session->backend,
                                 slc_reader_info(session->store.reader), group->precision,
                                 session->plan.threads, factors, NULL, err));
        group->copies_seconds = slc_seconds_since(start_ns);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        (void)session->backend->ops->replica_form(session->backend, n, &group->copies[n]);
    }
    return SLC_OK;
}

/* Measures a group with a session whose stream is open. */
static enum slc_status measure_held(struct mttkrp_held *held,
                                    struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                    struct slc_error *err)
{
    struct slc_session *session = held->session;
    struct bench_mttkrp_group *group = held->group;

    SLC_TRY(bench_factors_create(&held->factors, &session->store.manifest, group->precision,
                                 group->rank, session->plan.threads, err));
    SLC_TRY(make_copies(session, group, held->factors.factors, err));
    group->permute_seconds = 0;
    group->held_bytes = session->plan.total_bytes;
    SLC_TRY(mttkrp_held_open(held, err));
    return measure_rounds(held, cells, err);
}

enum slc_status bench_mttkrp_measure(struct slc_session *session,
                                     struct bench_mttkrp_group *group,
                                     struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                     struct slc_error *err)
{
    /* A request for a CP-ALS, so that the budget must also hold the memory of a decomposition. */
    const struct slc_plan_request request = {
        .operation = SLC_OP_CPD,
        .rank = group->rank,
        .precision = group->precision,
        .threads = group->threads,
        .schedule = needs_file_order(group) ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_AUTO,
        .memory_bytes = group->memory_bytes,
        .cache = true,
        .copies = choose_copies(group)};
    struct mttkrp_held held = {.session = session, .group = group};
    enum slc_status status = bench_resident_start(session, &request, err);

    SLC_THEN(status, measure_held(&held, cells, err));
    (void)slc_cpu_force_instruction_set(NULL);
    (void)slc_decoder_force(NULL);
    mttkrp_held_close(&held);
    slc_session_stop(session);
    return status;
}
