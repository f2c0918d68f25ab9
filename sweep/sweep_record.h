/*
 * sweep.json: what a sweep of `sluice cpd` has done so far, so that the same command line goes on,
 * and its results for programs. Written anew, at one stroke, after every run.
 */
#ifndef SLC_REPORT_SWEEP_RECORD_H
#define SLC_REPORT_SWEEP_RECORD_H

#include "base/error/error.h"
#include "base/memory/limits.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_SWEEP_RUNS_MAX = 100000,        /* in a record */
    SLC_SWEEP_RANKS_MAX = 256,          /* the same; a command line names 16 at most */
    SLC_SWEEP_RECORD_BYTES = 256 << 20, /* of its text */
    SLC_SWEEP_FOLDER_BYTES = 48,        /* "r16-seed3" */
    SLC_SWEEP_REASON_BYTES = 16
};

/* One run that is through. Numbers that are not known are NAN. */
struct slc_sweep_run {
    uint32_t rank;
    uint64_t seed;
    double fit;
    unsigned iterations;
    char reason[SLC_SWEEP_REASON_BYTES]; /* why it stopped: "tol" or "iterations" */
    double seconds;
    double heldout_rmse;
    double match; /* factor match score with the best run of its rank */
    bool kept;    /* its factors are in its folder */
};

/* What the runs of a rank tell. */
struct slc_sweep_rank {
    uint32_t rank;
    unsigned runs;      /* that it was judged by */
    uint64_t best_seed; /* of these: of the largest fit, the first of several */
    double agreement;   /* mean of the others' match; NAN: of none */
    unsigned compared;  /* so many others */
    double consistency; /* of the best run, in percent; NAN: not computed .. */
    char note[192];     /* .. and why */
};

struct slc_sweep_record {
    json_t *identity;           /* what decides the results beside rank and seed: texts */
    struct slc_sweep_run *runs; /* by rank, then by seed */
    unsigned run_count, run_room;
    struct slc_sweep_rank ranks[SLC_SWEEP_RANKS_MAX]; /* ascending */
    unsigned rank_count;
    json_t *store; /* of a record that was read: the path of its store, a text; NULL: not told */
    bool complete; /* the same: it was through when it was written */
};

#define SLC_SWEEP_RECORD_INIT                                                                      \
    {                                                                                              \
        .identity = NULL, .runs = NULL                                                             \
    }

void slc_sweep_record_destroy(struct slc_sweep_record *record);

/* Takes the text of a sweep.json, which may hold anything, into an empty record. Errors:
 * SLC_ERR_FORMAT naming the member; SLC_ERR_UNSUPPORTED; SLC_ERR_MEMORY. */
enum slc_status slc_sweep_record_parse(const char *text,
                                       uint64_t bytes,
                                       struct slc_sweep_record *record,
                                       struct slc_error *err) SLC_NODISCARD;

/* Reads the file at `path`; *found is false where there is none, and the record is empty then. */
enum slc_status slc_sweep_record_read(const char *path,
                                      struct slc_sweep_record *record,
                                      bool *found,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Writes it. `store` and `suggestion` are for readers; the latter may be NULL while the sweep is
 * not through, and is borrowed. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY.
 */
enum slc_status slc_sweep_record_write(const char *path,
                                       const struct slc_sweep_record *record,
                                       const char *store,
                                       json_t *suggestion,
                                       struct slc_error *err) SLC_NODISCARD;

/* Refuses a record of other runs than of `identity`, an object of texts, naming the first
 * difference. Errors: SLC_ERR_USAGE. */
enum slc_status slc_sweep_record_compare(const struct slc_sweep_record *record,
                                         json_t *identity,
                                         struct slc_error *err) SLC_NODISCARD;

/* The run, or NULL. */
struct slc_sweep_run *
slc_sweep_record_find(const struct slc_sweep_record *record, uint32_t rank, uint64_t seed);
/* Adds one, or takes the place of the one that is there. Errors: SLC_ERR_MEMORY;
 * SLC_ERR_UNSUPPORTED where there are too many. */
enum slc_status slc_sweep_record_add(struct slc_sweep_record *record,
                                     const struct slc_sweep_run *run,
                                     struct slc_error *err) SLC_NODISCARD;
/* The same of a rank, which is empty but for its number where it is new. NULL: too many. */
struct slc_sweep_rank *slc_sweep_record_rank(struct slc_sweep_record *record, uint32_t rank);

/* Of the runs of a rank the one of the largest fit, the smallest seed of several; NULL: none. */
struct slc_sweep_run *slc_sweep_record_best(const struct slc_sweep_record *record, uint32_t rank);

/* "r16-seed3", into SLC_SWEEP_FOLDER_BYTES. */
const char *slc_sweep_folder_name(char *text, uint32_t rank, uint64_t seed);

#endif
