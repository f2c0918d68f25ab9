/* Implements fault points with one counter and one trigger per kind of operation, for the whole
 * process. */
#include "base/error/fault.h"

#include <errno.h>
#include <stdatomic.h>

static _Atomic uint64_t trigger[SLC_FAULT_KINDS]; /* 0 means disarmed */
static _Atomic uint64_t seen[SLC_FAULT_KINDS];
static _Atomic bool counting;

void slc_fault_arm(enum slc_fault_kind kind, uint64_t k)
{
    atomic_store(&seen[kind], 0);
    atomic_store(&trigger[kind], k);
    atomic_store(&counting, true);
}

uint64_t slc_fault_seen(enum slc_fault_kind kind)
{
    return atomic_load(&seen[kind]);
}

bool slc_fault_hit(enum slc_fault_kind kind)
{
    /* Outside of tests no fault is armed, and the function returns here. */
    if (!atomic_load_explicit(&counting, memory_order_relaxed)) {
        return false;
    }
    uint64_t ordinal = atomic_fetch_add(&seen[kind], 1) + 1;
    if (ordinal != atomic_load(&trigger[kind])) {
        return false;
    }
    if (kind == SLC_FAULT_ALLOCATION) {
        errno = ENOMEM; /* as after a failed malloc */
    }
    return true;
}
