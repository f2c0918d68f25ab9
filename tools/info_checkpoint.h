/* `sluice info` of a checkpoint: a generation's file, or the folder that has both. */
#ifndef SLC_TOOLS_INFO_CHECKPOINT_H
#define SLC_TOOLS_INFO_CHECKPOINT_H

#include <stdbool.h>

/* Whether there is one at `path`: a file that is no folder, or a folder with such files. */
bool info_checkpoint_is(const char *path);

/* Prints what it holds, as text or as one JSON object. The exit code. */
int info_checkpoint(const char *path, bool json);

#endif
