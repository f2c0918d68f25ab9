/*
 * `sluice predict`: values of a model at given coordinates, and their errors if the input text has
 * values, too. Rows are read, computed and written a few thousand at a time, so only the memory of
 * the model depends on the size of the data.
 */
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
    SLC_PREDICT_CSV,  /* like TEXT, but with commas and a header row */
    SLC_PREDICT_NPY   /* f8, rows x (value, model, residual) */
};

struct slc_predict_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *input; /* path of a text in any dialect, plain or compressed; "-": standard input */
    enum slc_dialect dialect; /* AUTO, or a text dialect */
    int index_base;           /* -1: determined from the input */
    /* Format and index base of the source of the model's tensor. An input of the same format that
     * does not state its base has this base, too. NULL: unknown. */
    const char *store_dialect;
    unsigned store_base;
    const struct slc_model_view *model; /* factors in memory, and lambda */
    enum slc_predict_form form;
    const char *output; /* a path, or "-"; .npy needs a file */
    bool overwrite;
    unsigned threads;         /* number of threads, 1 or more */
    const volatile int *stop; /* a value other than 0 stops with SLC_ERR_INTERRUPTED; may be NULL */
    /* Reports input bytes read, and their total (0: unknown). May be NULL. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_predict_report {
    enum slc_dialect dialect;
    unsigned index_base;
    char base_reason[128];
    bool has_values; /* false: the input has no values, and the members below are 0 */
    uint64_t rows;
    double rmse, mae;
    double largest;     /* largest magnitude of a residual */
    double values_norm; /* 2-norm of the values */
};

/* Bytes that slc_predict maps in addition to the model. For plans. */
uint64_t slc_predict_memory_bytes(unsigned order, enum slc_predict_form form);

/*
 * Math: model(i) = sum over r of lambda[r] * A1(i1, r) * .. * AN(iN, r); residual = value - model;
 * RMSE and MAE over all rows. In a text without a header, a row with as many numbers as the model
 * has modes contains only coordinates, and so do rows of a Matrix Market `pattern`. For a symmetric
 * matrix only the nonzeros in the file count. Order: bitwise reproducible for any number of
 * threads. Errors: SLC_ERR_INPUT with file, line and column if an index is out of range or the
 * base is ambiguous; SLC_ERR_IO and those of writing. If neither header nor option states the base,
 * it is determined from the first piece of the input; if that piece is ambiguous, the base is that
 * of the store or, if unknown, the default of the dialect. Later contradictions are rejected. The
 * output is complete or absent.
 */
enum slc_status slc_predict(const struct slc_predict_options *options,
                            struct slc_predict_report *report,
                            struct slc_error *err) SLC_NODISCARD;

/* The expected work of slc_predict, estimated from the first piece of the input. */
struct slc_predict_forecast {
    bool has_values;
    uint64_t input_bytes, text_bytes; /* input bytes as stored (0: unknown), and decompressed */
    uint64_t decoder_bytes;           /* memory of the decoder of a compressed input */
    uint64_t rows, output_bytes;      /* 0: unknown */
    /* Time of the parsing thread, and of all computing threads. */
    double parse_seconds, compute_seconds;
};

/* Estimates the work; uses only the order and rank of the model. Errors: those of reading the start
 * of the input; rows that slc_predict would reject are not reported. */
enum slc_status slc_predict_forecast(const struct slc_predict_options *options,
                                     struct slc_predict_forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * The model's values at `count` coordinates in memory: coords[n][i] is the index, from 0, of
 * element i in mode n. Order: bitwise reproducible for any number of threads, and equal to
 * slc_predict. Errors: SLC_ERR_INPUT if an index is out of range; the message names the
 * element, and no value has been computed. SLC_ERR_INTERRUPTED if *flag is not 0; some values[i]
 * may already be computed. `flag` may be NULL.
 */
enum slc_status slc_predict_values(const struct slc_model_view *model,
                                   uint64_t count,
                                   const uint64_t *const *coords,
                                   unsigned threads,
                                   const volatile int *flag,
                                   double *values,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
