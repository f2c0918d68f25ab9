/*
 * Resources of an operation that streams a store: its layouts, its plan, the stream, and its
 * backends or devices with memory of their own.
 */
#ifndef SLC_ENGINE_SESSION_H
#define SLC_ENGINE_SESSION_H

#include "engine/executor/executor.h"
#include "engine/session/device_choice.h"
#include "engine/stream/stream.h"
#include "storage/manifest/store.h"

struct slc_session {
    struct slc_store store; /* opened and closed by the caller */
    const struct slc_device_maker *maker;

    /* Arguments of slc_session_plan. */
    struct slc_plan_request request;
    struct slc_device_wish wish;

    struct slc_layouts layouts; /* layouts that the plan reads */
    struct slc_plan plan;
    uint64_t resident_bytes;     /* resident bytes of the process when the plan was made */
    struct slc_stream *stream;   /* NULL until slc_session_start */
    struct slc_backend *backend; /* NULL until slc_session_start */
    /* Backends of the plan's groups; the first is `backend`. */
    struct slc_backend *backends[SLC_MAX_DEVICES];
    struct slc_device_set set;       /* devices of the plan, used instead of backends */
    struct slc_device *gpu;          /* the first device of the set; NULL if there is none */
    bool gpu_open;                   /* set from slc_session_start to slc_session_stop */
    struct slc_gpu_group *group;     /* like gpu_open, for several devices */
    struct slc_executor_parts parts; /* those of the members above that the plan needs */
    struct slc_error no_gpu;         /* why SLC_DEVICE_AUTO chose the CPU; SLC_OK if it did not */
};

/*
 * Opens the requested layouts and plans the request for the requested devices. A `resident_bytes`
 * of 0 means the current size of the process. Owns: release with slc_session_close before the store
 * is closed. Errors: SLC_ERR_USAGE; SLC_ERR_BUDGET, naming the smallest budget, which is then also
 * set in session->plan; those of creating a device and of opening the layouts.
 */
enum slc_status slc_session_plan(struct slc_session *session,
                                 const struct slc_plan_request *request,
                                 const struct slc_device_wish *wish,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the stream, creates the backends or opens the GPUs, and binds the threads started from then
 * on. If SLC_DEVICE_AUTO chose a GPU that cannot be opened, plans for the CPU and starts that plan,
 * so report the plan only after this call.
 */
enum slc_status slc_session_start(struct slc_session *session, struct slc_error *err) SLC_NODISCARD;
/*
 * Called after slc_session_start: plans and starts again, so that modes are updated in this order.
 */
enum slc_status slc_session_start_in_order(struct slc_session *session,
                                           const unsigned *mode_order,
                                           struct slc_error *err) SLC_NODISCARD;

/* Closes stream and devices and unbinds threads; another plan may follow. */
void slc_session_stop(struct slc_session *session);
/* Like slc_session_stop, and also releases devices and layouts. Accepts an all-zero session. */
void slc_session_close(struct slc_session *session);

/*
 * Returns the number of devices between which a plan divides the work; 0 if the work is not
 * divided.
 */
unsigned slc_plan_group_size(const struct slc_plan *plan);

/* One MTTKRP of a session started for it. */
struct slc_session_pass {
    unsigned mode;
    /* One factor per mode, in the order of the store; the factor of `mode` is unused. */
    struct slc_matrix *factors;
    struct slc_matrix *output;
    const volatile int *stop; /* may be NULL */
    void (*progress)(void *context, uint64_t done, uint64_t blocks, uint64_t bytes_read);
    void *progress_context;

    /* Results: the strategy that was tried, and statistics of the devices, or of CPU and device. */
    struct slc_conflict_choice choice;
    struct slc_member_stats devices[SLC_MAX_DEVICES];
    struct slc_hybrid hybrid[SLC_MAX_ORDER]; /* only element `mode` is set */
};

/* Sets pass->output to the MTTKRP, computed by the session's executor. Order: as planned. Errors:
 * those of the stream and of the executor; the output is then undefined. */
enum slc_status slc_session_mttkrp(struct slc_session *session,
                                   struct slc_session_pass *pass,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
