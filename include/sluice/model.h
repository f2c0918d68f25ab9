/* Models of decompositions: made of factors, and asked for values. */
#ifndef SLUICE_MODEL_H
#define SLUICE_MODEL_H

#include "sluice/cpd.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A model of numbers of the caller, which are copied: factors[n] of dims[n] x rank numbers for each
 * of `order` modes, and lambda[rank]; NULL: weights of 1. As of sluice_cpd_load there is no fit,
 * and there are no iterations. Owns: sluice_cpd_destroy. Errors: SLC_ERR_USAGE for an order, rank
 * or length that is out of range, or a factor that is NULL; SLC_ERR_INPUT for numbers that are not
 * finite; SLC_ERR_MEMORY.
 */
SLC_API enum slc_status sluice_cpd_from_factors(uint32_t order,
                                                const uint64_t *dims,
                                                uint32_t rank,
                                                const double *lambda,
                                                const double *const *factors,
                                                struct sluice_cpd **ret_model,
                                                struct slc_error *err);

struct sluice_model_export_options {
    uint64_t struct_bytes;
    enum sluice_model_form form; /* default SLUICE_MODEL_AUTO */
    uint32_t overwrite;          /* non-zero: files are replaced */
    /* Whose names of indices CSV has; NULL: the store that a run was made of, if it is there. */
    const char *store;
    uint64_t memory_bytes; /* 0: 80 % of memory */
    volatile int *stop;    /* non-zero stops the call: SLC_ERR_INTERRUPTED; NULL: nobody does */
    /* Called now and then from one thread at a time; NULL: nobody is. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

SLC_API void sluice_model_export_options_init(struct sluice_model_export_options *options,
                                              uint64_t bytes);

/*
 * Writes the factors and weights of a run, or of any folder with mode-1.npy, .., in another form
 * than .npy, as `sluice export` does: to one file (SLUICE_MODEL_KTENSOR, SLUICE_MODEL_MATLAB), to a
 * folder of files (SLUICE_MODEL_CSV) or to files whose names begin with `output`
 * (SLUICE_MODEL_SPLATT). Factors are streamed from their files. The weights are written last; after
 * an error nothing is left, unless files of an earlier model were to be replaced: then its weights
 * are gone. Errors: SLC_ERR_USAGE, SLC_ERR_UNSUPPORTED where the form cannot hold the model,
 * SLC_ERR_INPUT where `folder` is none of a run, SLC_ERR_BUDGET, SLC_ERR_IO, SLC_ERR_NOSPACE,
 * SLC_ERR_INTERRUPTED, SLC_ERR_MEMORY.
 */
SLC_API enum slc_status sluice_model_export(const char *folder,
                                            const char *output,
                                            const struct sluice_model_export_options *options,
                                            struct slc_error *err);

/* The same of a model in memory, which has names where options->store says whose. */
SLC_API enum slc_status sluice_cpd_export(const struct sluice_cpd *model,
                                          const char *output,
                                          const struct sluice_model_export_options *options,
                                          struct slc_error *err);

enum sluice_predict_form {
    SLUICE_PREDICT_NONE, /* nothing but the report */
    SLUICE_PREDICT_TEXT, /* a line per row: indices, value, model, residual */
    SLUICE_PREDICT_CSV,  /* the same with commas, after a line of names */
    SLUICE_PREDICT_NPY   /* f8, rows x (value, model, residual) */
};

struct sluice_predict_options {
    uint64_t struct_bytes;
    /* Of a text: its format, one of a text; the first index in it, or -1, the default: as it
     * tells; what is written, by default SLUICE_PREDICT_TEXT; non-zero: a file is replaced. */
    enum sluice_dialect dialect;
    int32_t index_base;
    enum sluice_predict_form form;
    uint32_t overwrite;
    uint32_t threads; /* 0: all */
    uint32_t reserved;
    volatile int *stop; /* non-zero stops the call: SLC_ERR_INTERRUPTED; may be NULL */
    /* Called now and then from one thread at a time; NULL: nobody is. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

SLC_API void sluice_predict_options_init(struct sluice_predict_options *options, uint64_t bytes);

/*
 * Values of the model at `count` coordinates: coords[n][i] is the index, from 0, of entry i in mode
 * n, values[i] becomes its value.
 * Math: sum over r of lambda[r] * A1(i1, r) * .. * AN(iN, r).
 * Order: the same bits for any number of threads.
 * Errors: SLC_ERR_INPUT naming an entry that is beyond the model, before any value is written;
 * SLC_ERR_USAGE, SLC_ERR_INTERRUPTED.
 */
SLC_API enum slc_status sluice_predict(const struct sluice_cpd *model,
                                       uint64_t count,
                                       const uint64_t *const *coords,
                                       double *values,
                                       const struct sluice_predict_options *options,
                                       struct slc_error *err);

/* What the values of a text say of a model. */
struct sluice_predict_report {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    enum sluice_dialect dialect;
    uint32_t index_base;
    uint32_t has_values; /* 0: rows of indices alone, and all but `rows` of what follows is 0 */
    uint32_t reserved;
    uint64_t rows;
    double rmse, mae;   /* of the values less the model's */
    double largest;     /* magnitude of such a residual */
    double values_norm; /* 2-norm of the values */
};

/*
 * The same at the coordinates of a text, as `sluice predict` does: in any format of a text, plain
 * or compressed, "-" for standard input; with values or without. `output` is a path, or "-" for
 * standard output, and is NULL with SLUICE_PREDICT_NONE; a .npy has to be a file. It is whole or
 * not there. `report` may be NULL.
 * Errors: SLC_ERR_INPUT with file, line and column of what is wrong or beyond the model;
 * SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_USAGE, SLC_ERR_INTERRUPTED, SLC_ERR_MEMORY.
 */
SLC_API enum slc_status sluice_predict_text(const struct sluice_cpd *model,
                                            const char *input,
                                            const char *output,
                                            const struct sluice_predict_options *options,
                                            struct sluice_predict_report *report,
                                            struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
