/* Loads copies of a tensor from its stream into a backend. */
#ifndef SLC_ENGINE_REPLICA_H
#define SLC_ENGINE_REPLICA_H

#include "base/backend.h"
#include "engine/stream/stream.h"
#include "storage/block/reader.h"

/* Sets *shape to the shape of the layout's tensor, for the operations replica_* of a backend. */
void slc_replica_shape(const struct slc_layout_info *info, struct slc_tensor_shape *shape);

/* Fills the backend's copies (replica_begin of base/backend.h) by one pass over the stream; MTTKRPs
 * with SLC_CONFLICT_REPLICA then need no passes. `workers` is the number of workers of these
 * MTTKRPs. If `factors` is not NULL, replica_end may use the factors to time several orders of
 * nonzeros, and choose the fastest. Errors: those of the pass and of the backend;
 * SLC_ERR_INTERRUPTED if `stop` (may be NULL) is set before the copies are complete. After an error
 * the backend holds no copies. */
enum slc_status slc_replica_load(struct slc_stream *stream,
                                 struct slc_backend *backend,
                                 const struct slc_layout_info *info,
                                 enum slc_value_type type,
                                 unsigned workers,
                                 const struct slc_matrix *factors,
                                 const struct slc_stop *stop,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
