/*
 * MTTKRPs over a store in memory. The variants of a group have the same rank, threads and
 * precision, and differ in kernel, layout, instruction set and conflict strategy. They are measured
 * interleaved, so that a disturbance of the machine affects all of them.
 */
#ifndef SLC_TOOLS_BENCH_MTTKRP_GROUP_H
#define SLC_TOOLS_BENCH_MTTKRP_GROUP_H

#include "base/backend.h"
#include "tools/bench/measure/bandwidth.h"
#include "tools/bench/measure/timing.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/bench/rivals/cpu/fiber_forms.h"
#include "tools/session/session.h"

#include <stdbool.h>
#include <stdint.h>

struct bench_mttkrp_variant {
    const char *instruction_set; /* of kernels and decoders */
    /* True for a baseline that computes from a list of coordinates (tools/bench/rivals/cpu/coo.h).
     * It ignores the conflict strategy. */
    bool listed;
    enum slc_coo_kernel kernel;
    /* True for a baseline over whole fibers of one mode (tools/bench/rivals/cpu/fiber_forms.h),
     * from the layout with those fibers. It ignores the conflict strategy. */
    bool fibers;
    enum slc_fiber_form form;
    unsigned fiber_mode;
    /* sluice's own kernels over the layout sorted by the mode, so that rows have one owner */
    bool sorted;
    enum slc_conflict conflict;
    bool best; /* replicas if they fit the budget, otherwise the stream's own choice */
    /* If an output is too large for the strategy, leave it out instead of failing. */
    bool optional;
};

/* Figures of one variant in one mode. */
struct bench_mttkrp_cell {
    bool begun, measured;
    bool left_out;                     /* the output is too large for the variant's strategy */
    struct slc_conflict_choice choice; /* the conflict strategy, after its trial */
    struct bench_samples samples;
    /* Sums over all samples: wall time, and decoding time of all threads. */
    double wall_seconds, decode_seconds;
    /* With `check`: largest difference from the reference result, relative to the sum of
     * magnitudes. */
    double error;
};

/*
 * For every instruction set: every strategy, the choice between strategies, sorted layouts, and
 * every baseline; baselines over fibers count once per mode.
 */
enum {
    BENCH_MTTKRP_VARIANTS_MAX =
        (SLC_CONFLICT_REPLICA + 2 + SLC_COO_KERNELS + SLC_FIBER_FORMS * SLC_MAX_ORDER) *
        BENCH_BANDWIDTH_SETS
};

struct bench_mttkrp_group {
    uint32_t rank;
    unsigned threads;
    enum slc_value_type precision;
    uint64_t memory_bytes;
    bool check;                    /* compare with the reference results */
    unsigned mode_begin, mode_end; /* modes to measure, from 0 */
    unsigned warm_up, repeats;
    unsigned variant_count;
    struct bench_mttkrp_variant variants[BENCH_MTTKRP_VARIANTS_MAX];
    double copies_seconds; /* measured time to build the replicas; 0 without replicas */
    struct slc_replica_form copies[SLC_MAX_ORDER]; /* forms of the replicas */
    /* measured time to sort the list for each mode; 0 without permutations */
    double permute_seconds;
    /* bytes of the budget in use: by the plan and by all other data held so far */
    uint64_t held_bytes;
};

/* The options that select variants. */
struct bench_mttkrp_selection {
    const char *isa, *conflict, *kernel, *layouts;
};

/*
 * Sets the variants of a group. Needs: the group's threads are set. Errors: SLC_ERR_USAGE for a
 * strategy that does not support this number of threads, and for kernels over fibers if the store
 * keeps no fibers whole; the message says how to create a store that does.
 */
enum slc_status bench_mttkrp_variants(const struct bench_mttkrp_selection *selection,
                                      const struct slc_store *store,
                                      struct bench_mttkrp_group *group,
                                      struct slc_error *err) SLC_NODISCARD;

/* True if sluice's own kernels compute the variant. */
static inline bool bench_mttkrp_own(const struct bench_mttkrp_variant *variant)
{
    return !variant->listed && !variant->fibers;
}

/* Returns the name of a variant's kernel, as for --kernel. */
const char *bench_mttkrp_kernel_name(const struct bench_mttkrp_variant *variant);
/* Returns the name of a variant's strategy, as for --conflict; for a baseline, how it keeps
 * additions apart. */
const char *bench_mttkrp_conflict_name(const struct bench_mttkrp_variant *variant);
/* Returns the kind of the layout that a variant reads: "blco", "sorted", "fiber". */
const char *bench_mttkrp_layout_name(const struct bench_mttkrp_variant *variant,
                                     const struct slc_store *store);

/*
 * Measures a group with the engine's own stream and device. One pass reads the store into memory.
 * `warm_up` rounds and then `repeats` measured rounds follow, each with every mode of every
 * variant. If a variant needs replicas, a list of coordinates or other layouts, they are created
 * first. The factors are random. Variants with `best` are resolved. `cells`: variant_count times
 * SLC_MAX_ORDER elements, all-zero. Errors: SLC_ERR_BUDGET if the store does not fit; SLC_ERR_USAGE
 * for the direct strategy with more than one thread; those of the stream and the device.
 */
enum slc_status bench_mttkrp_measure(struct slc_session *session,
                                     struct bench_mttkrp_group *group,
                                     struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                     struct slc_error *err) SLC_NODISCARD;

#endif
