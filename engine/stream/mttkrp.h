/* One MTTKRP over a stream: ties a pass to a backend. */
#ifndef SLC_ENGINE_MTTKRP_H
#define SLC_ENGINE_MTTKRP_H

#include "base/backend.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/stream.h"

/*
 * Runs job->output = MTTKRP in job->mode of the stream's layout `layout` (base/backend.h says the
 * formula). Where the job has a rival, backend->ops->mttkrp_tried tells afterwards which strategy
 * was faster. SLC_CONFLICT_REPLICA computes from the backend's copies and makes no pass: neither
 * `stop` nor `progress` is looked at. Errors: those of the stream and the backend; the output is
 * then undefined.
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
 * The same in parts, where `cuts` is not NULL. A pass that is left between two of them, and gone on
 * with at the same position of the same order of blocks (slc_stream_order), gives the bits of one
 * that was not, where the strategy's sums are the same every time. OWNED makes no pass, and has no
 * parts.
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

/* What a pass for a job of a backend, its context, calls: struct slc_tile_consumer. */
enum slc_status slc_mttkrp_stream_tile(void *backend,
                                       unsigned worker,
                                       struct slc_tile_view *tile,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_mttkrp_stream_abort(void *backend);

#endif
