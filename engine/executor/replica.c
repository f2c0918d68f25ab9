/* Loads copies of the tensor: one pass over the stream delivers all tiles to the backend. */
#include "engine/executor/replica.h"

#include <string.h>

void slc_replica_shape(const struct slc_layout_info *info, struct slc_tensor_shape *shape)
{
    memset(shape, 0, sizeof *shape);
    shape->order = info->order;
    shape->nnz = info->nnz;
    shape->tile_nnz = SLC_TILE_NNZ;
    memcpy(shape->dims, info->dims, info->order * sizeof info->dims[0]);
}

/* Context of the pass that loads the copies. */
struct load {
    struct slc_backend *backend;
    const struct slc_stop *stop;
};

static enum slc_status
add_tile(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct load *load = context;

    if (slc_stop_wanted(load->stop)) {
        return slc_fail(err, SLC_ERR_INTERRUPTED,
                        "the run was stopped before all tiles were copied");
    }
    return load->backend->ops->replica_tile(load->backend, worker, tile, err);
}

enum slc_status slc_replica_load(struct slc_stream *stream,
                                 struct slc_backend *backend,
                                 const struct slc_layout_info *info,
                                 enum slc_value_type type,
                                 unsigned workers,
                                 const struct slc_matrix *factors,
                                 const struct slc_stop *stop,
                                 struct slc_error *err)
{
    struct load load = {backend, stop};
    const struct slc_pass pass = {.tiles = {.consumer = {.tile = add_tile, .context = &load}}};
    struct slc_tensor_shape shape;

    slc_replica_shape(info, &shape);
    SLC_TRY(backend->ops->replica_begin(backend, &shape, type, workers, err));
    enum slc_status status = slc_stream_pass(stream, &pass, err);
    SLC_THEN(status, backend->ops->replica_end(backend, factors, stop, err));
    if (status != SLC_OK) {
        backend->ops->replica_drop(backend);
    }
    return status;
}
