/* Makes run.json, the record of a run. The record has all data that is needed to repeat and assess
 * the run: options, versions, the identity of the tensor, the plan, the fit of every iteration,
 * times, counters and peak memory. The command and the library write the same record. */
#ifndef SLC_REPORT_RUN_RECORD_H
#define SLC_REPORT_RUN_RECORD_H

#include "engine/plan/plan.h"
#include "engine/solve/cp.h"
#include "engine/stream/stream.h"
#include "storage/manifest/store.h"

#include <jansson.h>

/* Facts from which a record is made. All pointers are borrowed. */
struct slc_run_facts {
    json_t *command;  /* words of the command line; NULL for a call of the library */
    json_t *options;  /* options in effect, with the names of `sluice cpd` */
    json_t *estimate; /* estimate and actual values; NULL if there is no estimate */
    const struct slc_store *store;
    const struct slc_plan *plan;
    const struct slc_cp_result *result;
    const struct slc_stream_stats *stats;
    json_t *iterations; /* array of slc_json_iteration */
    double total_seconds;
    double seconds_before;         /* total time of the earlier runs that this run resumed */
    const char *checkpoint_folder; /* NULL if there are no checkpoints */
    int exit_code;                 /* exit code of the command */
};

/* Returns the bytes that the process has read from drives, according to the kernel, or UINT64_MAX
 * if unknown. */
uint64_t slc_run_kernel_read_bytes(void);

/* Makes the text of a record of the run's current state. Ownership: the caller releases *ret_text
 * with free. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_run_record_text(const struct slc_run_facts *facts,
                                    char **ret_text,
                                    struct slc_error *err) SLC_NODISCARD;

/* Writes the text to `path` atomically. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status
slc_run_record_write(const char *text, const char *path, struct slc_error *err) SLC_NODISCARD;

/* Removes the record of an earlier run, if there is a record, and syncs its folder. Called before
 * other factors are written to the folder, because a record means that all files in the folder
 * belong to the recorded run. Errors: SLC_ERR_IO. */
enum slc_status slc_run_record_remove(const char *path, struct slc_error *err) SLC_NODISCARD;

#endif
