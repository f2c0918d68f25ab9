/*
 * A store whose blocks all lie in memory, encoded, as a decomposition keeps them when its budget
 * allows: for benchmarks of what is left when the drive costs nothing.
 */
#ifndef SLC_TOOLS_BENCH_RESIDENT_H
#define SLC_TOOLS_BENCH_RESIDENT_H

#include "tools/session/session.h"

/*
 * Plans `request` with every block kept, and where `beside` is not NULL that one beside it, within
 * the same budget (request->memory_bytes). Errors: SLC_ERR_BUDGET, naming the least budget that
 * serves; SLC_ERR_USAGE.
 */
enum slc_status bench_resident_plan(const struct slc_layouts *layouts,
                                    const struct slc_plan_request *request,
                                    const struct slc_plan_request *beside,
                                    struct slc_plan *plan,
                                    struct slc_plan *beside_plan,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the stream of a session that has been planned so, creates the device and reads every block
 * into the stream's cache. Owns: slc_session_stop, also after an error. Errors: those of reading.
 */
enum slc_status bench_resident_load(struct slc_session *session,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Plans `request` for the open store, opens the stream, creates the device and reads every block
 * into the stream's cache. Owns: slc_session_stop, also after an error.
 * Errors: SLC_ERR_BUDGET when not every block can be kept, naming the least budget that serves;
 * those of planning and reading.
 */
enum slc_status bench_resident_start(struct slc_session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
