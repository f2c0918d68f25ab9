/* Estimates the numbers of rows, strings and bins of a table, for forecasts. The sample is pieces
 * spread over the table or, for a compressed table or a pipe, its beginning. Nothing is written. */
#ifndef SLC_CONVERT_CSV_SAMPLE_H
#define SLC_CONVERT_CSV_SAMPLE_H

#include "convert/forecast/species_estimate.h"
#include "convert/ingest/csv/csv.h"

#include <stdbool.h>
#include <stdint.h>

/* Estimates for a mode of the whole table. */
struct slc_csv_mode {
    uint64_t length, least, most; /* mode size: expected size, lower and upper bound */
    /* True if the indices of the mode get names; name_bytes is then the total size of the names. */
    bool named;
    double name_bytes, name_bytes_most;
};

struct slc_csv_sample {
    bool whole; /* true if the sample is the whole table */
    /* Decompressed size of the table. 0 means unknown; then `rows` and `skipped` are unknown,
     * too. */
    uint64_t text_bytes;
    uint64_t rows, skipped;
    double seconds_each; /* seconds that one thread needs per byte of text */
    struct slc_csv_mode modes[SLC_MAX_ORDER];
    struct slc_species_estimate cells; /* estimate of the number of distinct coordinates */
    /* Rows of the sample, with approximate indices. */
    struct slc_buffer memory;
    uint32_t row_count, stretches;
    uint64_t *coords[SLC_MAX_ORDER];
    double *values;
};

/* Reads about `bytes` bytes of the input. Afterwards the input can only be closed. Ownership:
 * release with slc_csv_sample_destroy, also after an error. Memory: 3 MiB, 512 KiB per column of
 * strings, and 8 bytes per index and value of at most 65,536 rows. Errors: those of slc_csv_open
 * for the header; the first fault, as SLC_ERR_INPUT, if no piece has a valid row; those of file
 * operations. */
enum slc_status slc_csv_sample(const struct slc_csv_request *request,
                               uint64_t bytes,
                               struct slc_csv_sample *sample,
                               struct slc_error *err) SLC_NODISCARD;
/* Frees the sample; accepts an all-zero struct. */
void slc_csv_sample_destroy(struct slc_csv_sample *sample);

/* Estimated cost of reading a table and writing its names. A member with `most` in its name is for
 * the largest possible number of distinct strings, and the member before it for the expected
 * number. */
struct slc_csv_forecast {
    /* memory while the table is read, without the memory that the process needs otherwise */
    uint64_t memory_bytes, memory_most_bytes;
    uint64_t spool_bytes, spool_most_bytes; /* bytes of the temporary files */
    uint64_t read_bytes;                    /* part of spool_bytes that is read back */
    uint64_t names_bytes, names_most_bytes; /* bytes of the names in the store */
    /* expected values of memory_bytes and names_bytes of struct slc_csv_report */
    uint64_t memory_later, names_memory_bytes;
    uint64_t labels_bytes; /* part of memory_later for strings that were sorted */
    /* Memory available for the hash tables of the dictionaries (left), and memory that the hash
     * tables need while they grow for the last time. */
    uint64_t left_bytes, tables_bytes, tables_most_bytes;
    /* value of request->memory_bytes that suffices for the largest possible number of strings */
    uint64_t enough_bytes;
    double seconds; /* wall-clock seconds, with all workers */
};

/* Estimates the cost of reading the table of `request`. Cannot fail. */
void slc_csv_forecast(const struct slc_csv_request *request,
                      const struct slc_csv_sample *sample,
                      struct slc_csv_forecast *forecast);

#endif
