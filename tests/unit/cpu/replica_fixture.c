/* Makes replicas of a problem's tiles. */
#include "replica_fixture.h"

#include "cpu/mttkrp/mttkrp.h"
#include "slc_test.h"

#include <string.h>

void replica_shape(const struct fake_tensor *tensor, struct slc_tensor_shape *shape)
{
    *shape = (struct slc_tensor_shape){
        .order = tensor->order, .nnz = tensor->nnz, .tile_nnz = tensor->tile_nnz};
    memcpy(shape->dims, tensor->dims, sizeof shape->dims);
}

enum slc_status replica_fill(struct slc_backend *backend,
                             const struct fake_tensor *tensor,
                             enum slc_value_type type,
                             unsigned workers,
                             struct slc_error *err)
{
    struct slc_tensor_shape shape;
    struct fake_tile tile;
    enum slc_status status;

    replica_shape(tensor, &shape);
    status = backend->ops->replica_begin(backend, &shape, type, workers, err);
    if (status != SLC_OK) {
        return status;
    }
    fake_tile_create(&tile, tensor, type);
    for (uint64_t t = fake_tensor_tiles(tensor); t-- > 0 && status == SLC_OK;) {
        fake_tile_open(&tile, t);
        status = backend->ops->replica_tile(backend, 0, &tile.view, err);
    }
    fake_tile_destroy(&tile);
    if (status != SLC_OK) {
        backend->ops->replica_drop(backend);
    }
    return status;
}

static enum slc_status load(struct slc_backend *backend,
                            const struct fake_tensor *tensor,
                            enum slc_value_type type,
                            unsigned workers,
                            const struct slc_matrix *factors,
                            struct slc_error *err)
{
    const enum slc_status status = replica_fill(backend, tensor, type, workers, err);

    return status == SLC_OK ? backend->ops->replica_end(backend, factors, NULL, err) : status;
}

enum slc_status replica_load(struct slc_backend *backend,
                             const struct fake_tensor *tensor,
                             enum slc_value_type type,
                             unsigned workers,
                             struct slc_error *err)
{
    return load(backend, tensor, type, workers, NULL, err);
}

enum slc_status replica_load_tried(struct slc_backend *backend,
                                   const struct problem *problem,
                                   unsigned workers,
                                   struct slc_error *err)
{
    const unsigned mode = problem->mode;
    struct slc_matrix factors[SLC_MAX_ORDER];
    enum slc_status status;

    /* A problem has no factor for its own mode. */
    memcpy(factors, problem->factors, sizeof factors);
    status = slc_matrix_create(&factors[mode], problem->type, problem->tensor.dims[mode],
                               problem->rank, err);
    if (status == SLC_OK) {
        status = load(backend, &problem->tensor, problem->type, workers, factors, err);
        slc_matrix_destroy(&factors[mode]);
    }
    return status;
}

struct slc_replica *replica_of(struct slc_backend *backend)
{
    return ((struct slc_cpu_backend *)(void *)backend)->replica;
}

void replica_check_dropped(struct slc_backend *backend)
{
    const struct slc_replica *replica = replica_of(backend);

    CU_ASSERT(!replica->begun && !replica->ready);
    CU_ASSERT(replica->records.data == NULL && replica->sorted.data == NULL &&
              replica->scratch.data == NULL);
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        CU_ASSERT(replica->modes[m].chunks.data == NULL && replica->modes[m].ranges == NULL &&
                  replica->modes[m].items == NULL && replica->modes[m].pieces == NULL);
    }
}

enum slc_status replica_multiply(struct slc_backend *backend,
                                 struct problem *problem,
                                 unsigned workers,
                                 struct slc_error *err)
{
    struct slc_mttkrp_job job;

    problem_job(problem, workers, &job);
    job.conflict = SLC_CONFLICT_REPLICA;
    return backend->ops->mttkrp_replica(backend, &job, err);
}
