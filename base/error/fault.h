/*
 * Fault points. A test arms "the k-th operation of this kind fails"; production code only pays one
 * relaxed atomic load. File operations are failed by putting a faulty table in place
 * (storage/file/files.h); this is for what has no table: allocations and thread creation.
 */
#ifndef SLC_BASE_FAULT_H
#define SLC_BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

enum slc_fault_kind { SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD, SLC_FAULT_KINDS };

/* Arms: the k-th following operation (k from 1) of `kind` fails, once. k = 0 disarms. */
void slc_fault_arm(enum slc_fault_kind kind, uint64_t k);
/* Operations of `kind` seen since it was last armed. */
uint64_t slc_fault_seen(enum slc_fault_kind kind);
/*
 * True when the operation about to be made must fail. Called by the operation itself; errno is set
 * where it is an allocation.
 */
bool slc_fault_hit(enum slc_fault_kind kind);

#endif
