/* Parses --columns "hour(pickup_time),origin,int(user),bin(fare,5)". Each item defines a mode. An
 * item is a column name, whose strings become indices, or a rule with a column name in parentheses.
 * Names with commas or parentheses must be in double quotes, and double quotes within them must be
 * doubled. */
#ifndef SLC_CONVERT_CSV_SPEC_H
#define SLC_CONVERT_CSV_SPEC_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "convert/ingest/csv/csv_time.h"
#include "convert/number/decimal.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum slc_csv_rule {
    SLC_CSV_STRINGS, /* numbered by first appearance, unless sorted */
    SLC_CSV_INTEGER, /* the integer is the index */
    SLC_CSV_TIME,
    SLC_CSV_BIN, /* floor((x - origin) / width) in decimal arithmetic */
    SLC_CSV_LOG  /* the largest k such that base^k is at most x */
};

enum {
    SLC_CSV_NAME_BYTES = 256,
    SLC_CSV_BIN_BYTES = 2 * SLC_DECIMAL_NAME_BYTES,
    SLC_CSV_NULLS_MAX = 32
};

struct slc_csv_item {
    enum slc_csv_rule rule;
    enum slc_time_unit unit;
    bool sorted; /* STRINGS: numbered in the order of csv_order.h */
    /* BIN: the width and the origin are these numbers times 10^power */
    slc_i128 width, origin;
    int power;
    double base; /* LOG: the base */
    char column[SLC_CSV_NAME_BYTES];
    char title[SLC_CSV_NAME_BYTES]; /* the item as the user wrote it */
};

enum slc_csv_missing { SLC_CSV_MISSING_ERROR, SLC_CSV_MISSING_SKIP, SLC_CSV_MISSING_NAME };

struct slc_csv_spec {
    unsigned order;
    struct slc_csv_item items[SLC_MAX_ORDER];
    char value[SLC_CSV_NAME_BYTES]; /* column of the values; "" if every row has the value 1 */
    /* 0 means a tab for .tsv and .tab files, a comma for other files */
    char delimiter;
    /* true if the first line is not a header; columns are then called 1, 2, .. */
    bool no_header;
    enum slc_csv_missing missing; /* treatment of rows with an empty required field */
    bool missing_fixed;           /* true if the caller cannot choose `missing` */
    /* Words that are read as empty fields, separated by commas; "" if there are none. */
    char null[SLC_CSV_NAME_BYTES];
    unsigned null_count;
    struct slc_csv_word {
        uint8_t at, bytes; /* place of a word in `null` */
    } null_words[SLC_CSV_NULLS_MAX];
};

/* Sets the words that are read as empty fields. Errors: SLC_ERR_USAGE. */
enum slc_status slc_csv_spec_set_null(struct slc_csv_spec *spec,
                                      const char *words,
                                      struct slc_error *err) SLC_NODISCARD;

/* Returns true if the text of a field, without its quotes, is a word that is read as empty. */
static inline bool slc_csv_is_null(const struct slc_csv_spec *spec, const char *text, size_t bytes)
{
    for (unsigned i = 0; i < spec->null_count; i++) {
        if (spec->null_words[i].bytes == bytes &&
            memcmp(spec->null + spec->null_words[i].at, text, bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* Parses the items of `columns`. Errors: SLC_ERR_USAGE; the message names the item. */
enum slc_status slc_csv_spec_parse(const char *columns,
                                   struct slc_csv_spec *spec,
                                   struct slc_error *err) SLC_NODISCARD;

/* Returns the rule that is most similar to the unknown rule of an item. For "hr(when)" it returns
 * "hour" and sets *letters to 2, the length of "hr". Returns NULL if the item does not begin with a
 * word and a parenthesis, or if no rule is similar. */
const char *slc_csv_nearest_rule(const char *item, unsigned *letters);

/* Does the same as slc_csv_spec_parse and sets the other options of a table. `value` is the column
 * of the values; NULL or "" counts rows. `delimiter` is one character or "tab"; NULL chooses by the
 * file name. `missing` is the treatment of rows with missing fields, and `null` the words that are
 * read as empty fields (NULL: none). Errors: SLC_ERR_USAGE. */
enum slc_status slc_csv_spec_set(struct slc_csv_spec *spec,
                                 const char *columns,
                                 const char *value,
                                 const char *delimiter,
                                 bool no_header,
                                 enum slc_csv_missing missing,
                                 const char *null,
                                 struct slc_error *err) SLC_NODISCARD;

/* Returns a hash of a specification. */
uint64_t slc_csv_spec_hash(const struct slc_csv_spec *spec);

/* Computes the bin of the number in `text`, a field without its quotes. Returns false if there is
 * no number, or if it has no bin (2^52 or more bins from 0, or below DBL_MIN for LOG). */
bool slc_csv_bin(const struct slc_csv_item *item, const char *text, size_t bytes, int64_t *bin);

/* Writes the name of a bin of BIN or LOG: its exact bounds, such as "[10, 15)". Different bins have
 * different names. Returns the length. */
size_t slc_csv_bin_name(const struct slc_csv_item *item, int64_t bin, char name[SLC_CSV_BIN_BYTES]);

/* Returns the edit distance of the first 255 bytes of two strings: the minimum number of letters to
 * change, add or remove. */
unsigned slc_csv_distance(const char *a, const char *b);

#endif
