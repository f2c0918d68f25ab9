/* Loading copies of a tensor into a device, from its stream. */
#ifndef SLC_ENGINE_REPLICA_H
#define SLC_ENGINE_REPLICA_H

#include "base/backend.h"
#include "engine/stream/stream.h"
#include "storage/block/reader.h"

/* The shape of a layout's tensor, for the operations replica_* of a backend. */
void slc_replica_shape(const struct slc_layout_info *info, struct slc_tensor_shape *shape);

/*
 * Fills the backend's copies (replica_begin of base/backend.h) by one pass over the stream; MTTKRPs
 * with SLC_CONFLICT_REPLICA then need no more passes. `workers` is the number that those will have,
 * `factors` (may be NULL) what replica_end tries forms by.
 * Errors: those of the pass and of the backend; SLC_ERR_INTERRUPTED when `stop` (may be
 * NULL) says so before the last tile or the last copy. No copies are held then.
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
