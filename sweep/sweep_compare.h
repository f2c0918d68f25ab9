/* What the runs of one rank of a sweep tell: how alike they are, and how trilinear the best is. */
#ifndef SLC_SWEEP_COMPARE_H
#define SLC_SWEEP_COMPARE_H

#include "base/error/error.h"
#include "sweep/sweep_record.h"

#include <stdint.h>

/* Whether the core consistency of each rank's best run is computed. */
enum slc_consistency {
    SLC_CONSISTENCY_AUTO, /* where that takes some minutes at most */
    SLC_CONSISTENCY_ALWAYS,
    SLC_CONSISTENCY_NEVER
};

struct slc_sweep_comparison {
    const char *store;
    const char *folder; /* of the sweep */
    enum slc_consistency consistency;
    uint64_t memory_bytes;    /* 0: the default budget */
    unsigned threads;         /* 0: all */
    const volatile int *stop; /* non-zero: SLC_ERR_INTERRUPTED; may be NULL */
};

/*
 * Compares the runs of a rank, whose factors are there, with the best of them, and computes the
 * core consistency of that; the record is changed, but not written. What there is no memory or,
 * with auto, no time for is left out, and the rank's note says why. Errors: those of reading the
 * store and the factors; SLC_ERR_MEMORY; SLC_ERR_INTERRUPTED.
 */
enum slc_status slc_sweep_compare_rank(const struct slc_sweep_comparison *asked,
                                       struct slc_sweep_record *record,
                                       uint32_t rank,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
