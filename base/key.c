/* Keys in ALTO order. The portable functions that gather and spread bits loop over the set bits of
 * the mask; hot paths use the faster functions of storage/codec/decode_ops.h. */
#include "base/key.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Assigns bit *position of the key to mode n and moves to the next more significant bit. */
static void add_bit(struct slc_key_layout *layout, unsigned n, unsigned *position)
{
    if (*position < 64) {
        layout->mask_lo[n] |= UINT64_C(1) << *position;
    } else {
        layout->mask_hi[n] |= UINT64_C(1) << (*position - 64);
    }
    *position += 1;
}

/* Assigns all bits of the key to modes, starting with the least significant bit. */
static void place_bits(struct slc_key_layout *layout, unsigned levels)
{
    const struct slc_fiber_run run = layout->run;
    unsigned position = 0;

    for (unsigned bit = 0; bit < run.bits; bit++) {
        add_bit(layout, run.mode, &position);
    }
    for (unsigned level = 0; level < levels; level++) {
        /* The last mode has the least significant bit of a level. */
        for (unsigned n = layout->order; n-- > 0;) {
            if (level < layout->mode_bits[n] && (n != run.mode || level >= run.bits)) {
                add_bit(layout, n, &position);
            }
        }
    }
}

enum slc_status slc_key_layout_init_run(struct slc_key_layout *layout,
                                        unsigned order,
                                        const uint64_t *dims,
                                        struct slc_fiber_run run,
                                        struct slc_error *err)
{
    struct slc_key_layout made;
    unsigned levels = 0;

    if (order == 0 || order > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "a tensor has 1 to %d modes, not %u", SLC_MAX_ORDER,
                        order);
    }
    if (run.mode >= order) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "cannot keep fibers of mode %u together: modes are 1 to %u", run.mode + 1,
                        order);
    }
    memset(&made, 0, sizeof made);
    made.order = order;
    for (unsigned n = 0; n < order; n++) {
        if (dims[n] == 0 || dims[n] > SLC_MAX_MODE_LENGTH) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "mode %u has size %" PRIu64 ": mode sizes are 1 to 2^62", n + 1,
                            dims[n]);
        }
        made.mode_bits[n] = slc_bits_for_length(dims[n]);
        made.bits += made.mode_bits[n];
        levels = made.mode_bits[n] > levels ? made.mode_bits[n] : levels;
    }
    if (made.bits > SLC_MAX_KEY_BITS) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "the coordinates need %u bits in total; the limit is %d: split or bin the "
                        "largest mode",
                        made.bits, SLC_MAX_KEY_BITS);
    }
    made.run = run;
    if (run.bits > made.mode_bits[run.mode]) {
        made.run.bits = made.mode_bits[run.mode];
    }
    if (made.run.bits == 0) {
        made.run.mode = 0;
    }
    place_bits(&made, levels);
    *layout = made;
    return SLC_OK;
}

enum slc_status slc_key_layout_init(struct slc_key_layout *layout,
                                    unsigned order,
                                    const uint64_t *dims,
                                    struct slc_error *err)
{
    const struct slc_fiber_run none = {0, 0};

    return slc_key_layout_init_run(layout, order, dims, none, err);
}

bool slc_key_layout_same(const struct slc_key_layout *a, const struct slc_key_layout *b)
{
    return a->order == b->order && memcmp(a->mask_lo, b->mask_lo, sizeof a->mask_lo) == 0 &&
           memcmp(a->mask_hi, b->mask_hi, sizeof a->mask_hi) == 0;
}

bool slc_key_layout_fibers(const struct slc_key_layout *layout, unsigned mode)
{
    assert(mode < layout->order);
    /* A mode has at most 62 bits, so the bits of a mode at the bottom of the key are all in the low
     * word. */
    return layout->mask_hi[mode] == 0 &&
           layout->mask_lo[mode] == (UINT64_C(1) << layout->mode_bits[mode]) - 1;
}

uint64_t slc_bits_gather(uint64_t source, uint64_t mask)
{
    uint64_t result = 0;

    for (unsigned bit = 0; mask != 0; bit++, mask &= mask - 1) {
        result |= ((source >> __builtin_ctzll(mask)) & 1U) << bit;
    }
    return result;
}

uint64_t slc_bits_spread(uint64_t source, uint64_t mask)
{
    uint64_t result = 0;

    for (; mask != 0; source >>= 1, mask &= mask - 1) {
        result |= (source & 1U) << __builtin_ctzll(mask);
    }
    return result;
}

slc_u128 slc_key_encode(const struct slc_key_layout *layout, const uint64_t *coords)
{
    uint64_t lo = 0;
    uint64_t hi = 0;

    for (unsigned n = 0; n < layout->order; n++) {
        unsigned low_bits = (unsigned)__builtin_popcountll(layout->mask_lo[n]);

        assert(layout->mode_bits[n] == 64 || coords[n] >> layout->mode_bits[n] == 0);
        lo |= slc_bits_spread(coords[n], layout->mask_lo[n]);
        if (layout->mask_hi[n] != 0) {
            /* The shift is valid: low_bits is below 64, because mode_bits is at most 62. */
            hi |= slc_bits_spread(coords[n] >> low_bits, layout->mask_hi[n]);
        }
    }
    return (slc_u128)hi << 64 | lo;
}

void slc_key_decode(const struct slc_key_layout *layout, slc_u128 key, uint64_t *coords)
{
    uint64_t lo = (uint64_t)key;
    uint64_t hi = (uint64_t)(key >> 64);

    for (unsigned n = 0; n < layout->order; n++) {
        unsigned low_bits = (unsigned)__builtin_popcountll(layout->mask_lo[n]);

        coords[n] = slc_bits_gather(lo, layout->mask_lo[n]);
        if (layout->mask_hi[n] != 0) {
            coords[n] |= slc_bits_gather(hi, layout->mask_hi[n]) << low_bits;
        }
    }
}

int slc_coords_compare(unsigned order,
                       struct slc_fiber_run run,
                       const uint64_t *a,
                       const uint64_t *b)
{
    const uint64_t below = (UINT64_C(1) << run.bits) - 1;
    uint64_t top = 0; /* difference in `mode`, the mode with the highest different bit so far */
    unsigned mode = run.mode;

    for (unsigned n = 0; n < order; n++) {
        const uint64_t difference = n == run.mode ? (a[n] ^ b[n]) & ~below : a[n] ^ b[n];

        /* True if the highest bit of `difference` is above the highest bit of `top`. If both bits
         * are at the same level, the earlier mode remains, because it is more significant within a
         * level. */
        if (top < difference && top < (top ^ difference)) {
            top = difference;
            mode = n;
        }
    }
    /* If no bit above the run differs, the bits of the run decide: `mode` is still run.mode. */
    if (a[mode] == b[mode]) {
        return 0;
    }
    return a[mode] < b[mode] ? -1 : 1;
}
