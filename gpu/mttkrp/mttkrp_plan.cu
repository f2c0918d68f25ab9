/* Plans MTTKRP launches. Host code only. */
#include "gpu/mttkrp/mttkrp_plan.h"

extern "C" {
#include "base/memory/checked.h"
}

enum {
    /* Bytes of a multiprocessor's shared memory that the system reserves per thread block. */
    RESERVED_BYTES = 1024,
    /* Shared memory per thread block for which chunks of exact sums are cut on every machine,
     * because the bits of exact sums depend on the cuts. The number is about half of the 164 KiB of
     * sm_80; on every supported device, a thread block can have at least 81 KiB. */
    EXACT_BYTES = 81 * 1024
};

static uint32_t aligned(uint64_t bytes)
{
    return (uint32_t)((bytes + 15) / 16 * 16);
}

/* Lays out shared memory for chunks of `runs` runs. */
static void
lay_out(const struct slc_gpu_mttkrp *job, uint32_t runs, struct slc_gpu_mttkrp_plan *plan)
{
    const uint32_t nnz = runs * SLC_RUN_NNZ;
    uint32_t work;

    plan->chunk_runs = runs;
    plan->buckets = SLC_MTTKRP_LEAST_BUCKETS;
    while (plan->buckets < SLC_MTTKRP_MOST_BUCKETS && plan->buckets < nnz / 2) {
        plan->buckets *= 2;
    }
    work = SLC_MTTKRP_WARPS * (uint32_t)sizeof(struct slc_decode_scratch);
    if (work < plan->buckets * sizeof(uint4)) {
        work = plan->buckets * (uint32_t)sizeof(uint4);
    }
    plan->values_at = nnz * job->order * (uint32_t)sizeof(uint32_t);
    plan->work_at = plan->values_at + aligned(nnz * sizeof(double));
    plan->sums_at = plan->work_at + aligned(work);
    plan->corner_at = plan->sums_at + aligned(SLC_MTTKRP_WARPS * sizeof(uint32_t));
    plan->shared_bytes = plan->corner_at + aligned(job->order * sizeof(uint64_t));
}

/* Plans chunks of the largest number of runs that fit in `bytes`. Returns false if not even one run
 * fits. */
static bool
plan_chunks(const struct slc_gpu_mttkrp *job, uint64_t bytes, struct slc_gpu_mttkrp_plan *plan)
{
    for (uint32_t runs = SLC_MTTKRP_MOST_RUNS; runs > 0; runs--) {
        lay_out(job, runs, plan);
        if (plan->shared_bytes <= bytes) {
            return true;
        }
    }
    return false;
}

bool slc_gpu_mttkrp_plan(const struct slc_gpu_mttkrp *job,
                         const struct slc_gpu_machine *machine,
                         struct slc_gpu_mttkrp_plan *plan)
{
    const uint64_t all = machine->shared_bytes;
    /* Prefer two thread blocks per multiprocessor: while one decodes, the other loads rows. With
     * two thread blocks, a thread has 128 registers, which do not suffice for exact sums of f32
     * factors. */
    const bool two = job->exact.words == NULL || job->precision != SLC_F32;
    const uint64_t half = (all + RESERVED_BYTES) / 2 - RESERVED_BYTES;

    *plan = {};
    if (job->exact.words != NULL) {
        if (!plan_chunks(job, EXACT_BYTES, plan) || plan->shared_bytes > all) {
            return false;
        }
        plan->blocks_each = two && plan->shared_bytes <= half ? 2 : 1;
        return true;
    }
    plan->blocks_each = two && plan_chunks(job, half, plan) ? 2 : 1;
    return plan->blocks_each == 2 || plan_chunks(job, all, plan);
}

uint32_t slc_gpu_mttkrp_carveout(const struct slc_gpu_mttkrp_plan *plan,
                                 const struct slc_gpu_machine *machine)
{
    /* Sizes in KiB to which the shared memory of a multiprocessor (sm_80 or later) can be set. A
     * multiprocessor supports those sizes that do not exceed its own shared memory. */
    static const uint32_t sizes[] = {8, 16, 32, 64, 100, 132, 164, 196, 228};
    const uint32_t all = machine->shared_bytes + RESERVED_BYTES;
    const uint32_t taken = plan->blocks_each * (plan->shared_bytes + RESERVED_BYTES);

    for (uint32_t size : sizes) {
        if (size * 1024 >= taken && size * 1024 <= all) {
            /* The percentage is rounded down; rounded up, it would select the next larger size. */
            return size * 1024 * 100 / all;
        }
    }
    return 100;
}
