/* See session.h. */
#include "engine/session/session.h"

#include "base/memory/memory.h"
#include "cpu/cpu.h"
#include "engine/executor/gpu_executor.h"
#include "engine/planning/planning.h"

#include <string.h>

static void drop_accelerators(struct slc_session *session)
{
    slc_device_set_drop(&session->set);
    session->accelerator = NULL;
}

unsigned slc_plan_device_count(const struct slc_plan *plan)
{
    return plan->devices > 0 ? plan->devices : plan->request.accelerator_count;
}

/* Plans for the device that is asked for; with `auto` for the CPU where that plan cannot be. */
static enum slc_status plan_for_device(struct slc_session *session,
                                       struct slc_plan_request *request,
                                       struct slc_error *err)
{
    const bool cache = request->cache;
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status;

    status = slc_device_set_make(&session->wish, session->maker, request, &session->set,
                                 &session->no_accelerator, err);
    session->accelerator = session->set.count > 0 ? session->set.devices[0] : NULL;
    if (status != SLC_OK) {
        return status;
    }
    if (session->accelerator == NULL) {
        request->share.kind = SLC_SHARE_NONE; /* there is nobody to share with */
        return slc_plan_choose(&session->layouts, request, &session->plan, err);
    }
    request->accelerator = session->accelerator;
    request->accelerators = session->set.devices;
    request->streams = session->wish.streams;
    /* One pass would fill a cache that nobody reads, in memory that is registered with the device.
     */
    request->cache = cache && request->operation != SLC_OP_MTTKRP;
    status = slc_plan_choose(&session->layouts, request, &session->plan, &refused);
    if (status == SLC_OK) {
        return SLC_OK;
    }
    if (session->wish.kind == SLC_DEVICE_AUTO) {
        drop_accelerators(session);
        request->cache = cache;
        session->no_accelerator = refused;
        request->accelerator = NULL;
        request->streams = 0;
        request->share.kind = SLC_SHARE_NONE;
        return slc_plan_choose(&session->layouts, request, &session->plan, err);
    }
    if (err != NULL) {
        *err = refused;
    }
    return status;
}

/* Plans what is wished for, for a process with that many bytes resident; 0: as it is now. */
static enum slc_status
plan_wish(struct slc_session *session, uint64_t resident_bytes, struct slc_error *err)
{
    struct slc_plan_request request = session->request;
    const uint32_t modes =
        request.operation == SLC_OP_CPD ? UINT32_MAX : UINT32_C(1) << request.mode;
    enum slc_status status;

    request.resident_bytes = resident_bytes;
    status = slc_device_wish_apply(&session->wish, &session->store, modes, &request, err);
    if (status != SLC_OK) {
        return status;
    }
    slc_layouts_close(&session->layouts);
    status = slc_layouts_open(&session->store, request.layouts, modes,
                              request.memory_bytes != 0 ? request.memory_bytes : UINT64_MAX,
                              &session->layouts, err);
    if (status != SLC_OK) {
        return status;
    }
    session->resident_bytes = resident_bytes != 0 ? resident_bytes : slc_memory_resident();
    return plan_for_device(session, &request, err);
}

enum slc_status slc_session_plan(struct slc_session *session,
                                 const struct slc_plan_request *request,
                                 const struct slc_device_wish *wish,
                                 struct slc_error *err)
{
    drop_accelerators(session);
    session->request = *request;
    session->wish = *wish;
    return plan_wish(session, request->resident_bytes, err);
}

static enum slc_status start(struct slc_session *session, struct slc_error *err)
{
    const unsigned count = session->plan.devices > 0 ? session->plan.devices : 1;
    enum slc_status status;

    slc_placement_enter(&session->plan.placement);
    status = slc_stream_open(session->store.files, &session->layouts, &session->plan,
                             &session->stream, err);
    if (status == SLC_OK && session->plan.request.accelerator_count > 0) {
        return slc_accelerators_open(&session->layouts, &session->plan, session->stream,
                                     &session->group, err);
    }
    if (status == SLC_OK && session->plan.request.accelerator != NULL) {
        status = slc_accelerator_open(session->accelerator, &session->layouts, &session->plan,
                                      session->stream, err);
        session->accelerator_open = status == SLC_OK;
        if (session->plan.request.share.kind == SLC_SHARE_NONE) {
            return status;
        }
    }
    for (unsigned d = 0; d < count && status == SLC_OK; d++) {
        status = slc_cpu_backend_create(&session->devices[d], err);
    }
    session->backend = session->devices[0];
    return status;
}

enum slc_status slc_session_start(struct slc_session *session, struct slc_error *err)
{
    const bool can_do_without =
        session->accelerator != NULL && session->wish.kind == SLC_DEVICE_AUTO;
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status = start(session, &refused);

    if (status == SLC_OK) {
        return SLC_OK;
    }
    /* Without a stream it is not the device that failed. */
    if (!can_do_without || session->stream == NULL) {
        if (err != NULL) {
            *err = refused;
        }
        return status;
    }
    slc_session_stop(session);
    drop_accelerators(session);
    if (session->plan.request.share.kind != SLC_SHARE_NONE) {
        session->wish.split = NULL; /* there is nobody to share with */
    }
    session->wish.kind = SLC_DEVICE_CPU;
    session->wish.memory_bytes = 0;
    session->wish.streams = 0;
    status = plan_wish(session, 0, err);
    session->no_accelerator = refused;
    return status == SLC_OK ? start(session, err) : status;
}

void slc_session_stop(struct slc_session *session)
{
    for (unsigned d = 0; d < SLC_MAX_DEVICES; d++) {
        if (session->devices[d] != NULL) {
            session->devices[d]->ops->destroy(session->devices[d]);
            session->devices[d] = NULL;
        }
    }
    session->backend = NULL;
    slc_accelerators_close(session->group);
    session->group = NULL;
    if (session->accelerator_open) {
        slc_accelerator_close(session->accelerator, session->stream);
        session->accelerator_open = false;
    }
    slc_stream_close(session->stream);
    session->stream = NULL;
    slc_placement_leave();
}

enum slc_status slc_session_start_in_order(struct slc_session *session,
                                           const unsigned *mode_order,
                                           struct slc_error *err)
{
    /* What has been opened since is in the plan; but the driver of a device is not. */
    const bool device = session->accelerator != NULL || session->no_accelerator.status != SLC_OK;
    enum slc_status status;

    slc_session_stop(session);
    drop_accelerators(session);
    session->request.mode_order_set = true;
    memcpy(session->request.mode_order, mode_order,
           session->store.manifest.order * sizeof mode_order[0]);
    status = plan_wish(session, device ? 0 : session->resident_bytes, err);
    return status == SLC_OK ? slc_session_start(session, err) : status;
}

void slc_session_close(struct slc_session *session)
{
    slc_session_stop(session);
    drop_accelerators(session);
    slc_layouts_close(&session->layouts);
}
