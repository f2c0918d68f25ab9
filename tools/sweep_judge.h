/* What the runs of one rank of a sweep tell: how alike they are, and how trilinear the best is. */
#ifndef SLC_TOOLS_SWEEP_JUDGE_H
#define SLC_TOOLS_SWEEP_JUDGE_H

#include "base/error.h"
#include "sweep_record.h"

#include <stdint.h>

struct sweep_judge {
    const char *store;
    const char *folder;      /* of the sweep */
    const char *consistency; /* auto, always, never */
    uint64_t memory_bytes;   /* 0: the default budget */
    unsigned threads;        /* 0: all */
};

/*
 * Compares the runs of a rank, whose factors are there, with the best of them, and computes the
 * core consistency of that; the record is changed, but not written. What there is no memory or,
 * with auto, no time for is left out, and the rank's note says why. Errors: those of reading the
 * store and the factors; SLC_ERR_MEMORY; SLC_ERR_INTERRUPTED.
 */
enum slc_status sweep_judge_rank(const struct sweep_judge *judge,
                                 struct sweep_record *record,
                                 uint32_t rank,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
