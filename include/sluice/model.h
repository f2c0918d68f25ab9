/*
 * Models: the results of decompositions. A model is the sum over r of weights[r] times the outer
 * product of columns r of the factor matrices. It may be in memory, or in a run folder: a folder
 * with mode-1.npy, mode-2.npy, .. and lambda.npy, as sluice_model_save and the command write it.
 */
#ifndef SLUICE_MODEL_H
#define SLUICE_MODEL_H

#include "sluice/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A model in memory, for use by one thread at a time. */
struct sluice_model;

/*
 * Makes a model from arrays of the caller, which are copied: factors[n] of dims[n] x rank numbers
 * for each of `order` modes, and weights[rank]; NULL: weights of 1. The caller destroys *ret_model.
 * Errors: SLUICE_ERR_USAGE for an order, rank or mode size out of range or a factor that is NULL;
 * SLUICE_ERR_INPUT for numbers that are not finite; SLUICE_ERR_MEMORY.
 */
SLUICE_API enum sluice_status sluice_model_create(uint32_t order,
                                                  const uint64_t *dims,
                                                  uint32_t rank,
                                                  const double *weights,
                                                  const double *const *factors,
                                                  struct sluice_model **ret_model,
                                                  struct sluice_error *err);

/*
 * Loads the model in a run folder. Weights are 1 without lambda.npy. If `store` is not NULL, the
 * factors must have its shape, and the model's norm is that of the store. The caller destroys
 * *ret_model. Errors: SLUICE_ERR_INPUT or SLUICE_ERR_FORMAT for missing files or other shapes,
 * SLUICE_ERR_IO, SLUICE_ERR_MEMORY.
 */
SLUICE_API enum sluice_status sluice_model_load(const struct sluice_store *store,
                                                const char *folder,
                                                struct sluice_model **ret_model,
                                                struct sluice_error *err);

/* Destroys a model. Accepts NULL. */
SLUICE_API void sluice_model_destroy(struct sluice_model *model);

/* Why a decomposition ended. */
enum sluice_stop_reason {
    SLUICE_STOP_TOLERANCE,
    SLUICE_STOP_ITERATIONS,
    SLUICE_STOP_TIME,
    SLUICE_STOP_REQUEST /* `stop` or a callback */
};

struct sluice_model_info {
    uint64_t struct_bytes;
    uint32_t order, rank;
    uint64_t dims[SLUICE_MAX_ORDER]; /* rows of each factor */
    /* The rest describes the run of sluice_cpd; of other models it is zero or NaN. */
    uint32_t iterations; /* completed */
    enum sluice_stop_reason stop_reason;
    double fit;
    double norm;                           /* of the tensor, without held-out nonzeros */
    uint32_t mode_order[SLUICE_MAX_ORDER]; /* of updates */
    /* Where an unfinished run with a checkpoint resumes: the iteration from 1, or 0: nowhere. */
    uint32_t resume_iteration, resume_mode;
    uint64_t resumes;     /* how often the run resumed from a checkpoint */
    uint64_t checkpoints; /* written */
    /* Of the calling thread, including the runs before the checkpoint that it resumed from. */
    double seconds, mttkrp_seconds, solve_seconds, fit_seconds, checkpoint_seconds;
    uint64_t bytes_read; /* from the drive, since the run started or resumed */
    /* Held-out nonzeros, 0: none; the model's error on them, and the 2-norm of their values. */
    uint64_t heldout;
    double heldout_rmse, heldout_mae, heldout_norm;
    uint64_t device_nnz; /* nonzeros that GPUs multiplied, in all passes */
};

/* Fills in `info`. Errors: SLUICE_ERR_USAGE for a wrong struct_bytes. */
SLUICE_API enum sluice_status sluice_model_get_info(const struct sluice_model *model,
                                                    struct sluice_model_info *info,
                                                    struct sluice_error *err);

/* Copies the weights, one for each component, into `weights`, which has space for `count` doubles.
 * Errors: SLUICE_ERR_USAGE if they do not fit. */
SLUICE_API enum sluice_status sluice_model_get_weights(const struct sluice_model *model,
                                                       double *weights,
                                                       uint64_t count,
                                                       struct sluice_error *err);

/* Copies the factor matrix of `mode`, dims[mode] x rank, into `factor`, which has space for `count`
 * doubles. Errors: SLUICE_ERR_USAGE if it does not fit, or for a mode that does not exist. */
SLUICE_API enum sluice_status sluice_model_get_factor(const struct sluice_model *model,
                                                      uint32_t mode,
                                                      double *factor,
                                                      uint64_t count,
                                                      struct sluice_error *err);

/*
 * Returns the record of the run that made the model: the JSON that sluice_model_save writes as
 * run.json, with the plan, the fit of every iteration, times, counters and all that is needed to
 * repeat the run. NULL for a model without one. Borrowed until the model is destroyed.
 */
SLUICE_API const char *sluice_model_record(const struct sluice_model *model);

enum sluice_model_form {
    SLUICE_MODEL_AUTO,    /* of exports: by the ending of the output, .mat or .ktensor */
    SLUICE_MODEL_NPY,     /* a folder with mode-1.npy, mode-2.npy, .. and lambda.npy */
    SLUICE_MODEL_SPLATT,  /* STEMmode1.mat, .. and STEMlambda.mat */
    SLUICE_MODEL_KTENSOR, /* one text file, Tensor Toolbox */
    SLUICE_MODEL_CSV,     /* a folder with mode-1.csv, .. and lambda.csv, with names of indices */
    SLUICE_MODEL_MATLAB   /* one .mat file of version 5: a struct `model` of lambda and U */
};

/*
 * Writes the model in a form other than SLUICE_MODEL_AUTO, without names of indices. Replaces each
 * file atomically. Then writes the record of its run, if there is one: run.json in the folder,
 * STEMrun.json or PATH.run.json. The record of an earlier model is removed first.
 * Errors: SLUICE_ERR_USAGE for another form, SLUICE_ERR_UNSUPPORTED if the form cannot hold the
 * model, SLUICE_ERR_IO, SLUICE_ERR_NOSPACE, SLUICE_ERR_MEMORY.
 */
SLUICE_API enum sluice_status sluice_model_save(const struct sluice_model *model,
                                                enum sluice_model_form form,
                                                const char *path,
                                                struct sluice_error *err);

struct sluice_model_export_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* threads is not used */
    enum sluice_model_form form;
    uint32_t overwrite; /* nonzero: replace existing files */
    /* Store whose names of indices CSV uses. NULL: the store that a run folder records, if it still
     * exists; no names for a model in memory. */
    const char *store;
};

/*
 * Writes a model as `sluice export` does: to one file (SLUICE_MODEL_KTENSOR, SLUICE_MODEL_MATLAB),
 * to a folder (SLUICE_MODEL_CSV, SLUICE_MODEL_NPY) or to files whose names start with `output`
 * (SLUICE_MODEL_SPLATT). Writes the weights last. After an error nothing is left, except that the
 * weights of an earlier model that was being replaced are gone.
 * Errors: SLUICE_ERR_USAGE, SLUICE_ERR_UNSUPPORTED if the form cannot hold the model,
 * SLUICE_ERR_BUDGET, SLUICE_ERR_IO, SLUICE_ERR_NOSPACE, SLUICE_ERR_INTERRUPTED, SLUICE_ERR_MEMORY.
 */
SLUICE_API enum sluice_status sluice_model_export(const struct sluice_model *model,
                                                  const char *output,
                                                  const struct sluice_model_export_options *options,
                                                  struct sluice_error *err);

/* The same for a run folder, whose factors are streamed from their files; not to SLUICE_MODEL_NPY.
 * Errors: also SLUICE_ERR_INPUT if `folder` is not a run folder. */
SLUICE_API enum sluice_status sluice_run_export(const char *folder,
                                                const char *output,
                                                const struct sluice_model_export_options *options,
                                                struct sluice_error *err);

struct sluice_top_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* memory_bytes and context */
    const uint32_t *components;    /* component_count of them, from 0; 0: all */
    const uint32_t *modes;         /* mode_count of them, from 0; 0: all */
    uint32_t component_count;
    uint32_t mode_count;
    uint32_t by_number; /* nonzero: components by number; else the heaviest first */
    uint32_t by_signed; /* nonzero: the largest values; else the largest magnitudes */
    uint64_t rows;      /* of each mode, up to a million; 0: 10 */
    const char *store;  /* store whose names are given: as sluice_model_export_options.store */
};

/* One of the strongest rows. Texts are borrowed for the callback. */
struct sluice_top_row {
    uint32_t component, mode; /* from 0 */
    uint64_t place;           /* from 0, the strongest first */
    uint64_t index;           /* from 0 */
    double value;             /* in the factor */
    double weight;            /* of the component; 1 without weights */
    const char *name, *title; /* of index and mode, UTF-8 without control characters; "": none */
};

/*
 * Finds the strongest rows of the components of a model and passes them to `row`: component by
 * component, mode by mode, the strongest first. A nonzero return value of `row` ends the call,
 * which is not an error. Memory depends on the rows that are asked for, not on the factors. Errors:
 * SLUICE_ERR_USAGE for components and modes that do not exist; SLUICE_ERR_INPUT if the store has
 * other modes; SLUICE_ERR_FORMAT if it is not a store; SLUICE_ERR_BUDGET, SLUICE_ERR_IO,
 * SLUICE_ERR_MEMORY. Cost: one trip through each factor.
 */
SLUICE_API enum sluice_status sluice_model_top(const struct sluice_model *model,
                                               const struct sluice_top_options *options,
                                               int (*row)(void *context,
                                                          const struct sluice_top_row *row),
                                               struct sluice_error *err);

/* The same for a run folder. Errors: also SLUICE_ERR_INPUT if `folder` is not one. */
SLUICE_API enum sluice_status sluice_run_top(const char *folder,
                                             const struct sluice_top_options *options,
                                             int (*row)(void *context,
                                                        const struct sluice_top_row *row),
                                             struct sluice_error *err);

struct sluice_report_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* memory_bytes */
    uint64_t components;           /* at most, the heaviest first, up to 4096; 0: 64 */
    uint64_t rows;                 /* of each mode of a component, up to 1000; 0: 10 */
    const char *store; /* store whose names are given: as sluice_model_export_options.store */
    /* Of sluice_model_report: the record to show, as sluice_model_record returns it; NULL: the
     * model's own. */
    const char *record;
    uint64_t overwrite; /* nonzero: replace an existing file */
};

/*
 * Writes a page about a model and its run, for a browser: one HTML file without scripts or external
 * references. The page is written under a temporary name, synced and renamed. Memory depends on
 * what the page shows, not on the factors.
 * Errors: SLUICE_ERR_USAGE for numbers out of range or an output within a store; SLUICE_ERR_IO,
 * also if the output exists and is not to be replaced; SLUICE_ERR_NOSPACE, SLUICE_ERR_BUDGET,
 * SLUICE_ERR_MEMORY. An existing file is then unchanged. Cost: two trips through each factor.
 */
SLUICE_API enum sluice_status sluice_model_report(const struct sluice_model *model,
                                                  const char *output,
                                                  const struct sluice_report_options *options,
                                                  struct sluice_error *err);

/*
 * The same for a run folder, a folder with only a checkpoint, or the folder of a sweep, whose runs
 * the page compares. Errors: also SLUICE_ERR_INPUT if `folder` is none of these, and
 * SLUICE_ERR_FORMAT if its files are damaged.
 */
SLUICE_API enum sluice_status sluice_run_report(const char *folder,
                                                const char *output,
                                                const struct sluice_report_options *options,
                                                struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
