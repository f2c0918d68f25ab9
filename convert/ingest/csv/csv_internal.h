/*
 * What a table came to, and how its reading is divided: shared by csv.c (reading it),
 * csv_attach.c (names), csv_sample.c and csv_forecast.c (what it will come to).
 */
#ifndef SLC_CONVERT_CSV_INTERNAL_H
#define SLC_CONVERT_CSV_INTERNAL_H

#include "convert/ingest/csv/csv.h"
#include "convert/ingest/csv/csv_names.h"
#include "convert/ingest/csv/csv_rows.h"

/* Integers that are kept get names where the mode is not longer. */
enum { SLC_CSV_NAMED_INTEGERS_MAX = 1 << 20 };

/* Whether the indices of a mode of that length get names. */
static inline bool slc_csv_is_named(const struct slc_csv_item *item, uint64_t length)
{
    return item->rule != SLC_CSV_INTEGER || length <= SLC_CSV_NAMED_INTEGERS_MAX;
}

struct slc_csv {
    const struct slc_csv_spec *spec;
    const struct slc_files *files;
    const struct slc_stop *stop;
    struct slc_dictionary *dictionaries[SLC_MAX_ORDER];
    uint64_t dims[SLC_MAX_ORDER];
    int64_t lowest[SLC_MAX_ORDER]; /* of consecutive bins */
};

/* A table of that name and its delimiter, without columns and dictionaries. Borrows both. */
void slc_csv_table_init(struct slc_csv_table *table,
                        const struct slc_csv_spec *spec,
                        const char *name);

/* Finds the columns by the first record, in that line. Errors: SLC_ERR_USAGE, located. */
enum slc_status slc_csv_take_header(struct slc_csv_table *table,
                                    const struct slc_csv_field *fields,
                                    unsigned count,
                                    uint64_t line,
                                    struct slc_error *err) SLC_NODISCARD;

/* Threads that read: those asked for, while all but the first take no more than a quarter. */
unsigned slc_csv_workers(const struct slc_csv_request *request);

/* What each dictionary has for its strings, and all of them for their tables. */
void slc_csv_divide(const struct slc_csv_request *request,
                    unsigned workers,
                    uint64_t *text_bytes,
                    uint64_t *room_bytes);

#endif
