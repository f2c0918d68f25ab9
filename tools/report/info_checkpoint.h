/* `sluice info` of a checkpoint: a generation's file, or the folder that has both. */
#ifndef SLC_TOOLS_INFO_CHECKPOINT_H
#define SLC_TOOLS_INFO_CHECKPOINT_H

#include <stdbool.h>

/* Prints what it holds, as text or as one JSON object. The exit code. */
int info_checkpoint(const char *path, bool json);

#endif
