/*
 * What a table holds, judged by pieces from all over it (of one that is compressed, by its
 * beginning): rows, strings of columns, bins. For forecasts: nothing is written.
 */
#ifndef SLC_CONVERT_CSV_SAMPLE_H
#define SLC_CONVERT_CSV_SAMPLE_H

#include "convert/forecast/species_estimate.h"
#include "convert/ingest/csv/csv.h"

#include <stdbool.h>
#include <stdint.h>

/* A mode of the whole table. */
struct slc_csv_mode {
    uint64_t length, least, most; /* as expected, and within what bounds */
    /* Bytes of its names, one behind the other, where it gets any. */
    bool named;
    double name_bytes, name_bytes_most;
};

struct slc_csv_sample {
    bool whole;          /* the sample is all there is */
    uint64_t text_bytes; /* of the table, decompressed; 0: not known, nor are these: */
    uint64_t rows, skipped;
    double seconds_each; /* that a byte of text takes a thread */
    struct slc_csv_mode modes[SLC_MAX_ORDER];
    struct slc_species_estimate cells; /* different coordinates */
    /* Rows of the sample, with the indices that they would about have. */
    struct slc_buffer memory;
    uint32_t row_count, stretches;
    uint64_t *coords[SLC_MAX_ORDER];
    double *values;
};

/*
 * Reads about `bytes` of the input, which is of no use for anything else afterwards. Owns:
 * slc_csv_sample_destroy, also after an error. Memory: 512 KiB for each column of strings, 3 MiB
 * and 8 bytes for each number of 65,536 rows. Errors: those of the header (slc_csv_open);
 * SLC_ERR_INPUT where no piece has a sound row, with the first fault; those of files.
 */
enum slc_status slc_csv_sample(const struct slc_csv_request *request,
                               uint64_t bytes,
                               struct slc_csv_sample *sample,
                               struct slc_error *err) SLC_NODISCARD;
/* Takes one that is all zeros. */
void slc_csv_sample_destroy(struct slc_csv_sample *sample);

/* What reading a table takes, and what its names take in the store, by a sample of it. */
struct slc_csv_forecast {
    /* Memory while it is read, beside the process; as expected, and of the most strings. */
    uint64_t memory_bytes, memory_most_bytes;
    uint64_t spool_bytes, spool_most_bytes; /* of temporary files */
    uint64_t read_bytes;                    /* of these, when all is read */
    uint64_t names_bytes, names_most_bytes; /* of the store */
    uint64_t memory_later;                  /* as struct slc_csv_report's memory_bytes */
    /* What the tables of dictionaries take at their last growth, and what there is for them. */
    uint64_t room_bytes, tables_bytes, tables_most_bytes;
    uint64_t enough_bytes; /* of request->memory_bytes, for the most strings */
    double seconds;        /* of all workers at once */
};

/* Of the table that `request` asks for; no errors. */
void slc_csv_forecast(const struct slc_csv_request *request,
                      const struct slc_csv_sample *sample,
                      struct slc_csv_forecast *forecast);

#endif
