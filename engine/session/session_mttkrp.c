/* Computes one MTTKRP of a session. */
#include "engine/session/session.h"

#include <string.h>

static enum slc_status
run_pass(struct slc_executor *executor, struct slc_session_pass *pass, struct slc_error *err)
{
    const struct slc_executor_pass mttkrp = {.mode = pass->mode,
                                             .choice = &pass->choice,
                                             .hybrid = &pass->hybrid[pass->mode],
                                             .stop = pass->stop,
                                             .progress = pass->progress,
                                             .progress_context = pass->progress_context};
    struct slc_executor_stats stats;

    SLC_TRY(executor->ops->load(executor, err));
    SLC_TRY(executor->ops->mttkrp(executor, &mttkrp, err));
    SLC_TRY(executor->ops->read_output(executor, pass->mode, err));
    executor->ops->stats(executor, &stats);
    memcpy(pass->devices, stats.member, stats.members * sizeof stats.member[0]);
    return SLC_OK;
}

enum slc_status slc_session_mttkrp(struct slc_session *session,
                                   struct slc_session_pass *pass,
                                   struct slc_error *err)
{
    const struct slc_executor_setup setup = {.parts = session->parts,
                                             .stream = session->stream,
                                             .plan = &session->plan,
                                             .factors = pass->factors,
                                             .output = &pass->output->buffer};
    struct slc_executor *executor = NULL;
    enum slc_status status = slc_executor_create(&setup, &executor, err);

    pass->choice = session->plan.choices[pass->mode];
    pass->hybrid[pass->mode].wish = session->plan.request.hybrid;
    SLC_THEN(status, run_pass(executor, pass, err));
    slc_executor_destroy(executor);
    return status;
}
