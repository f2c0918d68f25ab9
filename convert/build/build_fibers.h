/*
 * The builder's side of keeping fibers together: counting while entries are pushed, the mode that
 * is assumed meanwhile, and the one that all entries lead to.
 */
#ifndef SLC_CONVERT_BUILD_FIBERS_H
#define SLC_CONVERT_BUILD_FIBERS_H

#include "convert/build/builder_internal.h"

/* Errors: SLC_ERR_MEMORY; SLC_ERR_USAGE where the given run is not one of this tensor. */
enum slc_status slc_build_fibers_start(struct slc_builder *builder,
                                       struct slc_error *err) SLC_NODISCARD;

/* All workers counted nothing. */
void slc_build_fibers_reset(struct slc_builder *builder);

/* The run that buckets are formed by, from sampled rows as in slc_fiber_guess. */
enum slc_status slc_build_fibers_assume(struct slc_builder *builder,
                                        const uint64_t *rows,
                                        uint32_t count,
                                        uint32_t stretches,
                                        uint64_t entries_expected,
                                        struct slc_fiber_run *run,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * The run of the store, when all entries lie in chunks; gives the memory of the counts back. Counts
 * made under another base than `index_base` are made again, from the chunks. Errors: as
 * slc_spill_fetch, SLC_ERR_MEMORY.
 */
enum slc_status slc_build_fibers_settle(struct slc_builder *builder,
                                        unsigned index_base,
                                        struct slc_fiber_report *report,
                                        struct slc_error *err) SLC_NODISCARD;

#endif
