#include "engine/stream/pass_pace.h"

#include "base/memory/checked.h"

#include <assert.h>
#include <math.h>

/* If the rest of a pass is expected to take less than this many target durations, it is not
 * divided, because its parts would be little shorter than the rest. */
#define TARGETS_UNCUT 1.5

void slc_pass_pace_record(struct slc_pass_pace *pace, uint64_t bytes, double seconds)
{
    const double measured = (double)bytes / seconds;

    /* This form of the comparisons also rejects NaN. */
    if (!(seconds > 0.0) || !isfinite(measured) || !(measured > 0.0)) {
        return;
    }
    /* Averages seconds per byte instead of bytes per second, because the target is a time. */
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
    /* The result is at least one byte. */
    return slc_max_u64((uint64_t)((double)left / round(targets)), 1);
}
