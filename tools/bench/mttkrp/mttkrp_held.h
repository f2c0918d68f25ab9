/*
 * The inputs and reference results of a group's MTTKRPs, other than the layout `blco` that a
 * session streams: other layouts in memory, encoded, each with its own plan and stream, so that
 * variants over them can be interleaved; a list of coordinates for the baselines of
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
    struct slc_stream *stream; /* NULL: not open */
};

struct mttkrp_held {
    struct slc_session *session;
    struct bench_mttkrp_group *group;
    struct bench_factors factors;
    struct mttkrp_side sorted;
    struct mttkrp_side fibers[SLC_MAX_ORDER]; /* by the fibers' mode */
    struct slc_coo list;                      /* empty unless a variant computes from it */
    /* With group->check: the store's nonzeros, and the group's reference results in `memory`. */
    struct ttv_tensor tensor;
    struct slc_buffer memory;
    double *want[SLC_MAX_ORDER], *magnitude[SLC_MAX_ORDER];
};

/*
 * Whether the store keeps whole fibers of a mode, in a layout of their own or in `blco`; and the
 * kind of that layout.
 */
bool mttkrp_has_fibers(const struct slc_store *store, unsigned mode);
enum slc_layout_kind mttkrp_fiber_layout(const struct slc_store *store, unsigned mode);

/*
 * Reads the inputs of the group's variants into memory, within the budget that the session's plan
 * leaves, and counts them in group->held_bytes. Builds the permutations of a list for the group's
 * modes group->repeats times; group->permute_seconds is the median of the sum over modes.
 * Needs: a started session, its factors, the group; the rest zero. Owns: mttkrp_held_close, also
 * after an error. Errors: SLC_ERR_BUDGET, naming the smallest sufficient budget; SLC_ERR_USAGE for
 * a missing layout, naming how to create it; those of opening, reading and decoding.
 */
enum slc_status mttkrp_held_open(struct mttkrp_held *held, struct slc_error *err) SLC_NODISCARD;
void mttkrp_held_close(struct mttkrp_held *held);

/*
 * The largest difference of an element from the naive loops', over the same sum of magnitudes;
 * infinite if an element without contributions is not zero, or is not a number.
 */
double
mttkrp_held_error(const struct mttkrp_held *held, unsigned mode, const struct slc_matrix *output);

#endif
