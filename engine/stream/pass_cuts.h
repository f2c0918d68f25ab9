/*
 * Passes in consecutive parts (struct slc_pass_part). Between two parts the caller may save the
 * state and stop, and later resume a stopped pass.
 */
#ifndef SLC_ENGINE_PASS_CUTS_H
#define SLC_ENGINE_PASS_CUTS_H

#include "engine/stream/stream.h"

/* Functions that divide a pass into parts. Positions are those of slc_pass_part. All functions are
 * called by the thread that makes the pass, while no worker runs. */
struct slc_pass_cuts {
    /* Returns the end of the part that begins at `first` < `count`: greater than `first`, at most
     * `count`. */
    uint64_t (*end)(void *context, uint64_t first, uint64_t count);
    /*
     * Called between two parts: everything before `position` has been computed, and nothing after
     * it. The function may read the state of the pass's jobs (mttkrp_state of base/backend.h). An
     * error ends the pass.
     */
    enum slc_status (*between)(void *context, uint64_t position, struct slc_error *err);
    /* Position at which an earlier pass stopped, or 0. If the position is not 0, `resume` is called
     * when the jobs have begun and must restore their state (mttkrp_resume). */
    uint64_t first;
    enum slc_status (*resume)(void *context, struct slc_error *err);
    void *context;
};

/*
 * Makes a pass over `count` blocks, or ranges, in parts; in one part if `cuts` is NULL. Errors:
 * those of slc_stream_pass and of the functions of `cuts`, after which the consumer's `wake` has
 * been called once; SLC_ERR_USAGE if `first` is not a position of the pass.
 */
enum slc_status slc_pass_in_parts(struct slc_stream *stream,
                                  const struct slc_pass *pass,
                                  uint64_t count,
                                  const struct slc_pass_cuts *cuts,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
