/* Predicts, from a sample, the mode whose fibers will be kept together
 * (convert/build/sort/fibers.h). Buckets are formed under the prediction; a wrong prediction costs
 * only time. */
#ifndef SLC_CONVERT_FIBER_GUESS_H
#define SLC_CONVERT_FIBER_GUESS_H

#include "base/error/error.h"
#include "convert/build/sort/fibers.h"

#include <stdint.h>

/* Sets *run. `rows`: count x order coordinates from `stretches` contiguous stretches of the input,
 * as in slc_builder_sample. `entries_expected`: number of entries in the whole input, 0 if unknown.
 * `counts` is scratch: it must be empty, and the caller must reset it afterwards. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_fiber_guess(struct slc_fiber_counts *counts,
                                const uint64_t *rows,
                                uint32_t count,
                                uint32_t stretches,
                                uint64_t entries_expected,
                                struct slc_fiber_run *run,
                                struct slc_error *err) SLC_NODISCARD;

#endif
