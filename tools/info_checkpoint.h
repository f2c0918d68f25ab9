/* `sluice info` of a checkpoint: a generation's file, or the folder that has both. */
#ifndef SLC_TOOLS_INFO_CHECKPOINT_H
#define SLC_TOOLS_INFO_CHECKPOINT_H

#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* Whether there is one at `path`: a file that is no folder, or a folder with such files. Errors:
 * the system does not say. */
enum slc_status
info_checkpoint_find(const char *path, bool *found, struct slc_error *err) SLC_NODISCARD;

/* What it holds, as one JSON object; `quiet`: without a note on a generation that is not whole.
 * Owns: the caller releases *object, also after an error. */
enum slc_status info_checkpoint_read(const char *path,
                                     bool quiet,
                                     json_t **object,
                                     struct slc_error *err) SLC_NODISCARD;

/* Prints what it holds, as text or as one JSON object. The exit code. */
int info_checkpoint(const char *path, bool json);

#endif
