/* Encodes and decodes packed bits and patched groups; docs/FORMAT.md, section "Packing". */
#include "storage/codec/bitpack.h"

#include "storage/codec/encode_ops.h"

#include <assert.h>
#include <string.h>

bool slc_damage_set(struct slc_damage *damage,
                    const uint8_t *where,
                    const char *what,
                    uint64_t found,
                    const char *relation,
                    uint64_t expected)
{
    damage->what = what;
    damage->relation = relation;
    damage->where = where;
    damage->found = found;
    damage->expected = expected;
    return false;
}

void slc_bits_put_wide(struct slc_bit_writer *writer, uint64_t lo, uint64_t hi, unsigned width)
{
    if (width <= 64) {
        slc_bits_put(writer, lo & slc_low_mask(width), width);
    } else {
        slc_bits_put(writer, lo, 64);
        slc_bits_put(writer, hi & slc_low_mask(width - 64), width - 64);
    }
}

uint8_t *slc_bits_finish(struct slc_bit_writer *writer)
{
    for (; writer->fill > 0; writer->fill -= writer->fill < 8 ? writer->fill : 8) {
        *writer->at++ = (uint8_t)writer->pending;
        writer->pending >>= 8;
    }
    return writer->at;
}

/* Returns the bytes of a group of `size` values with width `width`, `exceptions` of which need
 * `extra` more bits. */
static uint64_t group_bytes(uint32_t size, unsigned width, uint32_t exceptions, unsigned extra)
{
    return slc_packed_bytes(size, width) + exceptions + slc_packed_bytes(exceptions, extra);
}

/* Like `longer` of struct slc_encode_ops (encode_ops.h), but for values of up to 128 bits. */
static unsigned count_longer(const uint64_t *lo, const uint64_t *hi, uint32_t size, uint8_t *longer)
{
    uint8_t histogram[SLC_MAX_KEY_BITS + 1] = {0};
    unsigned longest = 0;
    uint32_t above = 0;

    for (uint32_t i = 0; i < size; i++) {
        unsigned length = slc_bit_length_u128(lo[i], hi[i]);

        histogram[length]++;
        longest = length > longest ? length : longest;
    }
    for (unsigned width = longest; width-- > 0;) {
        above += histogram[width + 1];
        longer[width] = (uint8_t)above;
    }
    return longest;
}

static uint64_t measure_group(const uint64_t *lo,
                              const uint64_t *hi,
                              uint32_t size,
                              uint8_t *best_width,
                              uint8_t *best_extra,
                              uint8_t *best_exceptions)
{
    uint8_t longer[SLC_MAX_KEY_BITS];
    unsigned longest = hi == NULL ? slc_encode_ops()->longer(lo, size, longer)
                                  : count_longer(lo, hi, size, longer);
    uint64_t best = group_bytes(size, longest, 0, 0);

    *best_width = (uint8_t)longest;
    *best_extra = 0;
    *best_exceptions = 0;
    /* Widths descend, so `<=` keeps the smallest of several widths with equal costs. */
    for (unsigned width = longest; width-- > 0;) {
        uint32_t exceptions = longer[width];
        unsigned extra = longest - width;
        uint64_t bytes = group_bytes(size, width, exceptions, extra);

        if (group_bytes(0, 0, exceptions, extra) > best) {
            break; /* smaller widths only increase the number of exceptions */
        }
        if (bytes <= best) {
            best = bytes;
            *best_width = (uint8_t)width;
            *best_extra = (uint8_t)extra;
            *best_exceptions = (uint8_t)exceptions;
        }
    }
    return best;
}

void slc_patched_measure(const uint64_t *lo,
                         const uint64_t *hi,
                         uint32_t count,
                         struct slc_patched_plan *plan)
{
    uint32_t groups = slc_groups_of(count);

    assert(count >= 1 && count <= SLC_TILE_NNZ);
    plan->count = count;
    plan->bytes = (3 * (uint64_t)groups + 7) & ~UINT64_C(7);
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t at = g * SLC_GROUP_NNZ;

        plan->bytes += measure_group(lo + at, hi == NULL ? NULL : hi + at, slc_group_size(count, g),
                                     &plan->width[g], &plan->extra[g], &plan->exceptions[g]);
    }
}

/* Finds exceptions without branching on them, and writes their positions and high parts. */
static uint8_t *write_exceptions(const uint64_t *lo,
                                 const uint64_t *hi,
                                 uint32_t size,
                                 unsigned width,
                                 unsigned extra,
                                 uint32_t exceptions,
                                 uint8_t *out)
{
    struct slc_bit_writer high = {out + exceptions, 0, 0};
    uint8_t positions[SLC_GROUP_NNZ + 1];
    uint32_t count = 0;

    /* The width of a group with exceptions is below the width of its longest value, so it is below
     * 64, or below 128 if `hi` is not NULL. */
    for (uint32_t i = 0; i < size && hi == NULL; i++) {
        positions[count] = (uint8_t)i;
        count += lo[i] >> width != 0;
    }
    for (uint32_t i = 0; i < size && hi != NULL; i++) {
        positions[count] = (uint8_t)i;
        count += slc_key_join(lo[i], hi[i]) >> width != 0;
    }
    assert(count == exceptions);
    memcpy(out, positions, exceptions);
    for (uint32_t e = 0; e < exceptions; e++) {
        uint8_t i = positions[e];
        slc_u128 value = slc_key_join(lo[i], hi == NULL ? 0 : hi[i]) >> width;

        slc_bits_put_wide(&high, (uint64_t)value, (uint64_t)(value >> 64), extra);
    }
    return slc_bits_finish(&high);
}

/* Packs `each` values (at most 56 bits together) per step and stores a whole word per step. Stops
 * before a word that would exceed the `bytes` bytes of output; returns the number of packed values.
 * No branch depends on where a word ends. */
static inline uint32_t pack_words(struct slc_bit_writer *writer,
                                  const uint64_t *values,
                                  uint32_t count,
                                  unsigned width,
                                  unsigned each,
                                  uint64_t bytes)
{
    const uint64_t mask = slc_low_mask(width);
    uint32_t i;

    for (i = 0; i + each <= count && (uint64_t)i * width / 8 + 8 <= bytes; i += each) {
        uint64_t word = values[i] & mask;

        for (unsigned j = 1; j < each; j++) {
            word |= (values[i + j] & mask) << j * width;
        }
        writer->pending |= word << writer->fill;
        slc_store_u64(writer->at, writer->pending);
        writer->fill += each * width;
        writer->at += writer->fill / 8;
        writer->pending >>= writer->fill & 56;
        writer->fill &= 7;
    }
    return i;
}

uint8_t *
slc_bits_pack(const uint64_t *lo, const uint64_t *hi, uint32_t count, unsigned width, uint8_t *out)
{
    struct slc_bit_writer writer = {out, 0, 0};
    uint64_t bytes = slc_packed_bytes(count, width);
    uint32_t i = 0;

    if (width > 0 && width <= 14) {
        i = pack_words(&writer, lo, count, width, 4, bytes);
    } else if (width > 0 && width <= 28) {
        i = pack_words(&writer, lo, count, width, 2, bytes);
    } else if (width > 0 && width <= 56) {
        i = pack_words(&writer, lo, count, width, 1, bytes);
    }
    for (; i < count; i++) {
        slc_bits_put_wide(&writer, lo[i], hi == NULL ? 0 : hi[i], width);
    }
    return slc_bits_finish(&writer);
}

uint8_t *slc_patched_write(const struct slc_patched_plan *plan,
                           const uint64_t *lo,
                           const uint64_t *hi,
                           uint8_t *out)
{
    uint32_t groups = slc_groups_of(plan->count);
    uint32_t padding = -(3 * groups) & 7U;

    memcpy(out, plan->width, groups);
    memcpy(out + groups, plan->extra, groups);
    memcpy(out + 2 * (size_t)groups, plan->exceptions, groups);
    out += 3 * (size_t)groups;
    memset(out, 0, padding);
    out += padding;
    for (uint32_t g = 0; g < groups; g++) {
        const uint64_t *group_lo = lo + g * SLC_GROUP_NNZ;
        const uint64_t *group_hi = hi == NULL ? NULL : hi + g * SLC_GROUP_NNZ;
        uint32_t size = slc_group_size(plan->count, g);

        out = slc_bits_pack(group_lo, group_hi, size, plan->width[g], out);
        if (plan->exceptions[g] > 0) {
            out = write_exceptions(group_lo, group_hi, size, plan->width[g], plan->extra[g],
                                   plan->exceptions[g], out);
        }
    }
    return out;
}

uint8_t *slc_patched_encode(struct slc_patched_plan *plan,
                            const uint64_t *lo,
                            const uint64_t *hi,
                            uint32_t count,
                            uint8_t *out)
{
    slc_patched_measure(lo, hi, count, plan);
    return slc_patched_write(plan, lo, hi, out);
}

uint64_t slc_patched_bound(uint32_t count, unsigned width)
{
    /* The encoder always considers the width of the longest value, without exceptions. */
    return ((3 * (uint64_t)slc_groups_of(count) + 7) & ~UINT64_C(7)) +
           slc_packed_bytes(count, width) + slc_groups_of(count);
}

/* A value of at most this number of bits lies within the eight bytes from its first byte. */
enum { SHORT_BITS = 57 };

/* Computes the bytes of each group as if every group were whole, checks widths and counts, and
 * stores the largest widths in `view`. Has no branches, so that it vectorizes, and uses 16-bit
 * integers, which double the elements per vector. This pays off because a full tile has 512
 * groups. */
static bool survey_groups(struct slc_patched_view *view, uint32_t groups, uint16_t *restrict bytes)
{
    const uint8_t *restrict widths = view->widths;
    const uint8_t *restrict extras = view->extras;
    const uint8_t *restrict exceptions = view->exceptions;
    uint16_t low = 0, high = 0, both = 0, faults = 0;

    for (uint32_t g = 0; g < groups; g++) {
        const uint16_t width = widths[g], extra = extras[g], count = exceptions[g];
        const uint16_t sum = (uint16_t)(width + extra);
        /* `count * extra` is at most 255 * 255. */
        const uint16_t high_bytes = (uint16_t)((uint16_t)(count * extra + 7) >> 3);

        bytes[g] = (uint16_t)(SLC_GROUP_NNZ / 8 * width + count + high_bytes);
        low = width > low ? width : low;
        high = extra > high ? extra : high;
        both = sum > both ? sum : both;
        faults |= (uint16_t)((count > SLC_GROUP_NNZ) | ((count == 0) != (extra == 0)));
    }
    view->bits_max = both;
    view->all_short = low <= SHORT_BITS && high <= SHORT_BITS && both <= 64;
    return faults == 0 && both <= view->width_max;
}

static bool
check_group(const struct slc_patched_view *view, uint32_t group, struct slc_damage *damage)
{
    uint32_t size = slc_group_size(view->count, group);
    unsigned width = view->widths[group], extra = view->extras[group];
    uint32_t exceptions = view->exceptions[group];

    if (width + extra > view->width_max) {
        return slc_damage_set(damage, view->widths + group,
                              "the width of a group including exceptions", width + extra,
                              "at most ", view->width_max);
    }
    if (exceptions > size) {
        return slc_damage_set(damage, view->exceptions + group,
                              "the number of exceptions of a group", exceptions, "at most ", size);
    }
    if ((exceptions == 0) != (extra == 0)) {
        return slc_damage_set(damage, view->extras + group,
                              exceptions == 0 ? "the exception width of a group without exceptions"
                                              : "the exception width of a group with exceptions",
                              extra, exceptions == 0 ? "" : "at least ", exceptions == 0 ? 0 : 1);
    }
    return true;
}

/* Checks all groups and computes their sizes. */
static bool open_groups(struct slc_patched_view *view,
                        uint32_t groups,
                        uint16_t bytes[SLC_TILE_GROUPS],
                        struct slc_damage *damage)
{
    const uint32_t last = groups - 1;
    const bool sound = survey_groups(view, groups, bytes);

    for (uint32_t g = sound ? last : 0; g < groups; g++) {
        if (!check_group(view, g, damage)) {
            return false;
        }
    }
    /* A valid group has less than 2^13 bytes. */
    bytes[last] = (uint16_t)group_bytes(slc_group_size(view->count, last), view->widths[last],
                                        view->exceptions[last], view->extras[last]);
    return true;
}

bool slc_patched_open(struct slc_patched_view *view,
                      const uint8_t *bytes,
                      uint64_t bytes_max,
                      uint32_t count,
                      unsigned width_max,
                      uint64_t *bytes_used,
                      struct slc_damage *damage)
{
    uint32_t groups = slc_groups_of(count);
    uint64_t head = (3 * (uint64_t)groups + 7) & ~UINT64_C(7);
    uint16_t group_bytes_of[SLC_TILE_GROUPS];
    uint32_t at = 0; /* below 2^22 */

    assert(count >= 1 && count <= SLC_TILE_NNZ && width_max <= SLC_MAX_KEY_BITS);
    if (head > bytes_max) {
        return slc_damage_set(damage, bytes, "the number of bytes for group widths", bytes_max,
                              "at least ", head);
    }
    view->count = count;
    view->width_max = width_max;
    view->widths = bytes;
    view->extras = bytes + groups;
    view->exceptions = bytes + 2 * (size_t)groups;
    view->data = bytes + head;
    if (!slc_bits_zero_from(bytes, UINT64_C(24) * groups, head)) {
        return slc_damage_set(damage, bytes + 3 * (size_t)groups, "padding after group widths", 1,
                              "", 0);
    }
    if (!open_groups(view, groups, group_bytes_of, damage)) {
        return false;
    }
    for (uint32_t g = 0; g < groups; g++) {
        view->group_at[g] = at;
        at += group_bytes_of[g];
    }
    if (at > bytes_max - head) {
        return slc_damage_set(damage, bytes, "the size of the groups", head + at, "at most ",
                              bytes_max);
    }
    *bytes_used = head + at;
    return true;
}

static bool apply_exceptions(const struct slc_patched_view *view,
                             uint32_t group,
                             const uint8_t *positions,
                             uint64_t *lo,
                             uint64_t *hi,
                             struct slc_damage *damage)
{
    uint32_t size = slc_group_size(view->count, group), exceptions = view->exceptions[group];
    unsigned width = view->widths[group], extra = view->extras[group];
    const uint8_t *high = positions + exceptions;
    int previous = -1;

    for (uint32_t i = 0; i < exceptions; i++) {
        uint64_t bit = (uint64_t)i * extra;
        unsigned position = positions[i];
        slc_u128 value = slc_bits_get(high, bit, extra < 64 ? extra : 64);

        if ((int)position <= previous || position >= size) {
            return slc_damage_set(damage, positions + i, "the position of an exception", position,
                                  (int)position <= previous ? "above " : "below ",
                                  (int)position <= previous ? (unsigned)previous : size);
        }
        if (extra > 64) {
            value |= (slc_u128)slc_bits_get(high, bit + 64, extra - 64) << 64;
        }
        if (value == 0) {
            return slc_damage_set(damage, high + bit / 8, "the high part of an exception", 0,
                                  "at least ", 1);
        }
        value <<= width; /* width is below 128, because extra is at least 1 */
        lo[position] |= (uint64_t)value;
        if (hi != NULL) {
            hi[position] |= (uint64_t)(value >> 64);
        }
        previous = (int)position;
    }
    if (!slc_bits_zero_from(high, (uint64_t)exceptions * extra,
                            slc_packed_bytes(exceptions, extra))) {
        return slc_damage_set(damage, high, "unused bits after exceptions", 1, "", 0);
    }
    return true;
}

/* Like apply_exceptions for values of at most 64 bits, without a branch per exception: the checks
 * are combined and tested once. Returns false if a check fails; some exceptions may then have been
 * applied. */
static bool apply_short(const struct slc_patched_view *view,
                        uint32_t group,
                        const uint8_t *positions,
                        uint64_t *lo)
{
    const uint32_t size = slc_group_size(view->count, group);
    const uint32_t exceptions = view->exceptions[group];
    const unsigned width = view->widths[group], extra = view->extras[group];
    const uint64_t mask = slc_low_mask(extra);
    const uint8_t *high = positions + exceptions;
    uint32_t bit = 0, next = 0; /* positions must ascend, starting at `next` or above */
    bool sound = true;

    for (uint32_t i = 0; i < exceptions; i++) {
        const uint32_t position = positions[i];
        const uint64_t value = (slc_load_u64(high + (bit >> 3)) >> (bit & 7)) & mask;

        sound &= (position >= next) & (value != 0);
        lo[position % SLC_GROUP_NNZ] |= value << width;
        next = position + 1;
        bit += extra;
    }
    return sound && next <= size &&
           slc_bits_zero_from(high, bit, slc_packed_bytes(exceptions, extra));
}

bool slc_patched_whole(const struct slc_patched_view *view,
                       slc_unpack_fn *unpack,
                       uint32_t group,
                       uint64_t *values)
{
    const unsigned width = view->widths[group];
    const uint8_t *packed = view->data + view->group_at[group];

    assert(view->all_short && slc_group_size(view->count, group) == SLC_GROUP_NNZ);
    unpack(packed, width, SLC_GROUP_NNZ, values);
    return view->exceptions[group] == 0 ||
           apply_short(view, group, packed + slc_packed_bytes(SLC_GROUP_NNZ, width), values);
}

bool slc_patched_group(const struct slc_patched_view *view,
                       slc_unpack_fn *unpack,
                       uint32_t group,
                       uint64_t *lo,
                       uint64_t *hi,
                       struct slc_damage *damage)
{
    uint32_t size = slc_group_size(view->count, group);
    unsigned width = view->widths[group];
    uint64_t bytes = slc_packed_bytes(size, width);
    const uint8_t *packed = view->data + view->group_at[group];

    assert(hi != NULL || view->width_max <= 64);
    if (width <= 64) {
        unpack(packed, width, size, lo);
        if (hi != NULL) {
            memset(hi, 0, size * sizeof *hi);
        }
    } else {
        for (uint32_t i = 0; i < size; i++) {
            uint64_t bit = (uint64_t)i * width;

            lo[i] = slc_bits_get(packed, bit, 64);
            hi[i] = slc_bits_get(packed, bit + 64, width - 64);
        }
    }
    /* A whole group has 16 * width bytes, so only the last group can have unused bits. */
    if (size < SLC_GROUP_NNZ && !slc_bits_zero_from(packed, (uint64_t)size * width, bytes)) {
        return slc_damage_set(damage, packed, "unused bits after a group", 1, "", 0);
    }
    if (view->exceptions[group] == 0) {
        return true;
    }
    if (view->extras[group] <= SHORT_BITS && width + view->extras[group] <= 64 &&
        apply_short(view, group, packed + bytes, lo)) {
        return true;
    }
    return apply_exceptions(view, group, packed + bytes, lo, hi, damage);
}
