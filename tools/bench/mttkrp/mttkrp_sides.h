/*
 * Further layouts of a store in memory, encoded, beside the `blco` that a session streams: those
 * sorted by a mode, and those with whole fibers of one. Each has a plan and a stream of its own, so
 * that variants over any of them can take turns.
 */
#ifndef SLC_TOOLS_BENCH_MTTKRP_SIDES_H
#define SLC_TOOLS_BENCH_MTTKRP_SIDES_H

#include "tools/bench/mttkrp/mttkrp_job.h"

struct bench_mttkrp_side {
    struct slc_layouts layouts;
    struct slc_plan plan;
    struct slc_stream *stream; /* NULL: it is not open */
};

struct bench_mttkrp_sides {
    const struct slc_store *store; /* NULL: nothing is open */
    struct bench_mttkrp_side sorted;
    struct bench_mttkrp_side fibers[SLC_MAX_ORDER]; /* by the fibers' mode */
};

/*
 * Whether the store keeps whole fibers of a mode, in a layout of their own or in `blco`; and which
 * of the two.
 */
bool bench_mttkrp_has_fibers(const struct slc_store *store, unsigned mode);
enum slc_layout_kind bench_mttkrp_fiber_layout(const struct slc_store *store, unsigned mode);

/*
 * Reads the layouts that the group's variants want into memory, for a session that is started.
 * Needs: *sides all-zero. Owns: bench_mttkrp_sides_close, also after an error. Errors:
 * SLC_ERR_BUDGET; SLC_ERR_USAGE for a layout that the store does not have, naming how to make it;
 * those of opening and reading.
 */
enum slc_status bench_mttkrp_sides_open(struct bench_mttkrp_sides *sides,
                                        const struct slc_session *session,
                                        struct bench_mttkrp_group *group,
                                        struct slc_error *err) SLC_NODISCARD;
void bench_mttkrp_sides_close(struct bench_mttkrp_sides *sides);

#endif
