/* Measures MTTKRPs of a store in memory. The variants of a group have the same rank, threads and
 * precision, and differ in kernel, layout, instruction set and conflict strategy. They are measured
 * in alternation, so that a disturbance of the machine affects all of them. */
#ifndef SLC_TOOLS_BENCH_MTTKRP_GROUP_H
#define SLC_TOOLS_BENCH_MTTKRP_GROUP_H

#include "base/backend.h"
#include "tools/bench/measure/bandwidth.h"
#include "tools/bench/measure/timing.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/bench/rivals/cpu/fiber_forms.h"
#include "tools/bench/rivals/cpu/xplat.h"
#include "tools/session/session.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_mttkrp_variant {
    const char *instruction_set; /* instruction set of kernels and decoders */
    /* true for a baseline over a list of coordinates (tools/bench/rivals/cpu/coo.h), which ignores
     * the conflict strategy */
    bool listed;
    enum slc_coo_kernel kernel;
    /* true for a baseline over the whole fibers of a mode (tools/bench/rivals/cpu/fiber_forms.h),
     * which reads the layout with these fibers and ignores the conflict strategy */
    bool fibers;
    enum slc_fiber_form form;
    unsigned fiber_mode;
    /* true for a baseline over slices of fibers (tools/bench/rivals/cpu/xplat.h), which are built
     * from the layout sorted by the output mode */
    bool slices;
    enum slc_xplat_kernel listing;
    /* true if the kernels of sluice read the layout sorted by the output mode, in which each output
     * row has one owner */
    bool sorted;
    enum slc_conflict conflict;
    bool best; /* true: replicas if they fit the budget, otherwise the choice of the plan */
    /* true: omit a mode whose output is too large for the strategy, instead of failing */
    bool optional;
};

/* Measurements of one variant in one mode. */
struct bench_mttkrp_cell {
    bool begun, measured;
    bool left_out; /* true if the output is too large for the strategy of the variant */
    struct slc_conflict_choice choice; /* strategy, from a trial if there was one */
    struct bench_samples samples;
    /* sums over all samples of the wall time and of the decoding time of all threads */
    double wall_seconds, decode_seconds;
    /* with `check`: largest difference of an element from the reference result, relative to the sum
     * of magnitudes of the terms of that element */
    double error;
};

/* Maximum number of variants of a group. There are per instruction set: each strategy, the choice
 * between strategies, sorted layouts, and each baseline. A baseline over fibers is one variant per
 * mode. */
enum {
    BENCH_MTTKRP_VARIANTS_MAX = (SLC_CONFLICT_REPLICA + 2 + SLC_COO_KERNELS + SLC_XPLAT_KERNELS +
                                 SLC_FIBER_FORMS * SLC_MAX_ORDER) *
                                BENCH_BANDWIDTH_SETS
};

struct bench_mttkrp_group {
    uint32_t rank;
    unsigned threads;
    enum slc_value_type precision;
    uint64_t memory_bytes;
    bool check;                    /* true: compare with the reference results */
    unsigned mode_begin, mode_end; /* modes to measure, starting at 0 */
    unsigned warm_up, repeats;
    unsigned variant_count;
    struct bench_mttkrp_variant variants[BENCH_MTTKRP_VARIANTS_MAX];
    double copies_seconds; /* time to build the replicas; 0 without replicas */
    struct slc_replica_form copies[SLC_MAX_ORDER]; /* how each replica is sorted */
    /* time to sort the list of coordinates for all modes; 0 without permutations */
    double permute_seconds;
    double nnz_per_fiber[SLC_MAX_ORDER]; /* of the slices of each mode, if a variant needs them */
    /* bytes of the budget that the plan and all data loaded so far use */
    uint64_t held_bytes;
};

/* The options that select variants. */
struct bench_mttkrp_selection {
    const char *isa, *conflict, *kernel, *layouts;
};

/* Sets the variants of a group. Needs: the threads of the group are set. Errors: SLC_ERR_USAGE for
 * a strategy that does not support this number of threads, for baselines over fibers if no layout
 * of the store keeps fibers whole, and for baselines over slices if a mode has no sorted layout or
 * the tensor fewer than 3 modes. The message states how to add such a layout. */
enum slc_status bench_mttkrp_variants(const struct bench_mttkrp_selection *selection,
                                      const struct slc_store *store,
                                      struct bench_mttkrp_group *group,
                                      struct slc_error *err) SLC_NODISCARD;

/* Returns true if the kernels of sluice compute the variant. */
static inline bool bench_mttkrp_own(const struct bench_mttkrp_variant *variant)
{
    return !variant->listed && !variant->fibers && !variant->slices;
}

/* Returns the name of the kernel of a variant, as --kernel accepts it. */
const char *bench_mttkrp_kernel_name(const struct bench_mttkrp_variant *variant);
/* Returns the name of the strategy of a variant, as --conflict accepts it, or the method by which a
 * baseline adds to rows that several threads use. */
const char *bench_mttkrp_conflict_name(const struct bench_mttkrp_variant *variant);
/* Returns the kind of layout that a variant reads: "blco", "sorted" or "fiber". */
const char *bench_mttkrp_layout_name(const struct bench_mttkrp_variant *variant,
                                     const struct slc_store *store);

/* Measures a group with the tile stream and the device of the engine. One pass reads the store into
 * memory. `warm_up` rounds and then `repeats` measured rounds follow, each with every mode of every
 * variant. Replicas, a list of coordinates and other layouts that variants need are created first.
 * The factors are random. Chooses the strategy of variants with `best`. `cells` has variant_count
 * times SLC_MAX_ORDER elements, which must be all-zero. Errors: SLC_ERR_BUDGET if the store does
 * not fit in the budget; SLC_ERR_USAGE for the direct strategy with more than one thread; the
 * errors of the stream and the device. */
enum slc_status bench_mttkrp_measure(struct slc_session *session,
                                     struct bench_mttkrp_group *group,
                                     struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                     struct slc_error *err) SLC_NODISCARD;

#endif
