/* Plans a tensor times a matrix: threads, lanes of a device, and the stream. */
#include "engine/planning/planning_impl.h"

#include "base/thread/team.h"
#include "engine/product/ttm.h"

#include <string.h>

enum {
    /* Maximum number of lanes per requested thread. The results of lanes are read in the order of
     * tiles. While a CPU thread computes an earlier tile, which takes longer, additional lanes
     * continue with later tiles. */
    LANES_PER_THREAD = 2,
    /* Lanes of a device may use 1/2 of the memory that remains with the smallest plan. The other
     * half is for outputs of the CPU and for buffers that compensate a varying drive rate. */
    LANES_SHARE = 2
};

struct planning {
    const struct slc_layouts *layouts;
    const struct slc_device *device; /* NULL if no device is used */
    struct slc_products_shape shape;
    struct slc_plan_gpu gpu;
    struct slc_plan_request request; /* passed to slc_plan_make */
    unsigned threads;                /* CPU threads that compute tiles */
    unsigned requested_threads;      /* 0: one per processor */
};

/* Makes the plan for a given number of lanes, planning->gpu.streams. */
static enum slc_status
plan_for_lanes(struct planning *planning, struct slc_plan *plan, struct slc_error *err)
{
    if (planning->device != NULL) {
        planning->request.product_lanes = planning->gpu.streams;
        planning->request.threads = planning->threads + planning->gpu.streams;
    }
    return slc_plan_make(planning->layouts, &planning->request, plan, err);
}

static unsigned lane_limit(const struct planning *planning)
{
    const uint64_t for_threads = (uint64_t)planning->threads * LANES_PER_THREAD;
    uint64_t most = slc_min_u64(SLC_DEVICE_STREAMS + for_threads, SLC_DEVICE_LANES);

    if (planning->threads == 0 && planning->requested_threads != 0) {
        /* There may be more lanes than requested threads, because the thread of a lane mostly
         * waits. */
        most = slc_min_u64(most, (uint64_t)planning->requested_threads * LANES_PER_THREAD);
    }
    return (unsigned)slc_min_u64(most, SLC_MAX_THREADS - planning->threads);
}

/* Plans the fewest lanes first, and then as many lanes as are useful and fit. Each lane has a
 * worker, whose memory is known only after a plan with this number of lanes is made. */
static enum slc_status
plan_with_device(struct planning *planning, struct slc_plan *plan, struct slc_error *err)
{
    const unsigned requested = planning->request.streams;
    const struct slc_reader *reader = planning->layouts->reader[0];
    uint64_t *host_bytes = &planning->request.product_bytes;
    enum slc_status status = slc_products_plan(planning->device, reader, &planning->shape,
                                               requested, &planning->gpu, host_bytes, err);
    const struct slc_plan_gpu least = planning->gpu;
    const uint64_t least_host = *host_bytes;
    uint64_t minimum, left;

    memset(plan, 0, sizeof *plan);
    SLC_THEN(status, plan_for_lanes(planning, plan, err));
    plan->gpu = least;
    if (status != SLC_OK) {
        return status;
    }
    minimum = plan->minimum_bytes;
    left = (plan->budget_bytes - minimum) / LANES_SHARE;
    status = SLC_ERR_BUDGET;
    for (unsigned most = requested != 0 ? requested : lane_limit(planning);
         most >= least.streams && status == SLC_ERR_BUDGET; most--) {
        struct slc_error refused = SLC_ERROR_INIT;

        planning->gpu = least;
        *host_bytes = least_host;
        slc_products_widen(planning->device, reader, &planning->shape, least.streams, most,
                           slc_plan_plus(least_host, left), &planning->gpu, host_bytes);
        status = plan_for_lanes(planning, plan, &refused);
    }
    if (status != SLC_OK) {
        planning->gpu = least;
        *host_bytes = least_host;
        status = plan_for_lanes(planning, plan, err);
    }
    plan->minimum_bytes = minimum;
    plan->gpu = planning->gpu;
    plan->request.gpu = planning->device;
    return status;
}

static enum slc_status
make_plan(struct planning *planning, struct slc_plan *plan, struct slc_error *err)
{
    return planning->device != NULL ? plan_with_device(planning, plan, err)
                                    : plan_for_lanes(planning, plan, err);
}

enum slc_status slc_ttm_plan(const struct slc_layouts *layouts,
                             const struct slc_plan_request *request,
                             struct slc_plan *plan,
                             struct slc_ttm_division *division,
                             struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(layouts->reader[0]);
    struct planning planning = {.layouts = layouts,
                                .device = request->gpu,
                                .requested_threads = request->threads,
                                .shape = {.modes = UINT32_C(1) << request->mode,
                                          .columns = request->rank,
                                          .precision = request->precision},
                                .request = *request};

    planning.request.operation = SLC_OP_TTM;
    planning.request.schedule = SLC_SCHEDULE_FILE;
    planning.request.cache = false;
    planning.request.gpu = NULL;
    if (planning.device != NULL && request->hybrid.kind != SLC_HYBRID_NONE) {
        /* Each lane needs a thread in addition to the threads that compute. */
        planning.threads = (unsigned)slc_min_u64(
            request->threads != 0 ? request->threads : slc_team_default_workers(),
            SLC_MAX_THREADS - slc_max_u64(request->streams, 1));
    }
    enum slc_status status = slc_plan_check_request(info, &planning.request, err);
    SLC_THEN(status, make_plan(&planning, plan, err));
    if (status == SLC_OK) {
        const struct slc_matrix shape =
            slc_plan_matrix(request->precision, info->dims[request->mode], request->rank);
        const struct slc_ttm_job job = {
            .order = info->order, .mode = request->mode, .matrix = &shape};
        const unsigned outputs = plan->threads - plan->request.product_lanes;
        const uint64_t others = plan->total_bytes - plan->output_bytes;

        slc_ttm_divide(&job, plan->threads, outputs, plan->budget_bytes - others, division);
        plan->output_bytes = slc_ttm_memory_bytes(&job, plan->threads, division);
        plan->total_bytes = others + plan->output_bytes;
    }
    return status;
}
