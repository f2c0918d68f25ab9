/* Describes the run of a checkpoint. A checkpoint is a file, or a folder with two generations, of
 * which the newer generation is used. */
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

/* Sets *found to true if there is a checkpoint at `path`: a file, or a folder with checkpoint
 * files. Errors: SLC_ERR_MEMORY, and errors of the operating system if it cannot check a path. */
enum slc_status
slc_saved_run_find(const char *path, bool *found, struct slc_error *err) SLC_NODISCARD;

/* Opens and reads the newest generation. Does not lock the checkpoint, because a run may be
 * writing. Logs an incomplete generation unless `quiet`. Ownership: the caller calls
 * slc_saved_run_close, only after success.
 * Errors: SLC_ERR_FORMAT if there is no checkpoint or the checkpoint is damaged; SLC_ERR_IO,
 * SLC_ERR_MEMORY. */
enum slc_status slc_saved_run_open(const char *path,
                                   bool quiet,
                                   struct slc_saved_run *run,
                                   struct slc_error *err) SLC_NODISCARD;
void slc_saved_run_close(struct slc_saved_run *run);

/* Formats a time in UTC, such as "2026-01-31T12:00:00Z". Returns "" if the time is beyond the
 * calendar. */
const char *slc_saved_run_written(uint64_t seconds, char *text, size_t bytes);

/* Describes the checkpoint, without its factors, as a JSON object with "schema"
 * "sluice-checkpoint-1". Ownership: the caller releases *ret_object. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_saved_run_json(const struct slc_saved_run *run,
                                   json_t **ret_object,
                                   struct slc_error *err) SLC_NODISCARD;

/* Opens a checkpoint, describes it as JSON, and closes the checkpoint. */
enum slc_status slc_saved_run_read(const char *path,
                                   bool quiet,
                                   json_t **ret_object,
                                   struct slc_error *err) SLC_NODISCARD;

#endif
