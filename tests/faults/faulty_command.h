/*
 * The whole command in an environment where one operation fails. A run is a child of the test, with
 * the command's own main and its libraries loaded already; it says which operations it made, and
 * what of files, maps, buffers and memory it had not given back when main returned.
 *
 * Operations on files go through a table (tests/lib/faulty_files.h), allocations through fault
 * points (base/error/fault.h), jansson's included; threads, io_uring and buffers are caught where
 * they are asked for, by the linker (--wrap). What is not reached: memory that libarchive, hwloc,
 * BLAS and the C library take, and the few reads of /proc and /sys, which no result depends on.
 */
#ifndef SLC_FAULTY_COMMAND_H
#define SLC_FAULTY_COMMAND_H

#include "faulty_files.h"

#include <stdbool.h>
#include <stdint.h>

/* What can fail: the kinds of faulty_files.h, or */
enum {
    COMMAND_ALLOCATION = SLC_FAULTY_KINDS + 1,
    COMMAND_THREAD,
    COMMAND_RING_SETUP,  /* io_uring: making a ring, registering buffers and files */
    COMMAND_RING_SUBMIT, /* io_uring: handing reads to the kernel */
    COMMAND_KINDS
};

struct command_fault {
    unsigned kind;
    enum slc_faulty_action action;
    int error;          /* ERRNO; allocations give NULL */
    uint64_t detail;    /* SHORT: bytes that are moved at most */
    bool from_then;     /* the k-th and all after it; of files alone */
    void (*call)(void); /* CALL: what happens before the operation; of files alone */
};

struct command_end {
    bool finished; /* main returned; false: a signal */
    int code;      /* what it returned, or the signal */
    bool fired;    /* the fault happened */
    uint64_t seen[COMMAND_KINDS];
    int64_t open_files;  /* through the table: not closed, or still mapped */
    int64_t descriptors; /* of the process, beyond those it began with */
    int64_t buffers;     /* not destroyed */
    bool leaked;         /* memory, by LeakSanitizer; without it false */
    char said[4096];     /* on standard error */
    char printed[8192];  /* on standard output */
};

/*
 * Runs `arguments` (words, behind the command's name) in `folder` with the k-th operation failing;
 * NULL for `fault`, or k = 0: none. One run at a time; the caller has no threads.
 */
void command_run(const char *folder,
                 const char *arguments,
                 const struct command_fault *fault,
                 uint64_t k,
                 struct command_end *end);

#endif
