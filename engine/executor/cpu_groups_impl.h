/* Declarations that only cpu_groups.c and cpu_groups_update.c use. */
#ifndef SLC_ENGINE_CPU_GROUPS_IMPL_H
#define SLC_ENGINE_CPU_GROUPS_IMPL_H

#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "engine/executor/cpu_groups.h"
#include "engine/executor/exchange.h"
#include "engine/executor/executor_impl.h"
#include "engine/executor/group_division.h"

#include <stdatomic.h>

struct slc_cpu_group {
    struct slc_backend *backend;
    struct slc_matrix *factors; /* array of one matrix per mode */
    /* The group's own factors; not used by the first group, whose `factors` are the caller's. */
    struct slc_matrix copies[SLC_MAX_ORDER];
    struct slc_buffer output; /* memory of the output; empty in the first group */
    struct slc_matrix view;   /* view of the current output */
    struct slc_member_stats stats;
    bool begun;                 /* true while the backend has a job */
    _Atomic uint64_t next_unit; /* next unit of rows for a thread of the group */
};

/* Measurements of one worker. No two workers share a cache line. */
struct slc_cpu_group_worker {
    uint64_t compute_ns, reduce_ns, solve_ns;
    struct slc_error fault;
    uint64_t padding[8];
};

struct slc_cpu_groups {
    struct slc_executor base;
    unsigned order;
    unsigned count;
    unsigned threads; /* threads per group */
    struct slc_cpu_group *group;
    struct slc_cpu_group_worker *workers;
    struct slc_group_division division[SLC_MAX_ORDER]; /* division of each computed mode */
    struct slc_exchange *exchange;
    struct slc_buffer columns; /* column sums per unit of rows; large enough for every mode */
    struct slc_buffer staging; /* buffers of two units per worker (SLC_SPLIT_NNZ) */
    struct slc_buffer split;   /* sums of one row that is split between partitions */
    uint64_t unit_bytes;

    /* Arguments of the current phase. */
    unsigned mode;
    const struct slc_solver *solver; /* NULL: outputs are exchanged, nothing is solved */
};

/* Runs a phase on all workers, or on one worker per group. If several workers fail, returns the
 * fault of the worker with the lowest number. */
enum slc_status slc_cpu_groups_run(struct slc_cpu_groups *groups,
                                   unsigned workers,
                                   slc_team_fn *phase,
                                   struct slc_error *err) SLC_NODISCARD;

/* Operations of the executor for the steps after an MTTKRP. */
enum slc_status slc_cpu_groups_update(struct slc_executor *executor,
                                      unsigned mode,
                                      const struct slc_matrix *mttkrp,
                                      const struct slc_solver *solver,
                                      const struct slc_update_sums *sums,
                                      struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_cpu_groups_gather(struct slc_executor *executor,
                                      unsigned mode,
                                      struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_cpu_groups_scale(struct slc_executor *executor,
                                     unsigned mode,
                                     const double *scale,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
