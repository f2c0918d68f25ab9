/* Guards mapped files against truncation by other processes: touching a page that no longer exists
 * raises SIGBUS, which would end the process. In a guarded range, the handler replaces such a page
 * with zeros and marks the range, so that the reader can check the mark afterwards. The handler
 * belongs to the process; it is installed with the first guarded ranges and removed with the last.
 * The handler passes other faults to the previous handler. */
#ifndef SLC_STORAGE_MAP_GUARD_H
#define SLC_STORAGE_MAP_GUARD_H

#include "base/error/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* One map. Only its owner changes it (except `faulted`), and only while no thread reads the map. */
struct slc_guarded_range {
    atomic_uintptr_t begin; /* 0 if not mapped */
    _Atomic uint64_t bytes;
    atomic_bool faulted; /* a page of the map was replaced with zeros */
};

/* Guards the `count` ranges at `ranges`, including maps that are set later. The array must live
 * until slc_map_guard_remove. Errors: SLC_ERR_SYSTEM (too many sets of ranges, no handler). */
enum slc_status slc_map_guard_add(struct slc_guarded_range *ranges,
                                  unsigned count,
                                  struct slc_error *err) SLC_NODISCARD;
/* Stops guarding `ranges`. Accepts ranges that were never added. */
void slc_map_guard_remove(const struct slc_guarded_range *ranges);

#endif
