/* Makes plans and sessions of computations from sluice_compute_options. */
#ifndef SLC_API_SESSION_H
#define SLC_API_SESSION_H

#include "api/call.h"
#include "engine/plan/plan.h"
#include "engine/session/device_choice.h"
#include "engine/session/session.h"
#include "sluice/experimental.h"

/* Checks compute options. Errors: SLC_ERR_USAGE for values outside their enumeration. */
enum slc_status api_check_compute(const struct sluice_compute_options *compute,
                                  struct slc_error *err) SLC_NODISCARD;

struct slc_plan_request api_plan_request(const struct sluice_compute_options *compute,
                                         const struct sluice_run_options *run,
                                         enum slc_operation operation,
                                         unsigned mode,
                                         uint32_t rank);

/* The devices that sluice_compute_options select. `wish` points into `known`. */
struct api_devices {
    struct sluice_device_options known;
    struct slc_device_wish wish;
};
enum slc_status api_read_devices(const struct sluice_compute_options *compute,
                                 struct api_devices *devices,
                                 struct slc_error *err) SLC_NODISCARD;

/* Logs why SLUICE_DEVICE_AUTO selected the CPU. Logs nothing if a GPU was selected. */
void api_log_refused(const struct slc_error *refused);

/* Plans a request and starts a session on the devices that `compute` selects. Teams of the calling
 * thread have the planned placement until slc_session_close. Ownership: the caller calls
 * slc_session_close, also after an error. */
enum slc_status api_session_open(struct slc_session *session,
                                 const struct sluice_store *store,
                                 const struct slc_plan_request *request,
                                 const struct sluice_compute_options *compute,
                                 struct slc_error *err) SLC_NODISCARD;

/* Plans a request. `plan` and compute->plan, of which each may be NULL, are also filled in after
 * SLC_ERR_BUDGET. */
enum slc_status api_plan(const struct sluice_store *store,
                         const struct slc_plan_request *request,
                         const struct sluice_compute_options *compute,
                         struct sluice_plan *plan,
                         struct slc_error *err) SLC_NODISCARD;

/* Copies a matrix to `count` doubles of the caller. Errors: SLC_ERR_USAGE if `count` is too
 * small. */
enum slc_status api_copy_matrix(const struct slc_matrix *matrix,
                                double *to,
                                uint64_t count,
                                struct slc_error *err) SLC_NODISCARD;

#endif
