/* Removes unfinished outputs after a signal and ends the process, for operations that cannot stop
 * midway. Keeps a store that a later run can resume, and prints a note. Keeps files that do not
 * belong to this run. */
#ifndef SLC_TOOLS_CLEANUP_H
#define SLC_TOOLS_CLEANUP_H

#include "base/error/error.h"

/* Starts the signal thread for a command that writes `output` ("-": standard output, nothing to
 * remove). `output` must remain valid for the lifetime of the process. */
enum slc_status cleanup_watch(const char *output, struct slc_error *err) SLC_NODISCARD;

/* As cleanup_watch, for several files or stores. */
enum { CLEANUP_OUTPUTS_MAX = 64 };
struct cleanup_outputs {
    unsigned count;
    const char *paths[CLEANUP_OUTPUTS_MAX];
};
enum slc_status cleanup_watch_all(const struct cleanup_outputs *outputs,
                                  struct slc_error *err) SLC_NODISCARD;

/* Called just before an output gets its final name. A signal then no longer removes the output or
 * ends the process. If a signal is already being handled, this function does not return.
 * Conversions call this function as the member `publishing` of their options, because a folder must
 * not be published while it is being removed. */
void cleanup_publishing(void);

#endif
