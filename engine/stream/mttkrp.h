/* One MTTKRP over a stream: connects a pass to a backend. */
#ifndef SLC_ENGINE_MTTKRP_H
#define SLC_ENGINE_MTTKRP_H

#include "base/backend.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/stream.h"

/*
 * Computes job->output = MTTKRP in job->mode over the stream's layout `layout` (formula in
 * base/backend.h). If the job has a rival, backend->ops->mttkrp_tried then reports the faster
 * strategy. SLC_CONFLICT_REPLICA uses the backend's copies and makes no pass: `stop` and `progress`
 * are ignored. Errors: those of the stream and the backend; the output is then undefined.
 */
enum slc_status slc_mttkrp_stream(struct slc_stream *stream,
                                  unsigned layout,
                                  struct slc_backend *backend,
                                  const struct slc_mttkrp_job *job,
                                  const volatile int *stop,
                                  void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                  void *progress_context,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Like slc_mttkrp_stream, but in parts if `cuts` is not NULL. A pass stopped between two parts and
 * resumed at the same position of the same order of blocks (slc_stream_order) has the same bits as
 * an uninterrupted pass, if the sums of the strategy are reproducible. SLC_CONFLICT_REPLICA makes
 * no pass and has no parts.
 */
enum slc_status slc_mttkrp_stream_parts(struct slc_stream *stream,
                                        unsigned layout,
                                        struct slc_backend *backend,
                                        const struct slc_mttkrp_job *job,
                                        const struct slc_pass_cuts *cuts,
                                        const volatile int *stop,
                                        void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                        void *progress_context,
                                        struct slc_error *err) SLC_NODISCARD;

/* Callbacks of struct slc_tile_consumer for a job of a backend; the backend is the context. */
enum slc_status slc_mttkrp_stream_tile(void *backend,
                                       unsigned worker,
                                       struct slc_tile_view *tile,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_mttkrp_stream_abort(void *backend);

#endif
