/* Writes the shortest decimal text of doubles with the Schubfach method ([Giulietti2020]). The
 * rounding interval of the double is multiplied by a power of ten, so that it contains only a few
 * integers. Of these, the integer with the fewest digits is chosen; if several are equally short,
 * the closest. The 617 powers of ten, with 128 bits each, are computed once with exact integers.
 *
 * Cost: about 30 ns per number; about 10 ns for integers below 2^53. */
#include "convert/number/format.h"

#include "base/key.h"
#include "base/memory/bytes.h"
#include "convert/number/number.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

static const char pairs[201] =
    "00010203040506070809101112131415161718192021222324252627282930313233"
    "34353637383940414243444546474849505152535455565758596061626364656667"
    "6869707172737475767778798081828384858687888990919293949596979899";

static unsigned digits_of(uint64_t value)
{
    /* 1233 / 4096 approximates log10(2) closely enough for 64-bit numbers. */
    unsigned guess = (64U - (unsigned)__builtin_clzll(value | 1)) * 1233 >> 12;

    /* OR with 1 makes 0 a number of one digit, and it moves no number across a power of ten,
     * because powers above 1 are even. */
    return guess + 1 - ((value | 1) < slc_powers_of_ten[guess]);
}

unsigned slc_format_u64(char *text, uint64_t value)
{
    unsigned length = digits_of(value);
    char *end = text + length;

    while (value >= 100) {
        end -= 2;
        memcpy(end, pairs + value % 100 * 2, 2);
        value /= 100;
    }
    if (value >= 10) {
        memcpy(end - 2, pairs + value * 2, 2);
    } else {
        end[-1] = (char)('0' + value);
    }
    return length;
}

/* Powers of ten, scaled to exactly 128 bits by a power of two: ceil(10^k * 2^s). */

enum {
    POWER_MIN = -292,
    POWER_MAX = 324,
    LIMBS = 22 /* 1408 bits: 10^324 needs 1077 bits; 2^1407 / 10^292 still has over 400 bits */
};

static slc_u128 powers_of_ten[POWER_MAX - POWER_MIN + 1];

/* Returns the top 128 bits of a number above 0, rounded up if a bit is lost or if `inexact`. */
static slc_u128 top_bits(const uint64_t *limbs, bool inexact)
{
    unsigned top = LIMBS - 1;
    uint64_t lost = 0;

    while (limbs[top] == 0) {
        top--;
    }
    unsigned shift = (unsigned)__builtin_clzll(limbs[top]);
    slc_u128 result = (slc_u128)limbs[top] << 64;
    result |= top >= 1 ? limbs[top - 1] : 0;
    result <<= shift;
    if (top >= 2) {
        result |= shift > 0 ? limbs[top - 2] >> (64 - shift) : 0;
        lost = limbs[top - 2] << shift;
    }
    for (unsigned i = 0; i + 2 < top; i++) {
        lost |= limbs[i];
    }
    return result + (lost != 0 || inexact);
}

static void compute_powers(void)
{
    uint64_t up[LIMBS] = {1};
    uint64_t down[LIMBS] = {0};

    for (int k = 0; k <= POWER_MAX; k++) {
        slc_u128 carry = 0;

        powers_of_ten[k - POWER_MIN] = top_bits(up, false);
        for (int i = 0; i < LIMBS; i++) {
            carry += (slc_u128)up[i] * 10;
            up[i] = (uint64_t)carry;
            carry >>= 64;
        }
    }
    /* floor(floor(x / 10) / 10) = floor(x / 100), so all quotients are exact floors. */
    down[LIMBS - 1] = UINT64_C(1) << 63;
    for (int k = -1; k >= POWER_MIN; k--) {
        slc_u128 rest = 0;

        for (int i = LIMBS - 1; i >= 0; i--) {
            rest = rest << 64 | down[i];
            down[i] = (uint64_t)(rest / 10);
            rest %= 10;
        }
        powers_of_ten[k - POWER_MIN] = top_bits(down, true);
    }
}

struct decimal {
    uint64_t digits;
    int exponent;
};

static int floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/* Returns the high part of g * c. Its last bit is set if the low part is not 0 (sticky bit). */
static uint64_t round_to_odd(slc_u128 g, uint64_t c)
{
    slc_u128 low = (slc_u128)(uint64_t)g * c;
    slc_u128 high = (slc_u128)(uint64_t)(g >> 64) * c + (uint64_t)(low >> 64);

    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* Returns the shortest decimal of the number c * 2^q. `closer` is true if the next smaller number
 * is half as far away as the next larger number, as for powers of two. */
static struct decimal shortest(uint64_t c, int q, bool closer)
{
    uint64_t open = c & 1; /* ties go to even, so an odd c excludes the bounds */
    int k = (q * 1262611 - (closer ? 524031 : 0)) >> 22;
    int h = q + floor_log2_pow10(-k) + 1;
    slc_u128 g = powers_of_ten[-k - POWER_MIN];
    uint64_t lower = round_to_odd(g, (4 * c - 2 + closer) << h) + open;
    uint64_t value = round_to_odd(g, 4 * c << h);
    uint64_t upper = round_to_odd(g, (4 * c + 2) << h) - open;
    uint64_t s = value / 4;

    if (s >= 10) {
        uint64_t tens = s / 10;
        bool below = lower <= 40 * tens;
        bool above = 40 * tens + 40 <= upper;

        if (below != above) {
            return (struct decimal){tens + above, k + 1};
        }
    }
    {
        bool below = lower <= 4 * s;
        bool above = 4 * s + 4 <= upper;
        uint64_t middle = 4 * s + 2;

        if (below != above) {
            return (struct decimal){s + above, k};
        }
        return (struct decimal){s + (value > middle || (value == middle && (s & 1))), k};
    }
}

/* Writes digits in the shortest form: as integer, with a point, with zeros, or with an exponent. */
static unsigned write_digits(char *text, struct decimal decimal)
{
    char digits[SLC_FORMAT_U64_BYTES];
    char *out = text;

    while (decimal.digits % 10 == 0) {
        decimal.digits /= 10;
        decimal.exponent++;
    }
    unsigned count = slc_format_u64(digits, decimal.digits);
    int before = (int)count + decimal.exponent;
    if (before > 0 && before <= 17) {
        unsigned whole = (unsigned)before;

        if (whole >= count) {
            memcpy(out, digits, count);
            memset(out + count, '0', whole - count);
            return whole;
        }
        memcpy(out, digits, whole);
        out[whole] = '.';
        memcpy(out + whole + 1, digits + whole, count - whole);
        return count + 1;
    }
    if (before <= 0 && before > -4) {
        unsigned zeros = (unsigned)-before;

        memcpy(out, "0.000", 2 + zeros);
        memcpy(out + 2 + zeros, digits, count);
        return 2 + zeros + count;
    }
    *out++ = digits[0]; /* NOLINT(clang-analyzer-core.uninitialized.Assign): count is not 0 */
    if (count > 1) {
        *out++ = '.';
        memcpy(out, digits + 1, count - 1);
        out += count - 1;
    }
    *out++ = 'e';
    if (before - 1 < 0) {
        *out++ = '-';
    }
    out += slc_format_u64(out, (uint64_t)(before > 0 ? before - 1 : 1 - before));
    return (unsigned)(out - text);
}

/* Returns the shortest decimal of a number above 0 of `bits` significant bits, whose last bit is
 * 2^least or more. */
static struct decimal shortest_of(double magnitude, unsigned bits, int least)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uint64_t word = slc_bits_f64(magnitude);
    const uint64_t fraction = word & ((UINT64_C(1) << 52) - 1);
    const int biased = (int)(word >> 52);
    uint64_t c = biased != 0 ? fraction | UINT64_C(1) << 52 : fraction;
    int q = (biased != 0 ? biased : 1) - 1075;

    pthread_once(&once, compute_powers);
    const int shift = q + 53 - (int)bits < least ? least - q : 53 - (int)bits;
    c >>= shift;
    q += shift;
    return shortest(c, q, c == UINT64_C(1) << (bits - 1) && q > least);
}

unsigned slc_format_f64(char *text, double value)
{
    uint64_t bits = slc_bits_f64(value);
    double magnitude = fabs(value);
    unsigned sign = (unsigned)(bits >> 63);

    if (sign) {
        *text++ = '-';
    }
    if (!(magnitude <= 1.7976931348623157e308)) {
        memcpy(text, isnan(value) ? "nan" : "inf", 3);
        return sign + 3;
    }
    if (magnitude < 0x1p53 && (double)(uint64_t)magnitude == magnitude) {
        return sign + slc_format_u64(text, (uint64_t)magnitude);
    }
    return sign + write_digits(text, shortest_of(magnitude, 53, -1074));
}

/* Writes digits without an exponent from 0.0001 to below 10^16, and with .0 after integers. */
static unsigned write_float(char *text, struct decimal decimal)
{
    char digits[SLC_FORMAT_U64_BYTES];
    char *out = text;

    for (; decimal.digits % 10 == 0; decimal.digits /= 10) {
        decimal.exponent++;
    }
    const int count = (int)slc_format_u64(digits, decimal.digits);
    const int before = count + decimal.exponent;
    if (before <= -4 || before > 16) {
        const unsigned exponent = (unsigned)(before > 0 ? before - 1 : 1 - before);

        *out++ = digits[0]; /* NOLINT(clang-analyzer-core.uninitialized.Assign): as above */
        if (count > 1) {
            *out++ = '.';
            memcpy(out, digits + 1, (size_t)count - 1);
            out += count - 1;
        }
        memcpy(out, before > 0 ? "e+0" : "e-0", 3);
        out += exponent < 10 ? 3 : 2;
        return (unsigned)(out - text) + slc_format_u64(out, exponent);
    }
    if (before <= 0) {
        memcpy(out, "0.000", 5);
        memcpy(out + 2 - before, digits, (size_t)count);
        return (unsigned)(2 - before + count);
    }
    const int whole = before < count ? before : count;
    memcpy(out, digits, (size_t)whole);
    memset(out + whole, '0', (size_t)(before - whole));
    out[before] = '.';
    out[before + 1] = '0';
    memcpy(out + before + 1, digits + whole, (size_t)(count - whole));
    return (unsigned)(before + 1 + (count > whole ? count - whole : 1));
}

/* Writes a number of one or two digits after the point, such as a price. Returns 0 for any other
 * number. No two numbers of so few digits have the same floating-point value, so the one found is
 * the shortest. */
static unsigned write_cents(char *text, double magnitude, unsigned bits)
{
    const double limit = bits == 53 ? 1e15 : bits == 24 ? 1e6 : 1e3;
    const double cents = nearbyint(magnitude * 100);
    const double back = cents / 100;

    if (!(cents < limit) || cents < 1 ||
        (bits == 53   ? back
         : bits == 24 ? (double)(float)back
                      : -1) != magnitude) {
        return 0;
    }
    const uint64_t whole = (uint64_t)cents / 100;
    const unsigned rest = (unsigned)((uint64_t)cents % 100);
    const unsigned length = slc_format_u64(text, whole);

    text[length] = '.';
    memcpy(text + length + 1, pairs + (size_t)2 * rest, 2);
    return length + (rest % 10 == 0 ? 2 : 3);
}

unsigned slc_format_float(char *text, double value, unsigned bits)
{
    const int least = bits == 53 ? -1074 : bits == 24 ? -149 : -24;
    const double magnitude = fabs(value);
    unsigned length = 0;

    if (signbit(value) && !isnan(value)) {
        text[length++] = '-';
    }
    if (!isfinite(value)) {
        memcpy(text + length, isnan(value) ? "nan" : "inf", 3);
        return length + 3;
    }
    if (magnitude < (double)(UINT64_C(1) << bits) && (double)(uint64_t)magnitude == magnitude) {
        length += slc_format_u64(text + length, (uint64_t)magnitude);
        memcpy(text + length, ".0", 2);
        return length + 2;
    }
    const unsigned few = write_cents(text + length, magnitude, bits);
    return length +
           (few > 0 ? few : write_float(text + length, shortest_of(magnitude, bits, least)));
}
