/* Offsets of time zones: changes, rules, and damaged files. */
#include "convert/ingest/arrow/arrow_zone.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A zone file with one change: version 2, with an empty first part. */
static size_t make_zone(unsigned char *to, const char *rule)
{
    static const unsigned char head[] = "TZif2\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    size_t at = 0;

    for (unsigned part = 0; part < 2; part++) {
        memset(to + at, 0, 44);
        memcpy(to + at, head, 5);
        to[at + 35] = (unsigned char)part;     /* number of changes */
        to[at + 39] = (unsigned char)part + 1; /* number of types */
        to[at + 43] = 4;                       /* number of letters of abbreviations */
        at += 44;
        if (part == 1) {
            memcpy(to + at, "\0\0\0\0\0\0\x0e\x10\1", 9); /* the change to type 1 at second 3600 */
            at += 9;
        }
        memcpy(to + at, "\0\0\0\0\0\0\0\0\x0e\x10\0\0", 12); /* offsets of the types: 0, 1 hour */
        at += 6 * (part + (size_t)1);
        memcpy(to + at, "UTC", 4);
        at += 4;
    }
    return at + (size_t)sprintf((char *)to + at, "\n%s\n", rule);
}

static int32_t offset_at(const struct slc_arrow_zone *zone, int64_t utc)
{
    struct slc_arrow_offset offset = {.offset = 0};

    slc_arrow_zone_find(zone, utc, &offset);
    CU_ASSERT_TRUE(offset.from <= utc && utc < offset.to);
    return offset.offset;
}

static void test_zones(void)
{
    unsigned char file[512];
    struct slc_arrow_zone *zone = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    size_t bytes = make_zone(file, "CET-1CEST,M3.5.0,M10.5.0/3");

    CU_ASSERT_EQUAL(slc_arrow_zone_parse(file, bytes, &zone, &err), SLC_OK);
    CU_ASSERT_EQUAL(offset_at(zone, 3599), 0);
    CU_ASSERT_EQUAL(offset_at(zone, 3600), 3600);
    CU_ASSERT_EQUAL(offset_at(zone, INT64_C(1679792399)), 3600); /* 2023-03-26 00:59:59 UTC */
    CU_ASSERT_EQUAL(offset_at(zone, INT64_C(1679792400)), 7200);
    CU_ASSERT_EQUAL(offset_at(zone, INT64_C(1698541199)), 7200); /* 2023-10-29 00:59:59 UTC */
    CU_ASSERT_EQUAL(offset_at(zone, INT64_C(1698541200)), 3600);
    slc_arrow_zone_close(zone);
    /* Every shorter file is damaged, except those that end in the part that is not used. */
    for (size_t cut = 0; cut < bytes; cut++) {
        unsigned char *part = malloc(cut + 1);

        memcpy(part, file, cut);
        slc_error_clear(&err);
        CU_ASSERT_EQUAL(slc_arrow_zone_parse(part, cut, &zone, &err), SLC_ERR_INPUT);
        CU_ASSERT_PTR_NULL(zone);
        free(part);
    }
    /* Southern summer time, days of the year, and offsets in minutes. */
    bytes = make_zone(file, "<+1030>-10:30<+11>-11,J305,90/2");
    slc_error_clear(&err);
    CU_ASSERT_EQUAL(slc_arrow_zone_parse(file, bytes, &zone, &err), SLC_OK);
    CU_ASSERT_EQUAL(offset_at(zone, INT64_C(1672531200)), 39600); /* 2023-01-01 */
    CU_ASSERT_EQUAL(offset_at(zone, INT64_C(1688169600)), 37800); /* 2023-07-01 */
    slc_arrow_zone_close(zone);
    static const char *const wrong[] = {
        "CET",    "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M1.1.0", "1",
        "CET-1 ", "<CET-1"};
    for (size_t i = 0; i < SLC_COUNT(wrong); i++) {
        slc_error_clear(&err);
        bytes = make_zone(file, wrong[i]);
        CU_ASSERT_EQUAL(slc_arrow_zone_parse(file, bytes, &zone, &err), SLC_ERR_INPUT);
    }
}

static void test_names(void)
{
    struct slc_arrow_zone *zone = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    static const char *const names[] = {"-08:00", "+0530", "UTC"};
    static const int32_t offsets[] = {-28800, 19800, 0};
    for (size_t i = 0; i < SLC_COUNT(names); i++) {
        slc_error_clear(&err);
        CU_ASSERT_EQUAL(slc_arrow_zone_open(names[i], &zone, &err), SLC_OK);
        CU_ASSERT_EQUAL(offset_at(zone, 0), offsets[i]);
        slc_arrow_zone_close(zone);
    }
    CU_ASSERT_EQUAL(slc_arrow_zone_open("../../etc/passwd", &zone, &err), SLC_ERR_INPUT);
}

static const struct slc_test tests[] = {
    {"zone files", test_zones},
    {"names of zones", test_names},
};

SLC_SUITE(arrow_zone)
{
    return slc_test_main("arrow_zone", tests, SLC_COUNT(tests), argc, argv);
}
