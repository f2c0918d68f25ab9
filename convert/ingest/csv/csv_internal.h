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

/*
 * The threads that read a table. Each in turn takes the next piece of text, cut behind a record
 * (csv_index.h), translates it while others do the same with theirs, and waits until all before it
 * is settled to settle it. What is in order is short: the search for quotes, strings that are new,
 * and places in the temporary file, to which rows are written outside of it.
 */
struct slc_csv_reading {
    const struct slc_csv_request *request;
    struct slc_csv_table table; /* all but its columns */
    struct slc_spool *spool;    /* gets the rows */
    uint64_t stored_bytes;      /* of the input, for progress */
    unsigned workers;
    /* What comes of it. */
    uint64_t rows, skipped, text_bytes;
    int64_t lowest[SLC_MAX_ORDER], highest[SLC_MAX_ORDER];
};

/* Bytes that each worker but the first takes, whose text goes through the request's room. */
uint64_t slc_csv_worker_bytes(void);

/*
 * Reads the whole input. `header` is called once, with the fields of the first record, and sets the
 * columns. Errors: those of `header`; the first fault of the input, for any number of workers.
 */
enum slc_status slc_csv_read(struct slc_csv_reading *reading,
                             enum slc_status (*header)(struct slc_csv_table *table,
                                                       const struct slc_csv_field *fields,
                                                       unsigned count,
                                                       uint64_t line,
                                                       struct slc_error *err),
                             struct slc_error *err) SLC_NODISCARD;

#endif
