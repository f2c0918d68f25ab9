/*
 * Outputs that are written beside their place: a signal removes what is unfinished and ends the
 * process, for operations that cannot stop half-way. A store that a later run can go on with stays,
 * which is said; so does whatever another run, or no run, has made there.
 */
#ifndef SLC_TOOLS_CLEANUP_H
#define SLC_TOOLS_CLEANUP_H

#include "base/error/error.h"
#include "base/memory/limits.h"

/*
 * Starts the signal thread for a command that writes `output` ("-": standard output, nothing to
 * remove). `output` must live as long as the process.
 */
enum slc_status cleanup_watch(const char *output, struct slc_error *err) SLC_NODISCARD;

/* The same of several files, one of which after the other is written. */
struct cleanup_outputs {
    unsigned count;
    const char *paths[SLC_MAX_ORDER + 1];
};
enum slc_status cleanup_watch_all(const struct cleanup_outputs *outputs,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * What was unfinished is about to get its name: a signal no longer removes it, nor ends the
 * process; where one is doing that, this does not return. For `publishing` of a conversion's
 * options: a folder is not to be published while it is being emptied.
 */
void cleanup_publishing(void);

#endif
