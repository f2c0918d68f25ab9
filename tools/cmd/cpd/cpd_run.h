/* One factorization of `sluice cpd`, by itself or as a run of a sweep. */
#ifndef SLC_TOOLS_CPD_RUN_H
#define SLC_TOOLS_CPD_RUN_H

#include "engine/solve/cp_als.h"
#include "report/run_record.h"
#include "sweep/sweep.h"
#include "tools/forecast/estimate.h"
#include "tools/options/options.h"
#include "tools/progress/log_json.h"
#include "tools/report/report.h"
#include "tools/session/session.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* How `sluice cpd` keeps and takes up checkpoints, and what it says of them. */
struct cpd_checkpoint {
    struct slc_checkpoint *file; /* NULL: none is kept */
    const char *folder;
    bool own_folder;       /* it is for nothing else, and named after the results */
    double seconds_before; /* of the runs that this one goes on from */
    unsigned iteration;    /* where the last one goes on, from 1; 0: there is none */
    unsigned mode;         /* the same, 0-based */
};

/* "auto", or seconds: -1 or these. Errors: SLC_ERR_USAGE. */
enum slc_status
cpd_checkpoint_interval(const char *text, double *seconds, struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the checkpoint in `folder`, NULL or "" for none, and says on standard error where one of
 * its generations is damaged. Owns: cpd_checkpoint_close. Errors: those of slc_checkpoint_open.
 */
enum slc_status cpd_checkpoint_open(struct cpd_checkpoint *checkpoint,
                                    const char *folder,
                                    bool own_folder,
                                    bool restart,
                                    struct slc_error *err) SLC_NODISCARD;
/* The order in which the run that it is of updates its `order` modes; false where there is none. */
bool cpd_checkpoint_order(const struct cpd_checkpoint *checkpoint, unsigned order, unsigned *modes);
void cpd_checkpoint_close(struct cpd_checkpoint *checkpoint);

/* Removes it, once the results of a run that is through have been written. Errors: SLC_ERR_IO. */
enum slc_status cpd_checkpoint_remove(struct cpd_checkpoint *checkpoint,
                                      struct slc_error *err) SLC_NODISCARD;

/* What the solver calls; the iterations before go to `iterations`. */
void cpd_checkpoint_resumed(struct cpd_checkpoint *checkpoint,
                            const struct slc_cp_resume *resume,
                            unsigned order,
                            json_t *iterations,
                            struct log_json *log,
                            bool quiet);
void cpd_checkpoint_written(struct cpd_checkpoint *checkpoint,
                            const struct slc_cp_checkpointed *written,
                            struct log_json *log);

/* Where the same command line goes on from, on standard error; after an end that was not one. */
void cpd_checkpoint_tell(const struct cpd_checkpoint *checkpoint);

/* The estimate of one `sluice cpd`: of a dry run by a probe, of a run by its own beginning. */
struct cpd_estimate {
    struct estimator estimator; /* told until `judged` */
    bool judged;
    bool estimated; /* what follows is known */
    struct estimate estimate;
    struct estimate_actual actual;
};

void cpd_estimate_start(struct cpd_estimate *of);
/* What the solver calls. */
void cpd_estimate_blocks(struct cpd_estimate *of, unsigned mode, uint64_t done, uint64_t blocks);
void cpd_estimate_iteration(struct cpd_estimate *of,
                            const struct slc_stream *stream,
                            const struct slc_cp_iteration *iteration);

/* What that comes to for so many iterations, and what they took. Not for a run that went on from
 * another, or followed one in the same process. */
void cpd_estimate_end(struct cpd_estimate *of,
                      const struct slc_session *session,
                      unsigned iterations);

/* Begins what is planned and prints the estimate; a note where none can be had. Errors: those of
 * probe_run that are more than that. */
enum slc_status cpd_estimate_dry_run(struct cpd_estimate *of,
                                     struct slc_session *session,
                                     unsigned iterations,
                                     double seconds,
                                     struct slc_error *err) SLC_NODISCARD;

/* What run.json is made of (report/run_record.h), of a command line. */
struct run_record {
    struct slc_run_facts facts; /* command, options and estimate come from what follows */
    const struct command *command;
    int argc;
    char **argv;
    const void *values; /* of the option table */
    json_t *estimate;   /* compared with the run, borrowed; NULL: there was none */
};

/*
 * Where the results of a factorization go: a folder of .npy (the default), SPLATT text, a ktensor
 * file, any of them together, and run.json beside each kind's first file.
 */
enum { CPD_OUTPUT_PLACES = 3 };

struct cpd_output {
    char folder[1024];          /* of .npy; "" for none */
    const char *stem;           /* of SPLATT text; NULL for none */
    const char *ktensor;        /* file; NULL for none */
    char run_path[1024 + 16];   /* run.json; "" when nothing is written */
    char checkpoint[1024 + 16]; /* folder; "" for none */
    bool own_checkpoint;        /* it is for nothing else, and named after the results */

    /* Of cpd_output_lock: a folder for each kind of result that has none of its own. */
    struct cpd_output_place {
        char folder[1024 + 16];
        int fd;    /* -1: not locked */
        bool made; /* by this run */
    } places[CPD_OUTPUT_PLACES];
};

/* What the options name; any of them but the last may be NULL. */
struct cpd_output_names {
    const char *folder, *stem, *ktensor;
    bool nowrite;
    const char *checkpoint; /* "auto": beside the results; "none"; or a folder */
};

/* The store's name without folders and ".slc", `length` bytes, 512 at most; borrowed. */
const char *cpd_output_store_name(const char *store_path, int *length);

/* Whether a folder of results can be made or used at `path`. Errors: as cpd_output_choose. */
enum slc_status cpd_output_check_folder(const char *path, struct slc_error *err) SLC_NODISCARD;

/*
 * Decides what is written from the options (without any of
 * them the folder NAME.rR in the current one, NAME that of the store), and checks that it can be
 * written, so that a long run is not lost at its end. Errors: SLC_ERR_IO, SLC_ERR_USAGE.
 */
enum slc_status cpd_output_choose(struct cpd_output *output,
                                  const char *store_path,
                                  unsigned rank,
                                  const struct cpd_output_names *names,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Keeps other runs from writing the same results until cpd_output_unlock: locks the folder of the
 * factors, STEMcheckpoint and KTENSOR.checkpoint, which are made where they are missing, but for
 * the one that is the folder `checkpoint` (or NULL), which is locked already. Errors: SLC_ERR_IO.
 */
enum slc_status cpd_output_lock(struct cpd_output *output,
                                const char *checkpoint,
                                struct slc_error *err) SLC_NODISCARD;
/* Says on standard error whose results are there already and will be replaced at the end. */
void cpd_output_tell_replaced(const struct cpd_output *output);
/* Takes what cpd_output_choose has filled in, locked or not, and all zero. */
void cpd_output_unlock(struct cpd_output *output);

/* Writes the model in every form chosen, and run.json; each is told to `log`. */
enum slc_status cpd_output_write(const struct cpd_output *output,
                                 const struct run_record *record,
                                 struct log_json *log,
                                 struct slc_error *err) SLC_NODISCARD;

/* Lines of the report that name the files. */
void cpd_output_report(const struct cpd_output *output);

/* As the table of options fills it in. */
struct arguments {
    struct session_options session;
    struct option_counts ranks;
    uint64_t rank; /* of this run */
    uint64_t runs; /* of each rank */
    const char *keep;
    const char *consistency;
    uint64_t iterations;
    double tolerance;
    double regularization;
    uint64_t seed;
    const char *init;
    const char *holdout; /* NULL: none */
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
    double probe_seconds;
    bool no_probe;
    bool nowrite;
    bool verbose;
    bool quiet;
};

/* One run, from its options to what its callbacks collect. */
struct cpd {
    struct arguments args;
    const struct command *command;
    int argc;
    char **argv;
    struct slc_session session;
    struct slc_cp_als_options als;
    struct slc_cp_result result;
    struct cpd_output output;
    struct cpd_checkpoint checkpoint;
    struct log_json *log;
    bool started;       /* the log was told so */
    json_t *iterations; /* for run.json */
    struct report_reads reads;
    struct cpd_estimate estimate;
    uint64_t start_ns;
    double write_seconds;        /* below 0 until something was written */
    struct slc_sweep_job *sweep; /* that it is a run of; NULL: of none */
};

/*
 * One factorization, from the store to the results; an exit code. `cpd` has what the
 * command line says, log and the time of the start; all else is made and released here.
 */
int cpd_run_one(struct cpd *cpd, const struct operands *operands);

/* Several, as the options say; an exit code. */
int cpd_run_sweep(const struct cpd *cpd, const struct operands *operands);

/* "1%" or "0.01": *part, which stays as it is for NULL. Errors: SLC_ERR_USAGE. */

#endif
