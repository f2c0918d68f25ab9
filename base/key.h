/*
 * Linearized coordinates (keys) in ALTO order, or with the fibers of one mode kept together.
 *
 * A key interleaves the bits of all N coordinates. Level k holds bit k of every mode that has one;
 * level 0 is least significant; within a level mode 0 is most significant. A mode of length L has
 * ceil(log2 L) bits (0 for L = 1), so bits that are always zero take no room, and because they
 * compare as zero the order of two keys does not depend on the lengths. The surplus bits of the
 * longest mode stand on top. Source: Helal et al., ALTO, ICS 2021, section 3, with a fixed
 * instead of an adaptive order of modes.
 *
 * With a fiber run of b bits in mode n, the b lowest bits of mode n (as many as it has, if fewer)
 * leave their levels and stand below all others. Nonzeros that differ in these bits alone, pieces
 * of a mode-n fiber, then follow one another, so that the coordinates of all other modes, and the
 * product of their factor rows, are needed once per piece.
 */
#ifndef SLC_BASE_KEY_H
#define SLC_BASE_KEY_H

#include "base/error/error.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 slc_u128;

/* Which bits stand lowest; all zero is plain ALTO order. */
struct slc_fiber_run {
    unsigned mode;
    unsigned bits;
};

static inline bool slc_fiber_run_same(struct slc_fiber_run a, struct slc_fiber_run b)
{
    return a.mode == b.mode && a.bits == b.bits;
}

struct slc_key_layout {
    unsigned order;                    /* N, 1 to SLC_MAX_ORDER */
    unsigned bits;                     /* sum of mode_bits, 0 to SLC_MAX_KEY_BITS */
    unsigned mode_bits[SLC_MAX_ORDER]; /* ceil(log2 dims[n]) */
    uint64_t mask_lo[SLC_MAX_ORDER];   /* bits 0..63 of the key that belong to mode n */
    uint64_t mask_hi[SLC_MAX_ORDER];   /* bits 64..127 */
    struct slc_fiber_run run;          /* of bits the mode has; all zero where that is none */
};

/*
 * Computes the layout of keys for `dims` with the fiber run `run`.
 * Errors: SLC_ERR_USAGE when order is 0 or above SLC_MAX_ORDER, a length is 0 or above
 * SLC_MAX_MODE_LENGTH, or the run is of a mode that is not there;
 * SLC_ERR_UNSUPPORTED, naming the bits needed, above SLC_MAX_KEY_BITS.
 * `layout` is unchanged after an error.
 */
enum slc_status slc_key_layout_init_run(struct slc_key_layout *layout,
                                        unsigned order,
                                        const uint64_t *dims,
                                        struct slc_fiber_run run,
                                        struct slc_error *err) SLC_NODISCARD;
/* The same in plain ALTO order. */
enum slc_status slc_key_layout_init(struct slc_key_layout *layout,
                                    unsigned order,
                                    const uint64_t *dims,
                                    struct slc_error *err) SLC_NODISCARD;

/* Whether two layouts give the same keys to the same coordinates. */
bool slc_key_layout_same(const struct slc_key_layout *a, const struct slc_key_layout *b);

/*
 * Whether nonzeros in ascending key order lie fiber by fiber of `mode`: all its bits stand below
 * those of the other modes, so that the keys of a fiber differ in the low mode_bits[mode] bits
 * alone and no other fiber's key lies between them.
 */
bool slc_key_layout_fibers(const struct slc_key_layout *layout, unsigned mode);

/* The key of the two halves in which files and records hold it. */
static inline slc_u128 slc_key_join(uint64_t lo, uint64_t hi)
{
    return (slc_u128)hi << 64 | lo;
}

/* Whether two keys are of one fiber of the run's mode: they differ in the bits of the run alone. */
static inline bool slc_key_same_fiber(const struct slc_key_layout *layout, slc_u128 a, slc_u128 b)
{
    return (a ^ b) >> layout->run.bits == 0;
}

/* Number of bits needed for coordinates 0 .. length-1; 0 for lengths 0 and 1. */
static inline unsigned slc_bits_for_length(uint64_t length)
{
    return length <= 1 ? 0 : 64U - (unsigned)__builtin_clzll(length - 1);
}

/* Gathers the bits of `source` selected by `mask` into the low bits (x86 pext). */
uint64_t slc_bits_gather(uint64_t source, uint64_t mask);
/* Spreads the low bits of `source` to the positions selected by `mask` (x86 pdep). */
uint64_t slc_bits_spread(uint64_t source, uint64_t mask);

/* The key of `coords` (one per mode, each below its length: the caller's promise, asserted). */
slc_u128 slc_key_encode(const struct slc_key_layout *layout, const uint64_t *coords);
/* The coordinates of `key`. */
void slc_key_decode(const struct slc_key_layout *layout, slc_u128 key, uint64_t *coords);

/*
 * Compares two coordinate tuples in the order of their keys without forming keys, so it works
 * before the lengths are known: the most significant differing level decides, then the lower mode
 * number (Chan, "Closest-point problems simplified on the RAM", SODA 2002). Returns <0, 0 or >0.
 */
int slc_coords_compare(unsigned order,
                       struct slc_fiber_run run,
                       const uint64_t *a,
                       const uint64_t *b);

#endif
