/* Beginnings of jobs whose threads add atomically; see atomic_job.h. */
#include "tools/bench/rivals/cpu/atomic_job.h"

#include "base/thread/team.h"

#include <string.h>

enum { ZERO_BYTES = 2 << 20 /* of the output, a thread at a time */ };

const uint32_t slc_zero_offsets[SLC_CHUNK_NNZ];

static void zero_bytes(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    (void)worker;
    memset((unsigned char *)context + begin, 0, end - begin);
}

static enum slc_status
create_ones(const struct slc_mttkrp_job *job, struct slc_matrix *ones, struct slc_error *err)
{
    const enum slc_status status = slc_matrix_create(ones, job->output->type, 1, job->rank, err);

    for (uint32_t r = 0; status == SLC_OK && r < job->rank; r++) {
        slc_matrix_set(ones, 0, r, 1.0);
    }
    return status;
}

enum slc_status slc_atomic_job_begin(const struct slc_mttkrp_job *job,
                                     struct slc_matrix *ones,
                                     struct slc_error *err)
{
    const uint64_t bytes =
        job->output->rows * job->output->pitch * (uint64_t)slc_value_bytes(job->output->type);
    enum slc_status status = SLC_OK;

    if (job->order == 1) {
        status = create_ones(job, ones, err);
    }
    SLC_TRY(status);
    if (bytes > 0) {
        SLC_TRY(slc_team_for(job->workers, bytes, ZERO_BYTES, zero_bytes, job->output->buffer.data,
                             err));
    }
    return SLC_OK;
}
