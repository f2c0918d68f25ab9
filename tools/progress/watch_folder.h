/*
 * Where a factorization stands, as its folder tells: the newest checkpoint while it runs, run.json
 * when it has ended. For `sluice watch` of a run that writes no log.
 */
#ifndef SLC_TOOLS_WATCH_FOLDER_H
#define SLC_TOOLS_WATCH_FOLDER_H

#include "base/error/error.h"
#include "tools/progress/run_state.h"

struct watch_folder {
    bool held;     /* a process of this machine has it as its own */
    bool was_held; /* or has had it while it was watched */
};

/*
 * Looks at the folder. *news: what is new since `state` was taken before. A checkpoint that is
 * being written is looked at again the next time. Errors: SLC_ERR_INPUT where it is no folder of a
 * run, nor held by one; SLC_ERR_IO; SLC_ERR_MEMORY.
 */
enum slc_status watch_folder_look(const char *path,
                                  struct watch_folder *folder,
                                  struct run_state *state,
                                  enum run_news *news,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
