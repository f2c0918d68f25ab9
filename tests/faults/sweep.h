/* Sweeps a command line through faults: the first operation of a kind fails, then the second, and
 * so on until a run makes fewer operations. Checks of every try:
 *
 * The command ends by itself with exit code 0, or with the documented one for the fault and a
 * message that names the file or the exhausted resource.
 *
 * No descriptor, map, buffer or memory (LeakSanitizer) leaks.
 *
 * After exit code 0 all files equal those of a run without a fault, byte for byte. Otherwise every
 * file has its old or its new contents (a store entirely one or the other), and no other files
 * exist except those that the next run resumes from or that a message reports as left over.
 *
 * The same command then succeeds without a fault and leaves exactly the files of a run without a
 * fault. */
#ifndef SLC_SWEEP_H
#define SLC_SWEEP_H

#include "faulty_command.h"

#include <stdbool.h>
#include <stdint.h>

struct sweep_case {
    const char *name;
    const char *arguments; /* run in a folder next to the inputs: ../in/NAME */
    const char *before;    /* the folder with the initial files; NULL: none */
    const char *store;     /* files below this path form one store: all old or all new */
    bool prints;           /* the output of the command is its result */
    bool replaces;         /* if the result exists, a rerun replaces it */
    int code;              /* exit code without a fault */
    bool resumes;          /* the files from which the command resumes survive every fault */
};

/* Sweeps the case through all kinds of faults in `folder` (new, with the inputs in folder/in).
 * Makes all tries with SLC_TEST_FULL, otherwise a sample whose start depends on SLC_TEST_SEED.
 * SLC_TEST_FAULT="write ENOSPC:7" makes only this try. Asserts that there were no faults; prints
 * faults and the number of tries. */
void sweep(const struct sweep_case *swept, const char *folder);

#endif
