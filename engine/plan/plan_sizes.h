/* Sizes from which the planner computes plans. Modules outside the planner use these sizes, too. */
#ifndef SLC_ENGINE_PLAN_SIZES_H
#define SLC_ENGINE_PLAN_SIZES_H

#include "base/memory/checked.h"
#include "engine/plan/plan.h"

/* Limits of the number of slots. Small blocks need the most slots to keep a drive busy; further
 * slots save no time. */
enum { SLC_PLAN_SLOTS_MIN = 2, SLC_PLAN_SLOTS_MAX = 256 };

/* Growth of the process per thread in bytes, and the number of threads that are not workers. A
 * thread touches up to 128 KiB of its stack and its malloc arena (measured: 40 to 110 KiB). The
 * threads that are not workers are the reader thread and up to 8 pread threads. */
#define SLC_PLAN_THREAD_BYTES (UINT64_C(128) << 10)
#define SLC_PLAN_IO_THREADS   9U

/* Bytes per block of the stream's tables: order, cache position and state. */
#define SLC_PLAN_STREAM_BYTES_PER_BLOCK UINT64_C(64)

/* Return sums and products that saturate at UINT64_MAX, which fits in no budget. */
static inline uint64_t slc_plan_plus(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return slc_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

static inline uint64_t slc_plan_times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return slc_mul_u64(a, b, &product) ? product : UINT64_MAX;
}

/* Returns the smallest number of slots that is sufficient. */
unsigned slc_plan_slots_min(const struct slc_plan *plan);

/* Returns the largest useful number of slots for a layout of `blocks` blocks: enough to keep a
 * drive busy, plus one slot per worker or, in fused passes, the slots of one range per worker. */
unsigned slc_plan_slots_useful(const struct slc_plan *plan, uint64_t blocks);

/* Returns true if the largest block has at most 1.25 times the nonzeros of the median block. */
bool slc_plan_blocks_near_equal(const struct slc_reader *reader);

/* Returns a matrix that has a shape but no memory. A backend needs only the shape to plan a job. */
static inline struct slc_matrix
slc_plan_matrix(enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    return (struct slc_matrix){
        .type = type, .rows = rows, .cols = cols, .pitch = slc_matrix_pitch(type, cols)};
}

#endif
