/* Reads and writes sweep.json, the record of a sweep. The record has the completed runs, so that
 * the sweep can continue, and the results, so that programs can read them. The file is replaced
 * atomically after every run. */
#ifndef SLC_REPORT_SWEEP_RECORD_H
#define SLC_REPORT_SWEEP_RECORD_H

#include "base/error/error.h"
#include "base/memory/limits.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_SWEEP_RUNS_MAX = 100000,        /* maximum number of runs */
    SLC_SWEEP_RANKS_MAX = 256,          /* maximum number of ranks; a command line has at most 64 */
    SLC_SWEEP_RECORD_BYTES = 256 << 20, /* maximum size of sweep.json */
    SLC_SWEEP_FOLDER_BYTES = 48,        /* size of a folder name such as "r16-seed3" */
    SLC_SWEEP_REASON_BYTES = 16
};

/* A complete run. Unknown numbers are NAN. */
struct slc_sweep_run {
    uint32_t rank;
    uint64_t seed;
    double fit;
    unsigned iterations;
    char reason[SLC_SWEEP_REASON_BYTES]; /* why the run stopped: "tol" or "iterations" */
    double seconds;
    /* errors of the model on the held-out nonzeros (base/loss.h) */
    double heldout_rmse, heldout_deviance;
    double match;     /* factor match score with the best run of its rank */
    double condition; /* largest condition number of its factors */
    bool kept;        /* true if the factors are still in the folder of the run */
};

/* Results of the comparison of the runs of a rank. */
struct slc_sweep_rank {
    uint32_t rank;
    unsigned runs; /* number of runs of the rank at the time of the comparison */
    /* seed of the run with the largest fit; of several such runs, the smallest seed */
    uint64_t best_seed;
    /* Mean factor match score of the best run with each other run whose fit is at most
     * SLC_SWEEP_REACHED lower; NAN if there is no such run. Runs with a lower fit ended in a worse
     * local optimum, and say nothing about the components of the best run. */
    double agreement;
    /* number of runs that reached the best fit, including the best run; 0 in records of older
     * versions */
    unsigned reached;
    unsigned compared; /* number of other runs that were compared with the best run */
    /* core consistency of the best run, in percent; NAN if it was not computed */
    double consistency;
    char note[192]; /* why the agreement or core consistency was not computed */
};

/* Largest difference of the fits of two runs that reached the same optimum. */
#define SLC_SWEEP_REACHED 1e-4

struct slc_sweep_record {
    json_t *identity;           /* texts of slc_sweep_identity, which must match to resume */
    struct slc_sweep_run *runs; /* sorted by rank, then by seed */
    unsigned run_count, run_capacity;
    struct slc_sweep_rank ranks[SLC_SWEEP_RANKS_MAX]; /* sorted by rank, ascending */
    unsigned rank_count;
    json_t *store; /* JSON string with the path of the store; NULL if not read from a file */
    bool complete; /* true if the record was read from the file of a complete sweep */
};

/* Name of the text of the identity that states the loss, if runs update rows from nonzeros. */
#define SLC_SWEEP_LOSS "loss"

#define SLC_SWEEP_RECORD_INIT                                                                      \
    {                                                                                              \
        .identity = NULL, .runs = NULL                                                             \
    }

/* Returns true if the runs update rows from their nonzeros: with another loss than least squares,
 * or with unknown unlisted cells. Ranks are then compared by their error on held-out nonzeros,
 * because core consistency is defined for least squares over all cells only. */
bool slc_sweep_record_by_heldout(const struct slc_sweep_record *record);

void slc_sweep_record_destroy(struct slc_sweep_record *record);

/* Parses the text of a sweep.json into an empty record. The text may be damaged or malicious.
 * Errors: SLC_ERR_FORMAT, whose message names the member; SLC_ERR_UNSUPPORTED; SLC_ERR_MEMORY. */
enum slc_status slc_sweep_record_parse(const char *text,
                                       uint64_t bytes,
                                       struct slc_sweep_record *record,
                                       struct slc_error *err) SLC_NODISCARD;

/* Reads the file at `path` into an empty record. Sets *found to false if there is no file. */
enum slc_status slc_sweep_record_read(const char *path,
                                      struct slc_sweep_record *record,
                                      bool *found,
                                      struct slc_error *err) SLC_NODISCARD;

/* Writes the record to `path`. `store` and `suggestion` are written for programs that
 * read the file. `suggestion` is borrowed, and NULL until the sweep is complete. Errors:
 * SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status slc_sweep_record_write(const char *path,
                                       const struct slc_sweep_record *record,
                                       const char *store,
                                       json_t *suggestion,
                                       struct slc_error *err) SLC_NODISCARD;

/* Fails if the identity of the record differs from `identity`, a JSON object of strings. Errors:
 * SLC_ERR_USAGE, whose message states the first difference. */
enum slc_status slc_sweep_record_compare(const struct slc_sweep_record *record,
                                         json_t *identity,
                                         struct slc_error *err) SLC_NODISCARD;

/* Returns the run of a rank and seed, or NULL if the record does not have it. */
struct slc_sweep_run *
slc_sweep_record_find(const struct slc_sweep_record *record, uint32_t rank, uint64_t seed);
/* Adds a run, or replaces the run with the same rank and seed. Errors: SLC_ERR_MEMORY;
 * SLC_ERR_UNSUPPORTED for more than SLC_SWEEP_RUNS_MAX. */
enum slc_status slc_sweep_record_add(struct slc_sweep_record *record,
                                     const struct slc_sweep_run *run,
                                     struct slc_error *err) SLC_NODISCARD;
/* Returns the results of a rank. If the record does not have the rank, adds it without values;
 * returns NULL if there are too many ranks. */
struct slc_sweep_rank *slc_sweep_record_rank(struct slc_sweep_record *record, uint32_t rank);

/* Returns the run of a rank with the largest fit; of several such runs, the run with the smallest
 * seed. Returns NULL if the rank has no runs. */
struct slc_sweep_run *slc_sweep_record_best(const struct slc_sweep_record *record, uint32_t rank);

/* Writes the folder name of a run, such as "r16-seed3", to SLC_SWEEP_FOLDER_BYTES bytes at `text`,
 * and returns `text`. */
const char *slc_sweep_folder_name(char *text, uint32_t rank, uint64_t seed);

#endif
