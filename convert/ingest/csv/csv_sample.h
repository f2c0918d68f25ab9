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

#endif
