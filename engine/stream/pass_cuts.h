/* Makes passes in consecutive parts (struct slc_pass_part). Between two parts the caller may save
 * the state and stop the pass. A stopped pass can be resumed later. */
#ifndef SLC_ENGINE_PASS_CUTS_H
#define SLC_ENGINE_PASS_CUTS_H

#include "engine/stream/stream.h"

/* Callbacks that divide a pass into parts. A position is the number of blocks or ranges before it,
 * as in slc_pass_part. The thread that makes the pass calls the callbacks while no worker runs. */
struct slc_pass_cuts {
    /* Returns the end of the part that begins at position `first`. The end must be greater than
     * `first` and at most `count`. */
    uint64_t (*end)(void *context, uint64_t first, uint64_t count);
    /* Called between two parts, when exactly the blocks or ranges before `position` have been
     * computed. The callback may read the state of the pass's jobs (mttkrp_state of
     * base/backend.h). An error ends the pass. */
    enum slc_status (*between)(void *context, uint64_t position, struct slc_error *err);
    /* Position at which an earlier pass stopped, or 0. If it is not 0, `resume` is called when the
     * jobs have begun, and must restore their state (mttkrp_resume). */
    uint64_t first;
    enum slc_status (*resume)(void *context, struct slc_error *err);
    void *context;
};

/* Makes a pass over `count` blocks or ranges in parts, or undivided if `cuts` is NULL. Errors:
 * those of slc_stream_pass and of the callbacks in `cuts`; SLC_ERR_USAGE if cuts->first is not
 * below `count`. After an error the consumer's `wake` has been called once. */
enum slc_status slc_pass_in_parts(struct slc_stream *stream,
                                  const struct slc_pass *pass,
                                  uint64_t count,
                                  const struct slc_pass_cuts *cuts,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
