/* The time that a product with vectors or a matrix is expected to take, for its dry run. */
#ifndef SLC_TOOLS_FORECAST_PRODUCT_H
#define SLC_TOOLS_FORECAST_PRODUCT_H

#include "base/error.h"
#include "storage/store.h"

struct forecast_product {
    const struct slc_reader *reader; /* what would be read; NULL: a layout of the store at .. */
    const char *store;
    enum slc_layout_kind layout;
    unsigned mode;      /* unless it is blco */
    const char *output; /* NULL: a number */
    uint64_t memory_bytes;
    unsigned threads;
    uint64_t written_bytes; /* at most; 0: not known, as is whether the disk has room */
    double decodings;       /* that a nonzero takes a thread as long as, all steps together */
};

/*
 * Tries some tiles of the layout and the drives, and prints "time" and "bottleneck"; nothing where
 * nothing can be tried. Errors: SLC_ERR_BUDGET where the disk has no room; those of the store.
 */
enum slc_status forecast_product(const struct forecast_product *product,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
