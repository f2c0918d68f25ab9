/*
 * A store with all of its encoded blocks in memory, as a decomposition keeps them if the budget
 * allows, for benchmarks that exclude the cost of the drive. Also passes that do only a part of the
 * work of a decomposition: a scan reads and verifies every block that is not kept in memory, and a
 * decoding pass also decodes every nonzero.
 */
#ifndef SLC_TOOLS_BENCH_RESIDENT_H
#define SLC_TOOLS_BENCH_RESIDENT_H

#include "base/memory/limits.h"
#include "storage/io/io.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/session/session.h"

/* Chunk size that kernels request, chosen so that chunks fit the first-level cache. */
enum { BENCH_CHUNK_NNZ = 8 * SLC_GROUP_NNZ };

/*
 * Plans and opens a stream that keeps no blocks, and a device. `threads`, `slots`: 0 chooses
 * automatically. Owns: release with session_close. Errors: those of the plan and the stream;
 * SLC_ERR_UNSUPPORTED if the system does not support the method.
 */
enum slc_status bench_scan_start(struct slc_session *session,
                                 enum slc_io_kind io,
                                 unsigned threads,
                                 unsigned slots,
                                 struct slc_error *err) SLC_NODISCARD;

/* Scan the first layout of the stream, or another of its layouts. */
enum slc_status bench_scan_pass(struct slc_stream *stream, struct slc_error *err) SLC_NODISCARD;
enum slc_status
bench_scan_layout(struct slc_stream *stream, unsigned layout, struct slc_error *err) SLC_NODISCARD;
enum slc_status bench_decode_pass(struct slc_stream *stream, struct slc_error *err) SLC_NODISCARD;

/*
 * Lists the nonzeros of a started session's store by coordinates. Needs: *coo is all-zero. Owns:
 * release with slc_coo_destroy, also after an error. Errors: those of slc_coo_create and of
 * decoding.
 */
enum slc_status bench_list_pass(const struct slc_session *session,
                                enum slc_value_type type,
                                struct slc_coo *coo,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * Plans `request` so that every block is kept, and also `extra` unless it is NULL, both within the
 * budget request->memory_bytes. Errors: SLC_ERR_BUDGET, naming the smallest sufficient budget;
 * SLC_ERR_USAGE.
 */
enum slc_status bench_resident_plan(const struct slc_layouts *layouts,
                                    const struct slc_plan_request *request,
                                    const struct slc_plan_request *extra,
                                    struct slc_plan *plan,
                                    struct slc_plan *extra_plan,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the stream of a session that bench_resident_plan has planned, creates the device and reads
 * every block into the stream's cache. Owns: release with slc_session_stop, also after an error.
 * Errors: those of reading.
 */
enum slc_status bench_resident_load(struct slc_session *session,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Plans `request` for the open store, opens the stream, creates the device and reads every block
 * into the stream's cache. Owns: release with slc_session_stop, also after an error. Errors:
 * SLC_ERR_BUDGET if some blocks cannot be kept, naming the smallest sufficient budget; those of
 * planning and reading.
 */
enum slc_status bench_resident_start(struct slc_session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
