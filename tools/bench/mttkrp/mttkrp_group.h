/*
 * MTTKRPs over a store in memory. One group shares rank, threads and precision, and measures its
 * variants (kernel, layout, instruction set and conflict strategy) interleaved, so that a
 * disturbance of the machine affects all of them.
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
    const char *instruction_set; /* for kernels and decoders */
    /* A baseline that computes from a list of coordinates (tools/bench/rivals/cpu/coo.h); ignores
     * the conflict strategy. */
    bool listed;
    enum slc_coo_kernel kernel;
    /* A baseline over whole fibers of one mode (tools/bench/rivals/cpu/fiber_forms.h), from the
     * layout with those fibers; ignores the conflict strategy. */
    bool fibers;
    enum slc_fiber_form form;
    unsigned fiber_mode;
    bool sorted; /* sluice's own, every mode from the layout sorted by it: rows are owned */
    enum slc_conflict conflict;
    bool best; /* replicas if they fit the budget, otherwise the stream's own choice */
    /* Leave out an output that is too large for this strategy instead of failing. */
    bool optional;
};

/* Figures of one variant in one mode. */
struct bench_mttkrp_cell {
    bool begun, measured;
    bool left_out;                     /* too large for its strategy */
    struct slc_conflict_choice choice; /* of the strategy; as a trial left it */
    struct bench_samples samples;
    /* Sums over all samples: wall time, and decoding time of all threads. */
    double wall_seconds, decode_seconds;
    /* With `check`: largest difference from the oracle, over the sum of magnitudes. */
    double error;
};

/*
 * Every strategy, the choice between them, sorted layouts, and every baseline (those over fibers
 * for each mode of the fibers), in every instruction set.
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
    bool check;                    /* compare with the oracle */
    unsigned mode_begin, mode_end; /* modes to measure, from 0 */
    unsigned warm_up, repeats;
    unsigned variant_count;
    struct bench_mttkrp_variant variants[BENCH_MTTKRP_VARIANTS_MAX];
    double copies_seconds; /* measured: building the replicas; 0 without replicas */
    struct slc_replica_form copies[SLC_MAX_ORDER]; /* forms of the replicas */
    double permute_seconds; /* measured: sorting a list for each mode; 0 without permutations */
    uint64_t held_bytes;    /* of the budget: those of the plan and of all other held data so far */
};

/* The options that select variants. */
struct bench_mttkrp_selection {
    const char *isa, *conflict, *kernel, *layouts;
};

/*
 * Sets the variants of a group whose threads are set. Errors: SLC_ERR_USAGE for a strategy that
 * does not support this number of threads, and for kernels over fibers if the store keeps none
 * whole, naming how to change that.
 */
enum slc_status bench_mttkrp_variants(const struct bench_mttkrp_selection *selection,
                                      const struct slc_store *store,
                                      struct bench_mttkrp_group *group,
                                      struct slc_error *err) SLC_NODISCARD;

/* Whether sluice's own kernels compute the variant. */
static inline bool bench_mttkrp_own(const struct bench_mttkrp_variant *variant)
{
    return !variant->listed && !variant->fibers;
}

/* Name of a variant for --kernel. */
const char *bench_mttkrp_kernel_name(const struct bench_mttkrp_variant *variant);
/* Name of a variant for --conflict, or of a baseline's way to keep additions apart. */
const char *bench_mttkrp_conflict_name(const struct bench_mttkrp_variant *variant);
/* Kind of the layout that a variant reads: "blco", "sorted", "fiber". */
const char *bench_mttkrp_layout_name(const struct bench_mttkrp_variant *variant,
                                     const struct slc_store *store);

/*
 * Measures a group: one pass that reads the store into memory, then `warm_up` and `repeats` rounds
 * of every mode of every variant with the engine's own stream and device. Builds replicas, a list
 * of coordinates and other layouts first if a variant needs them. The factors are random. Resolves
 * the variants with `best`. `cells`: variant_count times SLC_MAX_ORDER, all-zero before. Errors:
 * SLC_ERR_BUDGET if the store does not fit; SLC_ERR_USAGE (the direct strategy with more than one
 * thread); those of the stream and the device.
 */
enum slc_status bench_mttkrp_measure(struct slc_session *session,
                                     struct bench_mttkrp_group *group,
                                     struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                     struct slc_error *err) SLC_NODISCARD;

#endif
