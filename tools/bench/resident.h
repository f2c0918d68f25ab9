/*
 * A store whose blocks all lie in memory, encoded, as a decomposition keeps them when its budget
 * allows: for benchmarks of what is left when the drive costs nothing.
 */
#ifndef SLC_TOOLS_BENCH_RESIDENT_H
#define SLC_TOOLS_BENCH_RESIDENT_H

#include "tools/session.h"

/*
 * Plans `request` for the open store, opens the stream, creates the device and reads every block
 * into the stream's cache. Owns: session_stop, also after an error.
 * Errors: SLC_ERR_BUDGET when not every block can be kept; those of planning and reading.
 */
enum slc_status bench_resident_start(struct session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
