#include "engine/stream/pass_pace.h"

#include "base/memory/checked.h"

#include <assert.h>
#include <math.h>

/*
 * With fewer targets left than this, dividing the rest would not shorten the wait for the end of a
 * part.
 */
#define TARGETS_UNCUT 1.5

void slc_pass_pace_record(struct slc_pass_pace *pace, uint64_t bytes, double seconds)
{
    const double measured = (double)bytes / seconds;

    /* Written so that NaN is also rejected. */
    if (!(seconds > 0.0) || !isfinite(measured) || !(measured > 0.0)) {
        return;
    }
    /* Average seconds per byte, not bytes per second, because the target is a time. */
    pace->bytes_per_second = pace->bytes_per_second > 0.0
                                 ? 2.0 / (1.0 / pace->bytes_per_second + 1.0 / measured)
                                 : measured;
}

uint64_t slc_pass_pace_bytes(const struct slc_pass_pace *pace, double target_seconds, uint64_t left)
{
    const double target_bytes = pace->bytes_per_second > 0.0
                                    ? pace->bytes_per_second * target_seconds
                                    : (double)SLC_PASS_FIRST_PART_BYTES;
    const double targets = (double)left / target_bytes;

    assert(left > 0 && target_seconds > 0.0);
    if (!(targets >= TARGETS_UNCUT)) {
        return left;
    }
    /* A part has at least one byte. */
    return slc_max_u64((uint64_t)((double)left / round(targets)), 1);
}
