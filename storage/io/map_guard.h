/*
 * Reading mapped files that others may cut: a page of a map that is no longer there is a SIGBUS at
 * first touch, which would end the process. While ranges are guarded, such a page is replaced by
 * zeros and the range is marked, so that whoever used it can find out afterwards.
 *
 * The handler is the process's, installed with the first guarded ranges and gone with the last;
 * faults elsewhere go to the one that was there before.
 */
#ifndef SLC_STORAGE_MAP_GUARD_H
#define SLC_STORAGE_MAP_GUARD_H

#include "base/error/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One map. Only its owner changes it, and only while nobody reads from the map. */
struct slc_guarded_range {
    atomic_uintptr_t begin; /* 0: nothing is mapped */
    _Atomic uint64_t bytes;
    atomic_bool faulted; /* a page of it was replaced by zeros */
};

/*
 * Guards the `count` ranges at `ranges`, whatever they are set to from now on. The memory has to
 * stay until slc_map_guard_remove. Errors: SLC_ERR_SYSTEM (too many sets of ranges, no handler).
 */
enum slc_status slc_map_guard_add(struct slc_guarded_range *ranges,
                                  unsigned count,
                                  struct slc_error *err) SLC_NODISCARD;
/* Takes ranges that were never added, too. */
void slc_map_guard_remove(const struct slc_guarded_range *ranges);

#endif
