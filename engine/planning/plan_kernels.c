/* Plans the conflict strategy and the kernel scratch of every mode. */
#include "engine/planning/planning_impl.h"

#include "base/memory/checked.h"
#include "cpu/cpu.h"

/* Returns the strategy with the least scratch: job->conflict, or one of the strategies that every
 * job allows. */
static enum slc_conflict least_scratch(struct slc_mttkrp_job *job, uint64_t output_rows)
{
    static const enum slc_conflict others[] = {SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED};
    const struct slc_backend_ops *ops = slc_cpu_backend_ops();
    enum slc_conflict least = job->conflict;
    uint64_t least_bytes = ops->mttkrp_scratch_bytes(job, output_rows);

    for (unsigned i = 0; i < 2; i++) {
        job->conflict = others[i];
        uint64_t bytes = ops->mttkrp_scratch_bytes(job, output_rows);
        if (bytes < least_bytes) {
            least_bytes = bytes;
            least = others[i];
        }
    }
    return least;
}

/* Returns the strategy that is used if the scratch of the chosen strategy does not fit in
 * memory. */
static enum slc_conflict
spare_memory(struct slc_mttkrp_job *job, uint64_t output_rows, struct slc_conflict_choice *choice)
{
    if (choice->spare.conflict == SLC_CONFLICT_AUTO) {
        return least_scratch(job, output_rows);
    }
    choice->costs[choice->cost_count++] = choice->spare;
    return choice->spare.conflict;
}

/* Chooses the strategy of the job's mode. If several strategies are possible, the scratch must fit
 * in `available` bytes. A trial needs the scratch of two strategies, so if memory is short the
 * trial is omitted first. Sets *untried to the strategy that was omitted, or to SLC_CONFLICT_AUTO.
 * Returns the bytes of scratch. */
static uint64_t plan_strategy(struct slc_mttkrp_job *job,
                              enum slc_conflict requested,
                              uint64_t available,
                              unsigned parts,
                              struct slc_conflict_choice *choice,
                              enum slc_conflict *untried)
{
    const struct slc_backend_ops *ops = slc_cpu_backend_ops();
    const uint64_t rows = job->output->rows;
    const bool free_choice = !job->deterministic && job->workers > 1;

    job->conflict = free_choice ? requested : SLC_CONFLICT_AUTO;
    job->rival = SLC_CONFLICT_AUTO;
    ops->mttkrp_choose(job, rows, choice);
    if (parts > 0) {
        /* There are no trials if groups of CPU workers or a GPU divide the work. Each of them
         * computes only some tiles, but SLC_CONFLICT_COLUMNS needs all tiles. */
        choice->rival = SLC_CONFLICT_AUTO;
        choice->spare.conflict = SLC_CONFLICT_AUTO;
    }
    job->conflict = choice->chosen;
    job->rival = choice->rival;
    *untried = SLC_CONFLICT_AUTO;
    if (job->rival != SLC_CONFLICT_AUTO && ops->mttkrp_scratch_bytes(job, rows) > available) {
        *untried = job->rival;
        choice->rival = SLC_CONFLICT_AUTO;
        job->rival = SLC_CONFLICT_AUTO;
    }
    if (free_choice && ops->mttkrp_scratch_bytes(job, rows) > available) {
        *untried = choice->chosen;
        choice->chosen = spare_memory(job, rows, choice);
        job->conflict = choice->chosen;
    }
    return ops->mttkrp_scratch_bytes(job, rows);
}

/* Plans the two strategies of a pass that updates two modes: one for the rows of `mode`, one for
 * the second mode. */
static void
plan_fused_strategies(struct slc_mttkrp_job *job, uint64_t available, struct slc_plan *plan)
{
    struct slc_plan_fusion *fusion = &plan->fusion;
    struct slc_conflict_choice rows;
    enum slc_conflict untried;

    if ((fusion->modes >> job->mode & 1U) != 0) {
        job->partitions = fusion->ranges[job->mode];
        plan->scratch_bytes =
            slc_max_u64(plan->scratch_bytes,
                        plan_strategy(job, SLC_CONFLICT_AUTO, available, 0, &rows, &untried));
    }
    if ((fusion->seconds >> job->mode & 1U) != 0) {
        struct slc_conflict_choice *choice = &fusion->choices[job->mode];

        job->partitions = 0;
        uint64_t bytes = plan_strategy(job, SLC_CONFLICT_AUTO, available, 0, choice, &untried);
        if (choice->chosen == SLC_CONFLICT_COLUMNS) {
            /* In a pass that updates two modes, only one worker computes each tile.
             * SLC_CONFLICT_COLUMNS is not possible, because it needs every tile on every worker. */
            job->conflict = SLC_CONFLICT_LOCKED;
            choice->cost_count--;
            choice->chosen = least_scratch(job, job->output->rows);
            job->conflict = choice->chosen;
            bytes = slc_cpu_backend_ops()->mttkrp_scratch_bytes(job, job->output->rows);
        }
        fusion->scratch_bytes = slc_max_u64(fusion->scratch_bytes, bytes);
    }
}

void slc_plan_kernels(const struct slc_layouts *layouts, struct slc_plan *plan, bool frugal)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    const struct slc_plan_request *request = &plan->request;
    struct slc_matrix shapes[SLC_MAX_ORDER];
    struct slc_mttkrp_job job = {.order = info->order,
                                 .rank = request->rank,
                                 .nnz = info->nnz,
                                 .workers = plan->group_threads,
                                 .deterministic = request->deterministic};
    /* Beyond 1/8 of the budget, memory saves more time as a cache of blocks than as copies of an
     * output. */
    const uint64_t available = frugal ? 0 : plan->budget_bytes / 8;
    const unsigned devices = plan->cpu_groups > 0 ? plan->cpu_groups : 1;
    /* Number of groups or devices that each compute only some tiles; 0 if one backend computes all
     * tiles. */
    const unsigned parts = request->gpu != NULL ? 1 : plan->cpu_groups;
    unsigned first, end;

    for (unsigned n = 0; n < info->order; n++) {
        shapes[n] = slc_plan_matrix(request->precision, info->dims[n], request->rank);
        job.factors[n] = &shapes[n];
    }
    plan->scratch_bytes = 0;
    plan->fusion.scratch_bytes = 0;
    if (request->gpu != NULL && request->hybrid.kind == SLC_HYBRID_NONE) {
        return;
    }
    slc_plan_modes(info, request, &first, &end);
    for (unsigned n = first; n < end && request->operation != SLC_OP_TTM && !request->rows.nonzeros;
         n++) {
        job.mode = n;
        job.output = &shapes[n];
        job.partitions = plan->partitions[n];
        plan->scratch_bytes = slc_max_u64(
            plan->scratch_bytes, plan_strategy(&job, request->conflict[n], available / devices,
                                               parts, &plan->choices[n], &plan->untried[n]));
        plan_fused_strategies(&job, available, plan);
    }
    plan->scratch_bytes = slc_plan_times(plan->scratch_bytes, devices);
}
