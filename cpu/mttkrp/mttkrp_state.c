/* Provides the partial sums of a job to a caller that saves the sums and resumes later.
 *
 * With all strategies except PRIVATE and ROWS, the sums are in the output (or in the f64 copy of an
 * f32 output) after every tile. With PRIVATE and during a trial, the copies are first added up.
 * With ROWS, the sums of rows that are split over partitions stay separate, because they are added
 * at the end, in order.
 *
 * Cost: adding up the copies, if there are any. All other work does not depend on the size of the
 * output. */
#include "cpu/mttkrp/mttkrp.h"

enum slc_status
slc_mttkrp_state(struct slc_backend *backend, struct slc_mttkrp_state *state, struct slc_error *err)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;
    const bool wide = cpu->layout.wide_bytes > 0;
    enum slc_status status = SLC_OK;

    if (!cpu->running) {
        return slc_fail(err, SLC_ERR_USAGE, "mttkrp_state was called, but no MTTKRP was begun");
    }
    if (cpu->conflict == SLC_CONFLICT_PRIVATE || cpu->trial.on) {
        status = slc_private_gather(cpu, err);
    }
    state->count = 1;
    state->region[0].data = cpu->sums;
    state->region[0].bytes = cpu->job.output->rows * (wide ? cpu->sum_stride : cpu->stride);
    state->region[0].word_bytes = wide ? sizeof(double) : slc_value_bytes(cpu->type);
    if (cpu->conflict == SLC_CONFLICT_ROWS) {
        slc_split_rows_state(cpu, state);
    }
    return status;
}

enum slc_status slc_mttkrp_resume(struct slc_backend *backend, struct slc_error *err)
{
    const struct slc_cpu_backend *cpu = (const struct slc_cpu_backend *)(const void *)backend;

    if (!cpu->running) {
        return slc_fail(err, SLC_ERR_USAGE, "mttkrp_resume was called, but no MTTKRP was begun");
    }
    return cpu->conflict == SLC_CONFLICT_ROWS ? slc_split_rows_check(cpu, err) : SLC_OK;
}
