/* Computes one MTTKRP over a stream: connects a pass to a backend. */
#ifndef SLC_ENGINE_MTTKRP_H
#define SLC_ENGINE_MTTKRP_H

#include "base/backend.h"
#include "engine/stream/part.h"
#include "engine/stream/pass_cuts.h"
#include "engine/stream/stream.h"

/* Computes the MTTKRP in job->mode (formula in base/backend.h) over number `layout` of the stream's
 * layouts, and stores it in job->output. If the job has a rival strategy, call
 * backend->ops->mttkrp_tried afterwards to get the faster strategy. SLC_CONFLICT_REPLICA uses the
 * backend's copies and makes no pass; `stop` and `progress` are then ignored. Errors: those of the
 * stream and the backend; the output is then undefined. */
enum slc_status slc_mttkrp_stream(struct slc_stream *stream,
                                  unsigned layout,
                                  struct slc_backend *backend,
                                  const struct slc_mttkrp_job *job,
                                  const volatile int *stop,
                                  void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                  void *progress_context,
                                  struct slc_error *err) SLC_NODISCARD;

/* Like slc_mttkrp_stream, but makes the pass in parts if `cuts` is not NULL. A pass may be stopped
 * between two parts, and resumed later at the same position, if the order of blocks
 * (slc_stream_order) is the same. If the strategy's sums are reproducible, the result has the same
 * bits as the result of a pass that was not stopped. With SLC_CONFLICT_REPLICA there is no pass,
 * and `cuts` is ignored. */
enum slc_status slc_mttkrp_stream_parts(struct slc_stream *stream,
                                        unsigned layout,
                                        struct slc_backend *backend,
                                        const struct slc_mttkrp_job *job,
                                        const struct slc_pass_cuts *cuts,
                                        const volatile int *stop,
                                        void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                        void *progress_context,
                                        struct slc_error *err) SLC_NODISCARD;

/* Like slc_mttkrp_stream, but reads only the blocks of a part of the output rows of this layout.
 * The other rows are then undefined. Needs: the strategy is SLC_CONFLICT_ORDERED, or
 * SLC_CONFLICT_ROWS and a stream in file order; the rows then have the same bits as without a part.
 */
enum slc_status slc_mttkrp_stream_part(struct slc_stream *stream,
                                       unsigned layout,
                                       struct slc_backend *backend,
                                       const struct slc_mttkrp_job *job,
                                       const struct slc_part *part,
                                       const volatile int *stop,
                                       void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                       void *progress_context,
                                       struct slc_error *err) SLC_NODISCARD;

/* Callbacks of struct slc_tile_consumer that add tiles to the job of a backend. Their context is
 * the backend. */
enum slc_status slc_mttkrp_stream_tile(void *backend,
                                       unsigned worker,
                                       struct slc_tile_view *tile,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_mttkrp_stream_abort(void *backend);

#endif
