#include "engine/stream/pass_cuts.h"

#include <assert.h>
#include <inttypes.h>

/* Prepares the jobs to resume an earlier pass at cuts->first, if that is not 0. */
static enum slc_status
resume_pass(const struct slc_pass_cuts *cuts, uint64_t count, struct slc_error *err)
{
    if (cuts->first == 0) {
        return SLC_OK;
    }
    if (cuts->first >= count) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a pass over %" PRIu64
                        " blocks or ranges cannot resume at position %" PRIu64,
                        count, cuts->first);
    }
    return cuts->resume(cuts->context, err);
}

enum slc_status slc_pass_in_parts(struct slc_stream *stream,
                                  const struct slc_pass *pass,
                                  uint64_t count,
                                  const struct slc_pass_cuts *cuts,
                                  struct slc_error *err)
{
    const struct slc_tile_consumer *consumer = slc_pass_consumer(pass);
    struct slc_pass part = *pass;
    struct slc_pass_part *at = pass->kind == SLC_PASS_RANGES ? &part.ranges.part : &part.tiles.part;

    assert(pass->kind == SLC_PASS_TILES || pass->kind == SLC_PASS_RANGES);
    if (cuts == NULL || count == 0) {
        return slc_stream_pass(stream, pass, err);
    }
    enum slc_status status = resume_pass(cuts, count, err);
    uint64_t first = cuts->first;
    while (status == SLC_OK) {
        *at = (struct slc_pass_part){first, cuts->end(cuts->context, first, count)};
        assert(at->end > first && at->end <= count);
        status = slc_stream_pass(stream, &part, err);
        if (status != SLC_OK || at->end == count) {
            return status;
        }
        first = at->end;
        status = cuts->between(cuts->context, first, err);
    }
    if (consumer->wake != NULL) {
        consumer->wake(consumer->context);
    }
    return status;
}
