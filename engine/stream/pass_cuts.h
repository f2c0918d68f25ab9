/*
 * Passes in parts (struct slc_pass_part), one behind the other, between which somebody may keep
 * what there is, and leave, or go on later where a pass was left.
 */
#ifndef SLC_ENGINE_PASS_CUTS_H
#define SLC_ENGINE_PASS_CUTS_H

#include "engine/stream/stream.h"

/*
 * How a pass is cut. Positions are those of slc_pass_part. All are called by the thread that makes
 * the pass, while no worker is in it.
 */
struct slc_pass_cuts {
    /* Where the part that begins at `first` < `count` ends: behind it, at `count` at most. */
    uint64_t (*end)(void *context, uint64_t first, uint64_t count);
    /*
     * Between two parts; all before `position` has been computed, and nothing else. The jobs of the
     * pass may be asked for their state (mttkrp_state of base/backend.h). An error ends the pass.
     */
    enum slc_status (*between)(void *context, uint64_t position, struct slc_error *err);
    /*
     * Where an earlier pass was left, if not 0: `resume` is called when the jobs have begun, and
     * gives them the state that they had there (mttkrp_resume).
     */
    uint64_t first;
    enum slc_status (*resume)(void *context, struct slc_error *err);
    void *context;
};

/*
 * Makes a pass over `count` blocks, or ranges, in parts; NULL: in one. Errors: those of
 * slc_stream_pass and of the functions of `cuts`, after which the consumer's `wake` has been
 * called once; SLC_ERR_USAGE where an earlier pass cannot have been left there.
 */
enum slc_status slc_pass_in_parts(struct slc_stream *stream,
                                  const struct slc_pass *pass,
                                  uint64_t count,
                                  const struct slc_pass_cuts *cuts,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
