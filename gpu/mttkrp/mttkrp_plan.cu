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
    EXACT_BYTES = 81 * 1024,
    /* The stash uses at most 1 / STASH_PART of shared memory, so that the rest suffices for chunks
     * of as many runs as without a stash. */
    STASH_PART = 8
};

static uint32_t aligned(uint64_t bytes)
{
    return (uint32_t)((bytes + 15) / 16 * 16);
}

/* Returns the bytes of a row in the stash. An exact sum has two words. */
static uint64_t stash_row_bytes(const struct slc_gpu_mttkrp *job)
{
    return (uint64_t)job->rank * (job->exact.words != NULL ? 16 : sizeof(double));
}

/* Lays out all parts of shared memory except the stash. Returns the bytes of these parts. */
static uint32_t
lay_out(const struct slc_gpu_mttkrp *job, uint32_t runs, struct slc_gpu_mttkrp_plan *plan)
{
    const uint32_t nnz = runs * SLC_RUN_NNZ;
    uint32_t work;

    plan->chunk_runs = runs;
    plan->buckets = SLC_MTTKRP_LEAST_BUCKETS;
    while (plan->buckets < SLC_MTTKRP_MOST_BUCKETS && plan->buckets < nnz / 2) {
        plan->buckets *= 2;
    }
    work = runs * (uint32_t)sizeof(struct slc_decode_scratch);
    if (work < plan->buckets * sizeof(uint4)) {
        work = plan->buckets * (uint32_t)sizeof(uint4);
    }
    plan->values_at = nnz * job->order * (uint32_t)sizeof(uint32_t);
    plan->work_at = plan->values_at + aligned(nnz * sizeof(double));
    /* The work area ends with one sum per warp. */
    plan->tags_at = plan->work_at + aligned(work) + SLC_MTTKRP_WARPS * (uint32_t)sizeof(uint32_t);
    plan->corner_at =
        plan->tags_at + SLC_MTTKRP_MOST_STASHED * (uint32_t)(sizeof(uint64_t) + sizeof(uint32_t));
    plan->fields_at = plan->corner_at + aligned(job->order * sizeof(uint64_t));
    plan->stash_at = plan->fields_at;
    if ((job->variant.flags & SLC_MTTKRP_SHARED_FIELDS) != 0) {
        plan->stash_at += aligned(sizeof(struct slc_encoded_layout) + sizeof(struct slc_gpu_tile));
    }
    return plan->stash_at;
}

/* Returns the limit for the number of runs per chunk. Bits of exact sums depend on this number. */
static uint32_t runs_limit(const struct slc_gpu_mttkrp *job)
{
    return job->variant.chunk_runs == 0 || job->exact.words != NULL ? +SLC_MTTKRP_USUAL_RUNS
                                                                    : job->variant.chunk_runs;
}

/* Returns the largest number of runs per chunk that fit in `bytes` together with `stash_bytes`, or
 * 0. */
static uint32_t most_runs(const struct slc_gpu_mttkrp *job, uint64_t bytes, uint64_t stash_bytes)
{
    struct slc_gpu_mttkrp_plan plan;
    uint32_t runs = runs_limit(job);

    while (runs > 0 && lay_out(job, runs, &plan) + stash_bytes > bytes) {
        runs--;
    }
    return runs;
}

static void fill_plan(const struct slc_gpu_mttkrp *job,
                      uint32_t runs,
                      uint64_t stash_rows,
                      uint32_t blocks_each,
                      struct slc_gpu_mttkrp_plan *plan)
{
    const uint32_t bytes = lay_out(job, runs, plan);

    plan->stash_rows = (uint32_t)stash_rows;
    plan->whole = stash_rows == job->output.rows;
    plan->blocks_each = blocks_each;
    plan->interleaved = job->variant.interleaved;
    plan->shared_bytes = bytes + aligned(stash_rows * stash_row_bytes(job));
}

/* Plans regime 1 in `bytes` bytes of shared memory. Returns false if the regime does not fit. `cut`
 * is the required number of runs per chunk; 0 means any number. */
static bool plan_whole(const struct slc_gpu_mttkrp *job,
                       uint64_t bytes,
                       uint32_t blocks_each,
                       uint32_t cut,
                       struct slc_gpu_mttkrp_plan *plan)
{
    uint64_t stash;
    uint32_t runs;

    if (__builtin_mul_overflow(job->output.rows, stash_row_bytes(job), &stash) || stash > bytes) {
        return false;
    }
    runs = most_runs(job, bytes, aligned(stash));
    if (runs < (cut != 0 ? cut : (uint32_t)slc_min_u64(SLC_MTTKRP_WHOLE_RUNS, runs_limit(job)))) {
        return false;
    }
    fill_plan(job, cut != 0 ? cut : runs, job->output.rows, blocks_each, plan);
    return true;
}

/* Plans regime 3, or regime 2 if not even a few rows fit. Returns false if neither regime fits. */
static bool plan_hot(const struct slc_gpu_mttkrp *job,
                     uint64_t bytes,
                     uint32_t blocks_each,
                     uint32_t cut,
                     struct slc_gpu_mttkrp_plan *plan)
{
    uint32_t rows =
        (job->variant.flags & SLC_MTTKRP_WITHOUT_STASH) != 0 ? 0 : SLC_MTTKRP_MOST_STASHED;
    uint32_t runs;

    while (rows != 0 && rows * stash_row_bytes(job) > bytes / STASH_PART) {
        rows = rows > SLC_MTTKRP_LEAST_STASHED ? rows / 2 : 0;
    }
    runs = most_runs(job, bytes, rows * stash_row_bytes(job));
    if (runs < cut) {
        rows = 0;
        runs = most_runs(job, bytes, 0);
    }
    if (runs == 0 || runs < cut) {
        return false;
    }
    fill_plan(job, cut != 0 ? cut : runs, rows, blocks_each, plan);
    plan->whole = false;
    return true;
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
    uint32_t cut = 0;

    if (job->exact.words != NULL) {
        cut = most_runs(job, EXACT_BYTES, 0);
        cut = cut == 0 ? 1 : cut;
    }
    if ((job->variant.flags & SLC_MTTKRP_THREE_BLOCKS) != 0) {
        const uint64_t third = (all + RESERVED_BYTES) / 3 - RESERVED_BYTES;

        return plan_hot(job, third, 3, cut, plan) || plan_hot(job, half, 2, cut, plan);
    }
    if ((job->variant.flags & SLC_MTTKRP_WITHOUT_STASH) == 0 &&
        ((two && plan_whole(job, half, 2, cut, plan)) || plan_whole(job, all, 1, cut, plan))) {
        return true;
    }
    return (two && plan_hot(job, half, 2, cut, plan)) || plan_hot(job, all, 1, cut, plan);
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
