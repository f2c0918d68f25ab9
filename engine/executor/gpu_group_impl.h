/* Declarations that only gpu_group.c and gpu_group_update.c use. */
#ifndef SLC_ENGINE_GPU_GROUP_IMPL_H
#define SLC_ENGINE_GPU_GROUP_IMPL_H

#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "engine/executor/executor_impl.h"
#include "engine/executor/gpu_group.h"
#include "engine/executor/group_division.h"

struct slc_gpu_member {
    struct slc_device *device;
    /* per mode, the rows that it owns: its units (group_division.h), with adjacent units merged */
    struct slc_device_rows rows[SLC_MAX_ORDER];
    struct slc_member_stats stats;
    bool open, begun;
    struct slc_error fault; /* error of the current phase */
};

struct slc_gpu_group {
    const struct slc_layouts *layouts;
    const struct slc_plan *plan;
    struct slc_stream *stream;
    unsigned order, count;
    uint64_t unit_rows[SLC_MAX_ORDER];
    struct slc_group_division division[SLC_MAX_ORDER]; /* division of each computed mode */
    /* row ranges of all members (`rows` of struct slc_gpu_member) */
    struct slc_buffer spans[SLC_MAX_ORDER];
    struct slc_buffer columns; /* column sums of all units, grouped by device */
    /* For each unit, in row order, the position of its column sums in `columns`. */
    struct slc_buffer places;
    struct slc_gpu_member member[SLC_MAX_DEVICES];

    /* Arguments of the current phase. */
    unsigned mode;
    const struct slc_device_job *job; /* job to begin */
    const struct slc_solver *solver;
    const struct slc_matrix *factors; /* factors to load */
    struct slc_matrix *output;        /* output to fill */
    const double *scale;
};

/* Returns the bytes of a factor row in host memory, from which unit sizes and bytes sent are
 * computed. */
static inline uint64_t slc_gpu_group_row_bytes(const struct slc_plan *plan)
{
    return (uint64_t)slc_matrix_pitch(plan->request.precision, plan->request.rank) *
           slc_value_bytes(plan->request.precision);
}

/* Runs a phase on one thread per device. If several devices fail, returns the error of the device
 * with the lowest number. */
enum slc_status slc_gpu_group_run(struct slc_gpu_group *group,
                                  slc_team_fn *phase,
                                  struct slc_error *err) SLC_NODISCARD;

/* Operations of the executor. slc_gpu_group_update follows an MTTKRP: each device solves the rows
 * of factor `mode` that it owns, and then the devices exchange these rows. Order: the bits of the
 * factor and its sums depend only on the bits of the MTTKRP, not on the number of devices. Errors:
 * those of the devices; the factor is then undefined. */
enum slc_status slc_gpu_group_update(struct slc_executor *executor,
                                     unsigned mode,
                                     const struct slc_matrix *mttkrp,
                                     const struct slc_solver *solver,
                                     const struct slc_update_sums *sums,
                                     struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_gpu_group_scale(struct slc_executor *executor,
                                    unsigned mode,
                                    const double *scale,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
