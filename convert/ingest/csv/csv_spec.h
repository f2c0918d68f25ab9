/*
 * What a table becomes: --columns "hour(pickup_time),origin,int(user),bin(fare,5)". An item is a
 * mode: a column's name alone (its strings), or a rule with one in parentheses. A name with commas
 * or parentheses stands in double quotes, a double quote in it twice.
 */
#ifndef SLC_CONVERT_CSV_SPEC_H
#define SLC_CONVERT_CSV_SPEC_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "convert/ingest/csv/csv_time.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_csv_rule {
    SLC_CSV_STRINGS, /* numbered as they first appear */
    SLC_CSV_INTEGER, /* kept: index 0 is 0 */
    SLC_CSV_TIME,
    SLC_CSV_BIN, /* floor((x - origin) / width) */
    SLC_CSV_LOG  /* floor(log(x) / log(width)) */
};

enum { SLC_CSV_NAME_BYTES = 256 };

struct slc_csv_item {
    enum slc_csv_rule rule;
    enum slc_time_unit unit;
    double width, origin;
    char column[SLC_CSV_NAME_BYTES];
    char title[SLC_CSV_NAME_BYTES]; /* the item as given */
};

enum slc_csv_missing { SLC_CSV_MISSING_ERROR, SLC_CSV_MISSING_SKIP, SLC_CSV_MISSING_NAME };

struct slc_csv_spec {
    unsigned order;
    struct slc_csv_item items[SLC_MAX_ORDER];
    char value[SLC_CSV_NAME_BYTES]; /* column of the values; "": every row counts 1 */
    char delimiter;                 /* 0: a tab for .tsv and .tab files, else a comma */
    bool no_header;                 /* columns are called 1, 2, .. */
    enum slc_csv_missing missing;   /* what becomes of rows with an empty field that is needed */
};

/* Errors: SLC_ERR_USAGE naming the item. */
enum slc_status slc_csv_spec_parse(const char *columns,
                                   struct slc_csv_spec *spec,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * The rule that an item means whose name was not found: of hr(when) "hour", *letters 2. NULL where
 * it does not begin with a word and a parenthesis, or the word is like no rule.
 */
const char *slc_csv_nearest_rule(const char *item, unsigned *letters);

/*
 * The same with all else that is said of a table: the column of the values (NULL or "": rows are
 * counted), the delimiter (NULL: as the file's name says; one character, or "tab") and what becomes
 * of rows that lack something. Errors: SLC_ERR_USAGE.
 */
enum slc_status slc_csv_spec_set(struct slc_csv_spec *spec,
                                 const char *columns,
                                 const char *value,
                                 const char *delimiter,
                                 bool no_header,
                                 enum slc_csv_missing missing,
                                 struct slc_error *err) SLC_NODISCARD;

/* What tells it from another. */
uint64_t slc_csv_spec_hash(const struct slc_csv_spec *spec);

/* The number of a value's bin; false where there is none (not finite, too far off, of LOG not
 * above 0). */
bool slc_csv_bin(const struct slc_csv_item *item, double value, int64_t *bin);

/* The name of a bin of BIN or LOG, "[10, 15)". Returns its bytes. */
size_t slc_csv_bin_name(const struct slc_csv_item *item, int64_t bin, char name[64]);

/* Letters to change, add or leave out to make one of the other; names are compared as far as 255
 * bytes. */
unsigned slc_csv_distance(const char *a, const char *b);

#endif
