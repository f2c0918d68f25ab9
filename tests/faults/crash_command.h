/* One command of sluice through every crash that may end it: see test_crash_commands.c. */
#ifndef SLC_TESTS_FAULTS_CRASH_COMMAND_H
#define SLC_TESTS_FAULTS_CRASH_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

enum { CRASH_COMMAND_RESULTS = 4 };

struct crash_command {
    const char *name;
    const char *arguments;
    const char *before; /* a command that makes what is to be replaced; NULL: nothing */
    const char *paths[CRASH_COMMAND_RESULTS];
    /* A file that is there only while all results beside it are of its own run; NULL: results of
     * two runs are never beside one another. */
    const char *record;
    const char *checkpoint; /* the folder of one; NULL: none */
    const char *varies;     /* slc_crash_operation; NULL: "run.json" */
    /* The two folders of a store where it may be noted that it is complete; NULL: none. */
    const char *noted[2];
    bool two_renames;  /* on a file system that cannot exchange names */
    unsigned scale;    /* how much is tried at a moment .. */
    unsigned every;    /* .. and at how many of them; 0: all */
    bool each_sync;    /* is left out in turn .. */
    uint64_t needless; /* .. and this is what slc_crash_needless says of it */
};

/*
 * Records what the command does on a disk in memory that has x.slc, a store of three modes with
 * layouts sorted by each of them, in.tns, and vectors v.npy and w.npy for modes 1 and 2; tries what
 * a crash amid it may leave, and goes on with that by the same command. Fails the test that calls
 * it where a result is not whole, and where the check would not see it.
 */
void crash_command_sweep(const struct crash_command *command);

#endif
