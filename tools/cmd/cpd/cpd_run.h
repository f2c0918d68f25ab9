/* One factorization of `sluice cpd`, by itself or as a run of a sweep. */
#ifndef SLC_TOOLS_CPD_RUN_H
#define SLC_TOOLS_CPD_RUN_H

#include "engine/solve/cp_als.h"
#include "sweep/sweep.h"
#include "tools/cmd/cpd/cpd_checkpoint.h"
#include "tools/cmd/cpd/cpd_estimate.h"
#include "tools/cmd/cpd/cpd_output.h"
#include "tools/options/options.h"
#include "tools/progress/log_json.h"
#include "tools/report/report.h"
#include "tools/session/session.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

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
enum slc_status
cpd_holdout_parse(const char *text, double *part, struct slc_error *err) SLC_NODISCARD;

#endif
