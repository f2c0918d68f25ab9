/* Interfaces that may still change incompatibly before version 1: GPUs and groups of processors,
 * values and residuals of models, and sweeps over ranks. sluice/sluice.h does not include this
 * header. */
#ifndef SLUICE_EXPERIMENTAL_H
#define SLUICE_EXPERIMENTAL_H

#include "sluice/convert.h"
#include "sluice/cpd.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SLUICE_MAX_DEVICES = 16 };

/* Selects the hardware that computes. */
enum sluice_device_kind {
    SLUICE_DEVICE_CPU,
    /* a GPU if a GPU can do the work, otherwise the CPU, with the reason logged */
    SLUICE_DEVICE_AUTO,
    SLUICE_DEVICE_GPU
};

/* Selects the division of work among devices. */
enum sluice_split {
    /* among several devices by partitions; a single GPU computes everything */
    SLUICE_SPLIT_DEFAULT,
    SLUICE_SPLIT_PARTITIONS, /* among several devices, by partitions of sorted layouts */
    SLUICE_SPLIT_NNZ, /* among several devices, in equal numbers of nonzeros of the blco layout */
    /* one GPU multiplies the fraction split_fraction of the nonzeros, the CPU the rest */
    SLUICE_SPLIT_STATIC,
    SLUICE_SPLIT_ADAPTIVE, /* between the CPU and one GPU, in proportion to their measured rates */
    SLUICE_SPLIT_QUEUE     /* the CPU and one GPU take blocks from a common queue */
};

/* Memory plan of each GPU. All members are 0 if the CPU computes. */
struct sluice_device_plan {
    uint64_t struct_bytes;
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* the smallest budget that works */
    uint64_t total_bytes;
    uint64_t slot_bytes;      /* bytes of each of the `streams` slots to which blocks are copied */
    uint64_t resident_blocks; /* blocks that are copied once and stay in GPU memory */
    uint64_t resident_bytes;  /* bytes of the resident blocks in the memory of each GPU */
    /* bytes of the blocks that are copied in every iteration; an upper limit if the CPU shares
     * work */
    uint64_t copied_bytes;
    uint64_t host_bytes; /* host memory that GPUs need; included in sluice_plan.total_bytes */
    uint32_t streams;
    /* GPUs or groups of processors that divide the work; 0 if the work is not divided */
    uint32_t count;
    /* 1 if `name` is the chip in sluice_device_options.chip, for which no GPU was opened */
    uint32_t described;
    uint32_t multiprocessors;
    char name[128]; /* name of the GPU; "" for the CPU */
};

/* Selects the devices that compute; see sluice_compute_options.device. */
struct sluice_device_options {
    uint64_t struct_bytes;
    enum sluice_device_kind kind;
    enum sluice_split split;
    /* fraction of nonzeros for the GPU with SLUICE_SPLIT_STATIC, from 0 to 1 */
    double split_fraction;
    /* limit of the memory used on each GPU; 0 means most of the free memory */
    uint64_t memory_bytes;
    uint32_t streams; /* copy streams per GPU; 0 means that the plan chooses the number */
    /* Only MTTKRP and decompositions use this member. With SLUICE_DEVICE_GPU, the number of GPUs in
     * `numbers`; 0 means the first GPU. Otherwise, the number of groups of processors that divide
     * the work, each with run.threads threads; 0 means no groups. */
    uint32_t count;
    /* numbers of the GPUs; a number may occur several times */
    uint32_t numbers[SLUICE_MAX_DEVICES];
    /* The chip of the GPUs to plan for, which need not be in this machine: "a100", "a100-80gb",
     * "h100", "h200", "b200" or "l40s". Only plan functions with SLUICE_DEVICE_GPU accept a chip;
     * functions that compute return SLUICE_ERR_USAGE. With a chip, memory_bytes 0 means nine tenths
     * of the chip's memory. NULL means the GPUs of this machine, or an h100 if the machine has no
     * GPU and memory_bytes is set. */
    const char *chip;
    struct sluice_device_plan *plan; /* filled in by plan functions unless it is NULL */
};

struct sluice_predict_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* `memory_bytes` of this struct is not used */
};

/* Computes values of a model at given coordinates.
 * Math: values[i] = sum over r of weights[r] * A1(i1, r) * .. * AN(iN, r).
 * Shapes: coords[n] has `count` indices of mode n, from 0; `values` has space for `count` doubles.
 * Ownership: all arrays are the caller's.
 * Order: the values have the same bits for any number of threads.
 * Errors: SLUICE_ERR_INPUT for coordinates outside the model, with the entry in the message;
 * SLUICE_ERR_USAGE, SLUICE_ERR_UNSUPPORTED, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM,
 * SLUICE_ERR_INTERRUPTED. On error, `values` is unchanged after SLUICE_ERR_INPUT and undefined
 * after other errors.
 * Cost: count * rank * order multiplications. */
SLUICE_API enum sluice_status sluice_predict(const struct sluice_model *model,
                                             uint64_t count,
                                             const uint64_t *const *coords,
                                             double *values,
                                             const struct sluice_predict_options *options,
                                             struct sluice_error *err);

/* Format of predicted values. */
enum sluice_predict_form {
    SLUICE_PREDICT_TEXT, /* a line for each row: indices, value, model, residual */
    SLUICE_PREDICT_CSV,  /* the lines of SLUICE_PREDICT_TEXT with commas, after a header row */
    SLUICE_PREDICT_NPY   /* array of f8, rows x 3, with the columns value, model, residual */
};

struct sluice_predict_text_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* memory_bytes is used only for stores and tables */
    enum sluice_dialect dialect;   /* format of the input, which must be a text format */
    enum sluice_index_base index_base;
    enum sluice_predict_form form; /* format of the output */
    uint32_t overwrite;            /* if not 0, an existing file is replaced */
    /* For tables: the store of the model's tensor, with its columns and names. NULL means the store
     * that the record of the model names. */
    const char *store;
    /* For tables: if the columns of the table have other names than the store records, `columns`
     * (with the same rules as in the store) and `value_column` state the names in the table, as
     * `sluice predict --columns` does. NULL means the names that the store records; "" as
     * `value_column` means that the table has no values. If one of the two is not NULL, the input
     * is read as a table. */
    const char *columns, *value_column;
    /* For tables: words, separated by commas, that are read as empty fields, as in
     * `sluice_table_options`. NULL means the words that the store records. */
    const char *null;
};

struct sluice_predict_report {
    uint64_t struct_bytes;
    enum sluice_dialect dialect;
    uint32_t index_base; /* 0 or 1 */
    uint64_t rows;
    uint64_t has_values; /* 0 if the input has only indices; the members below are then 0 */
    /* root mean square and mean magnitude of the residuals (value in the input minus value of the
     * model) */
    double rmse, mae;
    double largest;     /* largest magnitude of a residual */
    double values_norm; /* 2-norm of the values */
    /* rows of a table with a name that the model does not have; the numbers above exclude them */
    uint64_t unknown;
    /* mean deviance of the rows that `unknown` does not count; NaN if the deviance of such a row is
     * NaN */
    double deviance;
};

/* Computes values of a model at the coordinates in `input`. Does the same as `sluice predict`. The
 * input is a text in any format, plain or compressed, with or without values ("-" is standard
 * input); a store, whose nonzeros are the rows, in the order of the store; or a table (CSV, TSV),
 * which must have the columns of the model's store. The indices of stores and tables are written
 * from 1. `output` is a path, "-" for standard output (not for .npy), or NULL for the report alone.
 * `report` may be NULL.
 * Errors: SLUICE_ERR_INPUT with file, line and column, or if the store of the model is not known
 * or has other modes than the model; SLUICE_ERR_USAGE, SLUICE_ERR_UNSUPPORTED,
 * SLUICE_ERR_FORMAT, SLUICE_ERR_DAMAGED and SLUICE_ERR_BUDGET for stores and tables, SLUICE_ERR_IO,
 * SLUICE_ERR_NOSPACE, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM, SLUICE_ERR_INTERRUPTED.
 * On error, `report` is unchanged and the output file is not created.
 * Cost: one pass over the input, rank * order multiplications for each row. */
SLUICE_API enum sluice_status sluice_predict_text(const struct sluice_model *model,
                                                  const char *input,
                                                  const char *output,
                                                  const struct sluice_predict_text_options *options,
                                                  struct sluice_predict_report *report,
                                                  struct sluice_error *err);

/* Score by which sluice_residuals selects nonzeros. The residual is the value minus the value of
 * the model. */
enum sluice_residual_score {
    SLUICE_RESIDUAL_ABSOLUTE, /* |residual| */
    SLUICE_RESIDUAL_RELATIVE, /* |residual / value| */
    SLUICE_RESIDUAL_ABOVE,    /* residual: only values above the model */
    SLUICE_RESIDUAL_BELOW,    /* -residual: only values below the model */
    SLUICE_RESIDUAL_DEVIANCE  /* deviance of the value for the loss of the model */
};

enum { SLUICE_MAX_QUANTILES = 16 };

struct sluice_residuals_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    enum sluice_residual_score score;
    enum sluice_io io;
    uint64_t top; /* number of nonzeros to pass to `nonzero`, up to a million */
    /* which quantiles of the magnitudes of the residuals are computed: quantile_count fractions
     * from 0 to 1 */
    const double *quantiles;
    uint64_t quantile_count; /* up to SLUICE_MAX_QUANTILES; 0 means no quantiles */
    uint64_t io_limit;       /* maximum bytes read per second; 0 means no limit */
};

struct sluice_residual {
    uint64_t place;                   /* position in the list, from 0 */
    double value;                     /* value in the store, after the transform of convert */
    double model;                     /* expected value of the model; for bernoulli, probability */
    uint64_t index[SLUICE_MAX_ORDER]; /* indices of the input, from 0 */
    /* Deviance: twice the difference between the loss and the loss of an exact model; for least
     * squares and Huber's loss, the loss itself. NaN if the loss of the model is not defined for
     * the value. */
    double deviance;
};

struct sluice_residuals_report {
    uint64_t struct_bytes;
    uint64_t nnz;
    double norm, values_norm; /* 2-norms of the residuals and of the values */
    double rmse, mae, mean;   /* `mean` is the mean residual, with its sign */
    double largest;           /* largest magnitude of a residual */
    double quantiles[SLUICE_MAX_QUANTILES];
    uint64_t bytes_read;
    uint32_t passes; /* passes over the store */
    uint32_t listed; /* nonzeros with a score, at most options->top */
    double deviance; /* mean of the deviances; NaN if one of them is NaN */
};

/* Computes the residuals of a model at all nonzeros of a store. Memory does not depend on the
 * number of nonzeros. Passes the options->top nonzeros with the highest scores to `nonzero`,
 * highest score first, equal scores in the order of their indices. If `nonzero` returns a value
 * other than 0, the list ends, which is not an error. The quantile q is the smallest magnitude such
 * that at least q * nnz magnitudes are not larger; quantiles are exact. `nonzero` and `report` may
 * be NULL.
 * Math: value of the model as for sluice_predict.
 * Ownership: a residual is valid during the callback.
 * Order: all results have the same bits for any number of threads, memory and I/O.
 * Errors: SLUICE_ERR_INPUT if the mode sizes of store and model differ; SLUICE_ERR_NUMERIC, with
 * the indices from 1, if a residual is not finite; SLUICE_ERR_USAGE, SLUICE_ERR_UNSUPPORTED,
 * SLUICE_ERR_BUDGET, SLUICE_ERR_DAMAGED, SLUICE_ERR_IO, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM,
 * SLUICE_ERR_INTERRUPTED. On error, `report` is unchanged and `nonzero` was not called.
 * Cost: one pass over the store, up to four with quantiles of more than a million nonzeros; rank *
 * order multiplications per nonzero and pass. */
SLUICE_API enum sluice_status
sluice_residuals(const struct sluice_store *store,
                 const struct sluice_model *model,
                 const struct sluice_residuals_options *options,
                 int (*nonzero)(void *context, const struct sluice_residual *residual),
                 struct sluice_residuals_report *report,
                 struct sluice_error *err);

struct sluice_compare_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* only memory_bytes, stop and context are used */
};

/* Two components that correspond. */
struct sluice_component_match {
    /* numbers of the component of this run and of the component of the first run, from 0 */
    uint32_t component, first_component;
    double similarity; /* product over modes of the magnitude of the cosine of the columns */
};

/* A run of a comparison. Unknown numbers are NaN or 0. */
struct sluice_compared_run {
    uint32_t number; /* position in `folders` */
    uint32_t rank;
    uint32_t iterations;
    uint32_t match_count; /* the smaller of the ranks of both runs; 0 for the first run */
    double fit;
    double score; /* factor match score with the first run; NaN for the first run */
    const struct sluice_component_match *matches; /* by ascending first_component */
};

/* Compares the components of 1 to 64 runs with those of the first run. Passes each run to `run`, in
 * the order of `folders`. If `run` returns a value other than 0, the call ends early, which is not
 * an error. If the tensors of two runs differ and have names, rows of factors with equal names
 * correspond, and other rows are ignored; otherwise rows with equal indices correspond.
 * Math: the score is the mean, over the components of the smaller model, of the similarity times 1
 * - |a - b| / max(a, b), where a and b are the weights; components are assigned so that the score
 * is largest (the function `score` of the Tensor Toolbox).
 * Ownership: a run and its matches are valid during the callback.
 * Errors: SLUICE_ERR_INPUT if a folder is not a run folder or if the modes of two runs differ;
 * SLUICE_ERR_USAGE, SLUICE_ERR_UNSUPPORTED, SLUICE_ERR_BUDGET, SLUICE_ERR_DAMAGED, SLUICE_ERR_IO,
 * SLUICE_ERR_MEMORY, SLUICE_ERR_INTERRUPTED. On error, `run` was not called.
 * Cost: reads each factor once and those of the first run `count` times; 2 rows * rank^2
 * multiply-adds per pair of factors. */
SLUICE_API enum sluice_status
sluice_compare_runs(uint32_t count,
                    const char *const *folders,
                    const struct sluice_compare_options *options,
                    int (*run)(void *context, const struct sluice_compared_run *compared),
                    struct sluice_error *err);

/* A completed run of a sweep. Unknown numbers are NaN. */
struct sluice_sweep_run {
    uint64_t struct_bytes;
    uint32_t rank;
    uint32_t iterations;
    uint64_t seed;
    double fit;
    double seconds;
    double heldout_rmse;
    /* factor match score with the best run of the same rank; NaN before the comparison */
    double match;
    enum sluice_stop_reason stop_reason; /* SLUICE_STOP_TOLERANCE, _ITERATIONS or _HOLDOUT */
    uint32_t kept;                       /* if not 0, the factors of the run are in `folder` */
    /* folder of the run, relative to the folder of the sweep */
    char folder[48];
    double heldout_deviance; /* mean deviance of the held-out nonzeros (see sluice_iteration) */
};

/* Statistics of the runs of one rank. */
struct sluice_sweep_rank {
    uint64_t struct_bytes;
    uint32_t rank;
    uint32_t runs;      /* number of runs of the rank */
    uint64_t best_seed; /* seed of the run with the largest fit */
    double best_fit;
    /* mean factor match score of the best run with the other runs whose fit is within 1e-4 of the
     * best fit; NaN if there are none */
    double agreement;
    /* core consistency (CORCONDIA) of the best run in percent; if unknown, NaN, and `note` has the
     * reason */
    double consistency;
    uint64_t compared; /* number of other runs that were compared with the best run */
    char note[192];    /* why the agreement or core consistency is unknown, else "" */
    uint64_t reached;  /* number of runs whose fit is within 1e-4 of the best fit */
};

/* The rank that a sweep suggests. */
struct sluice_sweep_suggestion {
    uint64_t struct_bytes;
    uint32_t rank;      /* the suggested rank; 0 means that no rank is suggested */
    uint32_t best_rank; /* `rank`, or the rank with the largest fit if no rank is suggested */
    char folder[48]; /* folder of the best run of best_rank, relative to the folder of the sweep */
    char why[320];   /* reason for the suggestion: a sentence without its full stop */
};

/* Selects whether a sweep computes the core consistency of the best run of each rank. */
enum sluice_consistency {
    SLUICE_CONSISTENCY_AUTO, /* computed if the computation takes at most a few minutes */
    SLUICE_CONSISTENCY_ALWAYS,
    SLUICE_CONSISTENCY_NEVER
};

struct sluice_sweep_options {
    uint64_t struct_bytes;
    /* Options of each run; NULL means the defaults. The member `run` applies to the whole sweep.
     * The sweep sets seed, max_seconds, checkpoint_folder and restart itself, and init_folder must
     * be NULL. */
    const struct sluice_cpd_options *cpd;
    uint32_t runs; /* number of runs per rank; 0 means 1 */
    /* if not 0, the factors of all runs are kept, otherwise the factors of the best run per rank */
    uint32_t keep_all;
    /* seed of the first run of each rank; the next runs have seed + 1, seed + 2, .. */
    uint64_t seed;
    enum sluice_consistency consistency;
    uint32_t restart;   /* if not 0, an earlier sweep in the folder is discarded */
    double max_seconds; /* time limit for the whole sweep; 0 means no limit */
    /* The calling thread calls this function for every completed run, including runs of earlier
     * calls; NULL means no callback. A return value other than 0 ends the sweep with
     * SLUICE_ERR_INTERRUPTED. */
    int (*completed)(void *context, const struct sluice_sweep_run *run);
};

/* A completed sweep. */
struct sluice_sweep;

/* Decomposes a store with `rank_count` ranks and several starts each, and suggests a rank. The
 * suggestion uses the core consistency and the agreement of runs (factor match score). `folder` is
 * created if missing and receives a run folder for each run (r16-seed3) and sweep.json. The same
 * call, or `sluice cpd`, continues a sweep that ended early for any reason. A call that continues a
 * sweep may add ranks and runs; other options that affect results must match, otherwise the call
 * fails with SLUICE_ERR_USAGE, and the message names the mismatch.
 * Shapes: `ranks` has `rank_count` different ranks, 1 to 256 of them.
 * Ownership: `ranks` is the caller's. The caller destroys *ret_sweep with sluice_sweep_destroy.
 * Errors: SLUICE_ERR_INTERRUPTED; SLUICE_ERR_TIME_LIMIT after max_seconds; SLUICE_ERR_BUDGET before
 * the first run if memory does not suffice for the largest rank; SLUICE_ERR_IO if another process
 * uses the folder; those of sluice_cpd and sluice_model_save. On error, *ret_sweep is unchanged and
 * completed runs stay in the folder.
 * Cost: the cost of all runs, one pass over the store per core consistency, and one read of the
 * factors to compare runs. */
SLUICE_API enum sluice_status sluice_sweep_ranks(const struct sluice_store *store,
                                                 const char *folder,
                                                 uint32_t rank_count,
                                                 const uint32_t *ranks,
                                                 const struct sluice_sweep_options *options,
                                                 struct sluice_sweep **ret_sweep,
                                                 struct sluice_error *err);

/* Destroys a sweep. Accepts NULL. The folder of the sweep stays. Ownership: frees the sweep. Cost:
 * constant. */
SLUICE_API void sluice_sweep_destroy(struct sluice_sweep *sweep);

/* Returns the number of runs in the folder, including those of earlier calls. Cost: constant. */
SLUICE_API uint32_t sluice_sweep_run_count(const struct sluice_sweep *sweep);

/* Returns the number of ranks in the folder, including those of earlier calls. Cost: constant. */
SLUICE_API uint32_t sluice_sweep_rank_count(const struct sluice_sweep *sweep);

/* Describes run `number`, from 0, ordered by rank and then by seed. Errors: SLUICE_ERR_USAGE if
 * there is no such run. On error, `run` is unchanged. Cost: constant. */
SLUICE_API enum sluice_status sluice_sweep_get_run(const struct sluice_sweep *sweep,
                                                   uint32_t number,
                                                   struct sluice_sweep_run *run,
                                                   struct sluice_error *err);

/* Describes rank `number`, from 0, in ascending order. Errors: SLUICE_ERR_USAGE if there is no
 * such rank. On error, `rank` is unchanged. Cost: constant. */
SLUICE_API enum sluice_status sluice_sweep_get_rank(const struct sluice_sweep *sweep,
                                                    uint32_t number,
                                                    struct sluice_sweep_rank *rank,
                                                    struct sluice_error *err);

/* Suggests a rank and its best run. The rank is the largest rank whose best run has a core
 * consistency of 80 % or more and whose runs, if several were compared, agree to 0.9 or more (mean
 * factor match score). If there is no such rank, the largest rank whose runs agree to 0.9 or more
 * is suggested. If there is no such rank either, `rank` is 0, and best_rank has the run with the
 * largest fit.
 * Errors: SLUICE_ERR_USAGE for a wrong struct_bytes. On error, `suggestion` is unchanged. Cost:
 * constant. */
SLUICE_API enum sluice_status sluice_sweep_suggest(const struct sluice_sweep *sweep,
                                                   struct sluice_sweep_suggestion *suggestion,
                                                   struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
