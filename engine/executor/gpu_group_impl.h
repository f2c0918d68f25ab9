/* What gpu_group.c and gpu_group_update.c share; private to them. */
#ifndef SLC_ENGINE_GPU_GROUP_IMPL_H
#define SLC_ENGINE_GPU_GROUP_IMPL_H

#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "engine/executor/executor_impl.h"
#include "engine/executor/gpu_group.h"
#include "engine/executor/group_division.h"

/* One device. */
struct slc_gpu_member {
    struct slc_device *device;
    struct slc_row_piece rows[SLC_MAX_ORDER]; /* that it owns: units that touch are one */
    struct slc_member_stats stats;
    bool open, begun;
    struct slc_error fault; /* of the phase at hand */
};

struct slc_gpu_group {
    const struct slc_layouts *layouts;
    const struct slc_plan *plan;
    struct slc_stream *stream;
    unsigned order, count;
    uint64_t unit_rows[SLC_MAX_ORDER];
    struct slc_group_division division[SLC_MAX_ORDER]; /* of modes that are computed */
    struct slc_buffer spans[SLC_MAX_ORDER];            /* that the members' rows are made of */
    struct slc_buffer columns;                         /* of all units, as the shares have them */
    struct slc_buffer places; /* of units by rows: where their columns are */
    struct slc_gpu_member member[SLC_MAX_DEVICES];

    /* The phase at hand. */
    unsigned mode;
    const struct slc_device_job *job; /* to be begun */
    const struct slc_solver *solver;
    const struct slc_matrix *factors; /* to be given */
    struct slc_matrix *output;        /* to be filled */
    const double *scale;
};

/* Of a factor, as the host has it: what sizes of units and bytes sent are counted in. */
static inline uint64_t slc_gpu_group_row_bytes(const struct slc_plan *plan)
{
    return (uint64_t)slc_matrix_pitch(plan->request.precision, plan->request.rank) *
           slc_value_bytes(plan->request.precision);
}

/* Runs a phase on a thread for each device; the first fault by their numbers counts. */
enum slc_status slc_gpu_group_run(struct slc_gpu_group *group,
                                  slc_team_fn *phase,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Operations of the executor. After an MTTKRP: solves for the rows of factor `mode`, each by its
 * owner, and sends them round. Order: the bits of the MTTKRP decide on those of the factor and its
 * sums, in any number of devices. Errors: those of the devices; the factor is then undefined.
 */
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
