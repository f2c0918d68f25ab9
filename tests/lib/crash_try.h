/*
 * Tries an operation on every state that a crash amid it may leave (crash_states.h): looks at the
 * state as it is, runs the operation again as a user would, and compares what is there then with
 * what the uninterrupted operation left, byte for byte.
 *
 *     struct slc_recorded *disk = slc_crash_record(&operation, 0);
 *     slc_crash_try(disk, &operation, &bounds, &report);
 *     slc_crash_report_print(&report, operation.name, &bounds);
 *     assert report.bad == 0
 *
 * A check that cannot fail is none: slc_crash_needless leaves out one sync after the other and says
 * without which of them no state was found to be bad.
 */
#ifndef SLC_CRASH_TRY_H
#define SLC_CRASH_TRY_H

#include "base/error/error.h"
#include "crash_states.h"

/* Where the operation was, or has come to, when a state is looked at. */
struct slc_crash_moment {
    bool done;       /* it had said that all is well, or has now been run again and said so */
    bool again;      /* it has been run again */
    uint64_t demand; /* see below */
};

struct slc_crash_operation {
    const char *name;
    void *context;
    /* Makes what is there before. NULL: an empty drive. */
    void (*prepare)(void *context, const struct slc_files *files);
    /* From beginning to end, with what an earlier run may have left. */
    enum slc_status (*run)(void *context, const struct slc_files *files, struct slc_error *err);
    /*
     * Whether what is there is right for the moment; changes nothing. NULL: anything is. Returns
     * NULL, or what is wrong.
     */
    const char *(*look)(void *context,
                        const struct slc_files *files,
                        const struct slc_crash_moment *moment);
    /*
     * Whether it may refuse to run again on what it finds, and with such an error; `look` is then
     * asked as if it were done. NULL: never.
     */
    bool (*may_refuse)(void *context, const struct slc_error *err);
    /* The end of the names of files that hold something else after each run: what they hold is for
     * `look` alone. NULL: none. */
    const char *varies;
    /* What of its work has to outlive a crash after `count` changes, for `look`. NULL: nothing. */
    uint64_t (*demand)(void *context, const struct slc_change *changes, uint64_t count);
};

struct slc_crash_try_bounds {
    struct slc_crash_bounds states;
    uint64_t every;     /* tries only every so many-th moment, and the last ones; 0: 1 */
    uint64_t again;     /* so many crashes of reruns on states that a crash had left .. */
    uint64_t continued; /* .. and of reruns after a kill, without a power cut between */
    bool look_only;     /* runs nothing again */
    bool expect_bad;    /* a planted fault: the first bad state is enough and is not printed */
};

struct slc_crash_report {
    uint64_t moments;
    uint64_t all;      /* moments of which all states were tried */
    uint64_t states;   /* visited */
    uint64_t distinct; /* and tried; the others were of the same files */
    uint64_t refused;  /* reruns, with an error that is documented */
    uint64_t bad;
    uint64_t reruns_crashed; /* reruns that were recorded and crashed in turn */
};

/* Runs the operation on a prepared disk; sync `ignored` does nothing (recorded_files.h). NULL where
 * it fails, which is printed. Owns: slc_recorded_destroy. */
struct slc_recorded *slc_crash_record(const struct slc_crash_operation *operation,
                                      uint64_t ignored);

/* Adds to *report, which begins all zero. */
void slc_crash_try(const struct slc_recorded *disk,
                   const struct slc_crash_operation *operation,
                   const struct slc_crash_try_bounds *bounds,
                   struct slc_crash_report *report);
void slc_crash_report_print(const struct slc_crash_report *report,
                            const char *name,
                            const struct slc_crash_try_bounds *bounds);

/* Whether a bad state is found where sync `ignored` (UINT64_MAX: any) does nothing. */
bool slc_crash_shows(const struct slc_crash_operation *operation,
                     const struct slc_crash_try_bounds *bounds,
                     uint64_t ignored);
/* Leaves out each of the operation's syncs in turn, and all: bit k - 1 of the result is set where
 * that of sync k does not show, bit 63 where that of all does not. */
uint64_t slc_crash_needless(const struct slc_crash_operation *operation,
                            const struct slc_crash_try_bounds *bounds);

#endif
