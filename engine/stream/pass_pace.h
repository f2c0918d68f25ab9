/*
 * Size of the next part of a pass, from the durations of earlier parts. Pure computation: the
 * caller measures the parts.
 *
 * If a pass can be stopped only at its end, every stop must wait for the end or lose the work of
 * the pass. On the other hand, each cut costs the time to drain the pipeline and to fill it again.
 * Parts therefore have a target duration, and passes that are only a little longer than the target
 * are not divided.
 */
#ifndef SLC_ENGINE_PASS_PACE_H
#define SLC_ENGINE_PASS_PACE_H

#include <stdint.h>

/* Bytes of the first part of a pass without measurements: a second or less for most passes, a few
 * seconds for the slowest ones (rank 256, two threads). */
#define SLC_PASS_FIRST_PART_BYTES (UINT64_C(64) << 20)

/* Measurements of similar passes, which are over one layout and for one mode. Initially zero. */
struct slc_pass_pace {
    double bytes_per_second; /* 0 if unknown */
};

/*
 * Records the duration of a part with this many bytes of blocks, cached or not. The latest part has
 * the same weight as all earlier parts together, because later passes may find in memory what the
 * first pass had to read. Ignores impossible durations, because clocks may jump.
 */
void slc_pass_pace_record(struct slc_pass_pace *pace, uint64_t bytes, double seconds);

/*
 * Returns the size in bytes of the next part of a pass with `left` >= 1 bytes left: all of them if
 * their expected duration is below 1.5 times `target_seconds`; otherwise the size of equal parts
 * whose duration is about `target_seconds`.
 */
uint64_t
slc_pass_pace_bytes(const struct slc_pass_pace *pace, double target_seconds, uint64_t left);

#endif
