/*
 * `sluice predict`: the values that a model has at given coordinates, beside those that a text of
 * entries says, and the error of the one from the other. Rows are read, computed and written a few
 * thousand at a time: what grows with the data is the model alone.
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
    SLC_PREDICT_NONE, /* nothing but the report */
    SLC_PREDICT_TEXT, /* a line per row: indices, value, model, residual */
    SLC_PREDICT_CSV,  /* the same with commas, after a line of names */
    SLC_PREDICT_NPY   /* f8, rows x (value, model, residual) */
};

struct slc_predict_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *input;             /* text in any dialect, plain or compressed; "-" */
    enum slc_dialect dialect;      /* AUTO, or one of a text */
    int index_base;                /* -1: as the input tells */
    /* The format of what the model's tensor was made of, and the first index there, which is that
     * of an input of the same format that does not tell; NULL: not known. */
    const char *store_dialect;
    unsigned store_base;
    const struct slc_model_view *model; /* factors in memory; lambda */
    enum slc_predict_form form;
    const char *output; /* a path, or "-"; .npy needs a file */
    bool overwrite;
    unsigned threads;         /* 1 or more */
    const volatile int *stop; /* non-zero: SLC_ERR_INTERRUPTED; may be NULL */
    /* Bytes of the input that were read, of all (0: not known); NULL: not told. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

struct slc_predict_report {
    enum slc_dialect dialect;
    unsigned index_base;
    char base_reason[128];
    bool has_values; /* else there is nothing to compare with, and what follows is 0 */
    uint64_t rows;
    double rmse, mae;
    double largest;     /* magnitude of a residual */
    double values_norm; /* 2-norm of the values */
};

/* What slc_predict maps beside the model. For plans. */
uint64_t slc_predict_memory_bytes(unsigned order, enum slc_predict_form form);

/*
 * Math: model(i) = sum over r of lambda[r] * A1(i1, r) * .. * AN(iN, r); residual = value - model;
 * RMSE and MAE over all rows. A row of as many numbers as the model has modes, in a text without a
 * header, is one of coordinates alone; so are those of a Matrix Market `pattern`. Of a symmetric
 * matrix the entries that are in the file.
 * Order: the same bits for any number of threads.
 * Errors: SLC_ERR_INPUT with file, line and column, where an index is beyond the model or the base
 * is ambiguous: one that neither header nor option states is what the first piece of the input
 * tells, else the store's, else the dialect's, and what contradicts it later is refused; SLC_ERR_IO
 * and those of writing. The output is whole or not there.
 */
enum slc_status slc_predict(const struct slc_predict_options *options,
                            struct slc_predict_report *report,
                            struct slc_error *err) SLC_NODISCARD;

/* What slc_predict would take, judged by the first piece of the input. */
struct slc_predict_forecast {
    bool has_values;
    uint64_t input_bytes, text_bytes;      /* as stored, 0: not known; decompressed */
    uint64_t decoder_bytes;                /* of memory, of a compressed input */
    uint64_t rows, output_bytes;           /* 0: not known */
    double parse_seconds, compute_seconds; /* of the thread that parses; of all that compute */
};

/*
 * Judges; of the model only its order and rank are looked at. Errors: those of the input's
 * beginning; of a row nothing is said that slc_predict would.
 */
enum slc_status slc_predict_forecast(const struct slc_predict_options *options,
                                     struct slc_predict_forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * The model's values at `count` coordinates in memory: coords[n][i], from 0, of entry i in mode n.
 * Order: the same bits for any number of threads, and as slc_predict. Errors: SLC_ERR_INPUT naming
 * an entry that is beyond the model, before any value is computed; SLC_ERR_INTERRUPTED where *flag,
 * which may be NULL, is not 0: values[i] may or may not have been computed then.
 */
enum slc_status slc_predict_values(const struct slc_model_view *model,
                                   uint64_t count,
                                   const uint64_t *const *coords,
                                   unsigned threads,
                                   const volatile int *flag,
                                   double *values,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
