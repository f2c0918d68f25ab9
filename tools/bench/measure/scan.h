/*
 * Passes that do less than a decomposition, to tell its parts apart: a scan reads and verifies
 * every block (kept ones apart), a decoding pass also decodes every nonzero.
 */
#ifndef SLC_TOOLS_BENCH_SCAN_H
#define SLC_TOOLS_BENCH_SCAN_H

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

#endif
