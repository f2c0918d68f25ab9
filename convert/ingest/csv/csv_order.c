#include "convert/ingest/csv/csv_order.h"

#include "base/memory/bytes.h"
#include "convert/ingest/csv/csv_field.h"

#include <stdbool.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A run of digits without leading zeros. */
struct digits {
    const char *begin, *end;
};

static struct digits digits_at(const char *text, const char *end)
{
    struct digits digits;

    while (text < end && *text == '0') {
        text++;
    }
    digits.begin = text;
    while (text < end && is_digit(*text)) {
        text++;
    }
    digits.end = text;
    return digits;
}

static int compare_digits(const struct digits *a, const struct digits *b)
{
    const size_t a_bytes = (size_t)(a->end - a->begin), b_bytes = (size_t)(b->end - b->begin);

    return a_bytes != b_bytes ? (a_bytes < b_bytes ? -1 : 1) : memcmp(a->begin, b->begin, a_bytes);
}

static int compare_bytes(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);

    return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int compare_strings(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    const char *at_a = a, *at_b = b, *end_a = a + a_bytes, *end_b = b + b_bytes;

    while (at_a < end_a && at_b < end_b) {
        int order = (unsigned char)*at_a - (unsigned char)*at_b;

        if (is_digit(*at_a) && is_digit(*at_b)) {
            const struct digits of_a = digits_at(at_a, end_a), of_b = digits_at(at_b, end_b);

            order = compare_digits(&of_a, &of_b);
            at_a = of_a.end;
            at_b = of_b.end;
        } else {
            at_a++;
            at_b++;
        }
        if (order != 0) {
            return order;
        }
    }
    const int rest = (at_a < end_a) - (at_b < end_b);
    return rest != 0 ? rest : compare_bytes(a, a_bytes, b, b_bytes);
}

int slc_csv_order(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    double value_a = 0, value_b = 0;
    const bool number_a = slc_csv_value_long(a, a_bytes, &value_a);
    const bool number_b = slc_csv_value_long(b, b_bytes, &value_b);

    if (number_a != number_b) {
        return number_a ? -1 : 1;
    }
    if (number_a && value_a != value_b) {
        return value_a < value_b ? -1 : 1;
    }
    return compare_strings(a, a_bytes, b, b_bytes);
}

uint64_t slc_csv_order_prefix(const char *text, size_t bytes)
{
    enum { PREFIX_BYTES = 7 };
    const uint64_t top = UINT64_C(1) << 63;
    uint64_t prefix = 0;
    double value;

    if (slc_csv_value_long(text, bytes, &value)) {
        const uint64_t bits = slc_bits_f64(value == 0 ? 0 : value);

        return ((bits & top) != 0 ? ~bits : bits | top) >> 1;
    }
    for (size_t i = 0; i < PREFIX_BYTES; i++) {
        const bool digit = i < bytes && is_digit(text[i]);

        prefix = prefix << 8 | (i < bytes ? (digit ? '0' : (unsigned char)text[i]) : 0);
        if (digit) {
            bytes = 0; /* digits compare as a whole number, so '0' replaces them */
        }
    }
    return top | prefix << 7;
}
