/* Implements `sluice predict`: computes the values of a model at given coordinates, and the errors
 * of these values if the input also has values. Rows are read, computed and written a few thousand
 * at a time, so memory does not depend on the number of rows. */
#ifndef SLC_ENGINE_PREDICT_H
#define SLC_ENGINE_PREDICT_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "convert/ingest/convert.h"
#include "storage/model/model.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_predict_form {
    SLC_PREDICT_NONE, /* only a report */
    SLC_PREDICT_TEXT, /* one line per row: indices, value, model, residual */
    SLC_PREDICT_CSV,  /* like SLC_PREDICT_TEXT, but with commas and a header row */
    /* f64, one row per input row: value, model, residual; only model if the input has no values */
    SLC_PREDICT_NPY
};

struct slc_store;
struct slc_predict_table;

struct slc_predict_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *input;             /* path of a text, plain or compressed; "-": standard input */
    /* Store whose nonzeros are the input, instead of a text; NULL: the input is a text.
     * Borrowed. */
    const struct slc_store *store;
    /* How a table is read (engine/product/predict/predict_source.h); NULL: the text has indices.
     * Borrowed. */
    struct slc_predict_table *table;
    /* Names of the indices of each mode, written to CSV; NULL: none. Only for a store or a
     * table. */
    struct slc_names *const *names;
    enum slc_dialect dialect; /* a text dialect, or SLC_DIALECT_AUTO */
    int index_base;           /* -1: determined from the input */
    /* Dialect and index base of the file from which the model's tensor was converted. An input of
     * the same dialect that does not state its base gets this base. NULL if unknown. */
    const char *store_dialect;
    unsigned store_base;
    const struct slc_model_view *model; /* factors and weights, in memory */
    enum slc_predict_form form;
    /* a path, or "-" for standard output, which SLC_PREDICT_NPY does not allow */
    const char *output;
    bool overwrite;
    unsigned threads;         /* number of threads, 1 or more */
    const volatile int *stop; /* a value other than 0 stops with SLC_ERR_INTERRUPTED; may be NULL */
    /* Reports the input bytes read, and the total (0 if unknown). May be NULL. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_predict_report {
    enum slc_dialect dialect;
    unsigned index_base;
    char base_reason[128];
    uint64_t rows;
    uint64_t unknown;   /* rows of a table with a name that the model does not have */
    bool has_values;    /* true if the input has values; otherwise the members below are 0 */
    double rmse, mae;   /* errors of the rows that are not `unknown` */
    double largest;     /* largest magnitude of a residual */
    double values_norm; /* 2-norm of all values */
    /* mean deviance of the rows that are not unknown; NaN if the model's loss is not defined for
     * one of the values */
    double deviance;
};

/* Returns the bytes that slc_predict maps in addition to the model. */
uint64_t slc_predict_memory_bytes(unsigned order, enum slc_predict_form form);

/* Computes and writes the predictions. Math: model(i) = sum over r of lambda[r] * A1(i1, r) * .. *
 * AN(iN, r), or the expected value for the loss of the model (slc_loss_mean); residual = value -
 * model; RMSE and MAE over all rows. In a text without a header, rows with one number per mode have
 * no values; neither have rows of a Matrix Market `pattern`. For a symmetric matrix, only the
 * nonzeros in the file get model values. Index base: if neither the header nor the options state
 * it, the first piece of the input decides. If the first piece allows both bases, the base is
 * store_base or, if that is unknown, the default of the dialect. An index that later contradicts
 * the base is an error. Order: bitwise reproducible for any number of threads. Errors:
 * SLC_ERR_INPUT with file, line and column if an index is out of range or the base is ambiguous;
 * SLC_ERR_IO and those of writing. The output is complete or absent.
 *
 * Stores and tables: indices are written from 1. A row of a table with a name that the model does
 * not have is counted in report->unknown; its index and its numbers are written as empty fields of
 * CSV, as "-" in text, and as NaN. */
enum slc_status slc_predict(const struct slc_predict_options *options,
                            struct slc_predict_report *report,
                            struct slc_error *err) SLC_NODISCARD;

/* Forecast of slc_predict, estimated from the first piece of the input. */
struct slc_predict_forecast {
    bool has_values;
    /* input bytes in the file (0 if unknown), and after decompression */
    uint64_t input_bytes, text_bytes;
    uint64_t decoder_bytes;      /* memory to decompress the input */
    uint64_t rows, output_bytes; /* 0 if unknown */
    /* CPU time of the parsing thread, and elapsed time of the computing threads. */
    double parse_seconds, compute_seconds;
};

/* Forecasts slc_predict. Uses only the order and rank of the model. Errors: those of reading the
 * start of the input. Invalid rows are not reported. */
enum slc_status slc_predict_forecast(const struct slc_predict_options *options,
                                     struct slc_predict_forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

/* Computes the model's values at `count` coordinates in memory. coords[n][i] is the 0-based index
 * in mode n of entry i. Order: bitwise reproducible for any number of threads, and equal to
 * slc_predict. Errors: SLC_ERR_INPUT if an index is out of range; the message names the entry, and
 * no value is set. SLC_ERR_INTERRUPTED if *flag is not 0; some values[i] may then be set. `flag`
 * may be NULL. */
enum slc_status slc_predict_values(const struct slc_model_view *model,
                                   uint64_t count,
                                   const uint64_t *const *coords,
                                   unsigned threads,
                                   const volatile int *flag,
                                   double *values,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
