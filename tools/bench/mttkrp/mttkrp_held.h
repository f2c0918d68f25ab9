/* Loads the data that the MTTKRPs of a group need in addition to layout `blco`, which the session
 * streams. These data are: other layouts, encoded in memory, each with its own plan and stream, so
 * that variants can alternate; a list of coordinates for the baselines of
 * tools/bench/rivals/cpu/coo.h; slices of fibers for those of xplat.h; reference results from the
 * simple loops of cpu/reference/reference.h. */
#ifndef SLC_TOOLS_BENCH_MTTKRP_HELD_H
#define SLC_TOOLS_BENCH_MTTKRP_HELD_H

#include "tools/bench/measure/factors.h"
#include "tools/bench/mttkrp/mttkrp_group.h"
#include "tools/bench/product/ttv_tensor.h"

/* A side: layouts in memory, with their own plan and stream. */
struct mttkrp_side {
    struct slc_layouts layouts;
    struct slc_plan plan;
    struct slc_stream *stream; /* NULL if the side is not open */
};

struct mttkrp_held {
    struct slc_session *session;
    struct bench_mttkrp_group *group;
    struct bench_factors factors;
    struct mttkrp_side sorted;
    struct mttkrp_side fibers[SLC_MAX_ORDER]; /* indexed by the mode of the fibers */
    struct slc_coo list;                  /* empty unless a variant needs a list of coordinates */
    struct slc_csf slices[SLC_MAX_ORDER]; /* of each mode of the group, if a variant needs them */
    /* with group->check: the nonzeros of the store; the reference results are in `memory` */
    struct ttv_tensor tensor;
    struct slc_buffer memory;
    double *want[SLC_MAX_ORDER], *magnitude[SLC_MAX_ORDER];
};

/* mttkrp_has_fibers returns true if a layout of the store, fiber-n or `blco`, keeps the fibers of
 * the mode whole. mttkrp_fiber_layout returns the kind of this layout. */
bool mttkrp_has_fibers(const struct slc_store *store, unsigned mode);
enum slc_layout_kind mttkrp_fiber_layout(const struct slc_store *store, unsigned mode);

/* Reads the inputs of the variants of the group into memory, within the budget that the plan of the
 * session leaves, and adds their bytes to group->held_bytes. Builds the permutations of the list
 * of coordinates for all modes of the group, group->repeats times, and sets group->permute_seconds
 * to the median, over the repeats, of the time for all modes. Needs: members session (started),
 * factors and group are set; all other members are zero. The caller must call mttkrp_held_close,
 * also after an error. Errors: SLC_ERR_BUDGET, whose message states the smallest sufficient budget;
 * SLC_ERR_USAGE for a missing layout, whose message states how to create it; those of opening,
 * reading and decoding. */
enum slc_status mttkrp_held_open(struct mttkrp_held *held, struct slc_error *err) SLC_NODISCARD;
void mttkrp_held_close(struct mttkrp_held *held);

/* Returns the largest difference of an element from the reference result, relative to the sum of
 * magnitudes of the terms of that element. The result is infinite if an element is NaN, or if an
 * element without terms is not 0. */
double
mttkrp_held_error(const struct mttkrp_held *held, unsigned mode, const struct slc_matrix *output);

#endif
