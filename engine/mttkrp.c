/*
 * One MTTKRP over a stream. The backend's three steps are tied to one pass: begin, every tile from
 * the pass's workers, end. A pass that fails is first aborted (workers may wait inside the backend
 * for tiles that will not come), then the job is ended all the same, so that the backend is ready
 * for another one.
 */
#include "engine/mttkrp.h"

enum slc_status slc_mttkrp_stream_tile(void *context,
                                       unsigned worker,
                                       struct slc_tile_view *tile,
                                       struct slc_error *err)
{
    struct slc_backend *backend = context;

    return backend->ops->mttkrp_tile(backend, worker, tile, err);
}

void slc_mttkrp_stream_abort(void *context)
{
    struct slc_backend *backend = context;

    backend->ops->mttkrp_abort(backend);
}

enum slc_status slc_mttkrp_stream(struct slc_stream *stream,
                                  unsigned layout,
                                  struct slc_backend *backend,
                                  const struct slc_mttkrp_job *job,
                                  const volatile int *stop,
                                  void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                  void *progress_context,
                                  struct slc_error *err)
{
    const struct slc_pass pass = {.layout = layout,
                                  .tile = slc_mttkrp_stream_tile,
                                  .abort = slc_mttkrp_stream_abort,
                                  .context = backend,
                                  .every_worker = job->conflict == SLC_CONFLICT_COLUMNS,
                                  .by_partition = job->conflict == SLC_CONFLICT_ROWS,
                                  .stop = stop,
                                  .progress = progress,
                                  .progress_context = progress_context};
    enum slc_status status;

    if (job->conflict == SLC_CONFLICT_OWNED) {
        return backend->ops->mttkrp_owned(backend, job, err);
    }
    status = backend->ops->mttkrp_begin(backend, job, err);
    if (status != SLC_OK) {
        return status;
    }
    status = slc_stream_pass(stream, &pass, err);
    if (status != SLC_OK) {
        /* The output is incomplete whatever the end says; the pass's fault is the one to report. */
        (void)backend->ops->mttkrp_end(backend, NULL);
        return status;
    }
    return backend->ops->mttkrp_end(backend, err);
}
