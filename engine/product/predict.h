/*
 * `sluice predict`: values of a model at given coordinates, and their errors if the input text has
 * values, too. Rows are read, computed and written a few thousand at a time: only the model grows
 * with the data.
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
    SLC_PREDICT_NONE, /* only the report */
    SLC_PREDICT_TEXT, /* a line per row: indices, value, model, residual */
    SLC_PREDICT_CSV,  /* the same with commas, after a header row */
    SLC_PREDICT_NPY   /* f8, rows x (value, model, residual) */
};

struct slc_predict_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *input;             /* text in any dialect, plain or compressed; "-" */
    enum slc_dialect dialect;      /* AUTO, or a text dialect */
    int index_base;                /* -1: determined from the input */
    /* The format and index base of the source of the model's tensor, which is also the base of an
     * input of the same format that does not state it; NULL: unknown. */
    const char *store_dialect;
    unsigned store_base;
    const struct slc_model_view *model; /* factors in memory; lambda */
    enum slc_predict_form form;
    const char *output; /* a path, or "-"; .npy needs a file */
    bool overwrite;
    unsigned threads;         /* 1 or more */
    const volatile int *stop; /* non-zero: SLC_ERR_INTERRUPTED; may be NULL */
    /* Reports input bytes read, and their total (0: unknown). May be NULL. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_predict_report {
    enum slc_dialect dialect;
    unsigned index_base;
    char base_reason[128];
    bool has_values; /* false: nothing to compare with; the errors below are 0 */
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
 * has modes is coordinates alone; so are rows of a Matrix Market `pattern`. For a symmetric matrix
 * only the nonzeros in the file count. Order: bitwise reproducible for any number of threads.
 * Errors: SLC_ERR_INPUT with file, line and column if an index is beyond the model or the base is
 * ambiguous; SLC_ERR_IO and those of writing. A base that neither header nor option states is
 * determined from the first piece of the input, else it is the store's, else the dialect's; later
 * contradictions are rejected. The output is complete or absent.
 */
enum slc_status slc_predict(const struct slc_predict_options *options,
                            struct slc_predict_report *report,
                            struct slc_error *err) SLC_NODISCARD;

/* The expected work of slc_predict, from the first piece of the input. */
struct slc_predict_forecast {
    bool has_values;
    uint64_t input_bytes, text_bytes;      /* as stored, 0: unknown; decompressed */
    uint64_t decoder_bytes;                /* memory of a compressed input's decoder */
    uint64_t rows, output_bytes;           /* 0: unknown */
    double parse_seconds, compute_seconds; /* of the parsing thread; of all computing threads */
};

/* Estimates the work; uses only the order and rank of the model. Errors: those of the input's
 * beginning; rows that slc_predict would reject are not reported. */
enum slc_status slc_predict_forecast(const struct slc_predict_options *options,
                                     struct slc_predict_forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * The model's values at `count` coordinates in memory: coords[n][i] is the index, from 0, of
 * element i in mode n. Order: bitwise reproducible for any number of threads, and equal to
 * slc_predict. Errors: SLC_ERR_INPUT naming an element beyond the model, before any value is
 * computed; SLC_ERR_INTERRUPTED if *flag is not 0 (`flag` may be NULL): some values[i] may then
 * have been computed.
 */
enum slc_status slc_predict_values(const struct slc_model_view *model,
                                   uint64_t count,
                                   const uint64_t *const *coords,
                                   unsigned threads,
                                   const volatile int *flag,
                                   double *values,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
