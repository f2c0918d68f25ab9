/* State of a table and of its readers. It is shared by csv.c (reading), csv_attach.c (names),
 * csv_sample.c and csv_forecast.c (estimates). */
#ifndef SLC_CONVERT_CSV_INTERNAL_H
#define SLC_CONVERT_CSV_INTERNAL_H

#include "convert/ingest/csv/csv.h"
#include "convert/ingest/csv/csv_names.h"
#include "convert/ingest/csv/csv_rows.h"

/* Maximum size of a mode of integers whose indices get names. Larger modes get none, because the
 * integer itself is the index. */
enum { SLC_CSV_NAMED_INTEGERS_MAX = 1 << 20 };

/* Returns true if the indices of a mode of this size get names. */
static inline bool slc_csv_is_named(const struct slc_csv_item *item, uint64_t length)
{
    return item->rule != SLC_CSV_INTEGER || length <= SLC_CSV_NAMED_INTEGERS_MAX;
}

/* Returns true if the indices of a mode are consecutive bins, from the lowest to the highest. */
static inline bool slc_csv_is_consecutive(const struct slc_csv_item *item)
{
    return item->rule == SLC_CSV_BIN || item->rule == SLC_CSV_LOG ||
           (item->rule == SLC_CSV_TIME && slc_time_cycle(item->unit) == 0);
}

/* Checks that a mode does not have too many bins. `name` is the name of the table. Errors:
 * SLC_ERR_INPUT. */
enum slc_status slc_csv_check_bins(const struct slc_csv_item *item,
                                   uint64_t span,
                                   const char *name,
                                   struct slc_error *err) SLC_NODISCARD;

struct slc_csv {
    const struct slc_csv_spec *spec;
    const struct slc_files *files;
    const struct slc_stop *stop;
    struct slc_dictionary *dictionaries[SLC_MAX_ORDER];
    uint64_t dims[SLC_MAX_ORDER];
    /* for modes of consecutive bins: number of the bin that has index 0 */
    int64_t lowest[SLC_MAX_ORDER];
};

/* Initializes a table without columns. Borrows its name and its specification. */
void slc_csv_table_init(struct slc_csv_table *table,
                        const struct slc_csv_spec *spec,
                        const char *name);

/* Finds the columns by the names in the first record, which is on line `line`. Errors:
 * SLC_ERR_USAGE with the position. */
enum slc_status slc_csv_bind_columns(struct slc_csv_table *table,
                                     const struct slc_csv_field *fields,
                                     unsigned count,
                                     uint64_t line,
                                     struct slc_error *err) SLC_NODISCARD;

/* Returns the number of reading threads: the requested number, reduced until all threads except the
 * first need at most a quarter of the memory. */
unsigned slc_csv_workers(const struct slc_csv_request *request);

/* Divides the memory. Each dictionary gets memory for its strings, and all dictionaries share the
 * memory for their hash tables. */
void slc_csv_divide(const struct slc_csv_request *request,
                    unsigned workers,
                    uint64_t *text_bytes,
                    uint64_t *left_bytes);

/* State of the threads that read a table. One thread at a time reads text and cuts the next piece
 * at a record end (csv_index.h). Threads translate pieces concurrently, and each thread then waits
 * for the turn of its piece to commit it. Only short tasks are done in order: searching for quotes,
 * adding new strings, and reserving space in the temporary file. Rows are written concurrently. */
struct slc_csv_reading {
    const struct slc_csv_request *request;
    struct slc_csv_table table; /* initialized by the caller, without columns */
    struct slc_spool *spool;    /* receives the rows */
    uint64_t stored_bytes;      /* size of the input, for progress */
    unsigned workers;
    /* Results. */
    uint64_t rows, skipped, text_bytes;
    int64_t lowest[SLC_MAX_ORDER], highest[SLC_MAX_ORDER];
    struct slc_time_range days[SLC_MAX_ORDER];
};

/* Returns the memory per worker. The first worker needs less, because its text is in the buffer of
 * the request. */
uint64_t slc_csv_worker_bytes(void);

/* Reads the whole input. Calls `header` once, with the fields of the first record; `header` sets
 * the columns. Errors: those of `header`; the first fault of the input, for any number of
 * workers. */
enum slc_status slc_csv_read(struct slc_csv_reading *reading,
                             enum slc_status (*header)(struct slc_csv_table *table,
                                                       const struct slc_csv_field *fields,
                                                       unsigned count,
                                                       uint64_t line,
                                                       struct slc_error *err),
                             struct slc_error *err) SLC_NODISCARD;

#endif
