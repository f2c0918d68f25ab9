/* Parses and names points in time. For counting days, years begin in March, so that a leap day is
 * the last day of its year.
 *
 * The most frequent notations, 2023-04-01 and 2023-04-01 13:45:30, are read eight bytes at a time:
 * one comparison checks all digits and separators of a word, and one multiplication converts all
 * pairs of digits. Other notations are read byte by byte. */
#include "convert/ingest/csv/csv_time.h"

#include "base/memory/bytes.h"

#include <inttypes.h>
#include <stdio.h>

static const int64_t day_seconds = 86400;
static const int64_t era_days = 146097; /* days in 400 years */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

int64_t slc_date_days(const struct slc_date *date)
{
    const int64_t year = date->year - (date->month <= 2);
    const int64_t era = floor_div(year, 400), of_era = year - era * 400;
    const int64_t of_year = (153 * (int64_t)((date->month + 9) % 12) + 2) / 5 + date->day - 1;

    return era * era_days + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

struct slc_date slc_date_of(int64_t days)
{
    const int64_t era = floor_div(days + 719468, era_days);
    const int64_t of_era = days + 719468 - era * era_days;
    const int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    const int64_t month = (5 * of_year + 2) / 153;
    struct slc_date date = {.day = (unsigned)(of_year - (153 * month + 2) / 5 + 1),
                            .month = (unsigned)(month < 10 ? month + 3 : month - 9)};

    date.year = years + era * 400 + (date.month <= 2);
    return date;
}

static unsigned month_days(const struct slc_date *date)
{
    static const unsigned char days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = date->year % 4 == 0 && (date->year % 100 != 0 || date->year % 400 == 0);

    return date->month == 2 && leap ? 29 : days[date->month - 1];
}

/* Parses exactly `count` digits. Returns false if there are fewer. */
static bool digits(const char **at, const char *end, unsigned count, unsigned *value)
{
    *value = 0;
    for (unsigned i = 0; i < count; i++, (*at)++) {
        if (*at == end || **at < '0' || **at > '9') {
            return false;
        }
        *value = 10 * *value + (unsigned)(**at - '0');
    }
    return true;
}

static bool skip_char(const char **at, const char *end, char c)
{
    const bool there = *at < end && **at == c;

    *at += there;
    return there;
}

/* Parses a fraction of a second: '.' or ',' and digits. Sets *any if a digit is not 0; the fraction
 * itself is ignored. */
static bool fraction(const char **at, const char *end, bool *any)
{
    const char *begin;

    if (!skip_char(at, end, '.') && !skip_char(at, end, ',')) {
        return true;
    }
    for (begin = *at; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
        *any = *any || **at != '0';
    }
    return *at > begin;
}

/* Parses a zone offset: Z, +HH, +HH:MM or +HHMM (also with -), or nothing. */
static bool zone(const char *at, const char *end)
{
    unsigned hours, minutes = 0;

    if (skip_char(&at, end, 'Z') || skip_char(&at, end, 'z')) {
        return at == end;
    }
    if (skip_char(&at, end, '+') || skip_char(&at, end, '-')) {
        if (!digits(&at, end, 2, &hours)) {
            return false;
        }
        if (skip_char(&at, end, ':') || at < end) {
            if (!digits(&at, end, 2, &minutes)) {
                return false;
            }
        }
        return at == end && hours <= 23 && minutes <= 59;
    }
    return at == end;
}

static bool parse_clock(const char *at, const char *end, int64_t *seconds)
{
    unsigned hour, minute, second = 0;
    bool any = false;

    if (!digits(&at, end, 2, &hour) || !skip_char(&at, end, ':') || !digits(&at, end, 2, &minute)) {
        return false;
    }
    if (skip_char(&at, end, ':') && (!digits(&at, end, 2, &second) || !fraction(&at, end, &any))) {
        return false;
    }
    /* Second 60 is a leap second, which belongs to the minute that it ends. */
    if (hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    *seconds = 3600 * (int64_t)hour + 60 * (int64_t)minute + (second > 59 ? 59 : second);
    if (skip_char(&at, end, ' ') && at == end) {
        return false;
    }
    return zone(at, end);
}

static bool parse_epoch(const char *at, const char *end, int64_t *seconds)
{
    const bool negative = skip_char(&at, end, '-');
    if (!negative) {
        (void)skip_char(&at, end, '+');
    }
    const char *begin = at;
    bool any = false;
    int64_t value = 0;

    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        value = 10 * value + (*at - '0');
        if (at - begin > 12) {
            return false;
        }
    }
    if (at == begin || !fraction(&at, end, &any) || at != end) {
        return false;
    }
    *seconds = negative ? -value - any : value;
    return true;
}

/* Parses a point in time in any of the accepted notations with a date. */
static bool parse_calendar(const char *at, const char *end, struct slc_time *time)
{
    const char *begin = at, dash = at[4];
    struct slc_date date;
    unsigned year;
    int64_t clock = 0;

    if (!digits(&at, end, 4, &year) || !skip_char(&at, end, dash) ||
        !digits(&at, end, 2, &date.month) || !skip_char(&at, end, dash) ||
        !digits(&at, end, 2, &date.day)) {
        return false;
    }
    date.year = year;
    if (year < 1 || date.month < 1 || date.month > 12 || date.day < 1 ||
        date.day > month_days(&date)) {
        return false;
    }
    if (at < end && !skip_char(&at, end, 'T') && !skip_char(&at, end, ' ') &&
        !skip_char(&at, end, 't')) {
        return false;
    }
    if (at > begin + 10 && !parse_clock(at, end, &clock)) {
        return false;
    }
    time->days = (int32_t)slc_date_days(&date);
    time->second = (int32_t)clock;
    return true;
}

/* Returns true if a word has digits where `pattern` has 0x30, and the bytes of `pattern` elsewhere.
 * Stores ten times each digit plus the next digit in the bytes of *pairs. */
static bool read_pairs(uint64_t word, uint64_t pattern, uint64_t others, uint64_t *pairs)
{
    const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f), value = word ^ pattern;
    /* Adding `limit` sets the top bit of bytes above 9, and of bytes above 0 where no digit is
     * expected. */
    const uint64_t limit = UINT64_C(0x7676767676767676) | (others & low);

    *pairs = value * 10 + (value >> 8);
    return ((((value & low) + limit) | value) & ~low) == 0;
}

/* 2023-04-01 */
static bool read_date(const char *text, struct slc_time *time)
{
    static const uint16_t before[13] = {0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    static const uint8_t lengths[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const unsigned tens = (unsigned char)text[8] - (unsigned)'0';
    const unsigned ones = (unsigned char)text[9] - (unsigned)'0';
    const unsigned day = 10 * tens + ones;
    uint64_t pairs;

    if (!read_pairs(slc_load_u64(text), UINT64_C(0x2d30302d30303030), UINT64_C(0xff0000ff00000000),
                    &pairs) ||
        tens > 9 || ones > 9) {
        return false;
    }
    unsigned year = (unsigned)(pairs & 0xff) * 100 + (unsigned)(pairs >> 16 & 0xff);
    unsigned month = (unsigned)(pairs >> 40 & 0xff);
    unsigned leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (year == 0 || month == 0 || month > 12 || day == 0 ||
        day > lengths[month] + (leap & (month == 2))) {
        return false;
    }
    /* There are 719,162 days from 0001-01-01 to 1970-01-01. */
    unsigned past = year - 1;
    time->days = (int32_t)(365 * past + past / 4 - past / 100 + past / 400 + before[month] +
                           (leap & (month > 2)) + day - 1) -
                 719162;
    return true;
}

/* 13:45:30 */
static bool read_clock(const char *text, struct slc_time *time)
{
    uint64_t pairs;

    if (!read_pairs(slc_load_u64(text), UINT64_C(0x30303a30303a3030), UINT64_C(0x0000ff0000ff0000),
                    &pairs)) {
        return false;
    }
    unsigned hour = (unsigned)(pairs & 0xff);
    unsigned minute = (unsigned)(pairs >> 24 & 0xff);
    unsigned second = (unsigned)(pairs >> 48 & 0xff);
    if (hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    /* Second 60 is a leap second, which belongs to the minute that it ends. */
    time->second = (int32_t)(3600 * hour + 60 * minute + (second > 59 ? 59 : second));
    return true;
}

bool slc_time_parse(const char *text, size_t bytes, struct slc_time *time)
{
    /* Only years 1 to 9999 are accepted, which have four digits in names. */
    static const int64_t least = INT64_C(-62135596800), most = INT64_C(253402300799);
    int64_t seconds, days;

    if (bytes == 19 && (text[10] == ' ' || (text[10] | 0x20) == 't') && read_date(text, time) &&
        read_clock(text + 11, time)) {
        return true;
    }
    if (bytes == 10 && read_date(text, time)) {
        time->second = 0;
        return true;
    }
    if (bytes >= 6 && text[0] != '-' && (text[4] == '-' || text[4] == '/')) {
        return parse_calendar(text, text + bytes, time);
    }
    if (!parse_epoch(text, text + bytes, &seconds) || seconds < least || seconds > most) {
        return false;
    }
    days = floor_div(seconds, day_seconds);
    time->days = (int32_t)days;
    time->second = (int32_t)(seconds - days * day_seconds);
    return true;
}

int64_t slc_time_bin(enum slc_time_unit unit, const struct slc_time *time)
{
    const int64_t days = time->days, hour = time->second / 3600, minute = time->second / 60;

    switch (unit) {
    case SLC_TIME_MINUTE:
        return minute - 60 * hour;
    case SLC_TIME_HOUR:
        return hour;
    case SLC_TIME_WEEKDAY: /* 1970-01-01 was a Thursday */
        return days + 3 - 7 * floor_div(days + 3, 7);
    case SLC_TIME_DATE:
        return days;
    case SLC_TIME_DATEHOUR:
        return 24 * days + hour;
    case SLC_TIME_DATEMINUTE:
        return 1440 * days + minute;
    default:
        break;
    }
    struct slc_date date = slc_date_of(days);
    switch (unit) {
    case SLC_TIME_DAY:
        return (int64_t)date.day - 1;
    case SLC_TIME_MONTH:
        return (int64_t)date.month - 1;
    case SLC_TIME_YEAR:
        return date.year;
    default: /* SLC_TIME_YEARMONTH */
        return 12 * date.year + date.month - 1;
    }
}

unsigned slc_time_cycle(enum slc_time_unit unit)
{
    static const unsigned char cycles[] = {60, 24, 7, 31, 12};

    return unit < SLC_TIME_YEAR ? cycles[unit] : 0;
}

size_t slc_time_name(enum slc_time_unit unit, int64_t bin, char name[SLC_TIME_NAME_BYTES])
{
    static const char *const weekdays[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                           "Friday", "Saturday", "Sunday"};
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    const int64_t per_day = unit == SLC_TIME_DATEMINUTE ? 1440 : unit == SLC_TIME_DATEHOUR ? 24 : 1;
    const int64_t days = floor_div(bin, per_day);
    const unsigned minutes = (unsigned)((bin - days * per_day) * (1440 / per_day));
    const struct slc_date date = slc_date_of(days);
    int length;

    switch (unit) {
    case SLC_TIME_WEEKDAY:
        length = snprintf(name, SLC_TIME_NAME_BYTES, "%s", weekdays[bin]);
        break;
    case SLC_TIME_MONTH:
        length = snprintf(name, SLC_TIME_NAME_BYTES, "%s", months[bin]);
        break;
    case SLC_TIME_MINUTE:
    case SLC_TIME_HOUR:
        length = snprintf(name, SLC_TIME_NAME_BYTES, "%02" PRId64, bin);
        break;
    case SLC_TIME_DAY:
        length = snprintf(name, SLC_TIME_NAME_BYTES, "%" PRId64, bin + 1);
        break;
    case SLC_TIME_YEAR:
        length = snprintf(name, SLC_TIME_NAME_BYTES, "%04" PRId64, bin);
        break;
    case SLC_TIME_YEARMONTH:
        length =
            snprintf(name, SLC_TIME_NAME_BYTES, "%04" PRId64 "-%02" PRId64, bin / 12, bin % 12 + 1);
        break;
    case SLC_TIME_DATE:
        length = snprintf(name, SLC_TIME_NAME_BYTES, "%04" PRId64 "-%02u-%02u", date.year,
                          date.month, date.day);
        break;
    default:
        length = snprintf(name, SLC_TIME_NAME_BYTES, "%04" PRId64 "-%02u-%02u %02u:%02u", date.year,
                          date.month, date.day, minutes / 60, minutes % 60);
    }
    return (size_t)length;
}
