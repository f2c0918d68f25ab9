/* Counts the nonempty fibers of a mode of a store, their lengths, and the fibers and nonzeros of
 * the slices of other modes. */
#ifndef SLC_TOOLS_BENCH_FIBER_COUNT_H
#define SLC_TOOLS_BENCH_FIBER_COUNT_H

#include "base/memory/memory.h"
#include "storage/manifest/store.h"
#include "tools/report/fiber_order.h"

#include <stdbool.h>
#include <stdint.h>

/* Numbers of fibers and of nonzeros of a slice. */
struct fiber_slice {
    uint64_t fibers, nnz;
};

struct fiber_count {
    uint64_t fibers;
    uint64_t shortest, longest; /* least and most nonzeros of a fiber */
    /* One element per index of each mode whose MTTKRP has these fibers (fiber_count_mode); NULL for
     * other modes. */
    struct fiber_slice *slice[SLC_MAX_ORDER];
    uint64_t slices[SLC_MAX_ORDER]; /* nonempty slices of these modes */
    struct slc_buffer memory;       /* memory of the slices */
};

/* Returns the mode of the fibers of an MTTKRP of `mode`, which is the last other mode, as in
 * [XPLAT]. Needs: order >= 2. */
unsigned fiber_count_mode(unsigned order, unsigned mode);

/* Counts by one scan of a layout that keeps the fibers of `options->mode` whole; if the store has
 * none, of a temporary store (engine/product/fiber_order.h) in a temporary folder below `temp_dir`
 * (NULL: $TMPDIR or /tmp). Needs: options->memory_bytes is not 0; options->output is ignored.
 * `slices`: also count slices, which needs 16 bytes per index of their modes. Ownership: release
 * with slc_buffer_destroy(&count->memory), also after an error. Errors: SLC_ERR_BUDGET if the
 * slices need more than half of options->memory_bytes; those of opening the layout and of the scan;
 * SLC_ERR_MEMORY. */
enum slc_status fiber_count_scan(const struct slc_store *store,
                                 const struct fiber_order_options *options,
                                 const char *temp_dir,
                                 bool slices,
                                 struct fiber_count *count,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
