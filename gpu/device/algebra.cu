/* Updates and scales factors that stay on the device, and computes their Gram matrices. Only the
 * solver and column results are transferred. */
#include "gpu/cuda/check.h"
#include "gpu/dense/dense.h"
#include "gpu/device/state.h"

#include <cinttypes>
#include <cstring>

static enum slc_status enter(const struct slc_gpu *gpu, unsigned mode, struct slc_error *err)
{
    SLC_TRY(slc_gpu_enter(gpu, err));
    if ((mode >= gpu->problem.order || gpu->job.active)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "there is no factor of mode %u on device %d, or an MTTKRP is in progress",
                        mode, gpu->ordinal);
    }
    return SLC_OK;
}

/* Copies from the registered buffer for small matrices to the device. The buffer must stay
 * unchanged until the host has waited for the stream. */
static enum slc_status
send_doubles(struct slc_gpu *gpu, double *to, uint64_t bytes, struct slc_error *err)
{
    SLC_GPU_TRY(
        cudaMemcpyAsync(to, gpu->memory.host_solver, bytes, cudaMemcpyHostToDevice, gpu->main),
        err);
    gpu->stats.bytes_to_device += bytes;
    return SLC_OK;
}

/* Copies from the device to the registered buffer for small matrices, and waits for the copy. */
static enum slc_status
receive_doubles(struct slc_gpu *gpu, const double *from, uint64_t bytes, struct slc_error *err)
{
    SLC_GPU_TRY(
        cudaMemcpyAsync(gpu->memory.host_solver, from, bytes, cudaMemcpyDeviceToHost, gpu->main),
        err);
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    gpu->stats.bytes_to_host += bytes;
    return SLC_OK;
}

/* After an error, waits for all work, because pending work could access registered memory later.
 * Returns `status`. */
static enum slc_status drain_on_error(struct slc_gpu *gpu, enum slc_status status)
{
    if (status != SLC_OK) {
        slc_gpu_drain(gpu);
    }
    return status;
}

static enum slc_status
update(struct slc_gpu *gpu, unsigned mode, const struct slc_solver *solver, struct slc_error *err)
{
    const struct slc_gpu_matrix *factor = &gpu->memory.factor[mode];
    const uint64_t rank = gpu->problem.rank;
    double *const columns = gpu->memory.sums;
    const struct slc_gpu_solver packed = {gpu->memory.solver, solver->rank, solver->singular};

    slc_gpu_solver_pack(solver, gpu->memory.host_solver);
    SLC_TRY(send_doubles(gpu, gpu->memory.solver, slc_gpu_solver_bytes(solver->rank), err));
    SLC_TRY(slc_gpu_output_finish(gpu, err));
    SLC_GPU_TRY(slc_gpu_dense_update(&packed, gpu->problem.precision, &gpu->job.mttkrp.output,
                                     factor, columns, gpu->memory.scratch, gpu->main),
                err);
    SLC_GPU_TRY(slc_gpu_dense_gram(factor, gpu->problem.precision, columns + 2 * rank,
                                   gpu->memory.scratch, gpu->main),
                err);
    return receive_doubles(gpu, columns, (2 * rank + rank * rank) * sizeof(double), err);
}

/* Checks the arguments of an update of all rows or of units. */
static enum slc_status enter_update(const struct slc_gpu *gpu,
                                    unsigned mode,
                                    const struct slc_solver *solver,
                                    struct slc_error *err)
{
    SLC_TRY(enter(gpu, mode, err));
    if ((!gpu->job.has_output || gpu->job.mttkrp.mode != mode ||
         solver->rank != gpu->problem.rank)) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "device %d has no output of an MTTKRP of mode %u, or the solver's rank %" PRIu32
            " is not %" PRIu32,
            gpu->ordinal, mode, solver->rank, gpu->problem.rank);
    }
    return SLC_OK;
}

enum slc_status slc_gpu_update(struct slc_device *device,
                               unsigned mode,
                               const struct slc_solver *solver,
                               const struct slc_update_sums *sums,
                               struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    const uint64_t rank = gpu->problem.rank;
    const double *const found = gpu->memory.host_solver;

    SLC_TRY(enter_update(gpu, mode, solver, err));
    gpu->largest_known[mode] = false;
    SLC_TRY(drain_on_error(gpu, update(gpu, mode, solver, err)));
    memcpy(sums->largest, found, rank * sizeof *found);
    memcpy(sums->inner, found + rank, rank * sizeof *found);
    memcpy(sums->gram, found + 2 * rank, rank * rank * sizeof *found);
    return SLC_OK;
}

static enum slc_status update_units(struct slc_gpu *gpu,
                                    unsigned mode,
                                    const struct slc_solver *solver,
                                    const struct slc_device_units *units,
                                    double *columns,
                                    struct slc_error *err)
{
    const struct slc_gpu_solver packed = {gpu->memory.solver, solver->rank, solver->singular};
    const struct slc_gpu_units on_device = {gpu->memory.units, units->count, units->rows_most};

    slc_gpu_solver_pack(solver, gpu->memory.host_solver);
    SLC_TRY(send_doubles(gpu, gpu->memory.solver, slc_gpu_solver_bytes(solver->rank), err));
    SLC_TRY(slc_gpu_rows_send(gpu, gpu->memory.units, units->rows, units->count,
                              sizeof *units->rows, err));
    SLC_TRY(slc_gpu_output_finish(gpu, err));
    SLC_GPU_TRY(slc_gpu_dense_update_units(&packed, gpu->problem.precision, &gpu->job.mttkrp.output,
                                           &gpu->memory.factor[mode], &on_device,
                                           gpu->memory.unit_columns, gpu->memory.scratch,
                                           gpu->main),
                err);
    SLC_TRY(slc_gpu_rows_receive(gpu, columns, gpu->memory.unit_columns, units->count,
                                 2 * solver->rank * sizeof *columns, err));
    /* Wait even if there were no units, because the next call reuses the solver's buffer. */
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    return SLC_OK;
}

enum slc_status slc_gpu_update_units(struct slc_device *device,
                                     unsigned mode,
                                     const struct slc_solver *solver,
                                     const struct slc_device_units *units,
                                     double *columns,
                                     struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);

    SLC_TRY(enter_update(gpu, mode, solver, err));
    if (units->count > gpu->problem.unit_most) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%" PRIu32 " units of rows exceed the maximum of %" PRIu32
                        " for which device %d was opened",
                        units->count, gpu->problem.unit_most, gpu->ordinal);
    }
    gpu->largest_known[mode] = false;
    return drain_on_error(gpu, update_units(gpu, mode, solver, units, columns, err));
}

static enum slc_status gram_of(struct slc_gpu *gpu, unsigned mode, struct slc_error *err)
{
    const uint64_t rank = gpu->problem.rank;

    SLC_GPU_TRY(slc_gpu_dense_gram(&gpu->memory.factor[mode], gpu->problem.precision,
                                   gpu->memory.sums, gpu->memory.scratch, gpu->main),
                err);
    return receive_doubles(gpu, gpu->memory.sums, rank * rank * sizeof(double), err);
}

enum slc_status
slc_gpu_gram(struct slc_device *device, unsigned mode, double *gram, struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);
    const uint64_t rank = gpu->problem.rank;

    SLC_TRY(enter(gpu, mode, err));
    SLC_TRY(drain_on_error(gpu, gram_of(gpu, mode, err)));
    memcpy(gram, gpu->memory.host_solver, rank * rank * sizeof *gram);
    return SLC_OK;
}

static enum slc_status
scale_by(struct slc_gpu *gpu, unsigned mode, const double *scale, struct slc_error *err)
{
    const uint64_t bytes = gpu->problem.rank * sizeof *scale;

    memcpy(gpu->memory.host_solver, scale, bytes);
    SLC_TRY(send_doubles(gpu, gpu->memory.sums, bytes, err));
    SLC_GPU_TRY(slc_gpu_dense_scale(&gpu->memory.factor[mode], gpu->problem.precision,
                                    gpu->memory.sums, gpu->main),
                err);
    /* Wait, because the next call reuses the buffer for small matrices. */
    SLC_GPU_TRY(cudaStreamSynchronize(gpu->main), err);
    return SLC_OK;
}

enum slc_status
slc_gpu_scale(struct slc_device *device, unsigned mode, const double *scale, struct slc_error *err)
{
    struct slc_gpu *gpu = slc_gpu_of(device);

    SLC_TRY(enter(gpu, mode, err));
    gpu->largest_known[mode] = false;
    return drain_on_error(gpu, scale_by(gpu, mode, scale, err));
}
