/* Parses sizes with units: "512MiB", "4G", "1.5GiB", "200MB", "50%".
 *
 * Numbers are computed as decimal fractions with 128-bit integers, not in floating point, so the
 * result does not depend on locale or rounding mode: "0.1GiB" is always 107374182 bytes. */
#include "engine/plan/plan.h"

#include "base/memory/memory.h"

#include <stddef.h>
#include <strings.h>

__extension__ typedef unsigned __int128 size_u128;

enum {
    /* Digits used after the point; further digits are ignored. 10^18 fits in 64 bits. */
    FRACTION_DIGITS = 18
};

/* A decimal number: whole + part / scale. */
struct decimal {
    uint64_t whole;
    uint64_t part;
    uint64_t scale;
};

static enum slc_status fail_size(struct slc_error *err, const char *text, const char *what)
{
    return slc_fail(err, SLC_ERR_USAGE,
                    "\"%.64s\" is not a size: %s; use bytes (1048576), binary units (64K, 512MiB, "
                    "4G), decimal units (200MB) or a share of memory (50%%)",
                    text, what);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads "digits[.digits]". Returns an error message, or NULL on success. */
static const char *parse_decimal(const char **cursor, struct decimal *number)
{
    const char *p = *cursor;
    unsigned digits = 0;

    number->whole = 0;
    number->part = 0;
    number->scale = 1;
    for (; is_digit(*p); p++, digits++) {
        if (__builtin_mul_overflow(number->whole, 10, &number->whole) ||
            __builtin_add_overflow(number->whole, (uint64_t)(*p - '0'), &number->whole)) {
            return "the number does not fit in 64 bits";
        }
    }
    if (*p == '.') {
        unsigned kept = 0;

        for (p++; is_digit(*p); p++, digits++) {
            if (kept < FRACTION_DIGITS) {
                number->part = number->part * 10 + (uint64_t)(*p - '0');
                number->scale *= 10;
                kept++;
            }
        }
    }
    *cursor = p;
    return digits > 0 ? NULL : "it does not start with a number";
}

/* Returns the size in bytes of a unit; 0 if the unit is unknown. */
static uint64_t unit_bytes(const char *unit)
{
    static const char prefixes[] = "kmgtpe";
    uint64_t binary = 1, decimal = 1;

    if (*unit == '\0' || strcasecmp(unit, "b") == 0) {
        return 1;
    }
    for (const char *prefix = prefixes; *prefix != '\0'; prefix++) {
        binary *= 1024;
        decimal *= 1000;
        /* Setting bit 5 makes an ASCII letter lower case in every locale. */
        if ((unit[0] | 0x20) == *prefix) {
            if (unit[1] == '\0' || strcasecmp(unit + 1, "ib") == 0) {
                return binary;
            }
            return strcasecmp(unit + 1, "b") == 0 ? decimal : 0;
        }
    }
    return 0;
}

/* Computes number * numerator / denominator, rounded down. Returns false if the result does not fit
 * in 64 bits. */
static bool scale_decimal(const struct decimal *number,
                          uint64_t numerator,
                          uint64_t denominator,
                          uint64_t *bytes)
{
    /* Products of two 64-bit numbers fit in 128 bits. The sum below is less than 2^128 because
     * number->part < number->scale. */
    size_u128 whole = (size_u128)number->whole * numerator;
    size_u128 part = (size_u128)number->part * numerator / number->scale;
    size_u128 result = (whole + part) / denominator;

    if (result > UINT64_MAX) {
        return false;
    }
    *bytes = (uint64_t)result;
    return true;
}

enum slc_status slc_parse_size(const char *text, uint64_t *bytes, struct slc_error *err)
{
    struct decimal number;
    const char *cursor = text;
    uint64_t numerator, denominator = 1;
    const char *wrong = parse_decimal(&cursor, &number);

    if (wrong != NULL) {
        return fail_size(err, text, wrong);
    }
    while (*cursor == ' ') {
        cursor++;
    }
    if (cursor[0] == '%' && cursor[1] == '\0') {
        if (number.whole > 100 || (number.whole == 100 && number.part > 0)) {
            return fail_size(err, text, "a share of memory is at most 100%");
        }
        numerator = slc_memory_total();
        denominator = 100;
    } else {
        numerator = unit_bytes(cursor);
        if (numerator == 0) {
            return fail_size(err, text, "the unit is unknown");
        }
    }
    if (!scale_decimal(&number, numerator, denominator, bytes)) {
        return fail_size(err, text, "it does not fit in 64 bits");
    }
    return SLC_OK;
}
