/* Packed bits and patched groups (docs/FORMAT.md, section "Packing"): stores integers of up to 128
 * bits in groups of 128. Each group has the width that minimizes its size; the few values that do
 * not fit ("exceptions") store their high bits separately (PFOR [Zukowski2006]). The encoder counts
 * bit lengths per group in one pass, so the chosen width is optimal. Decoding processes a group at
 * a time. slc_patched_open checks, once per section, all fields that determine which bytes are
 * read; the bytes of exceptions are checked when exceptions are applied. Wide values use two
 * arrays, for bits 0..63 and bits 64..127. */
#ifndef SLC_STORAGE_BITPACK_H
#define SLC_STORAGE_BITPACK_H

#include "base/key.h"
#include "base/memory/bytes.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum { SLC_TILE_GROUPS = SLC_TILE_NNZ / SLC_GROUP_NNZ };

/* A contradiction in an encoded section; the decoder turns it into an error record. */
struct slc_damage {
    const char *what;     /* what contradicts, such as "the width of a group" */
    const char *relation; /* "", "at most ", "above ": how `found` must relate to `expected` */
    const uint8_t *where;
    uint64_t found;
    uint64_t expected;
};

/* Records a contradiction and returns false. */
bool slc_damage_set(struct slc_damage *damage,
                    const uint8_t *where,
                    const char *what,
                    uint64_t found,
                    const char *relation,
                    uint64_t expected);

static inline uint32_t slc_groups_of(uint32_t count)
{
    return (count + SLC_GROUP_NNZ - 1) / SLC_GROUP_NNZ;
}

/* Returns the number of values in group `group` of a sequence of `count` values. */
static inline uint32_t slc_group_size(uint32_t count, uint32_t group)
{
    uint32_t rest = count - group * SLC_GROUP_NNZ;

    return rest < SLC_GROUP_NNZ ? rest : SLC_GROUP_NNZ;
}

static inline unsigned slc_bit_length_u64(uint64_t value)
{
    return value == 0 ? 0 : 64U - (unsigned)__builtin_clzll(value);
}

static inline unsigned slc_bit_length_u128(uint64_t lo, uint64_t hi)
{
    return hi != 0 ? 64 + slc_bit_length_u64(hi) : slc_bit_length_u64(lo);
}

/* Returns a mask of the lowest `width` (0..64) bits. */
static inline uint64_t slc_low_mask(unsigned width)
{
    return width >= 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

/* Returns the bytes of `count` packed values of `width` bits. */
static inline uint64_t slc_packed_bytes(uint64_t count, unsigned width)
{
    return (count * width + 7) / 8;
}

/* Extracts `width` (0..64) bits, starting at bit `bit`, of the string at `bytes`. May load 9 bytes
 * starting with the byte that holds the first bit; blocks and scratch end in slack for this. */
static inline uint64_t slc_bits_get(const uint8_t *bytes, uint64_t bit, unsigned width)
{
    const uint8_t *at = bytes + (bit >> 3);
    unsigned skip = (unsigned)(bit & 7);
    uint64_t value = slc_load_u64(at) >> skip;

    if (skip + width > 64) {
        value |= (uint64_t)at[8] << (64 - skip);
    }
    return value & slc_low_mask(width);
}

/* True if all bits from `bit` to the end of the `bytes_end`-byte string are zero. */
static inline bool slc_bits_zero_from(const uint8_t *bytes, uint64_t bit, uint64_t bytes_end)
{
    uint64_t at = bit / 8;

    if (bit % 8 != 0) {
        if (bytes[at] >> (bit % 8) != 0) {
            return false;
        }
        at++;
    }
    for (; at < bytes_end; at++) {
        if (bytes[at] != 0) {
            return false;
        }
    }
    return true;
}

/* Appends bits to a byte string; slc_bits_finish writes the rest, and zeros up to a whole byte. */
struct slc_bit_writer {
    uint8_t *at;
    uint64_t pending; /* the low `fill` bits are not yet written */
    unsigned fill;    /* 0..63 */
};

/* Appends `value`, which is below 2^width, width 0..64. */
static inline void slc_bits_put(struct slc_bit_writer *writer, uint64_t value, unsigned width)
{
    unsigned fill = writer->fill;

    writer->pending |= value << fill;
    if (fill + width < 64) {
        writer->fill = fill + width;
        return;
    }
    slc_store_u64(writer->at, writer->pending);
    writer->at += 8;
    writer->pending = fill == 0 ? 0 : value >> (64 - fill);
    writer->fill = fill + width - 64;
}

/* Appends the low `width` (0..128) bits of (lo, hi). */
void slc_bits_put_wide(struct slc_bit_writer *writer, uint64_t lo, uint64_t hi, unsigned width);
/* Returns the first byte after the string. */
uint8_t *slc_bits_finish(struct slc_bit_writer *writer);

/* Packs the low `width` (0..128) bits of every value into one string and writes nothing after it;
 * hi may be NULL if width is at most 64. Returns the first byte after the string. */
uint8_t *
slc_bits_pack(const uint64_t *lo, const uint64_t *hi, uint32_t count, unsigned width, uint8_t *out);

/* Widths chosen for a sequence, and the encoded size of the sequence. */
struct slc_patched_plan {
    uint32_t count;
    uint64_t bytes;
    uint8_t width[SLC_TILE_GROUPS];
    uint8_t extra[SLC_TILE_GROUPS];
    uint8_t exceptions[SLC_TILE_GROUPS];
};

/* Chooses widths for `count` (1..SLC_TILE_NNZ) values; `hi` is NULL if all are below 2^64. */
void slc_patched_measure(const uint64_t *lo,
                         const uint64_t *hi,
                         uint32_t count,
                         struct slc_patched_plan *plan);
/* Writes exactly plan->bytes bytes at `out` and returns the byte after them. */
uint8_t *slc_patched_write(const struct slc_patched_plan *plan,
                           const uint64_t *lo,
                           const uint64_t *hi,
                           uint8_t *out);
/* Measures and writes a sequence. */
uint8_t *slc_patched_encode(struct slc_patched_plan *plan,
                            const uint64_t *lo,
                            const uint64_t *hi,
                            uint32_t count,
                            uint8_t *out);
/* Returns an upper bound on the encoded bytes of `count` values of at most `width` bits. */
uint64_t slc_patched_bound(uint32_t count, unsigned width);

/* Unpacks `count` (at most SLC_GROUP_NNZ) values of `width` (0..64) bits. May load 64 bytes from
 * any byte of the input, and store up to 8 values past `count`. */
typedef void slc_unpack_fn(const uint8_t *packed, unsigned width, uint32_t count, uint64_t *values);

/* A checked sequence of patched groups. Borrows the bytes. */
struct slc_patched_view {
    uint32_t count;
    unsigned width_max;
    const uint8_t *widths, *extras, *exceptions;
    const uint8_t *data;
    unsigned bits_max; /* largest number of bits of a value, over all groups */
    /* In every group, the low and the high parts have at most 57 bits each, and together at most
     * 64. */
    bool all_short;
    uint32_t group_at[SLC_TILE_GROUPS]; /* offset of each group's bytes from `data` */
};

/* Checks widths, counts and sizes of `count` patched values of at most `width_max` bits in the
 * `bytes_max` bytes at `bytes`; sets *bytes_used to their size. Cost: a few operations per
 * group. */
bool slc_patched_open(struct slc_patched_view *view,
                      const uint8_t *bytes,
                      uint64_t bytes_max,
                      uint32_t count,
                      unsigned width_max,
                      uint64_t *bytes_used,
                      struct slc_damage *damage);

/* Decodes group `group` into lo[] and hi[], which hold SLC_GROUP_NNZ + 8 values each; `hi` is NULL
 * if width_max is at most 64. Returns false and sets *damage if the bytes contradict the
 * format. */
bool slc_patched_group(const struct slc_patched_view *view,
                       slc_unpack_fn *unpack,
                       uint32_t group,
                       uint64_t *lo,
                       uint64_t *hi,
                       struct slc_damage *damage);

/* Decodes a whole group of an all_short sequence like slc_patched_group, but does not set *damage.
 * If it returns false, call slc_patched_group to set *damage. */
bool slc_patched_whole(const struct slc_patched_view *view,
                       slc_unpack_fn *unpack,
                       uint32_t group,
                       uint64_t *values);

/* Prefetches the bytes of up to `groups` groups, starting at group `group`. The exceptions of
 * successive groups are several cache lines apart, a stride that the hardware prefetcher does not
 * predict. */
static inline void
slc_patched_fetch(const struct slc_patched_view *view, uint32_t group, uint32_t groups)
{
    const uint32_t last = slc_groups_of(view->count) - 1;
    const uint32_t end = last < group + groups ? last : group + groups;

    if (group >= end) {
        return;
    }
    for (uint32_t at = view->group_at[group]; at < view->group_at[end]; at += 64) {
        __builtin_prefetch(view->data + at, 0, 2);
    }
}

#endif
