/* Tries one command of sluice on every crash state (used by test_crash_commands.c). */
#ifndef SLC_TESTS_FAULTS_CRASH_COMMAND_H
#define SLC_TESTS_FAULTS_CRASH_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

enum { CRASH_COMMAND_RESULTS = 4 };

struct crash_command {
    const char *name;
    const char *arguments;
    const char *before; /* a command that creates the files to be replaced; NULL: none */
    const char *paths[CRASH_COMMAND_RESULTS];
    /* A file that exists only while all results are of the same run; NULL: results of two runs
     * never coexist. */
    const char *record;
    const char *checkpoint; /* folder of the checkpoint; NULL: none */
    const char *varies;     /* slc_crash_operation; NULL: "run.json" */
    /* The two folders in which a store can be marked as complete; NULL: none. */
    const char *noted[2];
    bool two_renames;  /* the file system cannot exchange two names */
    unsigned scale;    /* factor of the number of states tried per moment */
    unsigned every;    /* number of moments tried; 0: all */
    bool each_sync;    /* true: also omits each sync in turn, and checks `needless` */
    uint64_t needless; /* expected result of slc_crash_needless */
};

/* Records the changes of the command on a disk in memory with x.slc (a store of three modes with
 * sorted layouts of each mode), in.tns, and vectors v.npy and w.npy for modes 1 and 2; tries the
 * states that a crash can leave, and reruns the command on them. Fails the calling test if a result
 * is incomplete, or if the check would miss that. */
void crash_command_sweep(const struct crash_command *command);

#endif
