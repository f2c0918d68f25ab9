/* See mttkrp_job.h. */
#include "tools/bench/mttkrp/mttkrp_job.h"

#include "base/memory/checked.h"

#include <inttypes.h>

enum slc_status bench_mttkrp_hold(struct bench_mttkrp_group *group,
                                  const struct slc_plan *plan,
                                  uint64_t bytes,
                                  const char *what,
                                  struct slc_error *err)
{
    if (!slc_add_u64(group->held_bytes, bytes, &group->held_bytes)) {
        group->held_bytes = UINT64_MAX;
    }
    if (group->held_bytes <= plan->budget_bytes) {
        return SLC_OK;
    }
    return slc_fail_budget(err, plan->budget_bytes, group->held_bytes,
                           "%s (%" PRIu64 " MiB), beside the store", what,
                           slc_div_up_u64(bytes, UINT64_C(1) << 20));
}
