/*
 * The state of MTTKRP jobs, copied as a checkpoint would hold it, and given to other jobs.
 */
#ifndef SLC_KEPT_STATE_H
#define SLC_KEPT_STATE_H

#include "base/backend.h"

struct slc_kept_state {
    unsigned count;
    uint64_t bytes[SLC_MTTKRP_REGIONS];
    unsigned char *data[SLC_MTTKRP_REGIONS];
};

/* Copies what the backend's job has summed up. Owns: slc_kept_state_free, which takes an all-zero
 * one. Ends the test when it cannot. */
void slc_kept_state_take(struct slc_kept_state *kept, struct slc_backend *backend);
void slc_kept_state_free(struct slc_kept_state *kept);

/* Puts it where the job of `backend` has it, which has to be one of the same shape. Errors: those
 * of mttkrp_resume. */
enum slc_status slc_kept_state_give(const struct slc_kept_state *kept,
                                    struct slc_backend *backend,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
