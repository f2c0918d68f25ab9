/*
 * run.json beside the factors: everything that is needed to repeat a factorization and to judge it:
 * how it was asked for, versions, the tensor's identity, the plan, the fit of every iteration,
 * times, counters and peak memory. Commands and the library write the same.
 */
#ifndef SLC_REPORT_RUN_RECORD_H
#define SLC_REPORT_RUN_RECORD_H

#include "engine/plan/plan.h"
#include "engine/solve/cp_als.h"
#include "engine/stream/stream.h"
#include "storage/manifest/store.h"

#include <jansson.h>

/* What is recorded; all is borrowed. */
struct slc_run_facts {
    json_t *command;  /* the words of a command line; NULL: a call of the library */
    json_t *options;  /* in force, by the names that `sluice cpd` has for them */
    json_t *estimate; /* with what happened; NULL: there was none */
    const struct slc_store *store;
    const struct slc_plan *plan;
    const struct slc_cp_result *result;
    const struct slc_stream_stats *stats;
    json_t *iterations; /* array of slc_json_iteration */
    double total_seconds;
    double seconds_before;         /* of the runs that this one goes on from */
    const char *checkpoint_folder; /* NULL: none was kept */
    int exit_code;                 /* of a command */
};

/* Bytes that the process has had read from drives, by the kernel's counter; UINT64_MAX: unknown. */
uint64_t slc_run_kernel_read_bytes(void);

/* The text of the record, as of now. Owns: the caller releases *ret_text by free. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_run_record_text(const struct slc_run_facts *facts,
                                    char **ret_text,
                                    struct slc_error *err) SLC_NODISCARD;

/* Writes it to `path`, atomically. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status
slc_run_record_write(const char *text, const char *path, struct slc_error *err) SLC_NODISCARD;

/*
 * Removes that of an earlier run, before other factors are written beside it: with it gone, a
 * record says that all files there are its own. Its name is off the drive then. There may be none.
 * Errors: SLC_ERR_IO.
 */
enum slc_status slc_run_record_remove(const char *path, struct slc_error *err) SLC_NODISCARD;

#endif
