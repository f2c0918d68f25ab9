/* The time that a product with vectors or a matrix is expected to take, for its dry run. */
#ifndef SLC_TOOLS_FORECAST_PRODUCT_H
#define SLC_TOOLS_FORECAST_PRODUCT_H

#include "storage/manifest/store.h"
#include "tools/forecast/forecast.h"

struct forecast_product {
    const struct slc_reader *reader; /* what would be read; NULL: a layout of the store at .. */
    const char *store;
    enum slc_layout_kind layout;
    unsigned mode;      /* unless it is blco */
    const char *output; /* NULL: a number */
    uint64_t memory_bytes;
    bool brief; /* as struct forecast has it */
    unsigned threads;
    uint64_t written_bytes; /* at most; 0: not known, as is whether the disk has room */
    double decodings;       /* that a nonzero takes a thread as long as, all steps together */
};

/*
 * The same for a run that begins: fills the forecast's command, output, what would be written, and
 * time, but for phases where nothing can be tried. Errors: those of the store.
 */
enum slc_status forecast_product_judge(const struct forecast_product *product,
                                       struct forecast *forecast,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * Tries some tiles of the layout and the drives, and prints "time" and "bottleneck"; nothing where
 * nothing can be tried. Errors: SLC_ERR_BUDGET where the disk has no room; those of the store.
 */
enum slc_status forecast_product(const struct forecast_product *product,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
