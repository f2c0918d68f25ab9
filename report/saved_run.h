/*
 * What a checkpoint tells of the run that it is of: a generation's file, or the folder that has
 * both, whose newer one counts.
 */
#ifndef SLC_REPORT_SAVED_RUN_H
#define SLC_REPORT_SAVED_RUN_H

#include "base/error/error.h"
#include "engine/solve/cp_checkpoint.h"
#include "storage/checkpoint/checkpoint.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slc_saved_run {
    struct slc_checkpoint_reader *reader;
    struct slc_cp_saved saved;
    char identity[SLC_CP_IDENTITY_BYTES]; /* lines NAME=VALUE */
};

/* Whether there is one at `path`: a file that is no folder, or a folder with such files. Errors:
 * the system does not say. */
enum slc_status
slc_saved_run_find(const char *path, bool *found, struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the newest generation and reads it, without the lock: a run may be writing. Unless `quiet`,
 * a generation that is not whole is told to the log. Owns: slc_saved_run_close, after success only.
 * Errors: SLC_ERR_FORMAT where there is none, or it is damaged; SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status slc_saved_run_open(const char *path,
                                   bool quiet,
                                   struct slc_saved_run *run,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_saved_run_close(struct slc_saved_run *run);

/* When it was written, in UTC: "2026-01-31T12:00:00Z", or "" beyond the calendar. */
const char *slc_saved_run_written(uint64_t seconds, char *text, size_t bytes);

/* All that it holds but factors, "schema" "sluice-checkpoint-1". Owns: the caller releases
 * *ret_object. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_saved_run_json(const struct slc_saved_run *run,
                                   json_t **ret_object,
                                   struct slc_error *err) SLC_NODISCARD;

/* Opens, tells and closes. */
enum slc_status slc_saved_run_read(const char *path,
                                   bool quiet,
                                   json_t **ret_object,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
