/* Converts text to numbers, correctly rounded and independently of the locale.
 *
 * A number is read once into a mantissa of up to 19 digits (so it fits in 64 bits) and a power of
 * ten. The first of these methods that applies then computes the value:
 *   1. no power: the conversion of a 64-bit integer rounds correctly;
 *   2. mantissa up to 2^53 and power within 10^+-22: both are exact doubles, so one operation
 *      rounds once (Clinger, "How to read floating point numbers accurately", PLDI 1990);
 *   3. power within 10^+-27: 5^27 is below 2^63, so product and quotient are exact in 128 bits,
 *      with the remainder as a sticky bit; the conversion of that integer rounds, and powers of two
 *      are exact;
 *   4. anything else: strtod_l in the C locale, on a canonical copy.
 * Values with 17 digits between 1e-10 and 1e+10, as programs print them, need at most step 3. */
#include "convert/number/number.h"

#include "base/key.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    /* 10^19 - 1 is below 2^64. */
    MANTISSA_DIGITS_MAX = 19,
    /* No rounding boundary between doubles has more than 767 significant digits. One more digit
     * other than 0 therefore represents all digits after it. */
    CANONICAL_DIGITS_MAX = 800,
    /* With an exponent of this size, a number of at most 801 digits is 0 or infinite. */
    CANONICAL_POWER_MAX = 99999
};

/* Limit of exponents in the text. It exceeds the length of any text, so no number of digits or
 * zeros makes up for such an exponent. */
static const int64_t exponent_limit = INT64_C(1000000000000000);

const uint64_t slc_powers_of_ten[20] = {UINT64_C(1),
                                        UINT64_C(10),
                                        UINT64_C(100),
                                        UINT64_C(1000),
                                        UINT64_C(10000),
                                        UINT64_C(100000),
                                        UINT64_C(1000000),
                                        UINT64_C(10000000),
                                        UINT64_C(100000000),
                                        UINT64_C(1000000000),
                                        UINT64_C(10000000000),
                                        UINT64_C(100000000000),
                                        UINT64_C(1000000000000),
                                        UINT64_C(10000000000000),
                                        UINT64_C(100000000000000),
                                        UINT64_C(1000000000000000),
                                        UINT64_C(10000000000000000),
                                        UINT64_C(100000000000000000),
                                        UINT64_C(1000000000000000000),
                                        UINT64_C(10000000000000000000)};

/* The powers of ten that are exact doubles: 5^22 is below 2^53. */
static const double exact_powers[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* Powers 5^k; the largest is below 2^63. */
static const uint64_t powers_of_five[28] = {UINT64_C(1),
                                            UINT64_C(5),
                                            UINT64_C(25),
                                            UINT64_C(125),
                                            UINT64_C(625),
                                            UINT64_C(3125),
                                            UINT64_C(15625),
                                            UINT64_C(78125),
                                            UINT64_C(390625),
                                            UINT64_C(1953125),
                                            UINT64_C(9765625),
                                            UINT64_C(48828125),
                                            UINT64_C(244140625),
                                            UINT64_C(1220703125),
                                            UINT64_C(6103515625),
                                            UINT64_C(30517578125),
                                            UINT64_C(152587890625),
                                            UINT64_C(762939453125),
                                            UINT64_C(3814697265625),
                                            UINT64_C(19073486328125),
                                            UINT64_C(95367431640625),
                                            UINT64_C(476837158203125),
                                            UINT64_C(2384185791015625),
                                            UINT64_C(11920928955078125),
                                            UINT64_C(59604644775390625),
                                            UINT64_C(298023223876953125),
                                            UINT64_C(1490116119384765625),
                                            UINT64_C(7450580596923828125)};

struct decimal {
    uint64_t mantissa; /* the first digits */
    /* digits in the mantissa, including leading zeros of a group of eight; at most 19 */
    unsigned digits;
    bool any;         /* there was at least one digit */
    bool truncated;   /* a digit other than 0 did not fit */
    int64_t power;    /* power of ten by which the mantissa is multiplied */
    int64_t exponent; /* exponent as written after 'e' */
    const char *digits_begin;
    const char *digits_end; /* digits and point, without sign and exponent */
};

const char *slc_parse_index_long(const char *text, const char *end, uint64_t *value)
{
    const char *p = text;
    uint64_t number = 0;

    for (; p < end; p++) {
        unsigned digit = (unsigned)(unsigned char)*p - '0';

        if (digit > 9) {
            break;
        }
        /* Stopping here keeps the next number below 2^62 + 10, so the addition cannot wrap. */
        if (number > SLC_MAX_MODE_LENGTH / 10) {
            return NULL;
        }
        number = number * 10 + digit;
    }
    if (p == text || number > SLC_MAX_MODE_LENGTH) {
        return NULL;
    }
    *value = number;
    return p;
}

/* Reads digits before the point (`scale` is 0) or after it (`scale` is 1). Returns their end. */
static const char *scan_digits(const char *p, const char *end, int scale, struct decimal *d)
{
    while (end - p >= 8 && d->digits + 8 <= MANTISSA_DIGITS_MAX) {
        uint64_t chunk;
        unsigned n = slc_digits8(p, &chunk);

        d->mantissa = d->mantissa * slc_powers_of_ten[n] + chunk;
        d->digits = d->mantissa ? d->digits + n : 0;
        d->power -= scale * (int)n;
        d->any = d->any || n > 0;
        p += n;
        if (n < 8) {
            return p;
        }
    }
    for (; p < end; p++) {
        unsigned digit = (unsigned)(unsigned char)*p - '0';

        if (digit > 9) {
            break;
        }
        d->any = true;
        if (d->digits < MANTISSA_DIGITS_MAX) {
            d->mantissa = d->mantissa * 10 + digit;
            d->digits += d->mantissa != 0;
            d->power -= scale;
        } else {
            d->truncated = d->truncated || digit != 0;
            d->power += 1 - scale;
        }
    }
    return p;
}

/* Reads an exponent, [eE][+-]digits. Without digits, nothing is read, as in strtod. */
static const char *scan_exponent(const char *text, const char *end, int64_t *exponent)
{
    const char *p = text;
    bool negative = false;
    int64_t number = 0;
    const char *digits;

    if (p >= end || (*p != 'e' && *p != 'E')) {
        return text;
    }
    p++;
    if (p < end && (*p == '+' || *p == '-')) {
        negative = *p == '-';
        p++;
    }
    for (digits = p; p < end; p++) {
        unsigned digit = (unsigned)(unsigned char)*p - '0';

        if (digit > 9) {
            break;
        }
        if (number < exponent_limit) {
            number = number * 10 + (int64_t)digit;
        }
    }
    if (p == digits) {
        return text;
    }
    *exponent = negative ? -number : number;
    return p;
}

/* Computes mantissa * 10^power with one rounding. Returns false if 128 bits are not enough. */
static bool convert_exactly(uint64_t mantissa, int64_t power, double *value)
{
    static const uint64_t two_53 = UINT64_C(1) << 53;

    if (power == 0 || mantissa == 0) {
        *value = (double)mantissa;
        return true;
    }
    if (power < -27 || power > 27) {
        return false;
    }
    if (mantissa <= two_53 && power >= -22 && power <= 22) {
        *value = power < 0 ? (double)mantissa / exact_powers[-power]
                           : (double)mantissa * exact_powers[power];
        return true;
    }
    if (power > 0) {
        /* The product mantissa * 5^power is exact, its conversion rounds once, and the
         * multiplication by 2^power is exact. */
        *value = ldexp((double)((slc_u128)mantissa * powers_of_five[power]), (int)power);
    } else {
        /* If mantissa m and divisor d are shifted so that their top bits are set, (m 2^63) / d is
         * in [2^62, 2^64). This has at least 9 bits more than a double, so the remainder may be
         * merged into the last bit. */
        uint64_t divisor = powers_of_five[-power];
        int mantissa_shift = __builtin_clzll(mantissa);
        int divisor_shift = __builtin_clzll(divisor);
        slc_u128 numerator = (slc_u128)(mantissa << mantissa_shift) << 63;
        uint64_t quotient = (uint64_t)(numerator / (divisor << divisor_shift));
        slc_u128 product = (slc_u128)quotient * (divisor << divisor_shift);

        quotient |= product != numerator;
        *value = ldexp((double)quotient, (int)power + divisor_shift - mantissa_shift - 63);
    }
    return true;
}

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_c_locale(void)
{
    /* The C library has this locale built in, so newlocale neither allocates memory nor fails. */
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    assert(c_locale != (locale_t)0);
}

/* Converts any number with strtod, from at most 801 significant digits and an exponent. */
static double convert_by_library(const struct decimal *d)
{
    char canonical[CANONICAL_DIGITS_MAX + 32];
    size_t length = 0;
    int64_t power = d->exponent;
    bool fraction = false;
    bool rest = false;

    for (const char *p = d->digits_begin; p < d->digits_end; p++) {
        if (*p == '.') {
            fraction = true;
        } else if (length == 0 && *p == '0') {
            power -= fraction;
        } else if (length < CANONICAL_DIGITS_MAX) {
            canonical[length++] = *p;
            power -= fraction;
        } else {
            rest = rest || *p != '0';
            power += !fraction;
        }
    }
    if (length == 0) {
        return 0.0;
    }
    if (rest) {
        canonical[length++] = '1';
        power--;
    }
    if (power > CANONICAL_POWER_MAX) {
        power = CANONICAL_POWER_MAX;
    } else if (power < -CANONICAL_POWER_MAX) {
        power = -CANONICAL_POWER_MAX;
    }
    snprintf(canonical + length, sizeof canonical - length, "e%d", (int)power);
    pthread_once(&c_locale_once, make_c_locale);
    return strtod_l(canonical, NULL, c_locale);
}

const char *slc_parse_f64(const char *text, const char *end, double *value)
{
    struct decimal d = {0};
    const char *p = text;
    bool negative = false;
    double magnitude;

    if (p < end && (*p == '+' || *p == '-')) {
        negative = *p == '-';
        p++;
    }
    d.digits_begin = p;
    p = scan_digits(p, end, 0, &d);
    if (p < end && *p == '.') {
        p = scan_digits(p + 1, end, 1, &d);
    }
    if (!d.any) {
        return NULL;
    }
    d.digits_end = p;
    p = scan_exponent(p, end, &d.exponent);
    if (d.truncated || !convert_exactly(d.mantissa, d.power + d.exponent, &magnitude)) {
        magnitude = convert_by_library(&d);
    }
    *value = negative ? -magnitude : magnitude;
    return p;
}
