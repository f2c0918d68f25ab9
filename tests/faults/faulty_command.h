/* Runs the whole command with one failing operation. A run is a child of the test, with the
 * command's main and libraries already loaded. It reports the operations it made, and the files,
 * maps, buffers and memory not released when main returned.
 *
 * File operations go through a table (tests/lib/faulty_files.h), allocations through fault points
 * (base/error/fault.h), including jansson's; the linker (--wrap) intercepts threads, io_uring and
 * buffers. Not covered: memory of libarchive, hwloc, BLAS and the C library, and the few reads of
 * /proc and /sys, on which no result depends. */
#ifndef SLC_FAULTY_COMMAND_H
#define SLC_FAULTY_COMMAND_H

#include "faulty_files.h"

#include <stdbool.h>
#include <stdint.h>

/* The operations that can fail: the kinds of faulty_files.h and these. */
enum {
    COMMAND_ALLOCATION = SLC_FAULTY_KINDS + 1,
    COMMAND_THREAD,
    COMMAND_RING_SETUP,  /* io_uring: creating a ring, registering buffers and files */
    COMMAND_RING_SUBMIT, /* io_uring: submitting reads */
    COMMAND_KINDS
};

struct command_fault {
    unsigned kind;
    enum slc_faulty_action action;
    int error;          /* ERRNO; allocations return NULL */
    uint64_t detail;    /* SHORT: bytes to transfer at most */
    bool from_then;     /* all operations from the k-th on fail; files only */
    void (*call)(void); /* CALL: called before the operation; files only */
};

struct command_end {
    bool finished; /* main returned; false: ended by a signal */
    int code;      /* exit status or signal */
    bool fired;    /* the fault happened */
    uint64_t seen[COMMAND_KINDS];
    int64_t open_files;  /* files of the table that were not closed or unmapped */
    int64_t descriptors; /* open descriptors of the process beyond those at the start */
    int64_t buffers;     /* buffers that were not destroyed */
    bool leaked;         /* LeakSanitizer found leaked memory; false without LeakSanitizer */
    char said[4096];     /* text on standard error */
    char printed[8192];  /* text on standard output */
};

/* Runs `arguments` (words after the command's name) in `folder` with the k-th operation failing;
 * `fault` NULL or k = 0: none. One run at a time; the caller must not have threads. */
void command_run(const char *folder,
                 const char *arguments,
                 const struct command_fault *fault,
                 uint64_t k,
                 struct command_end *end);

#endif
