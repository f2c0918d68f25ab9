/* Estimates the contents of a table (rows, strings of columns, bins) for forecasts, from pieces
 * spread over the table or, if it is compressed, from its start. Writes nothing. */
#ifndef SLC_CONVERT_CSV_SAMPLE_H
#define SLC_CONVERT_CSV_SAMPLE_H

#include "convert/forecast/species_estimate.h"
#include "convert/ingest/csv/csv.h"

#include <stdbool.h>
#include <stdint.h>

/* Estimates for a mode of the whole table. */
struct slc_csv_mode {
    uint64_t length, least, most; /* mode size: expected, lower and upper bound */
    /* If the mode gets names: bytes of the concatenated names. */
    bool named;
    double name_bytes, name_bytes_most;
};

struct slc_csv_sample {
    bool whole; /* the sample is the whole table */
    /* Decompressed size of the table; 0: unknown, and `rows` and `skipped` are unknown, too. */
    uint64_t text_bytes;
    uint64_t rows, skipped;
    double seconds_each; /* time of one thread per byte of text */
    struct slc_csv_mode modes[SLC_MAX_ORDER];
    struct slc_species_estimate cells; /* distinct coordinates */
    /* Rows of the sample, with approximate indices. */
    struct slc_buffer memory;
    uint32_t row_count, stretches;
    uint64_t *coords[SLC_MAX_ORDER];
    double *values;
};

/*
 * Reads about `bytes` bytes of the input. The input cannot be used for anything else afterwards.
 * Owns: slc_csv_sample_destroy, also after an error. Memory: 512 KiB per column of strings, 3 MiB,
 * and 8 bytes per number of 65,536 rows. Errors: those of slc_csv_open for the header; the first
 * fault, SLC_ERR_INPUT, if no piece has a valid row; those of file operations.
 */
enum slc_status slc_csv_sample(const struct slc_csv_request *request,
                               uint64_t bytes,
                               struct slc_csv_sample *sample,
                               struct slc_error *err) SLC_NODISCARD;
/* Accepts an all-zero struct. */
void slc_csv_sample_destroy(struct slc_csv_sample *sample);

/* Estimated cost of reading a table and writing its names. */
struct slc_csv_forecast {
    /* Memory while the table is read, without the process: expected, and for the largest possible
     * number of strings. */
    uint64_t memory_bytes, memory_most_bytes;
    uint64_t spool_bytes, spool_most_bytes; /* of temporary files */
    uint64_t read_bytes;                    /* part of spool_bytes that is read back */
    uint64_t names_bytes, names_most_bytes; /* in the store */
    uint64_t memory_later;                  /* as memory_bytes of struct slc_csv_report */
    /* Memory available for the hash tables of the dictionaries, and memory that the tables need
     * while they grow for the last time. */
    uint64_t left_bytes, tables_bytes, tables_most_bytes;
    uint64_t enough_bytes; /* value of request->memory_bytes that suffices for the most strings */
    double seconds;        /* of all workers together */
};

/* Estimates the cost for the table of `request`; cannot fail. */
void slc_csv_forecast(const struct slc_csv_request *request,
                      const struct slc_csv_sample *sample,
                      struct slc_csv_forecast *forecast);

#endif
