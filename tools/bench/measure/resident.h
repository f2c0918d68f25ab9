/* Holds all encoded blocks of a store in memory, as a decomposition does if the budget allows, for
 * benchmarks that exclude the cost of the drive. Also makes passes that do only a part of the work
 * of a decomposition: a scan reads and verifies every block that is not in memory, and a decoding
 * pass also decodes every nonzero. */
#ifndef SLC_TOOLS_BENCH_RESIDENT_H
#define SLC_TOOLS_BENCH_RESIDENT_H

#include "base/memory/limits.h"
#include "storage/io/io.h"
#include "tools/bench/rivals/cpu/coo.h"
#include "tools/session/session.h"

/* Nonzeros per chunk that kernels request. Chunks fit the first-level cache. */
enum { BENCH_CHUNK_NNZ = 8 * SLC_GROUP_NNZ };

/* Plans and opens a device and a tile stream that keeps no blocks in memory. If `threads` or
 * `slots` is 0, the plan chooses the number. The caller must call session_close. Errors: those of
 * the plan and the stream; SLC_ERR_UNSUPPORTED if the system does not support the I/O method
 * `io`. */
enum slc_status bench_scan_start(struct slc_session *session,
                                 enum slc_io_kind io,
                                 unsigned threads,
                                 unsigned slots,
                                 struct slc_error *err) SLC_NODISCARD;

/* bench_scan_pass scans the first layout of the stream, bench_scan_layout scans layout number
 * `layout`. bench_decode_pass decodes the first layout. */
enum slc_status bench_scan_pass(struct slc_stream *stream, struct slc_error *err) SLC_NODISCARD;
enum slc_status
bench_scan_layout(struct slc_stream *stream, unsigned layout, struct slc_error *err) SLC_NODISCARD;
enum slc_status bench_decode_pass(struct slc_stream *stream, struct slc_error *err) SLC_NODISCARD;

/* Fills *coo with the coordinates and values of all nonzeros of the store of a started session.
 * Needs: *coo is all-zero. The caller must call slc_coo_destroy, also after an error. Errors: those
 * of slc_coo_create and of decoding. */
enum slc_status bench_list_pass(const struct slc_session *session,
                                enum slc_value_type type,
                                struct slc_coo *coo,
                                struct slc_error *err) SLC_NODISCARD;

/* Fills *coo like bench_list_pass, from layout number `layout` of a stream, whose tiles may be
 * short and whose reader is `reader`. The nonzeros have the order of the layout. */
enum slc_status bench_list_layout(struct slc_stream *stream,
                                  unsigned layout,
                                  const struct slc_reader *reader,
                                  enum slc_value_type type,
                                  struct slc_coo *coo,
                                  struct slc_error *err) SLC_NODISCARD;

/* Plans `request` so that every block stays in memory. Also plans `extra` unless it is NULL. The
 * two plans together fit the budget request->memory_bytes. Errors: SLC_ERR_BUDGET, whose message
 * states the smallest sufficient budget; SLC_ERR_USAGE. */
enum slc_status bench_resident_plan(const struct slc_layouts *layouts,
                                    const struct slc_plan_request *request,
                                    const struct slc_plan_request *extra,
                                    struct slc_plan *plan,
                                    struct slc_plan *extra_plan,
                                    struct slc_error *err) SLC_NODISCARD;

/* Opens the stream of a session that bench_resident_plan has planned, creates the device and reads
 * every block into the stream's cache. The caller must call slc_session_stop, also after an error.
 * Errors: those of reading. */
enum slc_status bench_resident_load(struct slc_session *session,
                                    struct slc_error *err) SLC_NODISCARD;

/* Plans `request` for the open store, opens the stream, creates the device and reads every block
 * into the stream's cache. The caller must call slc_session_stop, also after an error. Errors:
 * SLC_ERR_BUDGET if some blocks cannot be kept; its message states the smallest sufficient budget;
 * those of planning and reading. */
enum slc_status bench_resident_start(struct slc_session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
