/*
 * run.json beside the factors: everything that is needed to repeat a factorization and to judge it:
 * command line, options in force, versions, the tensor's identity, the plan, the fit of every
 * iteration, times, counters and peak memory.
 */
#ifndef SLC_TOOLS_RUN_JSON_H
#define SLC_TOOLS_RUN_JSON_H

#include "cpd_checkpoint.h"
#include "engine/plan.h"
#include "engine/solve/cp_als.h"
#include "engine/stream.h"
#include "estimate.h"
#include "options.h"
#include "storage/store.h"

#include <jansson.h>

struct run_record {
    const struct command *command;
    int argc;
    char **argv;
    const void *values; /* of the option table */
    const struct slc_store *store;
    const struct slc_plan *plan;
    const struct slc_cp_result *result;
    const struct slc_stream_stats *stats;
    int exit_code;      /* of the command, when this is all that remains to be done */
    json_t *iterations; /* array of json_iteration; borrowed */
    double total_seconds;
    const struct cpd_checkpoint *checkpoint;
    const struct estimate *estimate; /* NULL: there was none */
    const struct estimate_actual *actual;
};

/* Writes the record to `path`, atomically. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status run_json_write(const struct run_record *record,
                               const char *path,
                               struct slc_error *err) SLC_NODISCARD;

#endif
