/*
 * What an operation that streams a store holds: the layouts that it reads, its plan, the stream,
 * and what computes: a backend, several of them, or devices with memory of their own.
 */
#ifndef SLC_ENGINE_SESSION_H
#define SLC_ENGINE_SESSION_H

#include "engine/executor/executor.h"
#include "engine/session/device_choice.h"
#include "engine/stream/stream.h"
#include "storage/manifest/store.h"

struct slc_session {
    struct slc_store store; /* as it was opened; whoever did that closes it */
    const struct slc_device_maker *maker;

    /* What slc_session_plan was asked for. */
    struct slc_plan_request request;
    struct slc_device_wish wish;

    struct slc_layouts layouts; /* those that the plan reads */
    struct slc_plan plan;
    uint64_t resident_bytes;                       /* of the process, when that was made */
    struct slc_stream *stream;                     /* NULL until slc_session_start */
    struct slc_backend *backend;                   /* NULL until then */
    struct slc_backend *backends[SLC_MAX_DEVICES]; /* the plan's, if any: the first is `backend` */
    struct slc_device_set set;                     /* the plan's, in place of them */
    struct slc_device *gpu;                        /* the first of these; NULL: there is none */
    bool gpu_open;                                 /* from slc_session_start to slc_session_stop */
    struct slc_gpu_group *group;     /* the same, where several are named: what they are together */
    struct slc_executor_parts parts; /* of all these, those that the plan needs */
    struct slc_error no_gpu;         /* why SLC_DEVICE_AUTO took the CPU; SLC_OK: it did not */
};

/*
 * Opens the layouts that are asked for and plans the request for the devices that are wished for.
 * `resident_bytes` of it is that of the process where it is 0. Owns: slc_session_close, before the
 * store is closed. Errors: SLC_ERR_USAGE; SLC_ERR_BUDGET names the smallest budget, and
 * session->plan holds it; those of making a device and of opening the layouts.
 */
enum slc_status slc_session_plan(struct slc_session *session,
                                 const struct slc_plan_request *request,
                                 const struct slc_device_wish *wish,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the stream, creates the backend, or those of devices, or opens the GPU, and places
 * the threads of what follows. Where SLC_DEVICE_AUTO chose a GPU that cannot be opened, it
 * plans for the CPU and starts that: tell of the plan after this.
 */
enum slc_status slc_session_start(struct slc_session *session, struct slc_error *err) SLC_NODISCARD;
/* After it: plans and starts once more, with modes updated in this order. */
enum slc_status slc_session_start_in_order(struct slc_session *session,
                                           const unsigned *mode_order,
                                           struct slc_error *err) SLC_NODISCARD;

/* Closes stream and devices, and undoes the placing; there may be another plan. */
void slc_session_stop(struct slc_session *session);
/* The same, and drops devices and layouts; takes an all-zero session. */
void slc_session_close(struct slc_session *session);

/* How many devices a plan divides the work between: 0: it does not. */
unsigned slc_plan_group_size(const struct slc_plan *plan);

/* One MTTKRP of a session that has been started for it. */
struct slc_session_pass {
    unsigned mode;
    struct slc_matrix *factors; /* one per mode, under the store's indices; that of `mode` unused */
    struct slc_matrix *output;
    const volatile int *stop; /* may be NULL */
    void (*progress)(void *context, uint64_t done, uint64_t blocks, uint64_t bytes_read);
    void *progress_context;

    /* What came of it: which strategy was tried, and what devices, or CPU and device, did. */
    struct slc_conflict_choice choice;
    struct slc_member_stats devices[SLC_MAX_DEVICES];
    struct slc_hybrid hybrid[SLC_MAX_ORDER]; /* of the mode alone */
};

/*
 * pass->output = the MTTKRP, by whatever the session computes with. Order: as the plan says.
 * Errors: those of the stream and of what computes; the output is undefined then.
 */
enum slc_status slc_session_mttkrp(struct slc_session *session,
                                   struct slc_session_pass *pass,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
