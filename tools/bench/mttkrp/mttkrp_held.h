/*
 * What the MTTKRPs of a group are computed from and compared with, beside the layout `blco` that a
 * session streams: other layouts in memory, encoded, each with a plan and a stream of its own, so
 * that variants over any of them can take turns; a list of coordinates for the baselines of
 * tools/bench/rivals/cpu/coo.h; and the results of the naive loops of cpu/reference/reference.h.
 */
#ifndef SLC_TOOLS_BENCH_MTTKRP_HELD_H
#define SLC_TOOLS_BENCH_MTTKRP_HELD_H

#include "tools/bench/measure/factors.h"
#include "tools/bench/mttkrp/mttkrp_group.h"
#include "tools/bench/product/ttv_tensor.h"

/* A layout in memory. */
struct mttkrp_side {
    struct slc_layouts layouts;
    struct slc_plan plan;
    struct slc_stream *stream; /* NULL: it is not open */
};

struct mttkrp_held {
    struct slc_session *session;
    struct bench_mttkrp_group *group;
    struct bench_factors factors;
    struct mttkrp_side sorted;
    struct mttkrp_side fibers[SLC_MAX_ORDER]; /* by the fibers' mode */
    struct slc_coo list;                      /* empty unless a variant computes from it */
    /* Of group->check: the store's nonzeros, and the products of the group's modes, in `memory`. */
    struct ttv_tensor tensor;
    struct slc_buffer memory;
    double *want[SLC_MAX_ORDER], *magnitude[SLC_MAX_ORDER];
};

/*
 * Whether the store keeps whole fibers of a mode, in a layout of their own or in `blco`; and which
 * of the two.
 */
bool mttkrp_has_fibers(const struct slc_store *store, unsigned mode);
enum slc_layout_kind mttkrp_fiber_layout(const struct slc_store *store, unsigned mode);

/*
 * Reads into memory what the group's variants want, within what the session's plan leaves of the
 * budget, and counts it in group->held_bytes. The permutations of a list, of the group's modes, are
 * made group->repeats times: group->permute_seconds is the median of the sum over modes.
 * Needs: a session that is started, its factors, the group; all else zero. Owns: mttkrp_held_close,
 * also after an error. Errors: SLC_ERR_BUDGET, naming the smallest one; SLC_ERR_USAGE for a layout
 * that the store does not have, naming how to make it; those of opening, reading and decoding.
 */
enum slc_status mttkrp_held_open(struct mttkrp_held *held, struct slc_error *err) SLC_NODISCARD;
void mttkrp_held_close(struct mttkrp_held *held);

/*
 * The largest difference of an element from the naive loops' over the same sum of magnitudes;
 * infinite where something stands in an element to which nothing belongs, or no number.
 */
double
mttkrp_held_error(const struct mttkrp_held *held, unsigned mode, const struct slc_matrix *output);

#endif
