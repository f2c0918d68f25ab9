/* Decides in the builder which mode's fibers are kept together: assumes a mode from the sample,
 * counts entries while they are pushed, and chooses the final mode from all entries. */
#ifndef SLC_CONVERT_BUILD_FIBERS_H
#define SLC_CONVERT_BUILD_FIBERS_H

#include "convert/build/builder_internal.h"

/* Errors: SLC_ERR_MEMORY; SLC_ERR_USAGE if the fiber run that the caller chose does not fit this
 * tensor. */
enum slc_status slc_build_fibers_start(struct slc_builder *builder,
                                       struct slc_error *err) SLC_NODISCARD;

/* Resets the counts of all workers. */
void slc_build_fibers_reset(struct slc_builder *builder);

/* Chooses the fiber run that forms buckets, from sampled rows as in slc_fiber_guess. */
enum slc_status slc_build_fibers_assume(struct slc_builder *builder,
                                        const uint64_t *rows,
                                        uint32_t count,
                                        uint32_t stretches,
                                        uint64_t entries_expected,
                                        struct slc_fiber_run *run,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * Chooses the fiber run of the store once all entries are in chunks, and frees the counts. If
 * entries were counted under a base other than `index_base`, they are counted again from the
 * chunks. Errors: as slc_spill_fetch, SLC_ERR_MEMORY.
 */
enum slc_status slc_build_fibers_choose(struct slc_builder *builder,
                                        unsigned index_base,
                                        struct slc_fiber_report *report,
                                        struct slc_error *err) SLC_NODISCARD;

#endif
