/*
 * Tensor times vector and tensor times matrix on a device, from fibers in its memory, mode by mode
 * (tools/bench/rivals/gpu/fiber_list.h): ours, with each of its switches, forms of TTM, and
 * cuSPARSE.
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_FIBERS_H
#define SLC_TOOLS_BENCH_DEVICE_FIBERS_H

#include "base/matrix.h"
#include "tools/session/session.h"

#include <jansson.h>

struct device_fibers {
    const char *path;
    unsigned ordinal;
    unsigned mode;       /* from 1; 0: each */
    bool vector, matrix; /* which of the two products */
    const char *only;    /* one of tools/bench/rivals/gpu/fiber_list.h alone; NULL: each */
    const struct option_counts *ranks; /* columns of the matrix */
    enum slc_value_type precision;     /* of the matrix; products with a vector are f64 */
    struct session_options session;
    unsigned repeats;
};

/*
 * Appends a row per mode and product to `rows`, with how far its result is from the CPU's; where a
 * product cannot be had (no cuSPARSE, too many empty fibers) the row says why. Errors: those of
 * reading, and of the device.
 */
enum slc_status device_fibers_measure(const struct device_fibers *measured,
                                      json_t *rows,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
