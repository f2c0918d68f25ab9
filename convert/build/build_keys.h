/*
 * The keys of a store, when all entries have been pushed and its lengths and the first index are
 * known: the pushing was done under what a sample let expect of them.
 */
#ifndef SLC_CONVERT_BUILD_KEYS_H
#define SLC_CONVERT_BUILD_KEYS_H

#include "convert/build/bucket_sort.h"
#include "convert/build/builder_internal.h"

/*
 * Flushes what workers still hold, settles which fibers are kept together, and sets of the plan the
 * keys and how those of every frame become them. Sets *regroup where the buckets were cut for
 * another base or another run of fibers, which is said. Needs: plan->index_base. Owns:
 * slc_build_keys_destroy, after an error too. Errors: SLC_ERR_INPUT for an index outside of the
 * lengths; SLC_ERR_UNSUPPORTED for lengths that no key holds; SLC_ERR_MEMORY; as slc_spill_append.
 */
enum slc_status slc_build_keys(struct slc_builder *builder,
                               const uint64_t *dims,
                               struct slc_sort_plan *plan,
                               struct slc_builder_report *report,
                               bool *regroup,
                               struct slc_error *err) SLC_NODISCARD;
void slc_build_keys_destroy(const struct slc_builder *builder, struct slc_sort_plan *plan);

#endif
