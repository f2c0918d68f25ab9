#include "storage/codec/value_stats.h"

#include "base/memory/bytes.h"

#include <string.h>

/* Slots of the hash table of distinct values; a free slot has the bits of 0, which is counted
 * separately. */
enum { SLOT_BITS = 6, SLOTS = 1 << SLOT_BITS };

static unsigned slot_of(uint64_t bits)
{
    /* Fibonacci hashing: multiply by 2^64 / (golden ratio) and use the top bits. */
    return (unsigned)((bits ^ bits >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - SLOT_BITS));
}

/* Records that there are too many distinct values to list. */
static void set_too_many(struct slc_value_stats *stats)
{
    stats->distinct = SLC_DISTINCT_MAX + 1;
    memset(stats->listed, 0, sizeof stats->listed);
}

/* Inserts `value` into the ascending list, which does not contain it. */
static void list_value(struct slc_value_stats *stats, double value)
{
    unsigned at = stats->distinct;

    if (at >= SLC_DISTINCT_MAX) {
        set_too_many(stats);
        return;
    }
    for (; at > 0 && stats->listed[at - 1] > value; at--) {
        stats->listed[at] = stats->listed[at - 1];
    }
    stats->listed[at] = value;
    stats->distinct++;
}

static uint64_t count_zeros(const double *values, uint32_t count)
{
    uint64_t zeros = 0;

    for (uint32_t i = 0; i < count; i++) {
        zeros += values[i] == 0;
    }
    return zeros;
}

void slc_value_stats_collect(struct slc_value_stats *stats, const double *values, uint32_t count)
{
    uint64_t slots[SLOTS] = {0};

    stats->distinct = 0;
    memset(stats->listed, 0, sizeof stats->listed);
    stats->zeros = stats->low <= 0 && stats->high >= 0 ? count_zeros(values, count) : 0;
    if (stats->zeros > 0) {
        list_value(stats, 0);
    }
    for (uint32_t i = 0; i < count && stats->distinct <= SLC_DISTINCT_MAX; i++) {
        const uint64_t bits = slc_bits_f64(values[i]);
        unsigned slot = slot_of(bits);

        while (slots[slot] != 0 && slots[slot] != bits) {
            slot = (slot + 1) % SLOTS;
        }
        if (slots[slot] == 0 && values[i] != 0) {
            slots[slot] = bits;
            list_value(stats, values[i]);
        }
    }
}

void slc_value_stats_merge(struct slc_value_stats *stats, const struct slc_value_stats *other)
{
    if (other->distinct == 0) {
        return;
    }
    if (stats->distinct == 0) {
        *stats = *other;
        return;
    }
    stats->integers = stats->integers && other->integers;
    stats->zeros += other->zeros;
    stats->low = other->low < stats->low ? other->low : stats->low;
    stats->high = other->high > stats->high ? other->high : stats->high;
    if (other->distinct > SLC_DISTINCT_MAX) {
        set_too_many(stats);
    }
    for (unsigned i = 0; i < other->distinct && stats->distinct <= SLC_DISTINCT_MAX; i++) {
        unsigned at = 0;

        while (at < stats->distinct && stats->listed[at] != other->listed[i]) {
            at++;
        }
        if (at == stats->distinct) {
            list_value(stats, other->listed[i]);
        }
    }
}

bool slc_value_stats_same(const struct slc_value_stats *a, const struct slc_value_stats *b)
{
    bool same = a->distinct == b->distinct && a->integers == b->integers && a->zeros == b->zeros &&
                a->low == b->low && a->high == b->high;

    for (unsigned i = 0; i < SLC_DISTINCT_MAX && same; i++) {
        same = a->listed[i] == b->listed[i];
    }
    return same;
}
