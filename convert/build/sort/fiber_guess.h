/*
 * The mode whose fibers will probably be kept together (convert/build/sort/fibers.h), from a
 * sample, before the nonzeros are seen. Buckets are formed by it; a wrong guess costs time, nothing
 * else.
 */
#ifndef SLC_CONVERT_FIBER_GUESS_H
#define SLC_CONVERT_FIBER_GUESS_H

#include "base/error/error.h"
#include "convert/build/sort/fibers.h"

#include <stdint.h>

/*
 * `rows`: count x order coordinates, from `stretches` of the input as in slc_builder_sample;
 * `entries_expected`: of the whole, 0 unknown. `counts` holds nothing yet, and after this what its
 * caller has to reset. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_fiber_guess(struct slc_fiber_counts *counts,
                                const uint64_t *rows,
                                uint32_t count,
                                uint32_t stretches,
                                uint64_t entries_expected,
                                struct slc_fiber_run *run,
                                struct slc_error *err) SLC_NODISCARD;

#endif
