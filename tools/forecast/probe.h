/*
 * The beginning of an operation, for an estimate: it is run as planned, on random factors, until it
 * is through or a second or two have passed. Nothing is written.
 */
#ifndef SLC_TOOLS_PROBE_H
#define SLC_TOOLS_PROBE_H

#include "tools/forecast/estimate.h"
#include "tools/session/session.h"

/* The rows of commands that make such a beginning. */
#define PROBE_OPTION_ROW_DRY_RUN(type, field)                                                      \
    OPTION_ROW("dry-run", OPTION_FLAG, type, field,                                                \
               .help = "tell the plan, and an estimate from the first seconds; write nothing")
#define PROBE_OPTION_ROWS(type, seconds_field, none_field)                                         \
    OPTION_ROW("probe-seconds", OPTION_DOUBLE, type, seconds_field, .value = "S", .fallback = "2", \
               .help = "how long an operation may be begun for an estimate"),                      \
        OPTION_ROW("no-probe", OPTION_FLAG, type, none_field,                                      \
                   .help = "begin nothing, and estimate no time")

/*
 * Of the operation that `session` has planned; starts and stops it. `iterations`: at most, of a
 * CP-ALS. Ends `seconds` after its begin but for what cannot be stopped, a tile, a block that is
 * being read; where that would be longer than half of it nothing is begun, and the estimate has no
 * time. Where the operation refuses the tensor, the device or this machine (less memory than the
 * plan would hold; an MTTKRP on devices, which is not begun) there is no estimate, a note says why,
 * and that is no error. Errors: SLC_ERR_IO, SLC_ERR_DAMAGED and others of the operation;
 * SLC_ERR_INTERRUPTED.
 */
enum slc_status probe_run(struct slc_session *session,
                          unsigned iterations,
                          double seconds,
                          bool *estimated,
                          struct estimate *estimate,
                          struct slc_error *err) SLC_NODISCARD;

#endif
