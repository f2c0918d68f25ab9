/* Models: the results of decompositions. A model is a sum over components r: weights[r] times the
 * outer product of column r of each factor matrix. A model is an object in memory or a run folder,
 * which sluice_model_save and `sluice cpd` write: mode-1.npy, mode-2.npy, .. and lambda.npy. */
#ifndef SLUICE_MODEL_H
#define SLUICE_MODEL_H

#include "sluice/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The loss of a cell with the value x, for which the model has the value m. A decomposition
 * minimizes the sum of the losses of all cells that count. */
enum sluice_loss {
    SLUICE_LOSS_LS,      /* (x - m)^2 */
    SLUICE_LOSS_POISSON, /* m - x log m, for counts; the model has no negative numbers */
    /* Only for completion: */
    SLUICE_LOSS_BERNOULLI, /* log(1 + e^m) - x m, for values 0 and 1; m is the log-odds of 1 */
    SLUICE_LOSS_GAMMA,     /* x / m + log m, for values above 0; no negative numbers in the model */
    SLUICE_LOSS_HUBER      /* (x - m)^2 up to |x - m| = huber, then linear */
};

/* A model in memory, for use by one thread at a time. */
struct sluice_model;

/* Makes a model from arrays.
 * Shapes: `dims` has `order` mode sizes, factors[n] is dims[n] x rank, and `weights` has `rank`
 * numbers, or is NULL for weights of 1.
 * Ownership: the arrays are the caller's and are copied. The caller destroys *ret_model with
 * sluice_model_destroy.
 * Errors: SLUICE_ERR_USAGE for an order, rank or mode size out of range or a factor that is NULL;
 * SLUICE_ERR_INPUT for numbers that are not finite; SLUICE_ERR_MEMORY. On error, *ret_model is
 * unchanged.
 * Cost: copies the factors. */
SLUICE_API enum sluice_status sluice_model_create(uint32_t order,
                                                  const uint64_t *dims,
                                                  uint32_t rank,
                                                  const double *weights,
                                                  const double *const *factors,
                                                  struct sluice_model **ret_model,
                                                  struct sluice_error *err);

/* Sets the loss that the model minimizes. The loss of a new model is least squares; models of
 * sluice_cpd, and loaded models with a record, have the loss of their run. sluice_predict,
 * sluice_predict_text and sluice_residuals depend on the loss: they compute expected values (for
 * bernoulli, the probability of 1) and deviances. `huber` is the residual at which Huber's loss
 * becomes linear, above 0; other losses ignore it.
 * Errors: SLUICE_ERR_USAGE if `loss` is invalid, or if `loss` is SLUICE_LOSS_HUBER and `huber` is
 * not above 0. On error, the model is unchanged. Cost: constant. */
SLUICE_API enum sluice_status sluice_model_set_loss(struct sluice_model *model,
                                                    enum sluice_loss loss,
                                                    double huber,
                                                    struct sluice_error *err);

/* Loads the model in a run folder. Weights are 1 if there is no lambda.npy. If `store` is not NULL,
 * the factors must have the shape of the store, and the norm of the store is stored in the model.
 * Ownership: the caller destroys *ret_model with sluice_model_destroy; `store` may be closed
 * earlier.
 * Errors: SLUICE_ERR_INPUT or SLUICE_ERR_FORMAT for missing files or wrong shapes, SLUICE_ERR_IO,
 * SLUICE_ERR_MEMORY, SLUICE_ERR_USAGE. On error, *ret_model is unchanged.
 * Cost: reads the factors into memory. */
SLUICE_API enum sluice_status sluice_model_load(const struct sluice_store *store,
                                                const char *folder,
                                                struct sluice_model **ret_model,
                                                struct sluice_error *err);

/* Destroys a model. Accepts NULL. Ownership: frees the model and its record. Cost: constant. */
SLUICE_API void sluice_model_destroy(struct sluice_model *model);

/* Why a decomposition ended. */
enum sluice_stop_reason {
    SLUICE_STOP_TOLERANCE,
    SLUICE_STOP_ITERATIONS,
    SLUICE_STOP_TIME,
    SLUICE_STOP_REQUEST, /* stopped by run.stop or a callback */
    SLUICE_STOP_HOLDOUT  /* a completion whose error on held-out nonzeros no longer improved */
};

struct sluice_model_info {
    uint64_t struct_bytes;
    uint32_t order, rank;
    uint64_t dims[SLUICE_MAX_ORDER]; /* mode sizes: rows of each factor */
    /* The members below describe the run of sluice_cpd. For other models they are zero or NaN,
     * except mode_order (ascending) and, if sluice_model_load had a store, norm. A model loaded
     * with a record (run.json) has the iterations, stop_reason and fit of the record. */
    uint32_t iterations; /* number of completed iterations */
    enum sluice_stop_reason stop_reason;
    double fit;
    double norm;                           /* norm of the tensor, without held-out nonzeros */
    uint32_t mode_order[SLUICE_MAX_ORDER]; /* order in which modes were updated */
    /* Iteration, from 1, and mode at which an unfinished run resumes from its checkpoint; the
     * iteration is 0 if there is no checkpoint. */
    uint32_t resume_iteration, resume_mode;
    uint64_t resumes;     /* number of times that the run resumed from a checkpoint */
    uint64_t checkpoints; /* number of checkpoints written */
    /* Wall-clock times of the calling thread, including the earlier runs that this run resumed. */
    double seconds, mttkrp_seconds, solve_seconds, fit_seconds, checkpoint_seconds;
    uint64_t bytes_read; /* bytes read from the drive since the run started or resumed */
    /* Number of held-out nonzeros, the model's error on held-out nonzeros, and the 2-norm of the
     * held-out values. */
    uint64_t heldout;
    double heldout_rmse, heldout_mae, heldout_norm;
    uint64_t device_nnz; /* nonzeros that GPUs multiplied, in all passes */
    /* The last `biases` components are biases (enum sluice_biases): one for each mode n whose bit n
     * in bias_modes is set, in ascending order, then the mean. */
    uint32_t biases, bias_modes;
    double objective, violation; /* as in struct sluice_iteration, for this model */
    double heldout_deviance;     /* mean deviance of the held-out nonzeros */
    /* residual at which Huber's loss becomes linear (sluice_model_set_loss) */
    double huber;
    uint64_t loss; /* enum sluice_loss */
};

/* Describes a model and the run that made it. Errors: SLUICE_ERR_USAGE for a wrong struct_bytes.
 * On error, `info` is unchanged. Cost: constant. */
SLUICE_API enum sluice_status sluice_model_get_info(const struct sluice_model *model,
                                                    struct sluice_model_info *info,
                                                    struct sluice_error *err);

/* Copies the weights of the components.
 * Shapes: one weight for each component; `weights` has space for `count` doubles.
 * Ownership: the caller owns `weights`.
 * Errors: SLUICE_ERR_USAGE if the weights do not fit. On error, `weights` is unchanged. Cost:
 * copies the weights. */
SLUICE_API enum sluice_status sluice_model_get_weights(const struct sluice_model *model,
                                                       double *weights,
                                                       uint64_t count,
                                                       struct sluice_error *err);

/* Copies the factor matrix of `mode`.
 * Shapes: the factor is dims[mode] x rank; `factor` has space for `count` doubles.
 * Ownership: the caller owns `factor`.
 * Errors: SLUICE_ERR_USAGE if `count` is too small or the mode does not exist. On error, `factor`
 * is unchanged. Cost: copies the factor. */
SLUICE_API enum sluice_status sluice_model_get_factor(const struct sluice_model *model,
                                                      uint32_t mode,
                                                      double *factor,
                                                      uint64_t count,
                                                      struct sluice_error *err);

/* Returns the record of the run that made the model as JSON, or NULL if there is no record. The
 * record has the plan, the fit of every iteration, times, counters and all options that are needed
 * to repeat the run. sluice_model_save writes the record as run.json.
 * Ownership: the text is valid until the model is destroyed. Cost: constant. */
SLUICE_API const char *sluice_model_record(const struct sluice_model *model);

enum { SLUICE_MAX_NOTES = 4 };

/* Diagnosis of the model of a CP decomposition: properties that may make the model unreliable. For
 * a model without a record, and for a run without iterations, numbers are NaN, and flags and
 * counts are 0. */
struct sluice_diagnosis {
    uint64_t struct_bytes;
    /* The smallest congruence of two components: the product over modes of the cosine of their
     * columns. 1 for a single component. */
    double smallest_congruence;
    uint32_t cancels;       /* if not 0, the components `cancelling` nearly cancel each other */
    uint32_t cancelling[2]; /* the two components, counted from 0 */
    uint32_t fit_rising;    /* if not 0, the run ended while the fit may still have been rising */
    /* condition number of each factor without its zero columns; NaN if the factor has fewer rows
     * than columns */
    double condition[SLUICE_MAX_ORDER];
    /* if not 0, a model of zeros has no larger error on the held-out nonzeros */
    uint32_t heldout_no_better_than_zeros;
    uint32_t note_count;
    /* What a user should know before using the model. Each note is a sentence without full stop;
     * modes and components in notes count from 1. */
    char notes[SLUICE_MAX_NOTES][320];
};

/* Reads the diagnosis from the record of a model (`diagnosis` in run.json).
 * Errors: SLUICE_ERR_USAGE for a wrong struct_bytes, SLUICE_ERR_MEMORY. On error, `diagnosis` is
 * unchanged. Cost: parses the record. */
SLUICE_API enum sluice_status sluice_model_get_diagnosis(const struct sluice_model *model,
                                                         struct sluice_diagnosis *diagnosis,
                                                         struct sluice_error *err);

/* Format of a saved or exported model. */
enum sluice_model_form {
    SLUICE_MODEL_AUTO,    /* for exports: chosen by the suffix of the output, .mat or .ktensor */
    SLUICE_MODEL_NPY,     /* a folder with mode-1.npy, mode-2.npy, .. and lambda.npy */
    SLUICE_MODEL_SPLATT,  /* STEMmode1.mat, .. and STEMlambda.mat */
    SLUICE_MODEL_KTENSOR, /* one text file in the format of the Tensor Toolbox */
    SLUICE_MODEL_CSV,     /* a folder with mode-1.csv, .. and lambda.csv, with names of indices */
    SLUICE_MODEL_MATLAB   /* one .mat file, version 5: a struct `model` with lambda and U */
};

/* Writes the model in `form`, which must not be SLUICE_MODEL_AUTO. Does not write names of indices.
 * Replaces each file atomically. First removes the record of an earlier model. If the model has a
 * record of its run, writes the record last: as run.json in the folder, STEMrun.json or
 * PATH.run.json, depending on the form.
 * Errors: SLUICE_ERR_USAGE for SLUICE_MODEL_AUTO or an unknown form,
 * SLUICE_ERR_UNSUPPORTED if the form cannot hold the model, SLUICE_ERR_IO, SLUICE_ERR_NOSPACE,
 * SLUICE_ERR_MEMORY. On error, each file is either the old or the new file, and there is no record.
 * Cost: writes the factors once. */
SLUICE_API enum sluice_status sluice_model_save(const struct sluice_model *model,
                                                enum sluice_model_form form,
                                                const char *path,
                                                struct sluice_error *err);

struct sluice_model_export_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* `threads` of this struct is not used */
    enum sluice_model_form form;
    uint32_t overwrite; /* if not 0, existing files are replaced */
    /* Store with the names of indices for CSV. NULL means the store that the run folder records, if
     * this store still exists, and no names for a model in memory. */
    const char *store;
    /* If 0, an apostrophe precedes a name in CSV that a spreadsheet could run as a formula: a name
     * that is not a number and starts with =, +, -, @, a tab or a carriage return. If not 0, names
     * are written as they are. */
    uint64_t raw_names;
};

/* Writes a model in a format of another program, as `sluice export` does. Writes one file
 * (SLUICE_MODEL_KTENSOR, SLUICE_MODEL_MATLAB), a folder (SLUICE_MODEL_CSV, SLUICE_MODEL_NPY) or
 * files whose names start with `output` (SLUICE_MODEL_SPLATT). Weights are written last.
 * Errors: SLUICE_ERR_USAGE, SLUICE_ERR_UNSUPPORTED if the form cannot hold the model,
 * SLUICE_ERR_BUDGET, SLUICE_ERR_IO, SLUICE_ERR_NOSPACE, SLUICE_ERR_INTERRUPTED, SLUICE_ERR_MEMORY;
 * for a store with names also SLUICE_ERR_INPUT, SLUICE_ERR_FORMAT, SLUICE_ERR_DAMAGED. On error, no
 * new file is left; the weights of an earlier model that was being replaced are gone.
 * Cost: writes the factors once. */
SLUICE_API enum sluice_status sluice_model_export(const struct sluice_model *model,
                                                  const char *output,
                                                  const struct sluice_model_export_options *options,
                                                  struct sluice_error *err);

/* Writes the model in a run folder in a format of another program. Does the same as
 * sluice_model_export, but reads factors from their files in small parts, and does not support
 * SLUICE_MODEL_NPY.
 * Errors: those of sluice_model_export; SLUICE_ERR_INPUT if `folder` is not a run folder. On error,
 * no new file is left; the weights of an earlier model that was being replaced are gone.
 * Cost: reads and writes the factors once. */
SLUICE_API enum sluice_status sluice_run_export(const char *folder,
                                                const char *output,
                                                const struct sluice_model_export_options *options,
                                                struct sluice_error *err);

struct sluice_top_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* only memory_bytes and context are used */
    /* numbers of components, from 0; component_count 0 means all components */
    const uint32_t *components;
    const uint32_t *modes; /* numbers of modes, from 0; mode_count 0 means all modes */
    uint32_t component_count;
    uint32_t mode_count;
    /* order of components: not 0 means by number, 0 means by descending weight */
    uint32_t by_number;
    uint32_t by_signed; /* not 0 selects the largest values, 0 the largest magnitudes */
    uint64_t rows;      /* number of top rows per component and mode, up to a million; 0 means 10 */
    const char *store;  /* store with the names of indices, see sluice_model_export_options.store */
};

/* A row with one of the largest magnitudes, or values, of a component. */
struct sluice_top_row {
    uint32_t component, mode; /* numbers from 0 */
    uint64_t place;           /* position among the top rows of the component in the mode, from 0 */
    uint64_t index;           /* index of the row, from 0 */
    double value;             /* element of the factor matrix */
    double weight;            /* weight of the component; 1 if the model has no weights */
    /* names of index and mode, UTF-8 without control characters; "" if there is no name */
    const char *name, *title;
};

/* Finds the top rows of the components of a model and passes them to `row`. For each component and
 * each mode, the rows are passed by descending magnitude or, if options->by_signed is not 0, by
 * descending value. If `row` returns a value other than 0, the call ends early, which is not an
 * error.
 * Ownership: a row and its texts are valid during the callback.
 * Errors: SLUICE_ERR_USAGE for components and modes that do not exist; SLUICE_ERR_INPUT if the
 * modes of the store differ from the modes of the model; SLUICE_ERR_FORMAT if options->store is not
 * a store; SLUICE_ERR_BUDGET, SLUICE_ERR_DAMAGED, SLUICE_ERR_IO, SLUICE_ERR_MEMORY. On error, `row`
 * may have been called for some rows.
 * Cost: reads each factor once; memory grows with the number of rows found, not with the
 * factors. */
SLUICE_API enum sluice_status sluice_model_top(const struct sluice_model *model,
                                               const struct sluice_top_options *options,
                                               int (*row)(void *context,
                                                          const struct sluice_top_row *row),
                                               struct sluice_error *err);

/* Finds the top rows of the components of the model in a run folder. Works as sluice_model_top.
 * Ownership: a row and its texts are valid during the callback.
 * Errors: those of sluice_model_top; SLUICE_ERR_INPUT if `folder` is not a run folder. On error,
 * `row` may have been called for some rows.
 * Cost: reads each factor file once. */
SLUICE_API enum sluice_status sluice_run_top(const char *folder,
                                             const struct sluice_top_options *options,
                                             int (*row)(void *context,
                                                        const struct sluice_top_row *row),
                                             struct sluice_error *err);

struct sluice_report_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* only memory_bytes is used */
    uint64_t components; /* maximum number of components, heaviest first, up to 4096; 0 means 64 */
    uint64_t rows;       /* number of top rows per component and mode, up to 1000; 0 means 10 */
    const char *store; /* store with the names of indices, see sluice_model_export_options.store */
    /* The record that sluice_model_report shows, in the format of sluice_model_record; NULL means
     * the record of the model. */
    const char *record;
    uint64_t overwrite; /* if not 0, an existing file is replaced */
};

/* Writes an HTML page about a model and its run. The page is one file without scripts or external
 * references. The page is written under a temporary name, synced and renamed.
 * Errors: SLUICE_ERR_USAGE for numbers out of range or an output within a store; SLUICE_ERR_IO,
 * also if the output exists and `overwrite` is not set; SLUICE_ERR_INPUT, SLUICE_ERR_FORMAT and
 * SLUICE_ERR_DAMAGED for a faulty record or a faulty store with names; SLUICE_ERR_NOSPACE,
 * SLUICE_ERR_BUDGET, SLUICE_ERR_MEMORY. On error, an existing file is unchanged.
 * Cost: reads each factor twice; memory grows with the size of the page, not with the factors. */
SLUICE_API enum sluice_status sluice_model_report(const struct sluice_model *model,
                                                  const char *output,
                                                  const struct sluice_report_options *options,
                                                  struct sluice_error *err);

/* Writes an HTML page about the run or the runs in a folder. The page describes a run, compares the
 * runs of a sweep, or lists the runs in the subfolders of a folder. Works as sluice_model_report.
 * `folder` is a run folder, a folder with only a checkpoint, the folder of a sweep, or a folder
 * with run folders.
 * Errors: those of sluice_model_report; SLUICE_ERR_INPUT for any other folder, SLUICE_ERR_FORMAT if
 * files in the folder are damaged. On error, an existing file is unchanged.
 * Cost: reads each factor file twice. */
SLUICE_API enum sluice_status sluice_run_report(const char *folder,
                                                const char *output,
                                                const struct sluice_report_options *options,
                                                struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
