/*
 * Sweeps a command line through faults: the first operation of a kind fails, then the second, ..
 * until a run makes fewer than would have to. Of every try:
 *
 * The command ends by itself, with exit code 0 or the one that is documented for such a fault, then
 * with a message that names the file, or what there was not enough of.
 *
 * No descriptor, map or buffer is left, nor memory (LeakSanitizer).
 *
 * Exit code 0 means that all files are those of a run without a fault, byte for byte. Else every
 * file is as it was before or as it would have become, a store either one altogether, and nothing
 * lies beside them but what the next run goes on with, or what is said to be left over.
 *
 * The same command, without a fault, then ends with the files of a run without a fault, and nothing
 * else.
 */
#ifndef SLC_SWEEP_H
#define SLC_SWEEP_H

#include "faulty_command.h"

#include <stdbool.h>
#include <stdint.h>

struct sweep_case {
    const char *name;
    const char *arguments; /* run in a folder beside that of the inputs: ../in/NAME */
    const char *before;    /* the folder with what is there before; NULL: nothing */
    const char *store;     /* files below this are one store: its old files, or its new ones */
    bool prints;           /* what it prints is the result */
    bool replaces;         /* runs again where its result is there already */
    int code;              /* without a fault */
    bool resumes;          /* what it goes on with outlives every fault */
};

/*
 * Sweeps the case through all kinds of faults, in `folder` (fresh, with the inputs in folder/in).
 * All tries with SLC_TEST_FULL, else one of so many, from another number on with each
 * SLC_TEST_SEED. SLC_TEST_FAULT="write ENOSPC:7" has one try alone. Asserts that nothing was wrong,
 * and prints what was and the number of tries.
 */
void sweep(const struct sweep_case *swept, const char *folder);

#endif
