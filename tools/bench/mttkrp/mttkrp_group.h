/*
 * MTTKRPs over a store in memory: one group shares rank, threads and precision, and measures its
 * variants (kernel, layout, instruction set and conflict strategy) interleaved, so that what
 * disturbs the machine disturbs all of them.
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
    /* By a baseline that computes from a list of coordinates (tools/bench/rivals/cpu/coo.h): then
     * no conflict strategy is looked at. */
    bool listed;
    enum slc_coo_kernel kernel;
    /* By a baseline over whole fibers of one mode (tools/bench/rivals/cpu/fiber_forms.h), from the
     * layout that has them; no strategy either. */
    bool fibers;
    enum slc_fiber_form form;
    unsigned fiber_mode;
    bool sorted; /* sluice's own, every mode from the layout sorted by it: rows are owned */
    enum slc_conflict conflict;
    bool best; /* copies where the budget has room for them, else the stream's own choice */
    /* An output too large for this strategy is left out in place of failing. */
    bool optional;
};

/* What was measured of one variant in one mode. */
struct bench_mttkrp_cell {
    bool begun, measured;
    bool left_out;                     /* too large for its strategy */
    struct slc_conflict_choice choice; /* of the strategy; as a trial left it */
    struct bench_samples samples;
    /* Of all samples together: wall time, and of all threads what decoding took. */
    double wall_seconds, decode_seconds;
    /* Where it was asked for: largest difference from the oracle's, over the sum of magnitudes. */
    double error;
};

/*
 * Every strategy, the choice between them, sorted layouts, and every baseline, of which some are
 * for each mode's fibers, in every instruction set.
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
    double copies_seconds; /* measured: making copies per mode; 0 where there are none */
    struct slc_replica_form copies[SLC_MAX_ORDER]; /* how those are sorted */
    double permute_seconds; /* measured: sorting a list for each of the modes; 0: none is */
    uint64_t held_bytes;    /* of the budget: the plan's, and what is beside it so far */
};

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

/*
 * Measures a group: one pass that reads the store into memory, then `warm_up` and `repeats` rounds
 * of every mode of every variant by the engine's own stream and device; before them copies per
 * mode, a list of coordinates and other layouts where a variant wants them. The factors are random.
 * Variants that ask for the best are resolved. `cells`: variant_count times SLC_MAX_ORDER, all-zero
 * before. Errors: SLC_ERR_BUDGET when the store does not fit; SLC_ERR_USAGE (the direct strategy
 * with more than one thread); those of the stream and the device.
 */
enum slc_status bench_mttkrp_measure(struct slc_session *session,
                                     struct bench_mttkrp_group *group,
                                     struct bench_mttkrp_cell (*cells)[SLC_MAX_ORDER],
                                     struct slc_error *err) SLC_NODISCARD;

#endif
