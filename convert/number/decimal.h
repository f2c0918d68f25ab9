/* Exact decimal numbers, for rules whose bounds are decimal: 0.3 is in the bin [0.3, 0.4), but the
 * double nearest to 0.3 is below three times the double nearest to 0.1. */
#ifndef SLC_CONVERT_DECIMAL_H
#define SLC_CONVERT_DECIMAL_H

#include "convert/number/number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

__extension__ typedef __int128 slc_i128;

enum {
    /* maximum number of digits of a decimal number: 10^37 < 2^127 / 10 */
    SLC_DECIMAL_DIGITS = 37,
    SLC_DECIMAL_NAME_BYTES = 64, /* space for a formatted number with its terminating 0 */
    SLC_DECIMAL_POWER_MAX = 1000
};

/* The number digits * 10^power, with |digits| < 10^SLC_DECIMAL_DIGITS and no trailing zero. The
 * power is from -SLC_DECIMAL_POWER_MAX to SLC_DECIMAL_POWER_MAX, and 0 for the number 0. */
struct slc_decimal {
    slc_i128 digits;
    int power;
};

/* Parses the number in [text, end), with the grammar of slc_parse_f64. Returns the first byte after
 * it, or NULL if there is none or if it does not fit in struct slc_decimal. */
const char *slc_decimal_parse(const char *text, const char *end, struct slc_decimal *number);

/* Sets *scaled to number / 10^power. Returns false if this is not an integer below 10^limit in
 * magnitude, with `limit` up to SLC_DECIMAL_DIGITS. */
bool slc_decimal_scale(const struct slc_decimal *number,
                       int power,
                       unsigned limit,
                       slc_i128 *scaled);

/* Slow version of slc_decimal_floor, for any text. */
bool slc_decimal_floor_long(const char *text, size_t bytes, int power, slc_i128 *units);

/* Sets *units to floor(x / 10^power) for the number x that is the whole text, with the grammar of
 * slc_parse_f64. Returns false for other text, and if |*units| would be 10^38 or more. Needs: eight
 * readable bytes at `text`. Source: for integers X and W > 0, floor(x / W) = floor(floor(x) / W).
 */
static inline bool slc_decimal_floor(const char *text, size_t bytes, int power, slc_i128 *units)
{
    uint64_t mantissa;
    unsigned fraction;

    /* The mantissa has up to eight digits, so mantissa * 10^11 is below 2^63. */
    if (!slc_parse_short_decimal(text, bytes, &mantissa, &fraction) || power > 0 ||
        power + (int)fraction < -11) {
        return slc_decimal_floor_long(text, bytes, power, units);
    }
    const int more = -power - (int)fraction;
    *units = more >= 0 ? (slc_i128)(mantissa * slc_powers_of_ten[more])
                       : (slc_i128)(mantissa / slc_powers_of_ten[-more]);
    return true;
}

/* Formats digits * 10^power exactly, without trailing zeros, as 0.25, 1200 or 1.5e+21: with an
 * exponent below 1e-7 and from 1e+21 on. Returns the length. */
size_t slc_decimal_format(slc_i128 digits, int power, char text[SLC_DECIMAL_NAME_BYTES]);

#endif
