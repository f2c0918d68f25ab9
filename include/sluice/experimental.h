/*
 * Interfaces that may still change incompatibly before version 1: GPUs and groups of processors,
 * values of models, and sweeps over ranks. sluice/sluice.h does not include this header.
 */
#ifndef SLUICE_EXPERIMENTAL_H
#define SLUICE_EXPERIMENTAL_H

#include "sluice/convert.h"
#include "sluice/cpd.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SLUICE_MAX_DEVICES = 16 };

/* The hardware that computes. */
enum sluice_device_kind {
    SLUICE_DEVICE_CPU,
    SLUICE_DEVICE_AUTO, /* a GPU if one can do the work; otherwise the CPU, with the reason logged
                         */
    SLUICE_DEVICE_GPU
};

/* How work is divided among devices. */
enum sluice_split {
    SLUICE_SPLIT_DEFAULT,    /* several devices: by partitions; a single GPU computes everything */
    SLUICE_SPLIT_PARTITIONS, /* several devices: by partitions of sorted layouts */
    SLUICE_SPLIT_NNZ,        /* several devices: equal numbers of nonzeros of the blco layout */
    SLUICE_SPLIT_STATIC,     /* split_fraction of the nonzeros to one GPU, the rest to the CPU */
    SLUICE_SPLIT_ADAPTIVE,   /* CPU and one GPU, in proportion to the measured rates */
    SLUICE_SPLIT_QUEUE       /* CPU and one GPU, from a common queue of blocks */
};

/* Memory plan of each GPU; zeros if the CPU computes. */
struct sluice_device_plan {
    uint64_t struct_bytes;
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* the smallest budget that works */
    uint64_t total_bytes;
    uint64_t slot_bytes;      /* size of each of the `streams` slots that blocks are copied to */
    uint64_t resident_blocks; /* blocks that are copied once and stay in GPU memory */
    uint64_t resident_bytes;  /* bytes of these blocks in the memory of each GPU */
    /* bytes of other blocks copied per iteration; a maximum if the CPU shares work */
    uint64_t copied_bytes;
    uint64_t host_bytes; /* host memory for GPUs; part of sluice_plan.total_bytes */
    uint32_t streams;
    uint32_t count;     /* devices that divide the work, including groups of processors; 0: none */
    uint32_t described; /* 1: `name` is a chip, and no GPU was opened */
    uint32_t multiprocessors;
    char name[128]; /* "": the CPU */
};

/* Which devices compute: sluice_compute_options.device. */
struct sluice_device_options {
    uint64_t struct_bytes;
    enum sluice_device_kind kind;
    enum sluice_split split;
    double split_fraction; /* with SLUICE_SPLIT_STATIC: 0 to 1 */
    uint64_t memory_bytes; /* limit per GPU; 0: most of the free memory */
    uint32_t streams;      /* per GPU; 0: chosen automatically */
    /* For MTTKRP and decompositions. With SLUICE_DEVICE_GPU: the number of GPUs in `numbers`; 0:
     * the first GPU. Otherwise: the number of groups of processors that divide the work, with
     * run.threads threads each; 0: none. */
    uint32_t count;
    /* numbers of the GPUs; a number may occur several times */
    uint32_t numbers[SLUICE_MAX_DEVICES];
    /*
     * For plans with SLUICE_DEVICE_GPU only: plan for GPUs of this chip, which need not be in this
     * machine ("a100", "a100-80gb", "h100", "h200", "b200", "l40s"). memory_bytes is then the limit
     * per GPU; 0: nine tenths of the chip's memory. NULL: the GPUs of this machine; if it has none
     * and memory_bytes is set, an h100. Calls that compute return SLUICE_ERR_USAGE.
     */
    const char *chip;
    struct sluice_device_plan *plan; /* filled in by plan functions; NULL: no plan for GPUs */
};

struct sluice_predict_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* memory_bytes is not used */
};

/*
 * Computes values of a model at given coordinates.
 * Math: values[i] = sum over r of weights[r] * A1(i1, r) * .. * AN(iN, r).
 * Shapes: coords[n] has `count` indices of mode n, from 0; `values` has space for `count` doubles.
 * Ownership: all arrays are the caller's.
 * Order: the same bits for any number of threads.
 * Errors: SLUICE_ERR_INPUT naming an entry outside the model; SLUICE_ERR_USAGE,
 * SLUICE_ERR_UNSUPPORTED, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM, SLUICE_ERR_INTERRUPTED. On error,
 * `values` is unchanged after SLUICE_ERR_INPUT and otherwise undefined.
 * Cost: count * rank * order multiplications.
 */
SLUICE_API enum sluice_status sluice_predict(const struct sluice_model *model,
                                             uint64_t count,
                                             const uint64_t *const *coords,
                                             double *values,
                                             const struct sluice_predict_options *options,
                                             struct sluice_error *err);

/* Format of predicted values. */
enum sluice_predict_form {
    SLUICE_PREDICT_TEXT, /* a line for each row: indices, value, model, residual */
    SLUICE_PREDICT_CSV,  /* as SLUICE_PREDICT_TEXT, with commas, after a header row */
    SLUICE_PREDICT_NPY   /* f8, rows x 3: value, model, residual */
};

struct sluice_predict_text_options {
    uint64_t struct_bytes;
    struct sluice_run_options run; /* memory_bytes is not used */
    enum sluice_dialect dialect;   /* of the input; text formats only */
    enum sluice_index_base index_base;
    enum sluice_predict_form form; /* of the output */
    uint32_t overwrite;            /* not 0: replace an existing file */
};

struct sluice_predict_report {
    uint64_t struct_bytes;
    enum sluice_dialect dialect;
    uint32_t index_base; /* 0 or 1 */
    uint64_t rows;
    uint64_t has_values; /* 0: the input has indices only, and the members below are 0 */
    double rmse, mae;    /* of the residuals: values minus values of the model */
    double largest;      /* largest magnitude of a residual */
    double values_norm;  /* 2-norm of the values */
};

/*
 * Computes values of a model at the coordinates of the text `input`. Works as `sluice predict`:
 * accepts any text format, plain or compressed, with or without values; "-" is standard input.
 * `output` is a path, "-" for standard output (not for .npy), or NULL for the report alone.
 * `report` may be NULL.
 * Errors: SLUICE_ERR_INPUT with file, line and column; SLUICE_ERR_USAGE, SLUICE_ERR_UNSUPPORTED,
 * SLUICE_ERR_IO, SLUICE_ERR_NOSPACE, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM, SLUICE_ERR_INTERRUPTED.
 * On error, `report` is unchanged and the output file is not created.
 * Cost: one pass over the input, rank * order multiplications for each row.
 */
SLUICE_API enum sluice_status sluice_predict_text(const struct sluice_model *model,
                                                  const char *input,
                                                  const char *output,
                                                  const struct sluice_predict_text_options *options,
                                                  struct sluice_predict_report *report,
                                                  struct sluice_error *err);

/* A completed run of a sweep. Numbers that are not known are NaN. */
struct sluice_sweep_run {
    uint64_t struct_bytes;
    uint32_t rank;
    uint32_t iterations;
    uint64_t seed;
    double fit;
    double seconds;
    double heldout_rmse;
    double match; /* factor match score with the best run of the same rank, once compared */
    enum sluice_stop_reason stop_reason; /* SLUICE_STOP_TOLERANCE or SLUICE_STOP_ITERATIONS */
    uint32_t kept;                       /* not 0: the factors of the run are in `folder` */
    char folder[48];                     /* within the folder of the sweep */
};

/* Statistics of the runs of one rank. */
struct sluice_sweep_rank {
    uint64_t struct_bytes;
    uint32_t rank;
    uint32_t runs;
    uint64_t best_seed; /* seed of the run with the largest fit */
    double best_fit;
    double agreement; /* mean factor match score of the other runs with the best; NaN: none */
    /* core consistency (CORCONDIA) of the best run, percent; NaN: unknown, see `note` */
    double consistency;
    uint64_t compared; /* number of other runs */
    char note[192];    /* reason if the core consistency is not known */
};

/* The rank that a sweep suggests. */
struct sluice_sweep_suggestion {
    uint64_t struct_bytes;
    uint32_t rank;      /* 0: none */
    uint32_t best_rank; /* `rank`, or the rank with the largest fit if there is none */
    char folder[48];    /* of the best run of best_rank, within the folder of the sweep */
    char why[320];      /* reason: a sentence without its full stop */
};

/* Whether a sweep computes the core consistency of each rank's best run. */
enum sluice_consistency {
    SLUICE_CONSISTENCY_AUTO, /* if it takes no more than a few minutes */
    SLUICE_CONSISTENCY_ALWAYS,
    SLUICE_CONSISTENCY_NEVER
};

struct sluice_sweep_options {
    uint64_t struct_bytes;
    /* Options of each run; NULL: the defaults. The sweep uses the member `run` for itself, sets
     * seed, max_seconds, checkpoint_folder and restart, and requires init_folder NULL. */
    const struct sluice_cpd_options *cpd;
    uint32_t runs; /* per rank; 0 means 1 */
    /* not 0: keep the factors of all runs; 0: keep only those of the best run per rank */
    uint32_t keep_all;
    uint64_t seed; /* seed of the first run per rank; the other runs have seed + 1, .. */
    enum sluice_consistency consistency;
    uint32_t restart;   /* not 0: discard an earlier sweep in the folder */
    double max_seconds; /* limit for the whole sweep; 0: no limit */
    /* The calling thread calls this for every completed run, including runs of earlier calls; NULL:
     * no callback. A return value other than 0 ends the sweep with SLUICE_ERR_INTERRUPTED. */
    int (*completed)(void *context, const struct sluice_sweep_run *run);
};

/* A completed sweep. */
struct sluice_sweep;

/*
 * Decomposes a store with `rank_count` ranks and several starts each, and suggests a rank. The
 * suggestion follows from core consistency and from the agreement of runs (factor match score).
 * `folder` is created if missing and receives a run folder for each run (r16-seed3) and sweep.json.
 * The same call, or `sluice cpd`, continues a sweep that ended early for any reason, and may add
 * ranks and runs. Other options that affect results must match; otherwise SLUICE_ERR_USAGE names
 * the mismatch.
 * Shapes: `ranks` has `rank_count` different ranks, 1 to 256 of them.
 * Ownership: `ranks` is the caller's. The caller destroys *ret_sweep with sluice_sweep_destroy.
 * Errors: SLUICE_ERR_INTERRUPTED; SLUICE_ERR_TIME_LIMIT after max_seconds; SLUICE_ERR_BUDGET before
 * the first run if memory does not suffice for the largest rank; SLUICE_ERR_IO if another process
 * uses the folder; those of sluice_cpd and sluice_model_save. On error, *ret_sweep is unchanged and
 * completed runs stay in the folder.
 * Cost: the cost of all runs, one pass per core consistency, and reading the factors to compare
 * runs.
 */
SLUICE_API enum sluice_status sluice_sweep_ranks(const struct sluice_store *store,
                                                 const char *folder,
                                                 uint32_t rank_count,
                                                 const uint32_t *ranks,
                                                 const struct sluice_sweep_options *options,
                                                 struct sluice_sweep **ret_sweep,
                                                 struct sluice_error *err);

/* Destroys a sweep. Accepts NULL. Its folder stays. Ownership: frees the sweep. Cost: constant. */
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

/*
 * Suggests a rank and its best run. The rank is the largest whose best run has a core consistency
 * of 80 % or more and whose runs agree to 0.9 or more. If there is no such rank, it is the largest
 * whose runs agree to 0.9 or more; failing that, the suggestion has no rank, and the run with the
 * largest fit.
 * Errors: SLUICE_ERR_USAGE for a wrong struct_bytes. On error, `suggestion` is unchanged. Cost:
 * constant.
 */
SLUICE_API enum sluice_status sluice_sweep_suggest(const struct sluice_sweep *sweep,
                                                   struct sluice_sweep_suggestion *suggestion,
                                                   struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
