/* One factorization of `sluice cpd`: a single run or a run of a sweep. */
#ifndef SLC_TOOLS_CPD_RUN_H
#define SLC_TOOLS_CPD_RUN_H

#include "engine/solve/cp.h"
#include "report/run_record.h"
#include "sweep/sweep.h"
#include "tools/forecast/estimate.h"
#include "tools/options/options.h"
#include "tools/progress/log_json.h"
#include "tools/report/report.h"
#include "tools/session/session.h"
#include "tools/session/solver_options.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Checkpoints of `sluice cpd`: opening, resuming, removing and reporting them. */
struct cpd_checkpoint {
    struct slc_checkpoint *file; /* NULL: no checkpoints */
    const char *folder;
    bool own_folder;       /* true if `folder` is named after the results and has no other files */
    double seconds_before; /* total time of the earlier runs that this run resumes */
    /* iteration (from 1) at which a run resumes from the last checkpoint; 0: no checkpoint */
    unsigned iteration;
    unsigned mode; /* mode (from 0) at which a run resumes from the last checkpoint */
};

/* Parses --checkpoint-interval: "auto" (stored as -1) or seconds. Errors: SLC_ERR_USAGE. */
enum slc_status
cpd_checkpoint_interval(const char *text, double *seconds, struct slc_error *err) SLC_NODISCARD;

/* Opens the checkpoint in `folder` (NULL or "" for none), with a warning if one of its generations
 * is damaged. The caller must call cpd_checkpoint_close. Errors: those of slc_checkpoint_open. */
enum slc_status cpd_checkpoint_open(struct cpd_checkpoint *checkpoint,
                                    const char *folder,
                                    bool own_folder,
                                    bool restart,
                                    struct slc_error *err) SLC_NODISCARD;
/* Stores the order in which the checkpointed run updates the `order` modes. Returns false if there
 * is no checkpoint. */
bool cpd_checkpoint_order(const struct cpd_checkpoint *checkpoint, unsigned order, unsigned *modes);
void cpd_checkpoint_close(struct cpd_checkpoint *checkpoint);

/* Removes the checkpoint of a complete run after its results were written. Errors: SLC_ERR_IO. */
enum slc_status cpd_checkpoint_remove(struct cpd_checkpoint *checkpoint,
                                      struct slc_error *err) SLC_NODISCARD;

/* Callbacks of the solver. cpd_checkpoint_resumed adds the iterations of earlier runs to
 * `iterations`. */
void cpd_checkpoint_resumed(struct cpd_checkpoint *checkpoint,
                            const struct slc_cp_resume *resume,
                            unsigned order,
                            json_t *iterations,
                            struct log_json *log,
                            bool quiet);
void cpd_checkpoint_written(struct cpd_checkpoint *checkpoint,
                            const struct slc_cp_checkpointed *written,
                            struct log_json *log);

/* After a run that did not complete, prints where the same command line resumes. */
void cpd_checkpoint_report(const struct cpd_checkpoint *checkpoint);

/* Estimate of `sluice cpd`: a dry run measures a trial run, and a run measures its first
 * iterations. */
struct cpd_estimate {
    struct estimator estimator; /* updated until `complete` */
    bool complete;
    bool estimated; /* true if the following members are set */
    struct estimate estimate;
    struct estimate_actual actual;
};

void cpd_estimate_start(struct cpd_estimate *of);
/* Callbacks of the solver. */
void cpd_estimate_blocks(struct cpd_estimate *of, unsigned mode, uint64_t done, uint64_t blocks);
void cpd_estimate_iteration(struct cpd_estimate *of,
                            const struct slc_stream *stream,
                            const struct slc_cp_iteration *iteration);

/* Computes the estimate for this number of iterations, and the actual values. Makes no estimate for
 * a run that resumed, or that followed another run in the same process. */
void cpd_estimate_end(struct cpd_estimate *of,
                      const struct slc_session *session,
                      unsigned iterations);

/* Makes a trial run and prints the estimate, or a note if there is none. Errors: those of
 * probe_run. */
enum slc_status cpd_estimate_dry_run(struct cpd_estimate *of,
                                     struct slc_session *session,
                                     const struct slc_cp_options *solver,
                                     double seconds,
                                     struct slc_error *err) SLC_NODISCARD;

/* Data from which run.json is written (report/run_record.h). */
struct run_record {
    struct slc_run_facts
        facts; /* its command, options and estimate are set from the following members */
    const struct command *command;
    int argc;
    char **argv;
    const void *values; /* values of the option table */
    json_t *estimate;   /* estimated and actual values, borrowed; NULL: run.json gets no estimate */
};

/* Results of a factorization: a folder of .npy files (the default), SPLATT text, a ktensor file, or
 * several of these, and one run.json. */
enum { CPD_OUTPUT_PLACES = 3 };

struct cpd_output {
    char folder[1024];          /* folder of the .npy files; "": no .npy files are written */
    const char *stem;           /* stem of the SPLATT text files; NULL: no such files are written */
    const char *ktensor;        /* path of the ktensor file; NULL: no such file is written */
    char run_path[1024 + 16];   /* path of run.json; "": nothing is written */
    char checkpoint[1024 + 16]; /* folder of the checkpoint; "": the run writes no checkpoint */
    bool own_checkpoint;        /* true if `checkpoint` contains only the checkpoint */

    /* Locked folders, set by cpd_output_lock: one folder each for .npy files, SPLATT text
     * and the ktensor. */
    struct cpd_output_place {
        char folder[1024 + 16];
        int fd;    /* descriptor that holds the lock; -1: not locked */
        bool made; /* true if this run created the folder */
    } places[CPD_OUTPUT_PLACES];
};

/* Names given by the options. All names except `checkpoint` may be NULL. */
struct cpd_output_names {
    const char *folder, *stem, *ktensor;
    bool nowrite;
    const char *checkpoint; /* "auto": with the results; "none"; or a folder */
};

/* Returns the name of the store without its path, borrowed. Sets *length to the number of bytes
 * before ".slc", at most 512. */
const char *cpd_output_store_name(const char *store_path, int *length);

/* Checks that a folder of results can be created or used at `path`. Errors: as
 * cpd_output_choose. */
enum slc_status cpd_output_check_folder(const char *path, struct slc_error *err) SLC_NODISCARD;

/* Chooses the outputs from the options (default: the folder NAME.rR in the current folder, where
 * NAME is the name of the store), and checks that they can be written, so that a long run does not
 * fail at its end. Errors: SLC_ERR_IO, SLC_ERR_USAGE. */
enum slc_status cpd_output_choose(struct cpd_output *output,
                                  const char *store_path,
                                  unsigned rank,
                                  const struct cpd_output_names *names,
                                  struct slc_error *err) SLC_NODISCARD;

/* Keeps other runs from writing the same results until cpd_output_unlock: locks the folder of the
 * factors, STEMcheckpoint and KTENSOR.checkpoint, and creates these folders if they are missing.
 * The folder `checkpoint` (or NULL) is already locked and is skipped. Errors: SLC_ERR_IO. */
enum slc_status cpd_output_lock(struct cpd_output *output,
                                const char *checkpoint,
                                struct slc_error *err) SLC_NODISCARD;
/* Prints a note if results of an earlier run exist that will be replaced at the end. */
void cpd_output_note_replaced(const struct cpd_output *output);
/* Unlocks the folders. Accepts a struct that cpd_output_choose filled in, locked or not, and a
 * zeroed struct. */
void cpd_output_unlock(struct cpd_output *output);

/* Writes the model in every chosen format, and run.json. Logs each result to `log`. */
enum slc_status cpd_output_write(const struct cpd_output *output,
                                 const struct run_record *record,
                                 struct log_json *log,
                                 struct slc_error *err) SLC_NODISCARD;

/* Prints the names of the result files. */
void cpd_output_report(const struct cpd_output *output);

/* Filled by the option table. */
struct arguments {
    struct session_options session;
    struct option_counts ranks;
    uint64_t rank; /* rank of this run */
    uint64_t runs; /* runs per rank */
    const char *keep;
    const char *consistency;
    uint64_t iterations;
    double tolerance;
    struct solver_options solver;
    uint64_t seed;
    const char *init;
    const char *holdout; /* value of --holdout; NULL: no nonzeros are held out */
    uint64_t holdout_seed;
    double max_seconds;
    const char *folder;
    const char *stem;
    const char *ktensor;
    const char *checkpoint;
    const char *interval;
    const char *progress;
    const char *log_json;
    bool restart;
    bool dry_run;
    uint64_t max_disk; /* maximum bytes of the layouts that --layouts build adds; 0: no limit */
    double probe_seconds;
    bool no_probe;
    bool nowrite;
    bool verbose;
    bool quiet;
};

/* State of one run: options, and the data that callbacks collect. */
struct cpd {
    struct arguments args;
    const struct command *command;
    int argc;
    char **argv;
    const struct slc_files *files; /* for opening the store; NULL: those of the system */
    struct slc_session session;
    struct slc_cp_options als;
    struct slc_cp_result result;
    struct cpd_output output;
    struct cpd_checkpoint checkpoint;
    struct log_json *log;
    bool started;       /* true once the start was logged */
    json_t *iterations; /* records of the iterations, for run.json */
    struct report_reads reads;
    struct cpd_estimate estimate;
    uint64_t start_ns;
    double write_seconds;        /* time to write results; negative until results are written */
    struct slc_sweep_job *sweep; /* job of the sweep that this run belongs to; NULL: no sweep */
};

/* With --layouts build, adds the missing sorted layouts to the store, as far as --max-disk permits,
 * prints them, and opens the store again. A dry run only prints what it would add. Errors:
 * SLC_ERR_USAGE for --max-disk without --layouts build; SLC_ERR_BUDGET if the drive lacks space;
 * those of slc_relayout_add and slc_store_open_within. The store stays open after an error. */
enum slc_status cpd_layouts_build(const struct arguments *args,
                                  const struct slc_files *files,
                                  struct slc_store *store,
                                  struct slc_error *err) SLC_NODISCARD;

/* Makes one factorization, from the store to the results, and returns an exit code. `cpd` contains
 * the command line, the log and the start time; everything else is created and released here. */
int cpd_run_one(struct cpd *cpd, const struct operands *operands);

/* Makes a sweep according to the options and returns an exit code. */
int cpd_run_sweep(const struct cpd *cpd, const struct operands *operands);

#endif
