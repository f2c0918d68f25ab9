/*
 * Fault points. A test arms "the k-th operation of this kind fails"; production code only performs
 * one relaxed atomic load. Tests make file operations fail with a faulty table of functions
 * (storage/file/files.h). Fault points are for operations that have no such table: allocations and
 * thread creation.
 */
#ifndef SLC_BASE_FAULT_H
#define SLC_BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum slc_fault_kind { SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD, SLC_FAULT_KINDS };

/* Makes the k-th following operation of `kind` fail once, k from 1. k = 0 disarms. */
void slc_fault_arm(enum slc_fault_kind kind, uint64_t k);
/* Returns the number of operations of `kind` since slc_fault_arm was last called for `kind`. */
uint64_t slc_fault_seen(enum slc_fault_kind kind);
/* Returns true if the operation that is about to start must fail. The operation itself calls this
 * function. If an allocation must fail, sets errno. */
bool slc_fault_hit(enum slc_fault_kind kind);

#endif
