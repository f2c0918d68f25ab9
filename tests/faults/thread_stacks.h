/* Prints where the threads of a child hang, for the log of a test that timed out. */
#ifndef SLC_THREAD_STACKS_H
#define SLC_THREAD_STACKS_H

#include <sys/types.h>

/* Prints, as TAP diagnostics, the name, kernel function and system call of every thread of `child`,
 * a fork of this program that has not called exec, and the addresses within this program found on
 * its stack, innermost first, with function and line where `addr2line` is installed. Stale words on
 * a stack can add functions that have returned. */
void thread_stacks_print(pid_t child);

#endif
