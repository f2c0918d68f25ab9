/* See pass_cuts.h. */
#include "engine/stream/pass_cuts.h"

#include <assert.h>
#include <inttypes.h>

/* Takes up an earlier pass where it was left. */
static enum slc_status
resume(const struct slc_pass_cuts *cuts, uint64_t count, struct slc_error *err)
{
    if (cuts->first == 0) {
        return SLC_OK;
    }
    if (cuts->first >= count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a pass over %" PRIu64 " blocks or ranges cannot go on at %" PRIu64, count,
                        cuts->first);
    }
    return cuts->resume(cuts->context, err);
}

enum slc_status slc_pass_in_parts(struct slc_stream *stream,
                                  const struct slc_pass *pass,
                                  uint64_t count,
                                  const struct slc_pass_cuts *cuts,
                                  struct slc_error *err)
{
    void (*wake)(void *context) = pass->abort;
    struct slc_pass part = *pass;
    enum slc_status status;
    uint64_t first;

    if (cuts == NULL || count == 0) {
        return slc_stream_pass(stream, pass, err);
    }
    status = resume(cuts, count, err);
    first = cuts->first;
    while (status == SLC_OK) {
        part.part = (struct slc_pass_part){first, cuts->end(cuts->context, first, count)};
        assert(part.part.end > first && part.part.end <= count);
        status = slc_stream_pass(stream, &part, err);
        if (status != SLC_OK || part.part.end == count) {
            return status;
        }
        first = part.part.end;
        status = cuts->between(cuts->context, first, err);
    }
    if (wake != NULL) {
        wake(pass->context);
    }
    return status;
}
