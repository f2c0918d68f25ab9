/* Fault points. A test makes the k-th allocation, thread creation or system call of io_uring from
 * now fail. If no fault is armed, a fault point costs one relaxed atomic load. File operations need
 * no fault points, because tests replace their table of functions (storage/file/files.h). */
#ifndef SLC_BASE_FAULT_H
#define SLC_BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum slc_fault_kind { SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD, SLC_FAULT_URING, SLC_FAULT_KINDS };

/* Makes the k-th operation of `kind` after this call fail, once; k starts at 1. k = 0 disarms. */
void slc_fault_arm(enum slc_fault_kind kind, uint64_t k);
/* Returns the number of operations of `kind` since slc_fault_arm was last called for `kind`. */
uint64_t slc_fault_seen(enum slc_fault_kind kind);
/* Every operation of `kind` calls this function before it starts and fails if the function returns
 * true. If it returns true for SLC_FAULT_ALLOCATION, it also sets errno to ENOMEM. */
bool slc_fault_hit(enum slc_fault_kind kind);

#endif
