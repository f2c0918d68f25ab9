/*
 * Decimal digits to integers, eight at a time: the inner loop of text parsing.
 *
 * A chunk of eight bytes is loaded as one little-endian word; one subtraction-free test finds how
 * many leading bytes are digits, a shift puts them at the end of a string of zeros, three
 * multiplications combine neighbours. No branch depends on the number of digits, which varies from
 * row to row and would be mispredicted.
 */
#ifndef SLC_CONVERT_NUMBER_H
#define SLC_CONVERT_NUMBER_H

#include "base/bytes.h"
#include "base/limits.h"

#include <stddef.h>
#include <stdint.h>

extern const uint64_t slc_powers_of_ten[20];

/* How many of the eight bytes at `text` are digits before the first that is not; *value: their
 * number. */
static inline unsigned slc_digits8(const char *text, uint64_t *value)
{
    /* Digits become 0 .. 9; adding 0x76 then sets the top bit of every byte above 9. A carry out of
     * a byte can only disturb bytes above one that already is no digit. */
    uint64_t t = slc_load_u64(text) ^ UINT64_C(0x3030303030303030);
    uint64_t other = ((t + UINT64_C(0x7676767676767676)) | t) & UINT64_C(0x8080808080808080);
    unsigned digits = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;

    /* Two shifts by half, because one by 64 (no digits) is undefined. */
    t = (t << 4 * (8 - digits)) << 4 * (8 - digits);
    t = (t * 10 + (t >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    t = (t * 100 + (t >> 16)) & UINT64_C(0x0000ffff0000ffff);
    *value = (t * 10000 + (t >> 32)) & UINT64_C(0xffffffff);
    return digits;
}

/* As slc_parse_index, for any number of digits and any distance to the end. */
const char *slc_parse_index_long(const char *text, const char *end, uint64_t *value);

/*
 * Parses decimal digits from [text, end). Returns the first byte after them, or NULL when there are
 * none or the number is above SLC_MAX_MODE_LENGTH.
 */
static inline const char *slc_parse_index(const char *text, const char *end, uint64_t *value)
{
    if (end - text >= 8) {
        unsigned digits = slc_digits8(text, value);

        if (digits < 8) {
            return digits ? text + digits : NULL;
        }
    }
    return slc_parse_index_long(text, end, value);
}

#endif
