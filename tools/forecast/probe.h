/* Trial run of an operation for an estimate: the operation is started as planned, on random
 * factors, and stopped after a second or two. Nothing is written. */
#ifndef SLC_TOOLS_PROBE_H
#define SLC_TOOLS_PROBE_H

#include "tools/forecast/estimate.h"
#include "tools/session/session.h"

/* Option rows for commands that make a trial run. */
#define PROBE_OPTION_ROW_DRY_RUN(type, field)                                                      \
    OPTION_ROW("dry-run", OPTION_FLAG, type, field,                                                \
               .help = "print the plan and an estimate from a short trial run, and write nothing")
#define PROBE_OPTION_ROWS(type, seconds_field, none_field)                                         \
    OPTION_ROW("probe-seconds", OPTION_DOUBLE, type, seconds_field, .value = "S", .fallback = "2", \
               .help = "maximum time in seconds of the trial run for the estimate"),               \
        OPTION_ROW("no-probe", OPTION_FLAG, type, none_field,                                      \
                   .help = "make no trial run, and do not estimate the time")

/* Makes a trial run of the operation that `session` has planned; starts and stops the session.
 * `solver`: the options of a decomposition, for which the plan was made; its start, callbacks,
 * checkpoint and hold-out are not used. NULL for an MTTKRP. `iterations`: maximum number of
 * iterations of a decomposition. The run stops after `seconds`, as soon as
 * the tile or block in progress is complete. If the first block would take too long, no trial run
 * is made, and the time of the estimate is unknown. There is no estimate if the operation rejects
 * the tensor, the device or this machine, for example because the machine has less memory than the
 * plan needs. This is not an error; a note states the reason. Errors: SLC_ERR_IO, SLC_ERR_DAMAGED
 * and others of the operation; SLC_ERR_INTERRUPTED. */
enum slc_status probe_run(struct slc_session *session,
                          const struct slc_cp_options *solver,
                          unsigned iterations,
                          double seconds,
                          bool *estimated,
                          struct estimate *estimate,
                          struct slc_error *err) SLC_NODISCARD;

#endif
