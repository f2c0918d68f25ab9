/* Streams the tiles of one layout for an operation without a plan. In each pass, with any I/O
 * method, calls the steps of storage/scan/tile_scan.h for each tile. The largest blocks come first
 * if the operation accepts tiles in any order. An operation with one pass calls
 * slc_tile_stream_run; others call open -> pass .. -> close. */
#ifndef SLC_ENGINE_TILE_STREAM_H
#define SLC_ENGINE_TILE_STREAM_H

#include "engine/stream/part.h"
#include "engine/stream/stream.h"
#include "storage/scan/tile_scan.h"

#include <stdint.h>

/* Options of a tile stream, and statistics of its last run. */
struct slc_tile_stream {
    const struct slc_files *files; /* NULL: those of the reader */
    enum slc_io_kind io;
    /* Schedule if steps have no turns. SLC_SCHEDULE_AUTO: file order if blocks have nearly equal
     * sizes, otherwise largest first. */
    enum slc_schedule schedule;
    uint64_t read_limit; /* maximum bytes read per second; 0: no limit */
    /* true: there are several passes, so blocks stay in memory from pass to pass, as many as fit */
    bool keep_blocks;
    /* Read between tiles; if *stop is not 0, the run ends with SLC_ERR_INTERRUPTED. May be NULL. */
    const volatile int *stop;
    const struct slc_part *part; /* reads only the blocks of this part; NULL: all blocks */

    /* Statistics of all passes since the stream was opened, even if a pass failed. */
    struct slc_stream_stats stats;
    enum slc_schedule used_schedule; /* schedule of the passes, never SLC_SCHEDULE_AUTO */
    unsigned slot_count;
    uint64_t slot_bytes;
    double turn_seconds; /* time that workers waited for their turns, summed over workers */

    /* Private to tile_stream.c. */
    struct slc_stream *open; /* NULL: closed */
    unsigned workers;
};

/* Returns the bytes of memory for delivering the tiles of a layout to `workers` workers: the
 * minimum if `least` is set, otherwise the number beyond which more memory saves no time, including
 * all blocks of a pass if blocks are kept. */
uint64_t slc_tile_stream_memory_bytes(const struct slc_tile_stream *stream,
                                      const struct slc_reader *reader,
                                      unsigned workers,
                                      bool least);
/* Returns the bytes of the blocks that a stream with at most `bytes` bytes of memory keeps from
 * pass to pass. */
uint64_t slc_tile_stream_kept_bytes(const struct slc_tile_stream *stream,
                                    const struct slc_reader *reader,
                                    unsigned workers,
                                    uint64_t bytes);
/* Opens the stream with at most `bytes` bytes of memory, which must be sufficient
 * (slc_tile_stream_memory_bytes). `in_order` states whether a pass may have steps with turns; tiles
 * then arrive in file order. Ownership: slc_tile_stream_close, also after an error. Errors: those
 * of opening the file and of I/O; SLC_ERR_MEMORY. */
enum slc_status slc_tile_stream_open(struct slc_tile_stream *stream,
                                     struct slc_reader *reader,
                                     unsigned workers,
                                     uint64_t bytes,
                                     bool in_order,
                                     struct slc_error *err) SLC_NODISCARD;
/* Calls the steps for every tile of the layout, with f64 values. Errors: the first error of a step
 * or of reading; SLC_ERR_DAMAGED with file, block and offset. */
enum slc_status slc_tile_stream_pass(struct slc_tile_stream *stream,
                                     const struct slc_tile_steps *steps,
                                     struct slc_error *err) SLC_NODISCARD;
/* Closes the stream; the statistics remain. Accepts a closed stream. */
void slc_tile_stream_close(struct slc_tile_stream *stream);

/* Opens the stream, makes one pass and closes the stream. Errors: those of the three calls. */
enum slc_status slc_tile_stream_run(struct slc_tile_stream *stream,
                                    struct slc_reader *reader,
                                    unsigned workers,
                                    uint64_t bytes,
                                    const struct slc_tile_steps *steps,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
