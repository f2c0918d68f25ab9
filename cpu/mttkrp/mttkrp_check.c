/* Checks the jobs of a caller before anything is changed. */
#include "cpu/mttkrp/mttkrp.h"

static enum slc_status check_matrix(const struct slc_mttkrp_job *job,
                                    const struct slc_matrix *matrix,
                                    unsigned mode,
                                    struct slc_error *err)
{
    const enum slc_value_type type = job->output->type;

    if (matrix == NULL || matrix->type != type || matrix->cols != job->rank ||
        matrix->pitch != slc_matrix_pitch(type, job->rank)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the matrix of mode %u does not match this MTTKRP: the matrix must have "
                        "the output's type and %u columns",
                        mode + 1, job->rank);
    }
    return SLC_OK;
}

static bool is_trial_allowed(const struct slc_mttkrp_job *job)
{
    const enum slc_conflict other =
        job->rival == SLC_CONFLICT_LOCKED ? SLC_CONFLICT_PRIVATE : SLC_CONFLICT_LOCKED;

    return !job->deterministic && job->conflict == other &&
           (job->rival == SLC_CONFLICT_LOCKED || job->rival == SLC_CONFLICT_PRIVATE);
}

static enum slc_status check_strategy(const struct slc_mttkrp_job *job, struct slc_error *err)
{
    if (job->conflict == SLC_CONFLICT_DIRECT && !job->deterministic && job->workers > 1) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the strategy \"direct\" is for one thread, but there are %u threads",
                        job->workers);
    }
    if (job->conflict == SLC_CONFLICT_COLUMNS && job->deterministic) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the strategy \"columns\" processes every tile once per thread, but a "
                        "deterministic job processes every tile only once");
    }
    if (job->rival != SLC_CONFLICT_AUTO && !is_trial_allowed(job)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the strategies \"%s\" and \"%s\" cannot be timed against each other: only "
                        "private and locked can, and not in a deterministic job",
                        slc_conflict_name(job->conflict), slc_conflict_name(job->rival));
    }
    if (job->conflict == SLC_CONFLICT_ROWS && job->partitions == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the strategy \"rows\" needs a layout sorted by mode %u", job->mode + 1);
    }
    return SLC_OK;
}

enum slc_status slc_mttkrp_check_job(const struct slc_mttkrp_job *job, struct slc_error *err)
{
    if (job->order < 1 || job->order > SLC_MAX_ORDER || job->mode >= job->order) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "mode %u of %u is not valid: a tensor has 1 to %d modes", job->mode + 1,
                        job->order, SLC_MAX_ORDER);
    }
    if (job->rank < 1 || job->rank > SLC_MAX_RANK) {
        return slc_fail(err, SLC_ERR_USAGE, "the rank is %u, but must be 1 to %d", job->rank,
                        SLC_MAX_RANK);
    }
    if (job->workers < 1 || job->workers > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE, "%u threads were requested, but 1 to %d are possible",
                        job->workers, SLC_MAX_THREADS);
    }
    if (job->output == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "the MTTKRP has no output matrix");
    }
    for (unsigned m = 0; m < job->order; m++) {
        SLC_TRY(check_matrix(job, m == job->mode ? job->output : job->factors[m], m, err));
    }
    return check_strategy(job, err);
}
