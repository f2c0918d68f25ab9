/* Decides which mode's fibers the builder keeps together: assumes a mode from the sample, counts
 * pieces of fibers (sort/fibers.h) while entries are pushed, and chooses the final mode at the
 * end. */
#ifndef SLC_CONVERT_BUILD_FIBERS_H
#define SLC_CONVERT_BUILD_FIBERS_H

#include "convert/build/builder_internal.h"

/* Allocates the workers' counts of pieces of fibers. Errors: SLC_ERR_MEMORY; SLC_ERR_USAGE if the
 * fiber run that the caller chose does not fit this tensor. */
enum slc_status slc_build_fibers_start(struct slc_builder *builder,
                                       struct slc_error *err) SLC_NODISCARD;

/* Resets the workers' counts of pieces of fibers. */
void slc_build_fibers_reset(struct slc_builder *builder);

/* Chooses, from sampled rows (slc_fiber_guess), the fiber run under which buckets are formed. */
enum slc_status slc_build_fibers_assume(struct slc_builder *builder,
                                        const uint64_t *rows,
                                        uint32_t count,
                                        uint32_t stretches,
                                        uint64_t entries_expected,
                                        struct slc_fiber_run *run,
                                        struct slc_error *err) SLC_NODISCARD;

/* Chooses the fiber run of the store once all entries are in chunks, and frees the counts. If
 * entries were counted under an index base other than `index_base`, first counts them again from
 * the chunks. Errors: SLC_ERR_MEMORY and the errors of slc_spill_fetch. */
enum slc_status slc_build_fibers_choose(struct slc_builder *builder,
                                        unsigned index_base,
                                        struct slc_fiber_report *report,
                                        struct slc_error *err) SLC_NODISCARD;

#endif
