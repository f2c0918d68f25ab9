#include "convert/ingest/arrow/arrow_type.h"

#include <stdlib.h>
#include <string.h>

/* Formats that are one of a few words. */
static const struct {
    char format[8];
    enum slc_arrow_kind kind;
    uint32_t width;
    int32_t scale;
} words[] = {
    {"n", SLC_ARROW_NULL, 0, 0},   {"b", SLC_ARROW_BOOL, 0, 0},
    {"c", SLC_ARROW_SIGNED, 1, 0}, {"C", SLC_ARROW_UNSIGNED, 1, 0},
    {"s", SLC_ARROW_SIGNED, 2, 0}, {"S", SLC_ARROW_UNSIGNED, 2, 0},
    {"i", SLC_ARROW_SIGNED, 4, 0}, {"I", SLC_ARROW_UNSIGNED, 4, 0},
    {"l", SLC_ARROW_SIGNED, 8, 0}, {"L", SLC_ARROW_UNSIGNED, 8, 0},
    {"e", SLC_ARROW_FLOAT, 2, 0},  {"f", SLC_ARROW_FLOAT, 4, 0},
    {"g", SLC_ARROW_FLOAT, 8, 0},  {"z", SLC_ARROW_STRING, 4, 0},
    {"Z", SLC_ARROW_STRING, 8, 0}, {"u", SLC_ARROW_STRING, 4, 0},
    {"U", SLC_ARROW_STRING, 8, 0}, {"vz", SLC_ARROW_VIEW, 16, 0},
    {"vu", SLC_ARROW_VIEW, 16, 0}, {"tdD", SLC_ARROW_DATE, 4, 0},
    {"tdm", SLC_ARROW_DATE, 8, 3}, {"tts", SLC_ARROW_TIME, 4, 0},
    {"ttm", SLC_ARROW_TIME, 4, 3}, {"ttu", SLC_ARROW_TIME, 8, 6},
    {"ttn", SLC_ARROW_TIME, 8, 9},
};

/* Types that a column of a table cannot have: the start of their format, and the name of the type
 * with advice for the message. */
static const struct {
    const char *start, *advice;
} others[] = {
    {"tD", "a duration: cast it to int64"},
    {"ti", "an interval: cast it to an integer"},
    {"+l", "a list: select or explode its elements"},
    {"+L", "a list: select or explode its elements"},
    {"+v", "a list: select or explode its elements"},
    {"+w", "a list: select or explode its elements"},
    {"+s", "a struct: select its fields"},
    {"+m", "a map: select its entries"},
    {"+r", "run-end encoded: decode it"},
};

/* Extension types whose stored elements differ from the texts in a CSV file of the table: their
 * name, and the name of the type with advice for the message. */
static const struct {
    const char *name, *advice;
} extensions[] = {
    {"pandas.period", "a period: cast it to a timestamp or a string"},
    {"arrow.uuid", "a UUID in 16 bytes: cast it to a string"},
    {"arrow.bool8", "a boolean of 8 bits: cast it to bool"},
};

/* Parses an integer that ends before one of the characters `ends`, where $ means the end of the
 * text. Returns the position after it; NULL for other text. */
static const char *parse_number(const char *at, const char *ends, long *number)
{
    char *end;

    if (at == NULL || (*at != '-' && (*at < '0' || *at > '9'))) {
        return NULL;
    }
    *number = strtol(at, &end, 10);
    if (*number < -1000 || *number > SLC_ARROW_WIDTH_MAX) {
        return NULL;
    }
    return strchr(ends, *end == '\0' ? '$' : *end) != NULL ? end : NULL;
}

/* d:PRECISION,SCALE or d:PRECISION,SCALE,BITS */
static bool parse_decimal(const char *format, struct slc_arrow_type *type)
{
    long precision = 0, scale = 0, bits = 128;
    const char *at = parse_number(format + 2, ",", &precision);

    at = at != NULL ? parse_number(at + 1, ",$", &scale) : NULL;
    if (at != NULL && *at == ',') {
        at = parse_number(at + 1, "$", &bits);
    }
    *type = (struct slc_arrow_type){
        .kind = SLC_ARROW_DECIMAL, .width = (uint32_t)(bits / 8), .scale = (int32_t)scale};
    return at != NULL && (bits == 32 || bits == 64 || bits == 128 || bits == 256) &&
           precision >= 1 && precision <= 76 && scale >= -76 && scale <= 76;
}

/* tsUNIT:ZONE */
static bool parse_timestamp(const char *format, struct slc_arrow_type *type)
{
    static const char units[] = "smun";
    const char *unit = format[2] != '\0' ? strchr(units, format[2]) : NULL;

    if (unit == NULL || format[3] != ':') {
        return false;
    }
    *type = (struct slc_arrow_type){.kind = SLC_ARROW_TIMESTAMP,
                                    .width = 8,
                                    .scale = 3 * (int32_t)(unit - units),
                                    .has_zone = format[4] != '\0',
                                    .zone = format + 4};
    return true;
}

enum slc_status
slc_arrow_type_parse(const char *format, struct slc_arrow_type *type, struct slc_error *err)
{
    long width = 0;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(format, words[i].format) == 0) {
            *type = (struct slc_arrow_type){
                .kind = words[i].kind, .width = words[i].width, .scale = words[i].scale};
            return SLC_OK;
        }
    }
    if (strncmp(format, "w:", 2) == 0 && parse_number(format + 2, "$", &width) != NULL &&
        width > 0) {
        *type = (struct slc_arrow_type){.kind = SLC_ARROW_FIXED, .width = (uint32_t)width};
        return SLC_OK;
    }
    if ((strncmp(format, "d:", 2) == 0 && parse_decimal(format, type)) ||
        (strncmp(format, "ts", 2) == 0 && parse_timestamp(format, type))) {
        return SLC_OK;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strncmp(format, others[i].start, strlen(others[i].start)) == 0) {
            return slc_fail(err, SLC_ERR_INPUT, "its type is %s", others[i].advice);
        }
    }
    return slc_fail(err, SLC_ERR_INPUT, "its type '%.40s' is not supported: cast it", format);
}

/* Reads a length and the bytes after it from metadata; returns the position after them. */
static const char *read_bytes(const char *at, const char **bytes, int32_t *count)
{
    memcpy(count, at, sizeof *count);
    *bytes = at + sizeof *count;
    return *count > 0 ? *bytes + *count : *bytes;
}

enum slc_status slc_arrow_type_check_extension(const char *metadata, struct slc_error *err)
{
    static const char wanted[] = "ARROW:extension:name";
    int32_t pairs = 0, key_bytes, value_bytes;
    const char *key, *value, *at = metadata;

    if (metadata != NULL) {
        memcpy(&pairs, at, sizeof pairs);
        at += sizeof pairs;
    }
    for (; pairs > 0; pairs--) {
        at = read_bytes(at, &key, &key_bytes);
        at = read_bytes(at, &value, &value_bytes);
        if (key_bytes != sizeof wanted - 1 || memcmp(key, wanted, sizeof wanted - 1) != 0) {
            continue;
        }
        for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
            if (value_bytes == (int32_t)strlen(extensions[i].name) &&
                memcmp(value, extensions[i].name, (size_t)value_bytes) == 0) {
                return slc_fail(err, SLC_ERR_INPUT, "its type is %s", extensions[i].advice);
            }
        }
    }
    return SLC_OK;
}
