#include "convert/ingest/arrow/arrow_zone.h"

#include "base/memory/memory.h"
#include "convert/ingest/csv/csv_time.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    HEADER_BYTES = 44,
    FILE_BYTES_MAX = 1 << 20, /* zone files have up to 4 KiB */
    OFFSET_MAX = 26 * 3600,
    DAY = 86400
};

/* A change to or from daylight saving time in the rule of a zone. */
struct change {
    char form; /* 'M': weekday of a week of a month; 'J': day without leap days; '0': day from 0 */
    unsigned month, week, day;
    int32_t time; /* local seconds of the day */
};

struct slc_arrow_zone {
    /* Changes in ascending order: times, and the offsets that apply from then on. */
    uint32_t count;
    int64_t *times;
    int32_t *offsets;
    int32_t first; /* offset before the first change */
    bool ruled;    /* true if a rule applies after the last change */
    bool saves;    /* true if the rule has daylight saving time */
    int32_t standard, saving;
    struct change begin, end;
};

static uint64_t big_endian(const unsigned char *at, unsigned bytes)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

/* Parses up to `digits` digits. */
static bool parse_digits(const char **at, unsigned digits, unsigned *value)
{
    const char *begin = *at;

    for (*value = 0; **at >= '0' && **at <= '9' && (unsigned)(*at - begin) < digits; (*at)++) {
        *value = 10 * *value + (unsigned)(**at - '0');
    }
    return *at > begin;
}

/* Parses [+-]HH[:MM[:SS]] or [+-]HHMM, with hours up to 167. */
static bool parse_clock(const char **at, int32_t *seconds)
{
    const int32_t sign = **at == '-' ? -1 : 1;
    unsigned hour = 0, minute = 0, second = 0;

    *at += **at == '-' || **at == '+';
    const size_t digits = strspn(*at, "0123456789");
    bool sound = parse_digits(at, digits == 4 ? 2 : 3, &hour) &&
                 (digits != 4 || parse_digits(at, 2, &minute));
    if (digits != 4 && **at == ':') {
        (*at)++;
        sound = sound && parse_digits(at, 2, &minute);
    }
    if (**at == ':') {
        (*at)++;
        sound = sound && parse_digits(at, 2, &second);
    }
    *seconds = sign * (int32_t)(3600 * hour + 60 * minute + second);
    return sound && hour <= 167 && minute < 60 && second < 60;
}

/* Skips the abbreviation of a zone: letters, or any characters in angle brackets. */
static bool skip_abbreviation(const char **at)
{
    const char *begin = *at;

    if (**at == '<') {
        const char *end = strchr(*at, '>');

        *at = end != NULL ? end + 1 : *at;
        return end != NULL;
    }
    while ((**at >= 'A' && **at <= 'Z') || (**at >= 'a' && **at <= 'z')) {
        (*at)++;
    }
    return *at > begin;
}

static bool parse_change(const char **at, struct change *change)
{
    bool sound;

    if (*(*at)++ != ',') {
        return false;
    }
    change->form = **at == 'M' || **at == 'J' ? *(*at)++ : '0';
    change->time = 2 * 3600;
    if (change->form == 'M') {
        sound = parse_digits(at, 2, &change->month) && *(*at)++ == '.' &&
                parse_digits(at, 1, &change->week) && *(*at)++ == '.' &&
                parse_digits(at, 1, &change->day) && change->month >= 1 && change->month <= 12 &&
                change->week >= 1 && change->week <= 5 && change->day <= 6;
    } else {
        sound = parse_digits(at, 3, &change->day) && change->day <= 365 &&
                (change->form == '0' || change->day >= 1);
    }
    if (sound && **at == '/') {
        (*at)++;
        sound = parse_clock(at, &change->time);
    }
    return sound;
}

/* Parses the rule after the last change, such as CET-1CEST,M3.5.0,M10.5.0/3. Offsets in a rule are
 * positive west of UTC. An empty rule is valid: the last offset then applies. */
static bool parse_rule(const char *at, struct slc_arrow_zone *zone)
{
    if (*at == '\0') {
        return true;
    }
    if (!skip_abbreviation(&at) || !parse_clock(&at, &zone->standard)) {
        return false;
    }
    zone->ruled = true;
    zone->standard = -zone->standard;
    zone->saving = zone->standard + 3600;
    if (*at == '\0') {
        return true;
    }
    zone->saves = true;
    if (!skip_abbreviation(&at)) {
        return false;
    }
    if (*at != ',') {
        if (!parse_clock(&at, &zone->saving)) {
            return false;
        }
        zone->saving = -zone->saving;
    }
    return parse_change(&at, &zone->begin) && parse_change(&at, &zone->end) && *at == '\0';
}

/* Returns the local time of a change in a year, in seconds since 1970 local time. */
static int64_t change_time(const struct change *change, int64_t year)
{
    const struct slc_date first = {.year = year, .month = 1, .day = 1};
    const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    int64_t day = slc_date_days(&first);

    if (change->form == 'M') {
        const struct slc_date month = {.year = year, .month = change->month, .day = 1};
        const struct slc_date next = {
            .year = year + change->month / 12, .month = change->month % 12 + 1, .day = 1};
        int64_t weekday;

        day = slc_date_days(&month);
        weekday = ((day + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday, and Sunday is 0 */
        day += ((int64_t)change->day - weekday + 7) % 7 + 7 * ((int64_t)change->week - 1);
        day -= day >= slc_date_days(&next) ? 7 : 0;
    } else if (change->form == 'J') {
        day += (int64_t)change->day - 1 + (leap && change->day >= 60);
    } else {
        day += change->day;
    }
    return day * DAY + change->time;
}

static void apply_rule(const struct slc_arrow_zone *zone, int64_t utc, struct slc_arrow_offset *to)
{
    const int64_t local = utc + zone->standard;
    const int64_t days = local / DAY - (local % DAY < 0);
    const int64_t year = slc_date_of(days).year;

    *to = (struct slc_arrow_offset){.from = utc, .to = utc + 1, .offset = zone->standard};
    if (zone->saves) {
        const int64_t begin = change_time(&zone->begin, year) - zone->standard;
        const int64_t end = change_time(&zone->end, year) - zone->saving;
        const bool saves = begin < end ? utc >= begin && utc < end : utc >= begin || utc < end;

        to->offset = saves ? zone->saving : zone->standard;
    }
}

void slc_arrow_zone_find(const struct slc_arrow_zone *zone,
                         int64_t utc,
                         struct slc_arrow_offset *offset)
{
    uint32_t low = 0, high = zone->count; /* times[low - 1] <= utc < times[high] */

    if (utc >= offset->from && utc < offset->to) {
        return;
    }
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (zone->times[middle] <= utc) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == zone->count && zone->ruled) {
        apply_rule(zone, utc, offset);
        return;
    }
    *offset = (struct slc_arrow_offset){.from = low > 0 ? zone->times[low - 1] : INT64_MIN,
                                        .to = low < zone->count ? zone->times[low] : INT64_MAX,
                                        .offset = low > 0 ? zone->offsets[low - 1] : zone->first};
}

/* The sizes of the sections of a zone file, as the header of the file states them. */
struct sections {
    uint64_t is_ut, is_standard, leaps, times, types, letters;
};

static bool read_header(const unsigned char *at, size_t bytes, struct sections *sections)
{
    if (bytes < HEADER_BYTES || memcmp(at, "TZif", 4) != 0) {
        return false;
    }
    *sections =
        (struct sections){big_endian(at + 20, 4), big_endian(at + 24, 4), big_endian(at + 28, 4),
                          big_endian(at + 32, 4), big_endian(at + 36, 4), big_endian(at + 40, 4)};
    return sections->types > 0;
}

/* Returns the bytes of the sections, with times of `width` bytes. */
static uint64_t section_bytes(const struct sections *s, unsigned width)
{
    return s->times * (width + 1) + s->types * 6 + s->letters + s->leaps * (width + 4) +
           s->is_standard + s->is_ut;
}

/* Reads the changes of the second part of a file, whose times have 64 bits. */
static bool
read_changes(const unsigned char *at, const struct sections *sections, struct slc_arrow_zone *zone)
{
    const unsigned char *kinds = at + sections->times * 8;
    const unsigned char *types = kinds + sections->times;
    bool sound = true;

    for (uint32_t i = 0; i < sections->types; i++) {
        const int32_t offset = (int32_t)big_endian(types + 6 * (size_t)i, 4);

        sound = sound && offset >= -OFFSET_MAX && offset <= OFFSET_MAX;
    }
    zone->first = (int32_t)big_endian(types, 4);
    zone->count = (uint32_t)sections->times;
    for (uint32_t i = 0; i < zone->count && sound; i++) {
        zone->times[i] = (int64_t)big_endian(at + 8 * (size_t)i, 8);
        sound = kinds[i] < sections->types && (i == 0 || zone->times[i] > zone->times[i - 1]);
        if (sound) {
            zone->offsets[i] = (int32_t)big_endian(types + 6 * (size_t)kinds[i], 4);
        }
    }
    return sound;
}

enum slc_status slc_arrow_zone_parse(const void *data,
                                     size_t bytes,
                                     struct slc_arrow_zone **zone,
                                     struct slc_error *err)
{
    const unsigned char *at = data, *end = at + bytes;
    struct sections sections = {.types = 0};
    char rule[128] = "";

    *zone = NULL;
    bool sound = read_header(at, bytes, &sections) && at[4] >= '2' &&
                 section_bytes(&sections, 4) <= bytes - HEADER_BYTES;
    at += sound ? HEADER_BYTES + section_bytes(&sections, 4) : 0;
    sound = sound && read_header(at, (size_t)(end - at), &sections) &&
            section_bytes(&sections, 8) <= (uint64_t)(end - at) - HEADER_BYTES;
    if (sound) {
        struct slc_arrow_zone *made =
            slc_calloc(1, sizeof *made + sections.times * (sizeof(int64_t) + sizeof(int32_t)));

        SLC_TRY(slc_check_memory(made != NULL, err, "for a time zone"));
        *zone = made;
        made->times = (int64_t *)(made + 1);
        made->offsets = (int32_t *)(made->times + sections.times);
        sound = read_changes(at + HEADER_BYTES, &sections, made);
        at += HEADER_BYTES + section_bytes(&sections, 8);
        const size_t left = (size_t)(end - at);
        sound = sound && left >= 2 && left - 2 < sizeof rule && *at == '\n' && end[-1] == '\n';
        if (sound) {
            memcpy(rule, at + 1, left - 2);
            sound = parse_rule(rule, made);
        }
    }
    if (!sound) {
        slc_arrow_zone_close(*zone);
        *zone = NULL;
        return slc_fail(err, SLC_ERR_INPUT, "the file of the time zone is damaged");
    }
    return SLC_OK;
}

/* Accepts UTC, GMT, Z and fixed offsets, which need no file. */
static bool parse_fixed(const char *name, int32_t *offset)
{
    static const char *const utc[] = {"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "+00:00"};
    const char *at = name;

    *offset = 0;
    for (size_t i = 0; i < sizeof utc / sizeof utc[0]; i++) {
        if (strcmp(name, utc[i]) == 0) {
            return true;
        }
    }
    return (*name == '+' || *name == '-') && parse_clock(&at, offset) && *at == '\0' &&
           *offset >= -OFFSET_MAX && *offset <= OFFSET_MAX;
}

enum slc_status
slc_arrow_zone_open(const char *name, struct slc_arrow_zone **zone, struct slc_error *err)
{
    char path[256];
    void *data = NULL;
    uint64_t bytes = 0;
    int32_t offset = 0;
    const int length = snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);

    *zone = NULL;
    if (parse_fixed(name, &offset)) {
        *zone = slc_calloc(1, sizeof **zone);
        SLC_TRY(slc_check_memory(*zone != NULL, err, "for a time zone"));
        (*zone)->first = offset;
        return SLC_OK;
    }
    /* Names of zones are relative paths of letters, digits and a few signs. */
    struct slc_error fault = SLC_ERROR_INIT;
    const bool named =
        length > 0 && (size_t)length < sizeof path && name[0] != '/' && strstr(name, "..") == NULL;
    if (!named ||
        slc_file_load(slc_files_system(), path, FILE_BYTES_MAX, &data, &bytes, &fault) != SLC_OK) {
        return fault.status == SLC_ERR_MEMORY
                   ? slc_error_pass(err, &fault)
                   : slc_fail(err, SLC_ERR_INPUT,
                              "the system has no time zone '%.80s' (/usr/share/zoneinfo): install "
                              "tzdata, or convert the times to UTC",
                              name);
    }
    const enum slc_status status = slc_arrow_zone_parse(data, bytes, zone, err);
    slc_free(data);
    return status;
}

void slc_arrow_zone_close(struct slc_arrow_zone *zone)
{
    slc_free(zone);
}
