/* Builds lists of coordinates from the tensors of tests. */
#include "coo_fixture.h"

#include <string.h>

void coo_shape(const struct fake_tensor *tensor, struct slc_tensor_shape *shape)
{
    *shape = (struct slc_tensor_shape){
        .order = tensor->order, .nnz = tensor->nnz, .tile_nnz = tensor->tile_nnz};
    memcpy(shape->dims, tensor->dims, sizeof shape->dims);
}

enum slc_status coo_load(struct slc_coo *coo,
                         const struct fake_tensor *tensor,
                         enum slc_value_type type,
                         struct slc_error *err)
{
    struct slc_tensor_shape shape;
    struct fake_tile tile;
    enum slc_status status;

    coo_shape(tensor, &shape);
    status = slc_coo_create(coo, &shape, type, err);
    if (status != SLC_OK) {
        return status;
    }
    fake_tile_create(&tile, tensor, type);
    for (uint64_t t = fake_tensor_tiles(tensor); t-- > 0 && status == SLC_OK;) {
        fake_tile_open(&tile, t);
        status = slc_coo_add_tile(coo, &tile.view, err);
    }
    fake_tile_destroy(&tile);
    return status;
}

enum slc_status coo_load_permuted(struct slc_coo *coo,
                                  const struct fake_tensor *tensor,
                                  enum slc_value_type type,
                                  unsigned workers,
                                  struct slc_error *err)
{
    enum slc_status status = coo_load(coo, tensor, type, err);

    for (unsigned m = 0; m < tensor->order && status == SLC_OK; m++) {
        status = slc_coo_permute(coo, m, workers, err);
    }
    return status;
}

enum slc_status coo_multiply(const struct slc_coo *coo,
                             enum slc_coo_kernel kernel,
                             struct problem *problem,
                             unsigned workers,
                             struct slc_error *err)
{
    struct slc_mttkrp_job job;

    problem_job(problem, workers, &job);
    return slc_coo_mttkrp(coo, kernel, &job, err);
}
