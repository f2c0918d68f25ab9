#include "convert/ingest/csv/csv_spec.h"

#include "base/hash.h"
#include "convert/ingest/csv/csv_field.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum slc_csv_rule rule;
    enum slc_time_unit unit;
} rules[] = {{"sorted", SLC_CSV_STRINGS, SLC_TIME_MINUTE},
             {"int", SLC_CSV_INTEGER, SLC_TIME_MINUTE},
             {"bin", SLC_CSV_BIN, SLC_TIME_MINUTE},
             {"log", SLC_CSV_LOG, SLC_TIME_MINUTE},
             {"minute", SLC_CSV_TIME, SLC_TIME_MINUTE},
             {"hour", SLC_CSV_TIME, SLC_TIME_HOUR},
             {"weekday", SLC_CSV_TIME, SLC_TIME_WEEKDAY},
             {"day", SLC_CSV_TIME, SLC_TIME_DAY},
             {"month", SLC_CSV_TIME, SLC_TIME_MONTH},
             {"year", SLC_CSV_TIME, SLC_TIME_YEAR},
             {"yearmonth", SLC_CSV_TIME, SLC_TIME_YEARMONTH},
             {"date", SLC_CSV_TIME, SLC_TIME_DATE},
             {"datehour", SLC_CSV_TIME, SLC_TIME_DATEHOUR},
             {"dateminute", SLC_CSV_TIME, SLC_TIME_DATEMINUTE}};

static const char *skip_blanks(const char *at)
{
    while (*at == ' ') {
        at++;
    }
    return at;
}

/* Parses a rule and the parenthesis after it. Returns the text after them, or NULL if the item is a
 * column name. */
static const char *read_rule(const char *at, struct slc_csv_item *item)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const size_t length = strlen(rules[i].name);

        if (strncmp(at, rules[i].name, length) == 0 && at[length] == '(') {
            item->rule = rules[i].rule;
            item->unit = rules[i].unit;
            item->sorted = rules[i].rule == SLC_CSV_STRINGS;
            return at + length + 1;
        }
    }
    return NULL;
}

const char *slc_csv_nearest_rule(const char *item, unsigned *letters)
{
    char word[16];
    const char *nearest = NULL;

    *letters = (unsigned)strspn(item, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (*letters == 0 || *letters >= sizeof word || item[*letters] != '(') {
        return NULL;
    }
    for (unsigned i = 0; i < *letters; i++) {
        word[i] = item[i] >= 'A' && item[i] <= 'Z' ? (char)(item[i] - 'A' + 'a') : item[i];
    }
    word[*letters] = '\0';
    /* Only rules that have at least one letter in common with the word are considered. */
    unsigned least = *letters > 1 ? *letters + 1 : 0;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const unsigned distance = slc_csv_distance(word, rules[i].name);

        if (distance < least && distance < strlen(rules[i].name)) {
            least = distance;
            nearest = rules[i].name;
        }
    }
    return nearest;
}

/* Parses a name, which is in quotes or ends before one of `stops`. Returns the text after it; NULL
 * if the name is empty, too long or unterminated. */
static const char *read_name(const char *at, const char *stops, char name[SLC_CSV_NAME_BYTES])
{
    const bool quoted = *at == '"';
    bool closed = !quoted;
    size_t bytes = 0;

    for (at += quoted; *at != '\0'; at++) {
        if (quoted && *at == '"' && *++at != '"') {
            closed = true;
            break;
        }
        if ((!quoted && strchr(stops, *at) != NULL) || bytes == SLC_CSV_NAME_BYTES - 1) {
            break;
        }
        name[bytes++] = *at;
    }
    while (!quoted && bytes > 0 && name[bytes - 1] == ' ') {
        bytes--;
    }
    name[bytes] = '\0';
    at = skip_blanks(at);
    return bytes > 0 && closed && (strchr(stops, *at) != NULL || *at == '\0') ? at : NULL;
}

/* Bounds of the base of a logarithm. With a smaller base, neighbouring powers would agree in their
 * first 12 digits. */
static const double base_least = 1.000001, base_most = 1e6;

/* Digits of the width of a bin, in units of the last digit of width and origin. Bounds of 2^52 bins
 * then fit in 38 digits. */
enum { WIDTH_DIGITS = 22 };

static const int64_t bins_most = INT64_C(1) << 52;

/* Parses ", NUMBER", as a double and as a decimal number. Sets *fits to false if the decimal number
 * has too many digits. Returns the text after it, or NULL if the text is different. */
static const char *
read_number(const char *at, struct slc_decimal *number, double *value, bool *fits)
{
    at = skip_blanks(at + 1);
    const char *end = at + strlen(at), *after = slc_parse_f64(at, end, value);
    *fits = slc_decimal_parse(at, end, number) != NULL && *fits;
    return after != NULL ? skip_blanks(after) : NULL;
}

/* Expresses width and origin in units of the last digit of both. Returns false if the width is not
 * positive, or if the units have too many digits. */
static bool set_units(struct slc_csv_item *item,
                      const struct slc_decimal *width,
                      const struct slc_decimal *origin)
{
    item->power =
        origin->digits != 0 && origin->power < width->power ? origin->power : width->power;
    return slc_decimal_scale(width, item->power, WIDTH_DIGITS, &item->width) && item->width > 0 &&
           slc_decimal_scale(origin, item->power, SLC_DECIMAL_DIGITS, &item->origin);
}

/* Parses an item. Returns its end, which is a comma or the end of the text, or NULL if the item is
 * invalid; *sound is false if its numbers are invalid. */
static const char *read_item(const char *at, struct slc_csv_item *item, bool *sound)
{
    struct slc_decimal width = {0, 0}, origin = {0, 0};
    double origin_value;
    bool fits = true;

    *sound = true;
    *item = (struct slc_csv_item){.rule = SLC_CSV_STRINGS, .base = 10};
    const char *inner = read_rule(at, item);
    if (inner == NULL) {
        return read_name(at, ",", item->column);
    }
    at = read_name(skip_blanks(inner), ",)", item->column);
    if (at != NULL && *at == ',' && (item->rule == SLC_CSV_BIN || item->rule == SLC_CSV_LOG)) {
        at = read_number(at, &width, &item->base, &fits);
    }
    if (at != NULL && *at == ',' && item->rule == SLC_CSV_BIN) {
        at = read_number(at, &origin, &origin_value, &fits);
    }
    *sound = item->rule == SLC_CSV_BIN   ? fits && set_units(item, &width, &origin)
             : item->rule == SLC_CSV_LOG ? item->base >= base_least && item->base <= base_most
                                         : true;
    if (at == NULL || *at != ')' || !*sound) {
        return NULL;
    }
    at = skip_blanks(at + 1);
    return *at == ',' || *at == '\0' ? at : NULL;
}

enum slc_status
slc_csv_spec_parse(const char *columns, struct slc_csv_spec *spec, struct slc_error *err)
{
    const char *at = skip_blanks(columns);

    spec->order = 0;
    for (;;) {
        struct slc_csv_item *item = &spec->items[spec->order];

        if (spec->order == SLC_MAX_ORDER) {
            return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_COLUMNS,
                                  "there are more than %d columns", (int)SLC_MAX_ORDER);
        }
        bool sound;
        const char *end = read_item(at, item, &sound);
        if (end == NULL && !sound) {
            return slc_fail_field(
                err, SLC_ERR_USAGE, SLC_FIELD_COLUMNS, "item %u of the columns, '%.60s': %s",
                spec->order + 1, at,
                item->rule == SLC_CSV_LOG
                    ? "the BASE of log(NAME[,BASE]) must be from 1.000001 to 1000000"
                    : "WIDTH of bin(NAME,WIDTH[,ORIGIN]) must be above 0 and may have 22 digits, "
                      "and "
                      "ORIGIN 37 digits, both counted to the last digit of either");
        }
        if (end == NULL) {
            return slc_fail_field(
                err, SLC_ERR_USAGE, SLC_FIELD_COLUMNS,
                "item %u of the columns, '%.60s', is neither NAME nor sorted(NAME), int(NAME), "
                "bin(NAME,WIDTH[,ORIGIN]), log(NAME[,BASE]), or minute, hour, weekday, day, month, "
                "year, yearmonth, date, datehour or dateminute of (NAME); write a name with commas "
                "or parentheses in double quotes",
                spec->order + 1, at);
        }
        (void)snprintf(item->title, sizeof item->title, "%.*s", (int)(end - at), at);
        spec->order++;
        if (*end == '\0') {
            return SLC_OK;
        }
        at = skip_blanks(end + 1);
    }
}

enum slc_status
slc_csv_spec_set_null(struct slc_csv_spec *spec, const char *words, struct slc_error *err)
{
    const size_t bytes = strlen(words);
    size_t begin = 0;

    spec->null_count = 0;
    if (bytes >= sizeof spec->null || strpbrk(words, "\"\r\n") != NULL) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_NULL,
                              "the null words have %zu bytes: expected at most %d bytes, without "
                              "quotes and line ends",
                              bytes, SLC_CSV_NAME_BYTES - 1);
    }
    memcpy(spec->null, words, bytes + 1);
    for (size_t at = 0; at <= bytes && bytes > 0; at++) {
        if (at < bytes && words[at] != ',') {
            continue;
        }
        if (at == begin || spec->null_count == SLC_CSV_NULLS_MAX) {
            return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_NULL,
                                  "the null words '%s': expected 1 to %d words separated by commas",
                                  words, (int)SLC_CSV_NULLS_MAX);
        }
        spec->null_words[spec->null_count++] =
            (struct slc_csv_word){(uint8_t)begin, (uint8_t)(at - begin)};
        begin = at + 1;
    }
    return SLC_OK;
}

enum slc_status slc_csv_spec_set(struct slc_csv_spec *spec,
                                 const char *columns,
                                 const char *value,
                                 const char *delimiter,
                                 bool no_header,
                                 enum slc_csv_missing missing,
                                 const char *null,
                                 struct slc_error *err)
{
    if (value != NULL && strlen(value) >= sizeof spec->value) {
        return slc_fail(err, SLC_ERR_USAGE, "the name of the column of values is too long");
    }
    (void)snprintf(spec->value, sizeof spec->value, "%s", value != NULL ? value : "");
    spec->no_header = no_header;
    spec->missing = missing;
    if (delimiter != NULL) {
        spec->delimiter = strcmp(delimiter, "tab") == 0 ? '\t' : delimiter[0];
        if ((delimiter[0] != '\0' && delimiter[1] != '\0' && spec->delimiter != '\t') ||
            strchr("\"\r\n", spec->delimiter) != NULL) {
            return slc_fail_field(
                err, SLC_ERR_USAGE, SLC_FIELD_DELIMITER,
                "the delimiter '%s': expected tab or one character other than a quote", delimiter);
        }
    }
    SLC_TRY(slc_csv_spec_set_null(spec, null != NULL ? null : "", err));
    return slc_csv_spec_parse(columns, spec, err);
}

uint64_t slc_csv_spec_hash(const struct slc_csv_spec *spec)
{
    const uint64_t fields[] = {(uint64_t)(unsigned char)spec->delimiter,
                               spec->no_header,
                               spec->missing,
                               spec->order,
                               slc_hash64(spec->value, strlen(spec->value)),
                               slc_hash64(spec->null, strlen(spec->null))};
    uint64_t hash = slc_hash64(fields, sizeof fields);

    for (unsigned i = 0; i < spec->order; i++) {
        const char *title = spec->items[i].title;

        hash = slc_mix64(hash + slc_hash64(title, strlen(title)));
    }
    return hash;
}

/* Returns base^power with one rounding if the base is an integer and the power is below 2^126; pow
 * may round the other way. */
static double power_of(double base, int64_t power)
{
    slc_i128 product = 1;

    if (base != floor(base) || power < 0) {
        return pow(base, (double)power);
    }
    for (int64_t i = 0; i < power; i++) {
        if (product > ((slc_i128)1 << 126) / (int64_t)base) {
            return pow(base, (double)power);
        }
        product *= (int64_t)base;
    }
    return (double)product;
}

/* Returns base^power as a bound of a bin and of its name. Powers are rounded to 12 digits: 1.1^2 is
 * 1.21, although pow returns 1.2100000000000002. Powers of an integer that have more digits, such
 * as 2^40, are not rounded. */
static double log_bound(double base, int64_t power)
{
    const double exact = power_of(base, power);
    double rounded = exact;
    char digits[32];

    if (isfinite(exact)) {
        const int length = snprintf(digits, sizeof digits, "%.12g", exact);

        (void)slc_parse_f64(digits, digits + length, &rounded);
    }
    return base == floor(base) && fabs(rounded - exact) > 8 * DBL_EPSILON * exact ? exact : rounded;
}

/* Numbers below DBL_MIN have no bin, because their bounds would not differ in 12 digits. */
static bool log_bin(double base, double value, int64_t *bin)
{
    if (!(value >= DBL_MIN)) {
        return false;
    }
    const double place = log(value) / log(base);
    *bin = (int64_t)floor(place);
    /* The logarithm and the bounds are rounded: if the value is near a bound, compare them. */
    if (fabs(place - nearbyint(place)) < 1e-3) {
        *bin = (int64_t)nearbyint(place);
        *bin -= value < log_bound(base, *bin);
    }
    return true;
}

bool slc_csv_bin(const struct slc_csv_item *item, const char *text, size_t bytes, int64_t *bin)
{
    slc_i128 units;
    double value;

    if (item->rule == SLC_CSV_LOG) {
        return slc_csv_value(text, bytes, &value) && log_bin(item->base, value, bin);
    }
    if (!slc_csv_decimal_floor(text, bytes, item->power, &units)) {
        return false;
    }
    units -= item->origin;
    /* A division of 64 bits is several times as fast as one of 128 bits. */
    const slc_i128 quotient = units == (int64_t)units && item->width == (int64_t)item->width
                                  ? (int64_t)units / (int64_t)item->width
                                  : units / item->width;
    const slc_i128 floor = quotient - (units < quotient * item->width);
    if (floor <= -bins_most || floor >= bins_most) {
        return false;
    }
    *bin = (int64_t)floor;
    return true;
}

/* Writes the fewest digits that distinguish a bound from other doubles. */
static void format_bound(double bound, char text[SLC_DECIMAL_NAME_BYTES])
{
    double read = -1;

    if (bound < 1e21 && bound == floor(bound)) {
        (void)snprintf(text, SLC_DECIMAL_NAME_BYTES, "%.0f", bound);
        return;
    }
    for (int digits = 12; digits <= 17 && read != bound; digits++) {
        const int length = snprintf(text, SLC_DECIMAL_NAME_BYTES, "%.*g", digits, bound);

        if (slc_parse_f64(text, text + length, &read) == NULL) {
            return; /* infinity, after the largest double */
        }
    }
}

size_t slc_csv_bin_name(const struct slc_csv_item *item, int64_t bin, char name[SLC_CSV_BIN_BYTES])
{
    char low[SLC_DECIMAL_NAME_BYTES], high[SLC_DECIMAL_NAME_BYTES];

    if (item->rule == SLC_CSV_LOG) {
        format_bound(log_bound(item->base, bin), low);
        format_bound(log_bound(item->base, bin + 1), high);
    } else {
        (void)slc_decimal_format(item->origin + bin * item->width, item->power, low);
        (void)slc_decimal_format(item->origin + (bin + 1) * item->width, item->power, high);
    }
    return (size_t)snprintf(name, SLC_CSV_BIN_BYTES, "[%s, %s)", low, high);
}

unsigned slc_csv_distance(const char *a, const char *b)
{
    const size_t a_bytes = strnlen(a, SLC_CSV_NAME_BYTES - 1);
    const size_t b_bytes = strnlen(b, SLC_CSV_NAME_BYTES - 1);
    unsigned row[SLC_CSV_NAME_BYTES];

    for (size_t j = 0; j <= b_bytes; j++) {
        row[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= a_bytes; i++) {
        unsigned before = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_bytes; j++) {
            const unsigned same = before + (a[i - 1] != b[j - 1]);
            const unsigned other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);

            before = row[j];
            row[j] = same < other ? same : other;
        }
    }
    return row[b_bytes];
}
