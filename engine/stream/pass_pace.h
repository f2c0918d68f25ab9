/*
 * How much of a pass a part should be, from how long earlier parts took. Pure: whoever makes the
 * parts measures them.
 *
 * A pass that can be left at its end alone makes every stop wait for that, or lose what it has
 * done; each cut costs the time to drain the pipeline and to fill it again. So parts aim at a time,
 * and what takes little more than that is not cut.
 */
#ifndef SLC_ENGINE_PASS_PACE_H
#define SLC_ENGINE_PASS_PACE_H

#include <stdint.h>

/*
 * Bytes of the first part of passes of which nothing is known: a second or less for most, some
 * seconds for the slowest (rank 256, two threads).
 */
#define SLC_PASS_FIRST_PART_BYTES (UINT64_C(64) << 20)

/* What has been measured of passes that are alike: over one layout, for one mode. Begins as zeros.
 */
struct slc_pass_pace {
    double bytes_per_second; /* 0: nothing */
};

/*
 * A part of so many bytes of blocks, cached or not, has taken so long. The latest counts as much as
 * all before it: what the first pass reads later ones may find in memory. Times that no part can
 * have taken are left out: clocks jump.
 */
void slc_pass_pace_note(struct slc_pass_pace *pace, uint64_t bytes, double seconds);

/*
 * Bytes of the next part of a pass that has `left` of them left, 1 or more: all, where that is
 * expected to take less than one and a half times `target_seconds`; else one of equal parts of
 * about that time.
 */
uint64_t
slc_pass_pace_bytes(const struct slc_pass_pace *pace, double target_seconds, uint64_t left);

#endif
