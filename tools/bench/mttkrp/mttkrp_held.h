/*
 * The data that the MTTKRPs of a group need in addition to the layout `blco` that the session
 * streams: other layouts, encoded in memory, each with its own plan and stream, so that variants
 * can be interleaved; a list of coordinates for the baselines of tools/bench/rivals/cpu/coo.h; and
 * reference results from the naive loops of cpu/reference/reference.h.
 */
#ifndef SLC_TOOLS_BENCH_MTTKRP_HELD_H
#define SLC_TOOLS_BENCH_MTTKRP_HELD_H

#include "tools/bench/measure/factors.h"
#include "tools/bench/mttkrp/mttkrp_group.h"
#include "tools/bench/product/ttv_tensor.h"

/* A side: a layout in memory, with its own plan and stream. */
struct mttkrp_side {
    struct slc_layouts layouts;
    struct slc_plan plan;
    struct slc_stream *stream; /* NULL: not open */
};

struct mttkrp_held {
    struct slc_session *session;
    struct bench_mttkrp_group *group;
    struct bench_factors factors;
    struct mttkrp_side sorted;
    struct mttkrp_side fibers[SLC_MAX_ORDER]; /* indexed by the mode of the fibers */
    struct slc_coo list;                      /* empty unless a variant computes from a list */
    /* With group->check: the nonzeros of the store, and the reference results of the group in
     * `memory`. */
    struct ttv_tensor tensor;
    struct slc_buffer memory;
    double *want[SLC_MAX_ORDER], *magnitude[SLC_MAX_ORDER];
};

/*
 * mttkrp_has_fibers returns true if the store keeps whole fibers of the mode, in a layout of their
 * own or in `blco`. mttkrp_fiber_layout returns the kind of that layout.
 */
bool mttkrp_has_fibers(const struct slc_store *store, unsigned mode);
enum slc_layout_kind mttkrp_fiber_layout(const struct slc_store *store, unsigned mode);

/*
 * Reads the inputs of the group's variants into memory, within the budget that the session's plan
 * leaves, and counts them in group->held_bytes. Builds the permutations of a list for all modes of
 * the group, group->repeats times, and sets group->permute_seconds to the median of the sums over
 * the modes. Needs: a started session, its factors and the group are set; all other members are
 * zero. Owns: release with mttkrp_held_close, also after an error. Errors: SLC_ERR_BUDGET, naming
 * the smallest sufficient budget; SLC_ERR_USAGE for a missing layout, with how to create it; those
 * of opening, reading and decoding.
 */
enum slc_status mttkrp_held_open(struct mttkrp_held *held, struct slc_error *err) SLC_NODISCARD;
void mttkrp_held_close(struct mttkrp_held *held);

/*
 * Returns the largest difference of an element from the reference result, relative to the sum of
 * magnitudes of that element. Infinite if an element is NaN, or if an element without contributions
 * is not zero.
 */
double
mttkrp_held_error(const struct mttkrp_held *held, unsigned mode, const struct slc_matrix *output);

#endif
