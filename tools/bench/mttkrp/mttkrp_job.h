/*
 * A group of MTTKRP variants to measure, what was measured of each, and the memory held for them.
 */
#ifndef SLC_TOOLS_BENCH_MTTKRP_JOB_H
#define SLC_TOOLS_BENCH_MTTKRP_JOB_H

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

/*
 * Counts `bytes` more for `what` as held beside the store. Errors: SLC_ERR_BUDGET where the plan's
 * budget has no room for them, naming the smallest one.
 */
enum slc_status bench_mttkrp_hold(struct bench_mttkrp_group *group,
                                  const struct slc_plan *plan,
                                  uint64_t bytes,
                                  const char *what,
                                  struct slc_error *err) SLC_NODISCARD;

#endif
