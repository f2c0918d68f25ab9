/* Computes the size of the next part of a pass from the durations of earlier parts, which the
 * caller measures.
 *
 * If a pass can be stopped only at its end, a stop must wait for the end or lose the work of the
 * pass. But each division into parts costs time: all workers must finish a part before the next
 * part begins. Parts therefore have a target duration, and a pass that takes only a little longer
 * than the target is not divided. */
#ifndef SLC_ENGINE_PASS_PACE_H
#define SLC_ENGINE_PASS_PACE_H

#include <stdint.h>

/* Bytes of the first part if there are no measurements. Such a part takes a second or less in most
 * passes, and a few seconds in the slowest (rank 256, two threads). */
#define SLC_PASS_FIRST_PART_BYTES (UINT64_C(64) << 20)

/* Measured rate of similar passes, that is, over the same layout and for the same mode. Initially
 * zero. */
struct slc_pass_pace {
    double bytes_per_second; /* 0 if unknown */
};

/* Records the duration of a part whose blocks, cached or not, have `bytes` bytes. The latest part
 * has the same weight as all earlier parts together, because blocks that the first pass had to read
 * may be in memory in later passes. Ignores impossible durations, because clocks may jump. */
void slc_pass_pace_record(struct slc_pass_pace *pace, uint64_t bytes, double seconds);

/* Returns the bytes of the next part of a pass of which `left` bytes (at least 1) remain. This is
 * `left` if the rest is expected to take less than 1.5 times `target_seconds`; otherwise `left` is
 * divided into equal parts of about `target_seconds`. */
uint64_t
slc_pass_pace_bytes(const struct slc_pass_pace *pace, double target_seconds, uint64_t left);

#endif
