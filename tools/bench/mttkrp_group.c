/* MTTKRPs over a store in memory; see mttkrp_group.h. */
#include "mttkrp_group.h"

#include "base/clock.h"
#include "cpu/cpu.h"
#include "engine/mttkrp.h"
#include "engine/owned.h"
#include "factors.h"
#include "mttkrp_list.h"
#include "resident.h"
#include "storage/reader.h"

#include <inttypes.h>

/* What the rounds of a group share. */
struct group_run {
    struct session *session;
    const struct bench_mttkrp_group *group;
    struct bench_factors matrices;
    struct slc_coo list; /* empty unless a variant computes from it */
};

/* Decoders and kernels of one instruction set; portable decoding where it has none of its own. */
static enum slc_status force_instruction_set(const char *name, struct slc_error *err)
{
    if (!slc_cpu_force_instruction_set(name)) {
        return slc_fail(err, SLC_ERR_USAGE, "this machine does not have the instruction set %s",
                        name);
    }
    (void)(slc_decoder_force(name) || slc_decoder_force("portable"));
    return SLC_OK;
}

/* Whether the plan left room for the scratch of this job. */
static bool scratch_fits(const struct session *session,
                         const struct slc_mttkrp_job *job,
                         uint64_t *needed_bytes)
{
    const struct slc_plan *plan = &session->plan;

    *needed_bytes = session->backend->ops->mttkrp_scratch_bytes(job, job->output->rows);
    return *needed_bytes <= plan->scratch_bytes + (plan->budget_bytes - plan->total_bytes);
}

/* The strategy of a job: the variant's, or as in a decomposition the plan's, tried once. */
static void set_strategy(const struct session *session,
                         const struct bench_mttkrp_variant *variant,
                         struct slc_mttkrp_job *job,
                         struct bench_mttkrp_cell *cell)
{
    if (!cell->begun) {
        cell->begun = true;
        cell->choice = session->plan.choices[job->mode];
        if (variant->conflict != SLC_CONFLICT_AUTO) {
            cell->choice = (struct slc_conflict_choice){.chosen = variant->conflict};
        }
    }
    job->conflict = cell->choice.chosen;
    job->rival = cell->choice.rival;
}

/* One MTTKRP by a baseline, which decodes nothing. */
static enum slc_status measure_listed(const struct group_run *run,
                                      const struct bench_mttkrp_variant *variant,
                                      unsigned mode,
                                      bool counts,
                                      struct bench_mttkrp_cell *cell,
                                      struct slc_error *err)
{
    struct slc_matrix output;
    struct slc_mttkrp_job job =
        bench_factors_job(&run->matrices, &run->session->store.manifest, mode, &output);
    uint64_t start_ns;
    enum slc_status status;

    job.workers = run->session->plan.threads;
    start_ns = slc_clock_ns();
    status = slc_coo_mttkrp(&run->list, variant->kernel, &job, err);
    if (status == SLC_OK && counts) {
        const double seconds = slc_seconds_since(start_ns);

        bench_samples_add(&cell->samples, seconds);
        cell->wall_seconds += seconds;
        cell->measured = true;
    }
    return status;
}

/* One MTTKRP of one variant, timed into its cell where it `counts`. */
static enum slc_status measure_once(const struct group_run *run,
                                    const struct bench_mttkrp_variant *variant,
                                    unsigned mode,
                                    bool counts,
                                    struct bench_mttkrp_cell *cell,
                                    struct slc_error *err)
{
    const struct session *session = run->session;
    const struct slc_manifest *manifest = &session->store.manifest;
    struct slc_matrix output;
    struct slc_mttkrp_job job = bench_factors_job(&run->matrices, manifest, mode, &output);
    struct slc_stream_stats before, after;
    uint64_t needed_bytes, start_ns;
    enum slc_status status;

    job.workers = session->plan.threads;
    job.partitions = session->plan.partitions[mode];
    set_strategy(session, variant, &job, cell);
    if (variant->conflict != SLC_CONFLICT_OWNED && !scratch_fits(session, &job, &needed_bytes)) {
        return variant->optional
                   ? SLC_OK
                   : slc_fail(err, SLC_ERR_BUDGET,
                              "mode %u: the strategy %s needs %" PRIu64
                              " MiB of scratch, more than the budget leaves",
                              mode + 1, slc_conflict_name(variant->conflict), needed_bytes >> 20);
    }
    slc_stream_stats(session->stream, &before);
    start_ns = slc_clock_ns();
    status = slc_mttkrp_stream(session->stream, session->plan.mode_layout[mode], session->backend,
                               &job, NULL, NULL, NULL, err);
    if (status == SLC_OK && job.rival != SLC_CONFLICT_AUTO) {
        (void)session->backend->ops->mttkrp_tried(session->backend, &cell->choice);
        cell->choice.rival = SLC_CONFLICT_AUTO;
    }
    if (status == SLC_OK && counts) {
        const double seconds = slc_seconds_since(start_ns);

        slc_stream_stats(session->stream, &after);
        bench_samples_add(&cell->samples, seconds);
        cell->wall_seconds += seconds;
        cell->decode_seconds += after.decode_seconds - before.decode_seconds;
        cell->measured = true;
    }
    return status;
}

static enum slc_status measure_rounds(struct group_run *run,
                                      struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                      struct slc_error *err)
{
    const struct bench_mttkrp_group *group = run->group;
    enum slc_status status = SLC_OK;

    for (unsigned i = 0; i < group->warm_up + group->repeats; i++) {
        for (unsigned v = 0; v < group->variant_count; v++) {
            status = force_instruction_set(group->variants[v].instruction_set, err);
            for (unsigned n = group->mode_begin; n < group->mode_end && status == SLC_OK; n++) {
                status = (group->variants[v].listed ? measure_listed : measure_once)(
                    run, &group->variants[v], n, i >= group->warm_up, &cells[v][n], err);
            }
            if (status != SLC_OK) {
                return status;
            }
        }
    }
    return SLC_OK;
}

/* Whether a variant computes from a list of coordinates. */
static bool needs_list(const struct bench_mttkrp_group *group)
{
    for (unsigned v = 0; v < group->variant_count; v++) {
        if (group->variants[v].listed) {
            return true;
        }
    }
    return false;
}

/* Strategies that commit in tile order need the blocks in file order. */
static bool needs_file_order(const struct bench_mttkrp_group *group)
{
    for (unsigned v = 0; v < group->variant_count; v++) {
        if (group->variants[v].conflict == SLC_CONFLICT_ORDERED) {
            return true;
        }
    }
    return false;
}

/* What the variants want of copies per mode. */
static enum slc_copies wanted_copies(const struct bench_mttkrp_group *group)
{
    enum slc_copies wanted = SLC_COPIES_NEVER;

    for (unsigned v = 0; v < group->variant_count; v++) {
        const struct bench_mttkrp_variant *variant = &group->variants[v];

        if (variant->conflict == SLC_CONFLICT_OWNED && !variant->optional) {
            return SLC_COPIES_ALWAYS;
        }
        if (variant->conflict == SLC_CONFLICT_OWNED || variant->best) {
            wanted = SLC_COPIES_AUTO;
        }
    }
    return wanted;
}

/* Makes copies where the plan has them, and resolves the variants that depend on it. */
static enum slc_status make_copies(struct session *session,
                                   struct bench_mttkrp_group *group,
                                   const struct slc_matrix *factors,
                                   struct slc_error *err)
{
    const bool copies = session->plan.copies_bytes > 0;
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;
    unsigned kept = 0;

    for (unsigned v = 0; v < group->variant_count; v++) {
        struct bench_mttkrp_variant variant = group->variants[v];

        if (variant.best && copies) {
            variant.conflict = SLC_CONFLICT_OWNED;
        }
        if (variant.conflict != SLC_CONFLICT_OWNED || copies) {
            group->variants[kept++] = variant;
        }
    }
    group->variant_count = kept;
    group->copies_seconds = 0;
    if (copies) {
        status = slc_owned_load(session->stream, session->backend,
                                slc_reader_info(session->store.reader), group->precision,
                                session->plan.threads, factors, NULL, err);
        group->copies_seconds = slc_seconds_since(start_ns);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        (void)session->backend->ops->owned_form(session->backend, n, &group->copies[n]);
    }
    return status;
}

enum slc_status bench_mttkrp_measure(struct session *session,
                                     struct bench_mttkrp_group *group,
                                     struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                     struct slc_error *err)
{
    /* The plan of a CP-ALS: what a decomposition would hold beside the store. */
    const struct slc_plan_request request = {
        .operation = SLC_OP_CPD,
        .rank = group->rank,
        .precision = group->precision,
        .threads = group->threads,
        .schedule = needs_file_order(group) ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_AUTO,
        .memory_bytes = group->memory_bytes,
        .cache = true,
        .copies = wanted_copies(group)};
    struct group_run run = {.session = session, .group = group};
    enum slc_status status = bench_resident_start(session, &request, err);

    if (status == SLC_OK) {
        status = bench_factors_create(&run.matrices, &session->store.manifest, group->precision,
                                      group->rank, session->plan.threads, err);
    }
    if (status == SLC_OK) {
        status = make_copies(session, group, run.matrices.factors, err);
    }
    group->permute_seconds = 0;
    if (status == SLC_OK && needs_list(group)) {
        status = bench_list_load(session, group, &run.list, err);
    }
    if (status == SLC_OK) {
        status = measure_rounds(&run, cells, err);
    }
    (void)slc_cpu_force_instruction_set(NULL);
    (void)slc_decoder_force(NULL);
    slc_coo_destroy(&run.list);
    bench_factors_destroy(&run.matrices);
    session_stop(session);
    return status;
}
