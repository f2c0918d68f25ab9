#include "engine/session/session.h"

#include "base/memory/memory.h"
#include "cpu/cpu.h"
#include "engine/executor/gpu_executor.h"
#include "engine/executor/gpu_group.h"
#include "engine/planning/planning.h"

#include <string.h>

static void drop_gpus(struct slc_session *session)
{
    slc_device_set_drop(&session->set);
    session->gpu = NULL;
}

unsigned slc_plan_group_size(const struct slc_plan *plan)
{
    return plan->cpu_groups > 0 ? plan->cpu_groups : plan->request.gpu_count;
}

/* Plans for the requested device. With SLC_DEVICE_AUTO, plans for the CPU if the plan for a device
 * fails. */
static enum slc_status plan_for_device(struct slc_session *session,
                                       struct slc_plan_request *request,
                                       struct slc_error *err)
{
    const bool cache = request->cache;
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status = slc_device_set_make(&session->wish, session->maker, request,
                                                 &session->set, &session->no_gpu, err);

    session->gpu = session->set.count > 0 ? session->set.devices[0] : NULL;
    SLC_TRY(status);
    if (session->gpu == NULL) {
        /* There is no device with which to share the work. */
        request->hybrid.kind = SLC_HYBRID_NONE;
        return slc_plan_choose(&session->layouts, request, &session->plan, err);
    }
    request->gpu = session->gpu;
    request->gpus = session->set.devices;
    request->streams = session->wish.streams;
    /* An MTTKRP makes a single pass. Cached blocks would never be used again, and would occupy
     * registered memory. */
    request->cache = cache && request->operation != SLC_OP_MTTKRP;
    status = slc_plan_choose(&session->layouts, request, &session->plan, &refused);
    if (status == SLC_OK) {
        return SLC_OK;
    }
    if (session->wish.kind == SLC_DEVICE_AUTO) {
        drop_gpus(session);
        request->cache = cache;
        session->no_gpu = refused;
        request->gpu = NULL;
        request->streams = 0;
        request->hybrid.kind = SLC_HYBRID_NONE;
        return slc_plan_choose(&session->layouts, request, &session->plan, err);
    }
    if (err != NULL) {
        *err = refused;
    }
    return status;
}

/* Makes the plan for a process with `resident_bytes` resident bytes; 0 means the current value. */
static enum slc_status
make_plan(struct slc_session *session, uint64_t resident_bytes, struct slc_error *err)
{
    struct slc_plan_request request = session->request;
    const uint32_t modes =
        request.operation == SLC_OP_CPD ? UINT32_MAX : UINT32_C(1) << request.mode;

    request.resident_bytes = resident_bytes;
    SLC_TRY(slc_device_wish_apply(&session->wish, &session->store, modes, &request, err));
    slc_layouts_close(&session->layouts);
    SLC_TRY(slc_layouts_open(&session->store, request.layouts, modes,
                             request.memory_bytes != 0 ? request.memory_bytes : UINT64_MAX,
                             &session->layouts, err));
    session->resident_bytes = resident_bytes != 0 ? resident_bytes : slc_memory_resident();
    return plan_for_device(session, &request, err);
}

enum slc_status slc_session_plan(struct slc_session *session,
                                 const struct slc_plan_request *request,
                                 const struct slc_device_wish *wish,
                                 struct slc_error *err)
{
    drop_gpus(session);
    session->request = *request;
    session->wish = *wish;
    return make_plan(session, request->resident_bytes, err);
}

static enum slc_status open_parts(struct slc_session *session, struct slc_error *err)
{
    const unsigned count = session->plan.cpu_groups > 0 ? session->plan.cpu_groups : 1;

    slc_placement_enter(&session->plan.placement);
    enum slc_status status = slc_stream_open(session->store.files, &session->layouts,
                                             &session->plan, &session->stream, err);
    if (status == SLC_OK && session->plan.request.gpu_count > 0) {
        return slc_gpu_group_open(&session->layouts, &session->plan, session->stream,
                                  &session->group, err);
    }
    if (status == SLC_OK && session->plan.request.gpu != NULL) {
        status = slc_gpu_executor_open(session->gpu, &session->layouts, &session->plan,
                                       session->stream, err);
        session->gpu_open = status == SLC_OK;
        if (session->plan.request.hybrid.kind == SLC_HYBRID_NONE) {
            return status;
        }
    }
    for (unsigned d = 0; d < count && status == SLC_OK; d++) {
        status = slc_cpu_backend_create(&session->backends[d], err);
    }
    session->backend = session->backends[0];
    return status;
}

static enum slc_status start_session(struct slc_session *session, struct slc_error *err)
{
    const enum slc_status status = open_parts(session, err);

    session->parts =
        (struct slc_executor_parts){.backend = session->backend,
                                    .groups = session->backends,
                                    .gpu = session->group == NULL ? session->gpu : NULL,
                                    .gpus = session->group,
                                    .layouts = &session->layouts};
    return status;
}

enum slc_status slc_session_start(struct slc_session *session, struct slc_error *err)
{
    const bool can_do_without = session->gpu != NULL && session->wish.kind == SLC_DEVICE_AUTO;
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status = start_session(session, &refused);

    if (status == SLC_OK) {
        return SLC_OK;
    }
    /* If the stream could not be opened, the device did not cause the error. */
    if (!can_do_without || session->stream == NULL) {
        if (err != NULL) {
            *err = refused;
        }
        return status;
    }
    slc_session_stop(session);
    drop_gpus(session);
    if (session->plan.request.hybrid.kind != SLC_HYBRID_NONE) {
        /* There is no device with which to share the work. */
        session->wish.split = (struct slc_split_wish){0};
    }
    session->wish.kind = SLC_DEVICE_CPU;
    session->wish.memory_bytes = 0;
    session->wish.streams = 0;
    status = make_plan(session, 0, err);
    session->no_gpu = refused;
    SLC_TRY(status);
    return start_session(session, err);
}

void slc_session_stop(struct slc_session *session)
{
    for (unsigned d = 0; d < SLC_MAX_DEVICES; d++) {
        if (session->backends[d] != NULL) {
            session->backends[d]->ops->destroy(session->backends[d]);
            session->backends[d] = NULL;
        }
    }
    session->backend = NULL;
    slc_gpu_group_close(session->group);
    session->group = NULL;
    if (session->gpu_open) {
        slc_gpu_executor_close(session->gpu, session->stream);
        session->gpu_open = false;
    }
    slc_stream_close(session->stream);
    session->stream = NULL;
    slc_placement_leave();
}

enum slc_status slc_session_start_in_order(struct slc_session *session,
                                           const unsigned *mode_order,
                                           struct slc_error *err)
{
    /* The plan counts all memory that was allocated since resident_bytes was measured, except the
     * memory of a device driver. */
    const bool device = session->gpu != NULL || session->no_gpu.status != SLC_OK;

    slc_session_stop(session);
    drop_gpus(session);
    session->request.mode_order_set = true;
    memcpy(session->request.mode_order, mode_order,
           session->store.manifest.order * sizeof mode_order[0]);
    SLC_TRY(make_plan(session, device ? 0 : session->resident_bytes, err));
    return slc_session_start(session, err);
}

void slc_session_close(struct slc_session *session)
{
    slc_session_stop(session);
    drop_gpus(session);
    slc_layouts_close(&session->layouts);
}
