/* State of a prediction, shared by predict.c and predict_format.c. */
#ifndef SLC_ENGINE_PREDICT_INTERNAL_H
#define SLC_ENGINE_PREDICT_INTERNAL_H

#include "base/memory/memory.h"
#include "base/squares.h"
#include "convert/export/text_output.h"
#include "convert/ingest/csv/csv.h"
#include "convert/ingest/input/input.h"
#include "convert/ingest/text/text.h"
#include "convert/number/format.h"
#include "engine/product/predict/predict.h"

enum { BATCH_ROWS = 16384, GRAIN_ROWS = 1024, NUMBERS_BYTES = 3 * (SLC_FORMAT_F64_BYTES + 1) };

struct predict {
    const struct slc_predict_options *options;
    struct slc_predict_report *report;
    const struct slc_model_view *model;
    struct slc_input *input;
    struct slc_input_info info;
    struct slc_text_header header;
    struct slc_row_source *source;
    struct slc_piece piece;
    struct slc_buffer memory;
    struct slc_text_rows rows;
    bool last_is_value;  /* true if the index of the last mode was parsed as a value */
    uint64_t *last;      /* buffer for the indices of the last mode */
    double *predicted;   /* model values of the batch, before slc_loss_mean */
    char *text;          /* output of the batch, row_bytes per row */
    struct slc_csv *csv; /* NULL if the input is not a table */
    uint64_t row_bytes;
    uint32_t used[BATCH_ROWS / GRAIN_ROWS]; /* output bytes of each GRAIN_ROWS rows */
    struct slc_text_output output;
    double sum_absolute, sum_deviance;
    struct slc_squares squares, value_squares; /* sums of the squares of residuals and of values */
};

/* Returns the indices of a mode in all rows of the batch. */
const uint64_t *slc_predict_column(const struct predict *predict, unsigned mode);

/* Returns the model value of a row; NaN if the model lacks an index of the row (only in tables). */
double slc_predict_row_value(const struct predict *predict, uint32_t row);

/* Format a row as text, or as numbers of an array; return the length. */
size_t slc_predict_format_row(const struct predict *predict, uint32_t row, char *text);
size_t slc_predict_store_row(const struct predict *predict, uint32_t row, char *bytes);

/* Returns the open names of a mode that are written, or NULL. */
struct slc_names *slc_predict_names(const struct predict *predict, unsigned mode);

/* Writes a row with the names of its indices. Errors: those of slc_names_get and of writing. */
enum slc_status
slc_predict_write_named(struct predict *predict, uint32_t row, struct slc_error *err) SLC_NODISCARD;

#endif
