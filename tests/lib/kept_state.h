/* A copy of the state of MTTKRP jobs, as in a checkpoint, and its transfer to other jobs. */
#ifndef SLC_KEPT_STATE_H
#define SLC_KEPT_STATE_H

#include "base/backend.h"

struct slc_kept_state {
    unsigned count;
    uint64_t bytes[SLC_MTTKRP_REGIONS];
    unsigned char *data[SLC_MTTKRP_REGIONS];
};

/* Copies the sums of the backend's job. Ownership: release with slc_kept_state_free, which accepts
 * a zero-initialized state. Fails the test on errors. */
void slc_kept_state_take(struct slc_kept_state *kept, struct slc_backend *backend);
void slc_kept_state_free(struct slc_kept_state *kept);

/* Restores the state into the job of `backend`, which must have the same shape. Errors: those of
 * mttkrp_resume. */
enum slc_status slc_kept_state_give(const struct slc_kept_state *kept,
                                    struct slc_backend *backend,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
