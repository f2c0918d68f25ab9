/* Computes one MTTKRP of a session. */
#include "engine/session/session.h"

#include "base/hash.h"
#include "cpu/dense/dense.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum slc_status
run_pass(struct slc_executor *executor, struct slc_session_pass *pass, struct slc_error *err)
{
    const struct slc_executor_pass mttkrp = {.mode = pass->mode,
                                             .choice = &pass->choice,
                                             .hybrid = &pass->hybrid[pass->mode],
                                             .part = pass->part,
                                             .stop = pass->stop,
                                             .progress = pass->progress,
                                             .progress_context = pass->progress_context};
    struct slc_executor_stats stats;

    if (pass->part != NULL && !executor->ops->in_parts) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "only the CPU, without groups of workers, computes parts");
    }
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
    if (status == SLC_OK && pass->weights != NULL) {
        slc_dense_scale_rows(pass->output, 0, pass->output->rows, pass->weights);
    }
    slc_executor_destroy(executor);
    return status;
}

enum slc_status slc_session_open_part(struct slc_session *session,
                                      unsigned mode,
                                      struct slc_part_choice choice,
                                      struct slc_part *part,
                                      struct slc_error *err)
{
    const struct slc_plan *plan = &session->plan;

    memset(part, 0, sizeof *part);
    if (slc_manifest_permutation(&session->store.manifest, mode) != NULL) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "mode %u of %s is renumbered, so its rows cannot be divided: write the "
                        "store without renumbering",
                        mode + 1, session->store.path);
    }
    if (plan->request.gpu != NULL || plan->cpu_groups > 1) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "only the CPU, without groups of workers, computes parts");
    }
    SLC_TRY(slc_part_open(part, session->layouts.reader[plan->mode_layout[mode]],
                          UINT32_C(1) << mode, choice, err));
    session->plan.iteration_bytes = part->bytes;
    session->plan.iteration_read_bytes = part->bytes;
    return SLC_OK;
}

struct slc_row_span slc_session_part_rows(const struct slc_part *part, uint64_t rows)
{
    if (part->empty || part->first >= rows) {
        return (struct slc_row_span){0, 0};
    }
    return (struct slc_row_span){(uint64_t)part->first,
                                 part->last < rows ? (uint64_t)part->last + 1 : rows};
}

void slc_session_record_part(const struct slc_session *session,
                             unsigned mode,
                             const struct slc_matrix *factors,
                             const double *weights,
                             const struct slc_part *part,
                             struct slc_part_record *record)
{
    const struct slc_manifest *manifest = &session->store.manifest;
    char lines[128];
    struct slc_part_product product = {.operation = "mttkrp",
                                       .store = &session->store,
                                       .reader =
                                           session->layouts.reader[session->plan.mode_layout[mode]],
                                       .options = lines};
    struct slc_hash_stream hash;

    slc_hash_stream_begin(&hash);
    for (unsigned n = 0; n < manifest->order; n++) {
        if (n != mode) {
            product.modes |= UINT32_C(1) << n;
            slc_hash_stream_add(&hash, factors[n].buffer.data,
                                factors[n].rows * factors[n].pitch *
                                    slc_value_bytes(factors[n].type));
        }
    }
    if (weights != NULL) {
        slc_hash_stream_add(&hash, weights, session->plan.request.rank * sizeof *weights);
    }
    product.operands = slc_hash_stream_end(&hash);
    (void)snprintf(lines, sizeof lines, "rows=%" PRIu64 "\ncolumns=%" PRIu32 "\nbits=%u\n",
                   manifest->dims[mode], session->plan.request.rank,
                   8 * slc_value_bytes(session->plan.request.precision));
    slc_part_record_set(record, &product, part);
}
