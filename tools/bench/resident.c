/* Stores in memory; see resident.h. */
#include "resident.h"

#include "scan.h"

#include <inttypes.h>

enum slc_status bench_resident_start(struct session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err)
{
    const struct slc_plan *plan = &session->plan;
    enum slc_status status = session_plan_request(session, request, err);

    if (status == SLC_OK && plan->iteration_read_bytes > 0) {
        status = slc_fail(
            err, SLC_ERR_BUDGET,
            "%" PRIu64 " of %" PRIu64 " MiB of the store fit beside the factors in a "
            "budget of %" PRIu64 " MiB, and the benchmark needs all of them; give more by --memory",
            plan->cache_bytes >> 20, plan->iteration_bytes >> 20, plan->budget_bytes >> 20);
    }
    if (status == SLC_OK) {
        status = session_start(session, err);
    }
    if (status == SLC_OK) {
        status = bench_scan_pass(session->stream, err);
    }
    return status;
}
