/* Loads copies of a tensor from its stream into a backend. */
#ifndef SLC_ENGINE_REPLICA_H
#define SLC_ENGINE_REPLICA_H

#include "base/backend.h"
#include "engine/stream/stream.h"
#include "storage/block/reader.h"

/* Returns the shape of a layout's tensor, for the operations replica_* of a backend. */
void slc_replica_shape(const struct slc_layout_info *info, struct slc_tensor_shape *shape);

/*
 * Fills the backend's copies (replica_begin of base/backend.h) by one pass over the stream; MTTKRPs
 * with SLC_CONFLICT_REPLICA then need no passes. `workers` is the number of workers of those
 * MTTKRPs; replica_end uses `factors` (may be NULL) to try forms. Errors: those of the pass and of
 * the backend; SLC_ERR_INTERRUPTED when `stop` (may be NULL) is set before the last tile or the
 * last copy. After an error no copies are held.
 */
enum slc_status slc_replica_load(struct slc_stream *stream,
                                 struct slc_backend *backend,
                                 const struct slc_layout_info *info,
                                 enum slc_value_type type,
                                 unsigned workers,
                                 const struct slc_matrix *factors,
                                 const struct slc_stop *stop,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
