/* Parses numbers. The inner loop of text parsing converts the digits of indices, eight at a time.
 *
 * Eight bytes are loaded as one little-endian word. A bit test finds the number of leading digits,
 * a shift moves them to the end of a string of zeros, and three multiplications combine
 * neighbouring digits. No branch depends on the number of digits, which varies from row to row and
 * would be mispredicted. */
#ifndef SLC_CONVERT_NUMBER_H
#define SLC_CONVERT_NUMBER_H

#include "base/memory/bytes.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const uint64_t slc_powers_of_ten[20];

/* Returns the number of leading digits in the eight bytes at `text`, and sets *value to the integer
 * that these digits form. */
static inline unsigned slc_digits8(const char *text, uint64_t *value)
{
    /* Digits become 0 .. 9; adding 0x76 then sets the top bit of every byte above 9. A carry out of
     * a byte changes only bytes after the first byte that is not a digit. */
    uint64_t t = slc_load_u64(text) ^ UINT64_C(0x3030303030303030);
    uint64_t other = ((t + UINT64_C(0x7676767676767676)) | t) & UINT64_C(0x8080808080808080);
    unsigned digits = other ? (unsigned)__builtin_ctzll(other) / 8 : 8;

    /* Shift twice by half: without digits, a single shift by 64 would be undefined. */
    t = (t << 4 * (8 - digits)) << 4 * (8 - digits);
    t = (t * 10 + (t >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    t = (t * 100 + (t >> 16)) & UINT64_C(0x0000ffff0000ffff);
    *value = (t * 10000 + (t >> 32)) & UINT64_C(0xffffffff);
    return digits;
}

/* Parses the most frequent numbers: text of at most eight bytes (`bytes`), with digits and at most
 * one decimal point. The number is *mantissa / 10^*fraction. Always reads eight bytes of `text`.
 * Returns false for all other text, even if it is a number. */
static inline bool
slc_parse_short_decimal(const char *text, size_t bytes, uint64_t *mantissa, unsigned *fraction)
{
    uint64_t t, other;

    *fraction = 0;
    if (bytes - 1 >= 8) {
        return false;
    }
    /* Moves the text to the end of a string of zeros, as in slc_digits8. */
    t = (slc_load_u64(text) ^ UINT64_C(0x3030303030303030)) << 8 * (8 - bytes);
    other = ((t + UINT64_C(0x7676767676767676)) | t) & UINT64_C(0x8080808080808080);
    if (other != 0) {
        const unsigned at = (unsigned)__builtin_ctzll(other) / 8;
        const uint64_t after = t >> 8 * at >> 8 << 8 * at << 8;

        if ((other & (other - 1)) != 0 || (t >> 8 * at & 0xff) != ('.' ^ '0') || bytes == 1) {
            return false;
        }
        /* Remove the decimal point: the digits before the point move up by one byte. */
        t = after | (t & ((UINT64_C(1) << 8 * at) - 1)) << 8;
        *fraction = 7 - at;
    }
    t = (t * 10 + (t >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
    t = (t * 100 + (t >> 16)) & UINT64_C(0x0000ffff0000ffff);
    *mantissa = (t * 10000 + (t >> 32)) & UINT64_C(0xffffffff);
    return true;
}

/* Fast variant of slc_parse_f64 for the numbers of slc_parse_short_decimal. */
static inline bool slc_parse_short_f64(const char *text, size_t bytes, double *value)
{
    uint64_t mantissa;
    unsigned fraction;

    if (!slc_parse_short_decimal(text, bytes, &mantissa, &fraction)) {
        return false;
    }
    /* Both operands are exact doubles, so the division is the only rounding. */
    *value =
        fraction > 0 ? (double)mantissa / (double)slc_powers_of_ten[fraction] : (double)mantissa;
    return true;
}

/* Parses a decimal floating-point number from [text, end), correctly rounded and independently of
 * the locale. Returns the first byte after the number, or NULL if there is no number. The value
 * always equals the result of strtod. Numbers with up to 19 digits and a power of ten within +-27
 * need no strtod. */
const char *slc_parse_f64(const char *text, const char *end, double *value);

/* Slow path of slc_parse_index, for any number of digits and for fewer than eight bytes of text. */
const char *slc_parse_index_long(const char *text, const char *end, uint64_t *value);

/* Parses decimal digits from [text, end). Returns the first byte after the digits, or NULL if there
 * are no digits or the number exceeds SLC_MAX_MODE_LENGTH. */
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
