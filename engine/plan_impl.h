/* What the files of the planner share. Private to engine/plan*.c. */
#ifndef SLC_ENGINE_PLAN_IMPL_H
#define SLC_ENGINE_PLAN_IMPL_H

#include "base/checked.h"
#include "engine/plan.h"

/* Slots beyond one per reading depth: small blocks gain nothing from a deeper queue. */
enum { SLC_PLAN_SLOTS_MIN = 2, SLC_PLAN_SLOTS_MAX = 256 };

/* Sums and products of a plan saturate: a plan that reaches UINT64_MAX fits no budget. */
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

/* SLC_ERR_USAGE, saying what of the request cannot be. */
enum slc_status slc_plan_check_request(const struct slc_layout_info *info,
                                       const struct slc_plan_request *request,
                                       struct slc_error *err) SLC_NODISCARD;

/* Bytes of a layout's cached set of `kept` blocks. */
uint64_t slc_plan_kept_bytes(const struct slc_reader *reader, uint64_t kept);

/* Keeps as many blocks of the plan's layouts as `room` has place for. */
void slc_plan_cache(const struct slc_layouts *layouts, struct slc_plan *plan, uint64_t room);

#endif
