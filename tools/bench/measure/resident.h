/*
 * A store whose blocks all lie in memory, encoded, as a decomposition keeps them when its budget
 * allows: for benchmarks of what is left when the drive costs nothing. And passes that do less than
 * a decomposition, to tell its parts apart: a scan reads and verifies every block (kept ones
 * apart), a decoding pass also decodes every nonzero.
 */
#ifndef SLC_TOOLS_BENCH_RESIDENT_H
#define SLC_TOOLS_BENCH_RESIDENT_H

#include "base/memory/limits.h"
#include "storage/io/io.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/session/session.h"

/* What the kernels ask for at a time: chunks that fit the first-level cache. */
enum { BENCH_CHUNK_NNZ = 8 * SLC_GROUP_NNZ };

/*
 * Plans and opens a stream that keeps no block, and a device. `threads`, `slots`: 0: chosen.
 * Owns: session_close. Errors: those of the plan and the stream; SLC_ERR_UNSUPPORTED when the
 * system refuses the method.
 */
enum slc_status bench_scan_start(struct slc_session *session,
                                 enum slc_io_kind io,
                                 unsigned threads,
                                 unsigned slots,
                                 struct slc_error *err) SLC_NODISCARD;

/* Over the stream's first layout, and over another of them. */
enum slc_status bench_scan_pass(struct slc_stream *stream, struct slc_error *err) SLC_NODISCARD;
enum slc_status
bench_scan_layout(struct slc_stream *stream, unsigned layout, struct slc_error *err) SLC_NODISCARD;
enum slc_status bench_decode_pass(struct slc_stream *stream, struct slc_error *err) SLC_NODISCARD;

/*
 * The store of a session that is started, as a list of coordinates. Needs: *coo all-zero. Owns:
 * slc_coo_destroy, also after an error. Errors: those of slc_coo_create and of decoding.
 */
enum slc_status bench_list_pass(const struct slc_session *session,
                                enum slc_value_type type,
                                struct slc_coo *coo,
                                struct slc_error *err) SLC_NODISCARD;

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
