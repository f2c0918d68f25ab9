/* Implements the operations replica_* of base/backend.h on the copies of replica.h. */
#include "cpu/mttkrp/mttkrp.h"
#include "cpu/replica/replica.h"

enum slc_status slc_backend_replica_begin(struct slc_backend *backend,
                                          const struct slc_tensor_shape *shape,
                                          enum slc_value_type type,
                                          unsigned workers,
                                          struct slc_error *err)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    return slc_replica_begin(cpu->replica, shape, type, workers, err);
}

enum slc_status slc_backend_replica_tile(struct slc_backend *backend,
                                         unsigned worker,
                                         struct slc_tile_view *tile,
                                         struct slc_error *err)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    (void)worker;
    return slc_replica_add_tile(cpu->replica, tile, err);
}

/* Creates a job with all factors and no output, for any mode. */
static enum slc_status set_factors_job(struct slc_cpu_backend *cpu,
                                       const struct slc_matrix *factors,
                                       struct slc_error *err)
{
    const struct slc_replica *replica = cpu->replica;
    struct slc_mttkrp_job job = {.order = replica->shape.order,
                                 .rank = factors[0].cols,
                                 .nnz = replica->shape.nnz,
                                 .workers = replica->workers,
                                 .conflict = SLC_CONFLICT_REPLICA};
    struct slc_matrix output = factors[0];

    for (unsigned m = 0; m < job.order; m++) {
        if (factors[m].type != replica->type || factors[m].cols != job.rank ||
            factors[m].rows != replica->shape.dims[m]) {
            return slc_fail(
                err, SLC_ERR_USAGE,
                "the factor of mode %u does not match the tensor for which copies were begun",
                m + 1);
        }
        job.factors[m] = &factors[m];
    }
    job.output = &output;
    cpu->running = false;
    slc_mttkrp_set_job(cpu, &job);
    cpu->job.output = NULL;
    cpu->prefetch = false;
    return SLC_OK;
}

enum slc_status slc_backend_replica_end(struct slc_backend *backend,
                                        const struct slc_matrix *factors,
                                        const struct slc_stop *stop,
                                        struct slc_error *err)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    if (factors == NULL) {
        return slc_replica_end(cpu->replica, NULL, stop, err);
    }
    enum slc_status status = set_factors_job(cpu, factors, err);
    if (status != SLC_OK) {
        slc_replica_drop(cpu->replica);
        return status;
    }
    return slc_replica_end(cpu->replica, cpu, stop, err);
}

void slc_backend_replica_drop(struct slc_backend *backend)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    slc_replica_drop(cpu->replica);
}

/* Returns the number of runs in a mode's copy. A piece without runs counts as one run per nonzero,
 * as in the cost model. */
static uint64_t count_runs(const struct slc_replica_mode *copy)
{
    uint64_t runs = 0;

    for (uint64_t p = 0; p < copy->piece_count; p++) {
        const unsigned char *at = copy->pieces[p].chunks;

        for (uint32_t c = 0; c < copy->pieces[p].chunk_count; c++) {
            const struct slc_replica_chunk *chunk =
                (const struct slc_replica_chunk *)(const void *)at;

            runs += chunk->runs > 0 ? chunk->runs : chunk->nnz;
            at += chunk->bytes;
        }
    }
    return runs;
}

bool slc_backend_replica_form(const struct slc_backend *backend,
                              unsigned mode,
                              struct slc_replica_form *form)
{
    const struct slc_cpu_backend *cpu = (const struct slc_cpu_backend *)(const void *)backend;
    const struct slc_replica *replica = cpu->replica;

    if (!replica->ready || mode >= replica->shape.order) {
        return false;
    }
    const struct slc_replica_mode *copy = &replica->modes[mode];
    uint64_t runs = count_runs(copy);
    form->varying = copy->varying;
    form->nnz_per_run = runs > 0 ? (double)replica->shape.nnz / (double)runs : 1;
    form->tried = copy->tried;
    return true;
}

static enum slc_status check_replica(const struct slc_cpu_backend *cpu,
                                     const struct slc_mttkrp_job *job,
                                     struct slc_error *err)
{
    const struct slc_tensor_shape *shape = &cpu->replica->shape;
    bool fits = cpu->replica->ready && job->order == shape->order && job->nnz == shape->nnz &&
                job->output->type == cpu->replica->type && job->workers == cpu->replica->workers;

    for (unsigned m = 0; fits && m < job->order; m++) {
        fits = (m == job->mode ? job->output : job->factors[m])->rows == shape->dims[m];
    }
    return fits ? SLC_OK
                : slc_fail(err, SLC_ERR_USAGE,
                           "there are no copies of this tensor for %u threads and this value type",
                           job->workers);
}

enum slc_status slc_backend_mttkrp_replica(struct slc_backend *backend,
                                           const struct slc_mttkrp_job *job,
                                           struct slc_error *err)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;

    SLC_TRY(slc_mttkrp_check_job(job, err));
    SLC_TRY(check_replica(cpu, job, err));
    cpu->running = false;
    slc_mttkrp_set_job(cpu, job);
    /* Sorted nonzeros reuse rows while the rows are in a cache. Prefetching was at most 4 % faster
     * (2.5 M rows), but also 10 % slower (1.7 M rows), and 30 % slower if all rows are in the
     * last-level cache. */
    cpu->prefetch = false;
    SLC_TRY(slc_mttkrp_reserve(cpu, slc_replica_scratch_bytes(cpu), err));
    return slc_replica_mttkrp(cpu, err);
}
