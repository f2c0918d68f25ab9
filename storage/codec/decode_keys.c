/* Sums gaps to keys, and checks that keys ascend within the bounds of the directory entry. */
#include "storage/codec/decode_internal.h"

/* Sums two-word keys and checks each key. This is slow, but few tiles change the upper word. */
static bool sum_wide(struct slc_decoder *decoder, uint32_t at, uint32_t count, slc_u128 *last)
{
    const slc_u128 first = slc_key_join(decoder->entry.first_lo, decoder->entry.first_hi);
    const slc_u128 start = first + decoder->next;
    uint64_t *lo = decoder->key_lo + at, *hi = decoder->key_hi + at;
    slc_u128 key = start + slc_key_join(lo[0], hi[0]);
    bool ascending = key >= start;

    lo[0] = (uint64_t)key;
    hi[0] = (uint64_t)(key >> 64);
    for (uint32_t i = 1; i < count; i++) {
        const slc_u128 before = key;

        key += slc_key_join(lo[i], hi[i]) + 1;
        ascending &= key > before;
        lo[i] = (uint64_t)key;
        hi[i] = (uint64_t)(key >> 64);
    }
    *last = key - first;
    return ascending;
}

/* If a tile spans less than 2^56 and its gaps are below 2^56, the sum over 128 keys stays below
 * 2^64, so checking the last key suffices. Sums of larger gaps could wrap around and end below the
 * last key. */
static bool keys_ascend(const struct slc_decoder *decoder, uint32_t at, uint32_t count)
{
    const uint64_t *keys = decoder->key_lo + at;
    bool ascending = keys[0] >= decoder->entry.first_lo + (uint64_t)decoder->next;

    for (uint32_t i = 1; i < count && decoder->span_bits > 56; i++) {
        ascending &= keys[i] > keys[i - 1];
    }
    return ascending || decoder->span_bits <= 56;
}

/* Checks the first key of a group: in the first group, it must equal the tile's first key in the
 * directory; in a later group, it must be within the span. Tests `next` - 1, because `next` wraps
 * to 0 after the largest 128-bit key. */
static bool check_first_key(const struct slc_decoder *decoder,
                            uint32_t at,
                            slc_u128 gap,
                            const uint8_t *where,
                            struct slc_damage *damage)
{
    const bool first = decoder->position + at == 0;

    if (first ? gap != 0 : decoder->next - 1 >= decoder->span) {
        return slc_damage_set(damage, where,
                              "the first key of a group, relative to the tile's first",
                              (uint64_t)decoder->next + (uint64_t)gap, "at most ",
                              first ? 0 : (uint64_t)decoder->span);
    }
    return true;
}

static bool advance_keys(struct slc_decoder *decoder,
                         bool ascending,
                         slc_u128 last,
                         const uint8_t *where,
                         struct slc_damage *damage)
{
    if (!ascending || last > decoder->span) {
        return slc_damage_set(damage, where,
                              "the last key of a group, relative to the tile's first",
                              (uint64_t)last, "ascending and at most ", (uint64_t)decoder->span);
    }
    decoder->next = last + 1;
    return true;
}

bool slc_decoder_check_keys(struct slc_decoder *decoder,
                            uint32_t at,
                            uint32_t count,
                            const uint8_t *where,
                            struct slc_damage *damage)
{
    const uint64_t *keys = decoder->key_lo + at;
    const uint64_t first = decoder->entry.first_lo;

    return check_first_key(decoder, at, keys[0] - (first + (uint64_t)decoder->next), where,
                           damage) &&
           advance_keys(decoder, keys_ascend(decoder, at, count), keys[count - 1] - first, where,
                        damage);
}

bool slc_decoder_sum(struct slc_decoder *decoder,
                     uint32_t at,
                     uint32_t count,
                     const uint8_t *where,
                     struct slc_damage *damage)
{
    uint64_t *lo = decoder->key_lo + at;
    slc_u128 last;

    if (!decoder->two_words) {
        decoder->ops->sum(lo, count, decoder->entry.first_lo + (uint64_t)decoder->next, lo);
        return slc_decoder_check_keys(decoder, at, count, where, damage);
    }
    if (!check_first_key(decoder, at, slc_key_join(lo[0], decoder->key_hi[at]), where, damage)) {
        return false;
    }
    const bool ascending = sum_wide(decoder, at, count, &last);

    return advance_keys(decoder, ascending, last, where, damage);
}
