/* Implements the executor of one GPU.
 *
 * An MTTKRP on the device alone begins a job, feeds it every block in one pass, and ends it. The
 * job is also ended after a failed pass, so that none of its work is pending when the next job
 * begins.
 *
 * If the CPU takes part, the CPU and the device each begin a job, share the blocks of one pass and
 * end their jobs. Then the output of the CPU is added to the output of the device. The extra time
 * for using the CPU is measured, so that an adaptive split can leave the CPU out of passes in which
 * the CPU would save less than this time. */
#include "engine/executor/gpu_executor.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "engine/executor/executor_impl.h"
#include "engine/stream/mttkrp.h"
#include "storage/codec/describe.h"

#include <math.h>
#include <string.h>

void slc_gpu_executor_problem(const struct slc_layouts *layouts,
                              const struct slc_plan *plan,
                              struct slc_device_problem *problem)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    const struct slc_plan_gpu *gpu = &plan->gpu;

    *problem = (struct slc_device_problem){
        .order = info->order,
        .rank = plan->request.rank,
        .precision = plan->request.precision,
        .deterministic = plan->request.deterministic,
        .layout_count = layouts->count,
        .streams = gpu->streams,
        .slot_bytes = gpu->slot_bytes,
        .expanded_bytes = gpu->expanded_bytes,
        .slot_tiles = gpu->slot_tiles,
        .resident_bytes = gpu->kept_bytes + gpu->kept_expanded_bytes,
        .resident_tiles = gpu->kept_tiles,
        .transcoded_bytes = gpu->transcoded_bytes,
        .unit_most = gpu->unit_most,
        .adds_host = plan->request.hybrid.kind != SLC_HYBRID_NONE,
    };
    memcpy(problem->dims, info->dims, sizeof problem->dims);
}

enum slc_status slc_gpu_executor_open_device(struct slc_device *device,
                                             const struct slc_layouts *layouts,
                                             const struct slc_plan *plan,
                                             struct slc_error *err)
{
    struct slc_encoded_layout *described = slc_calloc(layouts->count, sizeof *described);
    struct slc_device_problem problem;

    SLC_TRY(slc_check_memory(described != NULL, err, "to describe %u layouts", layouts->count));
    for (unsigned l = 0; l < layouts->count; l++) {
        slc_describe_layout(slc_reader_info(layouts->reader[l]), &described[l]);
    }
    slc_gpu_executor_problem(layouts, plan, &problem);
    problem.layouts = described;
    enum slc_status status = device->ops->memory.open(device, &problem, err);
    slc_free(described);
    return status;
}

enum slc_status slc_gpu_executor_open(struct slc_device *device,
                                      const struct slc_layouts *layouts,
                                      const struct slc_plan *plan,
                                      struct slc_stream *stream,
                                      struct slc_error *err)
{
    SLC_TRY(slc_gpu_executor_open_device(device, layouts, plan, err));
    enum slc_status status = slc_stream_attach(stream, &device, 1, err);
    if (status != SLC_OK) {
        device->ops->memory.close(device);
    }
    return status;
}

void slc_gpu_executor_close(struct slc_device *device, struct slc_stream *stream)
{
    slc_stream_detach(stream);
    device->ops->memory.close(device);
}

struct slc_device_job slc_gpu_executor_job(const struct slc_reader *reader,
                                           const struct slc_plan *plan,
                                           unsigned layout,
                                           unsigned mode)
{
    const struct slc_layout_info *info = slc_reader_info(reader);

    return (struct slc_device_job){
        .layout = layout,
        .mode = mode,
        .magnitude = sqrt((double)info->nnz) * sqrt(info->sum_of_squares),
        .copies = plan->layouts[layout].resident_blocks < info->block_count,
    };
}

enum slc_status slc_gpu_executor_check_squares(const struct slc_reader *reader,
                                               double squares,
                                               struct slc_error *err)
{
    const double stated = slc_reader_info(reader)->sum_of_squares;

    /* Both sums are rounded, so a small excess does not indicate damage. The limit of twice the sum
     * is safe: deterministic sums tolerate twice the magnitude of the job, and the magnitude grows
     * only with the square root of the sum of squares. */
    if (!(squares > 2.0 * stated)) {
        return SLC_OK;
    }
    return slc_fail_file(err, SLC_ERR_DAMAGED, slc_reader_path(reader),
                         "the sum of squares in the header is %g, but the sum over the values is "
                         "%g: convert the tensor again",
                         stated, squares);
}

/* Begins the device's job, makes the pass, and ends the job even if the pass fails. */
static enum slc_status run_job(struct slc_device *device,
                               struct slc_stream *stream,
                               const struct slc_plan *plan,
                               const struct slc_pass *pass,
                               unsigned mode,
                               struct slc_error *err)
{
    const struct slc_reader *reader = slc_stream_reader(stream, pass->layout);
    struct slc_device_job job = slc_gpu_executor_job(reader, plan, pass->layout, mode);

    /* No block is copied if all are resident, including those that the plan caches for the CPU. */
    job.copies = job.copies && slc_stream_copies(stream, pass->layout);
    SLC_TRY(device->ops->job.begin(device, &job, err));
    enum slc_status status = slc_stream_pass(stream, pass, err);
    if (status != SLC_OK) {
        /* The error of the pass is reported, so an error of ending the job is ignored. */
        (void)device->ops->job.end(device, NULL);
        return status;
    }
    status = device->ops->job.end(device, err);
    if (status == SLC_ERR_DAMAGED) {
        slc_error_locate_file(err, slc_reader_path(reader));
    }
    return status;
}

enum slc_status slc_gpu_executor_mttkrp(struct slc_device *device,
                                        struct slc_stream *stream,
                                        const struct slc_plan *plan,
                                        unsigned mode,
                                        const volatile int *stop,
                                        void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                                        void *progress_context,
                                        struct slc_error *err)
{
    const struct slc_pass pass = {.kind = SLC_PASS_GPU,
                                  .layout = plan->mode_layout[mode],
                                  .stop = stop,
                                  .progress = progress,
                                  .progress_context = progress_context};
    const struct slc_reader *reader = slc_stream_reader(stream, pass.layout);

    SLC_TRY(run_job(device, stream, plan, &pass, mode, err));
    if (plan->request.deterministic) {
        struct slc_device_stats stats;

        device->ops->stats(device, &stats);
        SLC_TRY(slc_gpu_executor_check_squares(reader, stats.squares, err));
    }
    return SLC_OK;
}

/* Runs a pass over all blocks on the device alone, although the CPU could share it. */
static enum slc_status run_without_cpu(struct slc_device *device,
                                       struct slc_stream *stream,
                                       const struct slc_plan *plan,
                                       const struct slc_pass *pass,
                                       const struct slc_hybrid_cpu *cpu,
                                       struct slc_error *err)
{
    const uint64_t nnz = slc_reader_info(slc_stream_reader(stream, pass->layout))->nnz;
    const uint64_t start_ns = slc_clock_ns();
    const enum slc_status status = run_job(device, stream, plan, pass, cpu->job->mode, err);

    if (status == SLC_OK) {
        const struct slc_hybrid_part parts[SLC_HYBRID_PARTS] = {
            [SLC_HYBRID_GPU] = {nnz, slc_seconds_since(start_ns)}};

        slc_hybrid_record(cpu->hybrid, parts);
    }
    return status;
}

enum slc_status
slc_gpu_executor_mttkrp_hybrid(struct slc_device *device,
                               struct slc_stream *stream,
                               const struct slc_plan *plan,
                               const struct slc_hybrid_cpu *cpu,
                               const volatile int *stop,
                               void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                               void *progress_context,
                               struct slc_error *err)
{
    struct slc_backend *backend = cpu->backend;
    struct slc_pass pass = {.kind = SLC_PASS_GPU,
                            .layout = plan->mode_layout[cpu->job->mode],
                            .stop = stop,
                            .progress = progress,
                            .progress_context = progress_context};
    uint64_t start_ns = slc_clock_ns();
    double cost = cpu->prepared_seconds;

    if (slc_hybrid_without_cpu(cpu->hybrid)) {
        return run_without_cpu(device, stream, plan, &pass, cpu, err);
    }
    pass.kind = SLC_PASS_HYBRID;
    pass.hybrid.consumer = (struct slc_tile_consumer){
        .tile = slc_mttkrp_stream_tile, .wake = slc_mttkrp_stream_abort, .context = backend};
    pass.hybrid.sharing = cpu->hybrid;
    SLC_TRY(backend->ops->mttkrp_begin(backend, cpu->job, err));
    cost += slc_seconds_since(start_ns);
    enum slc_status status = run_job(device, stream, plan, &pass, cpu->job->mode, err);
    if (status != SLC_OK) {
        (void)backend->ops->mttkrp_end(backend, NULL);
        return status;
    }
    slc_stream_hybrid_end(stream);
    start_ns = slc_clock_ns();
    status = backend->ops->mttkrp_end(backend, err);
    if (status == SLC_OK && cpu->hybrid->last[SLC_HYBRID_CPU].nnz > 0) {
        status = device->ops->job.add_host(device, cpu->job->output, err);
        slc_hybrid_record_cost(cpu->hybrid, cost + slc_seconds_since(start_ns));
    }
    return status;
}

/* ---- the executor */

/* Factors and MTTKRPs are in GPU memory. The factors in host memory keep their loaded values until
 * they are read back. If the CPU shares the MTTKRPs, it uses the factors in host memory, so updated
 * factors are read back before each MTTKRP that involves the CPU. */
struct gpu_executor {
    struct slc_executor base;
    bool stale[SLC_MAX_ORDER]; /* true if the factor in host memory is outdated */
    /* host memory that is registered with the device, in the order of registration */
    void *registered[SLC_MAX_ORDER + 1];
    unsigned registered_count;
};

static enum slc_status load_factors(struct slc_executor *executor, struct slc_error *err)
{
    const struct slc_plan_request *request = &executor->setup.plan->request;
    struct slc_device *gpu = executor->setup.parts.gpu;
    const unsigned order = slc_reader_info(slc_stream_reader(executor->setup.stream, 0))->order;

    for (unsigned n = 0; n < order; n++) {
        /* The MTTKRP of a mode does not read the factor of that mode. */
        if (request->operation == SLC_OP_CPD || n != request->mode) {
            SLC_TRY(gpu->ops->memory.factor_write(gpu, n, &executor->setup.factors[n], err));
        }
    }
    return SLC_OK;
}

static enum slc_status compute_mttkrp(struct slc_executor *executor,
                                      const struct slc_executor_pass *pass,
                                      struct slc_error *err)
{
    const struct slc_executor_setup *setup = &executor->setup;

    return slc_gpu_executor_mttkrp(setup->parts.gpu, setup->stream, setup->plan, pass->mode,
                                   pass->stop, pass->progress, pass->progress_context, err);
}

static enum slc_status
read_output(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    struct slc_device *gpu = executor->setup.parts.gpu;
    struct slc_matrix output = slc_executor_output(executor, mode);

    return gpu->ops->memory.output_read(gpu, &output, err);
}

static enum slc_status
read_factor(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    struct slc_device *gpu = executor->setup.parts.gpu;

    ((struct gpu_executor *)executor)->stale[mode] = false;
    return gpu->ops->memory.factor_read(gpu, mode, &executor->setup.factors[mode], err);
}

/* Copies all stale factors except factor `except` to host memory. */
static enum slc_status
read_stale(struct slc_executor *executor, unsigned except, double *seconds, struct slc_error *err)
{
    const struct gpu_executor *own = (const struct gpu_executor *)executor;
    const uint64_t start_ns = slc_clock_ns();
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < SLC_MAX_ORDER && status == SLC_OK; n++) {
        if (n != except && own->stale[n]) {
            status = read_factor(executor, n, err);
        }
    }
    *seconds = slc_seconds_since(start_ns);
    return status;
}

static enum slc_status compute_hybrid(struct slc_executor *executor,
                                      const struct slc_executor_pass *pass,
                                      struct slc_error *err)
{
    const struct slc_executor_setup *setup = &executor->setup;
    struct slc_matrix output = slc_executor_output(executor, pass->mode);
    const struct slc_mttkrp_job job = slc_executor_job(executor, pass, &output);
    struct slc_hybrid_cpu cpu = {
        .backend = setup->parts.backend, .job = &job, .hybrid = pass->hybrid};

    if (!slc_hybrid_without_cpu(cpu.hybrid)) {
        SLC_TRY(read_stale(executor, pass->mode, &cpu.prepared_seconds, err));
    }
    return slc_gpu_executor_mttkrp_hybrid(setup->parts.gpu, setup->stream, setup->plan, &cpu,
                                          pass->stop, pass->progress, pass->progress_context, err);
}

static enum slc_status update_rows(struct slc_executor *executor,
                                   unsigned mode,
                                   const struct slc_matrix *mttkrp,
                                   const struct slc_solver *solver,
                                   const struct slc_update_sums *sums,
                                   struct slc_error *err)
{
    struct slc_device *gpu = executor->setup.parts.gpu;

    (void)mttkrp;
    ((struct gpu_executor *)executor)->stale[mode] = true;
    return gpu->ops->algebra.update(gpu, mode, solver, sums, err);
}

static enum slc_status
write_factor(struct slc_executor *executor, unsigned mode, struct slc_error *err)
{
    struct slc_device *gpu = executor->setup.parts.gpu;

    ((struct gpu_executor *)executor)->stale[mode] = false;
    return gpu->ops->memory.factor_write(gpu, mode, &executor->setup.factors[mode], err);
}

static enum slc_status scale_factor(struct slc_executor *executor,
                                    unsigned mode,
                                    const double *scale,
                                    struct slc_error *err)
{
    struct slc_device *gpu = executor->setup.parts.gpu;

    return gpu->ops->algebra.scale(gpu, mode, scale, err);
}

static void read_stats(const struct slc_executor *executor, struct slc_executor_stats *stats)
{
    const struct slc_device *gpu = executor->setup.parts.gpu;

    memset(stats, 0, sizeof *stats);
    gpu->ops->stats(gpu, &stats->gpu);
}

static void destroy_hybrid(struct slc_executor *executor)
{
    const struct gpu_executor *own = (const struct gpu_executor *)executor;
    struct slc_device *gpu = executor->setup.parts.gpu;

    for (unsigned i = own->registered_count; i > 0; i--) {
        gpu->ops->memory.host_unregister(gpu, own->registered[i - 1]);
    }
    slc_executor_free(executor);
}

static const struct slc_executor_ops gpu_ops = {.load = load_factors,
                                                .mttkrp = compute_mttkrp,
                                                .read_output = read_output,
                                                .update_rows = update_rows,
                                                .write_factor = write_factor,
                                                .scale = scale_factor,
                                                .read_factor = read_factor,
                                                .stats = read_stats,
                                                .destroy = slc_executor_free};
static const struct slc_executor_ops hybrid_ops = {.load = load_factors,
                                                   .mttkrp = compute_hybrid,
                                                   .read_output = read_output,
                                                   .update_rows = update_rows,
                                                   .write_factor = write_factor,
                                                   .scale = scale_factor,
                                                   .read_factor = read_factor,
                                                   .stats = read_stats,
                                                   .destroy = destroy_hybrid};

static enum slc_status register_buffer(struct gpu_executor *executor,
                                       const struct slc_buffer *buffer,
                                       struct slc_error *err)
{
    struct slc_device *gpu = executor->base.setup.parts.gpu;

    if (buffer->bytes == 0) {
        return SLC_OK;
    }
    SLC_TRY(gpu->ops->memory.host_register(gpu, buffer->data, buffer->bytes, err));
    executor->registered[executor->registered_count++] = buffer->data;
    return SLC_OK;
}

/* Registers the factors and the output. If the CPU shares the work, every MTTKRP copies updated
 * factors to host memory and the CPU's sums to the device. Without registration, one thread would
 * first copy these matrices to pieces of registered memory. */
static enum slc_status register_matrices(struct gpu_executor *executor, struct slc_error *err)
{
    const struct slc_executor_setup *setup = &executor->base.setup;
    const unsigned order = slc_reader_info(slc_stream_reader(setup->stream, 0))->order;

    SLC_TRY(register_buffer(executor, setup->output, err));
    for (unsigned n = 0; n < order; n++) {
        SLC_TRY(register_buffer(executor, &setup->factors[n].buffer, err));
    }
    return SLC_OK;
}

enum slc_status slc_gpu_executor_create(const struct slc_executor_setup *setup,
                                        struct slc_executor **executor,
                                        struct slc_error *err)
{
    const struct slc_plan_request *request = &setup->plan->request;
    const bool hybrid = request->hybrid.kind != SLC_HYBRID_NONE;

    if (setup->parts.gpu != request->gpu || setup->parts.gpu != slc_stream_device(setup->stream)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "plan, stream and options must name the same device (GPU)");
    }
    SLC_TRY(slc_executor_allocate(hybrid ? &hybrid_ops : &gpu_ops, setup,
                                  sizeof(struct gpu_executor), executor, err));
    const enum slc_status status =
        hybrid ? register_matrices((struct gpu_executor *)*executor, err) : SLC_OK;
    if (status != SLC_OK) {
        slc_executor_destroy(*executor);
        *executor = NULL;
    }
    return status;
}
