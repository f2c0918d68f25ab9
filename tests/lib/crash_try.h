/* Tries an operation on every state that a crash can leave (crash_states.h): checks the state, runs
 * the operation again as a user would, and compares the files byte for byte with the result of an
 * uninterrupted run.
 *
 *     struct slc_recorded *disk = slc_crash_record(&operation, 0);
 *     slc_crash_try(disk, &operation, &bounds, &report);
 *     slc_crash_report_print(&report, operation.name, &bounds);
 *     assert report.bad == 0
 *
 * A check must be able to fail: slc_crash_needless omits one sync after the other and returns those
 * whose omission caused no bad state. */
#ifndef SLC_CRASH_TRY_H
#define SLC_CRASH_TRY_H

#include "base/error/error.h"
#include "crash_states.h"

/* Progress of the operation when a state is checked. */
struct slc_crash_moment {
    bool done;       /* the operation reported success, in the first run or in the rerun */
    bool again;      /* this is the state after the rerun */
    uint64_t demand; /* result of slc_crash_operation.demand */
};

struct slc_crash_operation {
    const char *name;
    void *context;
    /* Creates the files that exist before the operation. NULL: none. */
    void (*prepare)(void *context, const struct slc_files *files);
    /* Runs the whole operation; files of an earlier run may exist. */
    enum slc_status (*run)(void *context, const struct slc_files *files, struct slc_error *err);
    /* Checks the state for the moment without changing it. NULL: every state is right. Returns
     * NULL, or a description of the fault. */
    const char *(*look)(void *context,
                        const struct slc_files *files,
                        const struct slc_crash_moment *moment);
    /* Whether a rerun may fail with this error on the state; `look` is then called with `done` set.
     * NULL: never. */
    bool (*may_refuse)(void *context, const struct slc_error *err);
    /* Suffix of the names of files whose contents differ between runs; only `look` checks them.
     * NULL: none. */
    const char *varies;
    /* The work that must survive a crash after `count` changes, passed to `look`. NULL: nothing. */
    uint64_t (*demand)(void *context, const struct slc_change *changes, uint64_t count);
};

struct slc_crash_try_bounds {
    struct slc_crash_bounds states;
    uint64_t every;     /* tries every N-th moment and the last ones; 0: 1 */
    uint64_t again;     /* number of crashed reruns on states left by a power cut */
    uint64_t continued; /* number of crashed reruns after a kill, without a power cut in between */
    bool look_only;     /* checks states without running the operation again */
    bool expect_bad;    /* a planted fault: stops at the first bad state and does not print it */
};

struct slc_crash_report {
    uint64_t moments;
    uint64_t all;      /* moments of which all states were tried */
    uint64_t states;   /* states visited */
    uint64_t distinct; /* distinct states tried; the others had the same files */
    uint64_t refused;  /* reruns that ended with a documented error */
    uint64_t bad;
    uint64_t reruns_crashed; /* reruns that were recorded and crashed again */
};

/* Runs the operation on a prepared disk; sync `ignored` does nothing (recorded_files.h). Returns
 * NULL if the operation fails, and prints the error. Ownership: release with slc_recorded_destroy.
 */
struct slc_recorded *slc_crash_record(const struct slc_crash_operation *operation,
                                      uint64_t ignored);

/* Adds to *report, which must be zero-initialized before the first call. */
void slc_crash_try(const struct slc_recorded *disk,
                   const struct slc_crash_operation *operation,
                   const struct slc_crash_try_bounds *bounds,
                   struct slc_crash_report *report);
void slc_crash_report_print(const struct slc_crash_report *report,
                            const char *name,
                            const struct slc_crash_try_bounds *bounds);

/* Whether a bad state is found if sync `ignored` (UINT64_MAX: all syncs) does nothing. */
bool slc_crash_shows(const struct slc_crash_operation *operation,
                     const struct slc_crash_try_bounds *bounds,
                     uint64_t ignored);
/* Omits each sync of the operation in turn, then all. Bit k - 1 of the result is set if omitting
 * sync k caused no bad state, bit 63 if omitting all caused none. */
uint64_t slc_crash_needless(const struct slc_crash_operation *operation,
                            const struct slc_crash_try_bounds *bounds);

#endif
