/*
 * Size of the next part of a pass, from the durations of earlier parts. Pure computation: the
 * caller measures the parts.
 *
 * A pass that can be left only at its end makes every stop wait for the end, or lose its work; each
 * cut costs the time to drain the pipeline and fill it again. So parts aim at a duration, and
 * passes that take little longer are not cut.
 */
#ifndef SLC_ENGINE_PASS_PACE_H
#define SLC_ENGINE_PASS_PACE_H

#include <stdint.h>

/* Bytes of the first part of a pass without measurements: a second or less for most passes, some
 * seconds for the slowest (rank 256, two threads). */
#define SLC_PASS_FIRST_PART_BYTES (UINT64_C(64) << 20)

/* Measurements of similar passes: over one layout, for one mode. Initially zero. */
struct slc_pass_pace {
    double bytes_per_second; /* 0: unknown */
};

/*
 * Records that a part with this many bytes of blocks, cached or not, took this long. The latest
 * part weighs as much as all earlier ones together, because later passes may find in memory what
 * the first one read. Ignores impossible durations, because clocks jump.
 */
void slc_pass_pace_record(struct slc_pass_pace *pace, uint64_t bytes, double seconds);

/*
 * Bytes of the next part of a pass with `left` bytes left, 1 or more: all of them, if they are
 * expected to take less than one and a half times `target_seconds`; otherwise one of equal parts of
 * about that duration.
 */
uint64_t
slc_pass_pace_bytes(const struct slc_pass_pace *pace, double target_seconds, uint64_t left);

#endif
