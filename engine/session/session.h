/* Holds the resources of an operation that streams a store: layouts, plan, stream, and CPU backends
 * or devices with their own memory. */
#ifndef SLC_ENGINE_SESSION_H
#define SLC_ENGINE_SESSION_H

#include "engine/executor/executor.h"
#include "engine/product/part_record.h"
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
    /* One backend per group of the plan; the first is `backend`. */
    struct slc_backend *backends[SLC_MAX_DEVICES];
    struct slc_device_set set; /* devices of the plan, used instead of backends */
    struct slc_device *gpu;    /* the first device of the set; NULL if there is none */
    bool gpu_open;             /* true between slc_session_start and slc_session_stop */
    /* open between slc_session_start and slc_session_stop; only for several devices */
    struct slc_gpu_group *group;
    struct slc_executor_parts parts; /* the members above that the executor needs */
    /* the reason why SLC_DEVICE_AUTO chose the CPU; status SLC_OK if it did not */
    struct slc_error no_gpu;
};

/* Opens the requested layouts, and plans the request for the requested devices. Ownership: release
 * with slc_session_close before the store is closed. Errors: SLC_ERR_USAGE; SLC_ERR_BUDGET, with
 * the smallest sufficient budget in the message and in session->plan; those of creating a device
 * and of opening layouts. */
enum slc_status slc_session_plan(struct slc_session *session,
                                 const struct slc_plan_request *request,
                                 const struct slc_device_wish *wish,
                                 struct slc_error *err) SLC_NODISCARD;

/* Opens the stream, creates the backends or opens the GPUs, and binds all threads that are started
 * later. If SLC_DEVICE_AUTO chose a GPU that cannot be opened, plans again for the CPU and starts
 * the new plan. The plan is therefore final only after this call. */
enum slc_status slc_session_start(struct slc_session *session, struct slc_error *err) SLC_NODISCARD;
/* Plans and starts again, with modes updated in the order `mode_order`. Call it after
 * slc_session_start. */
enum slc_status slc_session_start_in_order(struct slc_session *session,
                                           const unsigned *mode_order,
                                           struct slc_error *err) SLC_NODISCARD;

/* Closes the stream and the devices, and unbinds threads. Another plan may follow. */
void slc_session_stop(struct slc_session *session);
/* Calls slc_session_stop, and then releases devices and layouts. Accepts an all-zero session. */
void slc_session_close(struct slc_session *session);

/* Returns the number of groups or GPUs between which a plan divides the work; 0 if it does not
 * divide the work. */
unsigned slc_plan_group_size(const struct slc_plan *plan);

/* Arguments and results of one MTTKRP of a started session. */
struct slc_session_pass {
    unsigned mode;
    /* One factor per mode, in the order of the store; the factor of `mode` is unused. */
    struct slc_matrix *factors;
    struct slc_matrix *output;
    const double *weights;       /* one per column, by which the output is multiplied; NULL: none */
    const struct slc_part *part; /* computes only these rows; NULL: all rows */
    const volatile int *stop;    /* may be NULL */
    void (*progress)(void *context, uint64_t done, uint64_t blocks, uint64_t bytes_read);
    void *progress_context;

    /* Results: the conflict strategy with the measurements of its trial, and statistics of the
     * devices. */
    struct slc_conflict_choice choice;
    struct slc_member_stats devices[SLC_MAX_DEVICES];
    struct slc_hybrid hybrid[SLC_MAX_ORDER]; /* only element `mode` is set */
};

/* Computes the MTTKRP with the session's executor, and stores it in pass->output. With weights,
 * this is equation 2 of [Phipps2019]: each sum is multiplied by the weight of its column. Order:
 * reproducible if the plan is deterministic. Errors: those of the stream and of the executor; the
 * output is then undefined. */
enum slc_status slc_session_mttkrp(struct slc_session *session,
                                   struct slc_session_pass *pass,
                                   struct slc_error *err) SLC_NODISCARD;

/* Opens a part of the rows of an MTTKRP: an interval of rows of `mode` and the blocks that the plan
 * reads for them. Needs: the plan is deterministic and reads layouts in file order. Ownership:
 * release with slc_part_close. Errors: those of slc_part_open; SLC_ERR_UNSUPPORTED on devices, or
 * if the mode is relabelled, because a part would then have rows from everywhere in the result. */
enum slc_status slc_session_open_part(struct slc_session *session,
                                      unsigned mode,
                                      struct slc_part_choice choice,
                                      struct slc_part *part,
                                      struct slc_error *err) SLC_NODISCARD;

/* Returns the rows of the part, of `rows` rows of the mode. */
struct slc_row_span slc_session_part_rows(const struct slc_part *part, uint64_t rows);

/* Sets the record of a part of an MTTKRP with these factors, which have the indices of the input,
 * and with these weights (NULL: none). */
void slc_session_record_part(const struct slc_session *session,
                             unsigned mode,
                             const struct slc_matrix *factors,
                             const double *weights,
                             const struct slc_part *part,
                             struct slc_part_record *record);

#endif
