/*
 * Points in time in tables: 2023-04-01, 2023-04-01T13:45:30.25+02:00 (a blank instead of the T,
 * slashes instead of the dashes), or seconds since 1970 with any sign and fraction. A zone offset
 * is checked but not applied, so hours are local hours. The Gregorian calendar applies throughout,
 * years 1 to 9999.
 */
#ifndef SLC_CONVERT_CSV_TIME_H
#define SLC_CONVERT_CSV_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum slc_time_unit {
    /* Cyclic units: position on the clock or in the calendar. */
    SLC_TIME_MINUTE,  /* of the hour */
    SLC_TIME_HOUR,    /* of the day */
    SLC_TIME_WEEKDAY, /* Monday is 0 */
    SLC_TIME_DAY,     /* of the month, the first is 0 */
    SLC_TIME_MONTH,   /* January is 0 */
    /* Consecutive units: number of units since an origin. */
    SLC_TIME_YEAR,
    SLC_TIME_YEARMONTH,
    SLC_TIME_DATE,
    SLC_TIME_DATEHOUR,
    SLC_TIME_DATEMINUTE
};

enum { SLC_TIME_NAME_BYTES = 32 };

/* A point in time, rounded down to seconds. */
struct slc_time {
    int32_t days;   /* since 1970-01-01 */
    int32_t second; /* of the day */
};

/* Parses a point in time; false for any other text. Cost: about 17 ns for a date, or a date and a
 * time to the second, with dashes and without a zone; otherwise about 30 ns. */
bool slc_time_parse(const char *text, size_t bytes, struct slc_time *time);

/* The number of the unit that contains `time`; below slc_time_cycle for cyclic units. */
int64_t slc_time_bin(enum slc_time_unit unit, const struct slc_time *time);

/* Number of values of a cyclic unit; 0 for a consecutive unit. */
unsigned slc_time_cycle(enum slc_time_unit unit);

/* Writes the name of a bin, such as "Monday", "April", "2023-04" or "2023-04-01 13:00". Returns its
 * length. */
size_t slc_time_name(enum slc_time_unit unit, int64_t bin, char name[SLC_TIME_NAME_BYTES]);

#endif
