#include "convert/number/decimal.h"

#include <stdio.h>
#include <string.h>

/* Numbers below 10^LARGE_DIGITS fit in 127 bits. */
enum { LARGE_DIGITS = 38 };

/* The parts of a number's text: the digits, the position of the point, and the exponent. */
struct notation {
    bool negative;
    const char *digits, *digits_end; /* digits and at most one point */
    int64_t power;                   /* power of ten of the last digit */
};

/* Finds the parts of the number in [text, end). Returns the first byte after it, or NULL. */
static const char *read_notation(const char *text, const char *end, struct notation *n)
{
    double value;
    const char *after = slc_parse_f64(text, end, &value), *p;
    bool fraction = false;

    if (after == NULL) {
        return NULL;
    }
    n->negative = *text == '-';
    n->digits = text + (*text == '-' || *text == '+');
    n->power = 0;
    for (p = n->digits; p < after && *p != 'e' && *p != 'E'; p++) {
        n->power -= fraction;
        fraction = fraction || *p == '.';
    }
    n->digits_end = p;
    if (p < after) {
        const bool below = p[1] == '-';
        int64_t exponent = 0;

        for (p += 1 + (p[1] == '-' || p[1] == '+'); p < after; p++) {
            exponent = exponent < INT32_MAX ? 10 * exponent + (*p - '0') : exponent;
        }
        n->power += below ? -exponent : exponent;
    }
    return after;
}

/* Multiplies by 10^power. Returns false if the magnitude reaches 10^limit. */
static bool raise_power(slc_i128 *number, int64_t power, unsigned limit)
{
    slc_i128 most = 1, raised = *number;

    for (unsigned i = 0; i < limit; i++) {
        most *= 10;
    }
    for (; raised != 0 && power > 0; power--) {
        if (raised >= most / 10 || raised <= -most / 10) {
            return false;
        }
        raised *= 10;
    }
    *number = raised;
    return -most < raised && raised < most;
}

/* Computes the floor of the magnitude over 10^power, and whether a digit other than 0 was left
 * out. Returns false if the result has more than LARGE_DIGITS digits. */
static bool cut_digits(const struct notation *n, int power, slc_i128 *units, bool *rest)
{
    int64_t weight = n->power; /* power of ten of a digit */
    unsigned count = 0;

    for (const char *p = n->digits; p < n->digits_end; p++) {
        weight += *p != '.';
    }
    *units = 0;
    *rest = false;
    for (const char *p = n->digits; p < n->digits_end; p++) {
        if (*p == '.') {
            continue;
        }
        weight--;
        if (weight < power) {
            *rest = *rest || *p != '0';
            continue;
        }
        count += count > 0 || *p != '0';
        if (count > LARGE_DIGITS) {
            return false;
        }
        *units = 10 * *units + (*p - '0');
    }
    return *units == 0 || weight <= power || raise_power(units, weight - power, LARGE_DIGITS);
}

/* Does the same as slc_decimal_floor_long if the number and the result have at most 18 digits.
 * Returns false for other text, which may be a number. */
static bool floor_of_digits(const char *text, size_t bytes, int power, slc_i128 *units)
{
    const char *p = text + (bytes > 0 && (*text == '-' || *text == '+')), *end = text + bytes;
    const char *point = NULL, *begin = p;
    uint64_t digits = 0;

    for (; p < end; p++) {
        const unsigned digit = (unsigned)(unsigned char)*p - '0';

        if (digit <= 9) {
            digits = 10 * digits + digit;
        } else if (*p == '.' && point == NULL) {
            point = p;
        } else {
            return false;
        }
    }
    const int count = (int)(end - begin) - (point != NULL);
    const int more = -power - (point != NULL ? (int)(end - point) - 1 : 0);
    if (count < 1 || count > 18 || more < -18 || count + more > 18) {
        return false;
    }
    const uint64_t scale = slc_powers_of_ten[more < 0 ? -more : more];
    const uint64_t whole = more < 0 ? digits / scale : digits * scale;
    *units =
        *text == '-' ? -(slc_i128)whole - (more < 0 && whole * scale != digits) : (slc_i128)whole;
    return true;
}

bool slc_decimal_floor_long(const char *text, size_t bytes, int power, slc_i128 *units)
{
    struct notation n;
    bool rest;

    if (floor_of_digits(text, bytes, power, units)) {
        return true;
    }
    if (read_notation(text, text + bytes, &n) != text + bytes || bytes == 0 ||
        !cut_digits(&n, power, units, &rest)) {
        return false;
    }
    if (n.negative) {
        *units = -*units - rest;
    }
    return true;
}

const char *slc_decimal_parse(const char *text, const char *end, struct slc_decimal *number)
{
    struct notation n;
    const char *after = read_notation(text, end, &n);
    bool rest;

    *number = (struct slc_decimal){0, 0};
    if (after == NULL) {
        return NULL;
    }
    /* Trailing zeros do not count as digits: find the power of the last digit other than 0. */
    int64_t power = n.power, last = n.power;
    bool any = false;
    for (const char *p = n.digits_end; p > n.digits; p--) {
        if (p[-1] == '.') {
            continue;
        }
        last = !any && p[-1] != '0' ? power : last;
        any = any || p[-1] != '0';
        power++;
    }
    if (!any) {
        return after;
    }
    if (last < -SLC_DECIMAL_POWER_MAX || last > SLC_DECIMAL_POWER_MAX ||
        !cut_digits(&n, (int)last, &number->digits, &rest) ||
        !raise_power(&number->digits, 0, SLC_DECIMAL_DIGITS)) {
        return NULL;
    }
    number->digits = n.negative ? -number->digits : number->digits;
    number->power = (int)last;
    return after;
}

bool slc_decimal_scale(const struct slc_decimal *number,
                       int power,
                       unsigned limit,
                       slc_i128 *scaled)
{
    *scaled = number->digits;
    return *scaled == 0 ||
           (number->power >= power && raise_power(scaled, number->power - power, limit));
}

size_t slc_decimal_format(slc_i128 digits, int power, char text[SLC_DECIMAL_NAME_BYTES])
{
    const bool negative = digits < 0;
    char written[LARGE_DIGITS + 2];
    unsigned count = 0;
    char *at = text;

    if (digits == 0) {
        return (size_t)snprintf(text, SLC_DECIMAL_NAME_BYTES, "0");
    }
    for (; digits % 10 == 0; digits /= 10) {
        power++;
    }
    for (; digits != 0; digits /= 10) { /* the last digit first */
        written[count++] = (char)('0' + (negative ? -(digits % 10) : digits % 10));
    }
    if (negative) {
        *at++ = '-';
    }
    const int leading = (int)count + power; /* the number is 0.DIGITS * 10^leading */
    if (leading <= -7 || leading > 21) {
        *at++ = written[count - 1];
        if (count > 1) {
            *at++ = '.';
        }
        for (unsigned i = count - 1; i > 0; i--) {
            *at++ = written[i - 1];
        }
        at += snprintf(at, 8, "e%+03d", leading - 1);
        return (size_t)(at - text);
    }
    if (leading <= 0) {
        memcpy(at, "0.0000000", (size_t)(2 - leading));
        at += 2 - leading;
    }
    for (unsigned i = count; i > 0; i--) {
        *at++ = written[i - 1];
        if (leading > 0 && count - i + 1 == (unsigned)leading && i > 1) {
            *at++ = '.';
        }
    }
    for (int i = (int)count; i < leading; i++) {
        *at++ = '0';
    }
    *at = '\0';
    return (size_t)(at - text);
}
