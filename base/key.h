/* Linearized coordinates (keys) in ALTO order, optionally with the fibers of one mode kept
 * together.
 *
 * A key interleaves the bits of all N coordinates. Level k of a key consists of bit k of every mode
 * that has a bit k. Level 0 is least significant; within a level, mode 0 is most significant. A
 * mode of size L has ceil(log2 L) bits (0 for L = 1). Bits that are always zero are not stored.
 * They would not affect comparisons, so the order of two nonzeros does not depend on the mode
 * sizes. If one mode has more bits than every other mode, its extra bits are most significant.
 * Source: [Helal2021] section 3, but with a fixed order of modes instead of an adaptive order.
 *
 * With a fiber run of b bits in mode n, the b lowest bits of mode n (or all bits, if mode n has
 * fewer than b) move below all other bits of the key. Nonzeros that differ only in these bits are
 * then consecutive and form a part of a mode-n fiber. The coordinates in all other modes, and the
 * product of the factor rows of these modes, are then needed only once per part. */
#ifndef SLC_BASE_KEY_H
#define SLC_BASE_KEY_H

#include "base/error/error.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef unsigned __int128 slc_u128;

/* The bits of one mode that are the lowest bits of keys. All zero means plain ALTO order. */
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
    /* run.bits is at most mode_bits[run.mode]; all zero means no run */
    struct slc_fiber_run run;
};

/* Computes the layout of keys for `dims` with the fiber run `run`. Errors: SLC_ERR_USAGE if the
 * order, a mode size or the mode of the run is out of range; SLC_ERR_UNSUPPORTED if more than
 * SLC_MAX_KEY_BITS bits are needed; the message states the number of bits. After an error `layout`
 * is unchanged. */
enum slc_status slc_key_layout_init_run(struct slc_key_layout *layout,
                                        unsigned order,
                                        const uint64_t *dims,
                                        struct slc_fiber_run run,
                                        struct slc_error *err) SLC_NODISCARD;
/* Does the same as slc_key_layout_init_run, for plain ALTO order. */
enum slc_status slc_key_layout_init(struct slc_key_layout *layout,
                                    unsigned order,
                                    const uint64_t *dims,
                                    struct slc_error *err) SLC_NODISCARD;

/* Returns whether two layouts map all coordinates to the same keys. */
bool slc_key_layout_same(const struct slc_key_layout *a, const struct slc_key_layout *b);

/* Returns whether keys keep whole fibers of `mode` together: all bits of `mode` are below the bits
 * of other modes. The keys of a fiber then differ only in the low mode_bits[mode] bits, and no key
 * of another fiber is between them. */
bool slc_key_layout_fibers(const struct slc_key_layout *layout, unsigned mode);

/* Joins the low and high 64-bit words of a key, as files and records store them. */
static inline slc_u128 slc_key_join(uint64_t lo, uint64_t hi)
{
    return (slc_u128)hi << 64 | lo;
}

/* Returns whether two keys differ only in the bits of the fiber run. */
static inline bool slc_key_same_fiber(const struct slc_key_layout *layout, slc_u128 a, slc_u128 b)
{
    return (a ^ b) >> layout->run.bits == 0;
}

/* Returns the number of bits that coordinates 0 to length - 1 need; 0 for lengths 0 and 1. */
static inline unsigned slc_bits_for_length(uint64_t length)
{
    return length <= 1 ? 0 : 64U - (unsigned)__builtin_clzll(length - 1);
}

/* Gathers the bits of `source` selected by `mask` into the low bits (x86 pext). */
uint64_t slc_bits_gather(uint64_t source, uint64_t mask);
/* Spreads the low bits of `source` to the positions selected by `mask` (x86 pdep). */
uint64_t slc_bits_spread(uint64_t source, uint64_t mask);

/* Returns the key of `coords`. Needs: each coordinate is below its mode size (asserted). */
slc_u128 slc_key_encode(const struct slc_key_layout *layout, const uint64_t *coords);
/* Stores the coordinates of `key`. */
void slc_key_decode(const struct slc_key_layout *layout, slc_u128 key, uint64_t *coords);

/* Compares two coordinate tuples in key order without computing keys, so that the mode sizes need
 * not be known. The most significant level in which coordinates differ decides; within this level,
 * the differing mode with the lowest number decides ([Chan2002]). Returns <0, 0 or >0. */
int slc_coords_compare(unsigned order,
                       struct slc_fiber_run run,
                       const uint64_t *a,
                       const uint64_t *b);

#endif
