/* sweep.json: the completed runs of a sweep, from which the same sweep continues, and its results
 * for programs. The file is replaced atomically after every run. */
#ifndef SLC_REPORT_SWEEP_RECORD_H
#define SLC_REPORT_SWEEP_RECORD_H

#include "base/error/error.h"
#include "base/memory/limits.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_SWEEP_RUNS_MAX = 100000,        /* maximum in a record */
    SLC_SWEEP_RANKS_MAX = 256,          /* maximum in a record; a command line has at most 16 */
    SLC_SWEEP_RECORD_BYTES = 256 << 20, /* maximum size of the text of a record */
    SLC_SWEEP_FOLDER_BYTES = 48,        /* "r16-seed3" */
    SLC_SWEEP_REASON_BYTES = 16
};

/* A complete run. Numbers that are not known are NAN. */
struct slc_sweep_run {
    uint32_t rank;
    uint64_t seed;
    double fit;
    unsigned iterations;
    char reason[SLC_SWEEP_REASON_BYTES]; /* why it stopped: "tol" or "iterations" */
    double seconds;
    double heldout_rmse;
    double match; /* factor match score with the best run of its rank */
    bool kept;    /* the factors are in the folder of the run */
};

/* Comparison of the runs of a rank. */
struct slc_sweep_rank {
    uint32_t rank;
    unsigned runs; /* number of runs compared */
    /* seed of the run with the largest fit; the smallest seed if several runs have this fit */
    uint64_t best_seed;
    double agreement;  /* mean match of the other runs; NAN: none */
    unsigned compared; /* number of other runs */
    /* core consistency of the best run, in percent; NAN: not computed, see `note` */
    double consistency;
    char note[192]; /* reason if the core consistency was not computed */
};

struct slc_sweep_record {
    json_t *identity; /* options that determine the results, except rank and seed: texts */
    struct slc_sweep_run *runs; /* by rank, then by seed */
    unsigned run_count, run_capacity;
    struct slc_sweep_rank ranks[SLC_SWEEP_RANKS_MAX]; /* ascending */
    unsigned rank_count;
    json_t *store; /* path of the store of a record that was read, a text; NULL: unknown */
    bool complete; /* the sweep of a record that was read was complete */
};

#define SLC_SWEEP_RECORD_INIT                                                                      \
    {                                                                                              \
        .identity = NULL, .runs = NULL                                                             \
    }

void slc_sweep_record_destroy(struct slc_sweep_record *record);

/* Parses the text of a sweep.json, which is not trusted, into an empty record. Errors:
 * SLC_ERR_FORMAT with the member; SLC_ERR_UNSUPPORTED; SLC_ERR_MEMORY. */
enum slc_status slc_sweep_record_parse(const char *text,
                                       uint64_t bytes,
                                       struct slc_sweep_record *record,
                                       struct slc_error *err) SLC_NODISCARD;

/* Reads the file at `path`. If there is no file, *found is false and the record is empty. */
enum slc_status slc_sweep_record_read(const char *path,
                                      struct slc_sweep_record *record,
                                      bool *found,
                                      struct slc_error *err) SLC_NODISCARD;

/* Writes the record. `store` and `suggestion` are for readers; `suggestion` is borrowed, and NULL
 * until the sweep is complete. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status slc_sweep_record_write(const char *path,
                                       const struct slc_sweep_record *record,
                                       const char *store,
                                       json_t *suggestion,
                                       struct slc_error *err) SLC_NODISCARD;

/* Fails if the identity of the record differs from `identity`, an object of texts. Errors:
 * SLC_ERR_USAGE with the first difference. */
enum slc_status slc_sweep_record_compare(const struct slc_sweep_record *record,
                                         json_t *identity,
                                         struct slc_error *err) SLC_NODISCARD;

/* Returns the run, or NULL. */
struct slc_sweep_run *
slc_sweep_record_find(const struct slc_sweep_record *record, uint32_t rank, uint64_t seed);
/* Adds a run, or replaces the same run. Errors: SLC_ERR_MEMORY; SLC_ERR_UNSUPPORTED for more than
 * SLC_SWEEP_RUNS_MAX. */
enum slc_status slc_sweep_record_add(struct slc_sweep_record *record,
                                     const struct slc_sweep_run *run,
                                     struct slc_error *err) SLC_NODISCARD;
/* Returns a rank. A rank that the record does not have is added without values. NULL: too many
 * ranks. */
struct slc_sweep_rank *slc_sweep_record_rank(struct slc_sweep_record *record, uint32_t rank);

/* Returns the run of a rank with the largest fit; if several runs have this fit, the run with the
 * smallest seed. NULL: the rank has no runs. */
struct slc_sweep_run *slc_sweep_record_best(const struct slc_sweep_record *record, uint32_t rank);

/* Writes "r16-seed3" to SLC_SWEEP_FOLDER_BYTES at `text`. */
const char *slc_sweep_folder_name(char *text, uint32_t rank, uint64_t seed);

#endif
