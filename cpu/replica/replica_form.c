/* Chooses the modes that vary within the runs of a mode's copy.
 *
 * The first candidates are the plain form and the fibers of each mode; further candidates add one
 * varying mode at a time. Some pieces are sorted in each candidate form, their runs are counted,
 * and a model of the rows that a nonzero loads predicts the cost. If the next MTTKRPs are known,
 * the candidates with the lowest predicted costs are timed with the factors of these MTTKRPs
 * (replica_trial.c), because the model does not include the machine and has errors of about 10
 * %. */
#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "cpu/replica/replica_build.h"

enum {
    SAMPLE_SHARE = 16,     /* reciprocal of the fraction of pieces that are sorted in each form */
    SAMPLE_PER_WORKER = 4, /* minimum number of sampled pieces per worker */
    TRIED = 4              /* maximum number of candidates that are timed */
};
/* A candidate is not timed if its predicted cost exceeds the lowest predicted cost times this
 * factor. */
#define TRIED_WITHIN 1.6

/* State that the workers share while forms are compared. */
struct comparison {
    struct slc_replica *replica;
    struct slc_replica_mode *copy;
    unsigned mode;
    struct slc_replica_sample sample;
    uint64_t nnz;                                      /* number of nonzeros of the sample */
    struct slc_replica_candidate added[SLC_MAX_ORDER]; /* candidates whose runs are counted next */
    unsigned added_count;
    /* Candidates with the lowest costs, in ascending order. */
    struct slc_replica_candidate best[TRIED];
    unsigned best_count;
};

static void choose_sample(struct comparison *comparison)
{
    const uint64_t all = comparison->copy->piece_count;
    const uint64_t least = (uint64_t)comparison->replica->workers * SAMPLE_PER_WORKER;
    struct slc_replica_sample *sample = &comparison->sample;

    sample->all = all;
    sample->count = slc_min_u64(slc_max_u64(slc_div_up_u64(all, SAMPLE_SHARE), least), all);
    for (uint64_t s = 0; s < sample->count; s++) {
        comparison->nnz += comparison->copy->pieces[slc_replica_sampled(sample, s)].nnz;
    }
}

/* Counts the runs of candidates [begin, end) in the sample. */
static void count_runs(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct comparison *comparison = context;
    const struct slc_replica_scratch scratch = slc_replica_scratch_of(comparison->replica, worker);

    for (uint64_t i = begin; i < end; i++) {
        struct slc_replica_candidate *candidate = &comparison->added[i];

        for (uint64_t s = 0; s < comparison->sample.count; s++) {
            const struct slc_replica_piece *piece =
                &comparison->copy->pieces[slc_replica_sampled(&comparison->sample, s)];
            struct slc_replica_order order;

            slc_replica_sort(comparison->replica, comparison->mode, candidate->varying, piece,
                             &scratch, &order);
            candidate->runs += order.run_count > 0 ? order.run_count : piece->nnz;
        }
    }
}

/* Return the ns to read a row of a mode, and to read and write an output row, at R = 16. The time
 * depends on the cache in which all rows of the mode fit. The numbers were fitted to eight real
 * tensors (AVX-512, 2 MiB L2 cache); only the resulting order of the forms matters. */
static double read_cost(const struct comparison *comparison, unsigned mode)
{
    const uint64_t rows = comparison->replica->shape.dims[mode];

    return rows <= 256 ? 0.5 : rows <= 8192 ? 0.75 : rows <= 65536 ? 1.5 : 2.5;
}

static double update_cost(const struct comparison *comparison)
{
    return comparison->copy->rows_max <= 256 ? 1.2 : 3.0;
}

/* Returns the cost of a nonzero: the cost of the rows of the varying modes, plus the cost of a run
 * divided by the run's length. The cost of a run is the cost of the rows of the modes in which the
 * run agrees, the output row, and the end of the run. Consecutive nonzeros share the row of
 * the most significant mode, so the cache in which this mode's rows fit does not matter. */
static double cost_of(const struct comparison *comparison, uint32_t varying, double length)
{
    const bool several = __builtin_popcount(varying) > 1;
    const unsigned first_mode =
        slc_replica_first_mode(comparison->replica, comparison->mode, varying);
    double each = 0;
    double run = 0;

    for (unsigned m = 0; m < comparison->replica->shape.order; m++) {
        const bool varies = slc_replica_varies(varying, m);
        const bool first = m == first_mode;
        double cost;

        if (m == comparison->mode) {
            cost = first ? 1.2 : update_cost(comparison);
        } else {
            cost = first ? 0.5 : read_cost(comparison, m);
        }
        *(varies ? &each : &run) += cost;
    }
    if (varying == SLC_REPLICA_PLAIN) {
        return run + 0.5;
    }
    return each + (several ? 0.5 : 0.3) + (run + (several ? 1.5 : 2.5)) / length;
}

/* Inserts the candidate into the list of the best candidates if its cost is low enough. */
static void keep_best(struct comparison *comparison, const struct slc_replica_candidate *candidate)
{
    unsigned at = comparison->best_count < TRIED ? comparison->best_count : TRIED - 1;

    if (comparison->best_count == TRIED && candidate->cost >= comparison->best[at].cost) {
        return;
    }
    while (at > 0 && candidate->cost < comparison->best[at - 1].cost) {
        comparison->best[at] = comparison->best[at - 1];
        at--;
    }
    comparison->best[at] = *candidate;
    comparison->best_count = (unsigned)slc_min_u64(comparison->best_count + 1, TRIED);
}

/* Counts the runs of the added candidates, predicts their costs, and sets *base to the best
 * candidate that can be extended. */
static enum slc_status
compare_added(struct comparison *comparison, uint32_t *base, struct slc_error *err)
{
    const enum slc_status status = slc_team_for(
        comparison->replica->workers, comparison->added_count, 1, count_runs, comparison, err);
    const struct slc_replica_candidate *best = NULL;

    for (unsigned i = 0; i < comparison->added_count && status == SLC_OK; i++) {
        struct slc_replica_candidate *candidate = &comparison->added[i];

        candidate->cost = cost_of(comparison, candidate->varying,
                                  (double)comparison->nnz / (double)candidate->runs);
        keep_best(comparison, candidate);
        if (!slc_replica_varies(candidate->varying, comparison->mode) &&
            (best == NULL || candidate->cost < best->cost)) {
            best = candidate;
        }
    }
    *base = best == NULL ? 0 : best->varying;
    comparison->added_count = 0;
    return status;
}

/* Compares the fibers of each mode, and then adds varying modes until all modes except the output's
 * vary. */
static enum slc_status compare_all(struct comparison *comparison, struct slc_error *err)
{
    const unsigned order = comparison->replica->shape.order;
    uint32_t base = 0;

    for (unsigned count = 1; count < order; count++) {
        for (unsigned m = 0; m < order; m++) {
            if (!slc_replica_varies(base, m) && (count == 1 || m != comparison->mode)) {
                comparison->added[comparison->added_count++] =
                    (struct slc_replica_candidate){.varying = base | UINT32_C(1) << m};
            }
        }
        SLC_TRY(compare_added(comparison, &base, err));
    }
    return SLC_OK;
}

/* Returns how many of the best candidates are worth a trial. Each trial sorts and writes the
 * sampled pieces again. If the sample is a large part of the tensor, a trial takes more time than
 * it can save; if the sample is small, a trial is not conclusive. */
static unsigned count_tried(const struct comparison *comparison)
{
    const uint64_t least_nnz = (uint64_t)comparison->replica->workers * SLC_REPLICA_PIECE_NNZ;
    unsigned count = 1;

    if (comparison->sample.count > comparison->sample.all / SLC_REPLICA_TRIED_SHARE ||
        comparison->nnz < least_nnz) {
        return 0;
    }
    while (count < comparison->best_count &&
           comparison->best[count].cost <= TRIED_WITHIN * comparison->best[0].cost) {
        count++;
    }
    return count;
}

enum slc_status slc_replica_choose_form(struct slc_replica *replica,
                                        unsigned mode,
                                        struct slc_cpu_backend *tried_by,
                                        struct slc_error *err)
{
    struct slc_replica_mode *copy = &replica->modes[mode];
    struct comparison comparison = {.replica = replica, .copy = copy, .mode = mode};
    struct slc_replica_candidate plain = {.varying = SLC_REPLICA_PLAIN};

    copy->varying = SLC_REPLICA_PLAIN;
    copy->tried = 0;
    if (copy->piece_count == 0) {
        return SLC_OK;
    }
    choose_sample(&comparison);
    plain.cost = cost_of(&comparison, SLC_REPLICA_PLAIN, 1);
    keep_best(&comparison, &plain);
    enum slc_status status = compare_all(&comparison, err);
    if (status == SLC_OK && tried_by != NULL && count_tried(&comparison) > 1) {
        copy->tried = count_tried(&comparison);
        status =
            slc_replica_try(tried_by, mode, &comparison.sample, comparison.best, copy->tried, err);
    }
    copy->varying = comparison.best[0].varying;
    return status;
}
