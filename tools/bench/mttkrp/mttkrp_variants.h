/* Which variants of MTTKRP `bench mttkrp` measures in turns, and how they are named. */
#ifndef SLC_TOOLS_BENCH_MTTKRP_VARIANTS_H
#define SLC_TOOLS_BENCH_MTTKRP_VARIANTS_H

#include "tools/bench/mttkrp/mttkrp_job.h"

/* The options that name them. */
struct bench_mttkrp_wanted {
    const char *isa, *conflict, *kernel, *layouts;
};

/*
 * Sets the variants of a group whose threads are set. Errors: SLC_ERR_USAGE for a strategy that
 * these threads cannot take, and for kernels over fibers where the store keeps none whole, naming
 * how to change that.
 */
enum slc_status bench_mttkrp_variants(const struct bench_mttkrp_wanted *wanted,
                                      const struct slc_store *store,
                                      struct bench_mttkrp_group *group,
                                      struct slc_error *err) SLC_NODISCARD;

/* Whether sluice's own kernels compute it, and no baseline. */
static inline bool bench_mttkrp_own(const struct bench_mttkrp_variant *variant)
{
    return !variant->listed && !variant->fibers;
}

/* What --kernel calls a variant. */
const char *bench_mttkrp_kernel_name(const struct bench_mttkrp_variant *variant);
/* What --conflict calls it, or how a baseline keeps additions apart. */
const char *bench_mttkrp_conflict_name(const struct bench_mttkrp_variant *variant);
/* The kind of layout that its nonzeros are read from: "blco", "sorted", "fiber". */
const char *bench_mttkrp_layout_name(const struct bench_mttkrp_variant *variant,
                                     const struct slc_store *store);

#endif
