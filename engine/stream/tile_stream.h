/*
 * Streams the tiles of one layout for an operation without a plan: runs each tile through the steps
 * of storage/scan/tile_scan.h, in one pass of a stream, with any I/O method, largest blocks first
 * if the operation accepts tiles in any order.
 */
#ifndef SLC_ENGINE_TILE_STREAM_H
#define SLC_ENGINE_TILE_STREAM_H

#include "engine/stream/stream.h"
#include "storage/scan/tile_scan.h"

#include <stdint.h>

/* Options, and statistics of the last run. */
struct slc_tile_stream {
    const struct slc_files *files; /* NULL: the operating system */
    enum slc_io_kind io;
    /* Schedule for tiles without turns; AUTO: chosen by the variation of block sizes. */
    enum slc_schedule schedule;
    uint64_t read_limit; /* bytes per second; 0: no limit */
    /*
     * Polled between tiles; a value other than 0 ends a run with SLC_ERR_INTERRUPTED. May be NULL.
     */
    const volatile int *stop;

    /* Statistics of the last run, even if it failed. */
    struct slc_stream_stats stats;
    enum slc_schedule used_schedule; /* schedule of the last run, never AUTO */
    unsigned slot_count;
    uint64_t slot_bytes;
    double turn_seconds; /* time in which workers waited for their turns, summed over workers */
};

/* Return the bytes mapped to deliver the tiles of a layout to this many workers: the smallest
 * sufficient number, or the number beyond which more memory does not help. */
uint64_t slc_tile_stream_memory_bytes(const struct slc_tile_stream *stream,
                                      const struct slc_reader *reader,
                                      unsigned workers,
                                      bool least);
/*
 * Runs every tile of the layout, as f64, through the steps, with at most `bytes` bytes of memory,
 * which must be sufficient (slc_tile_stream_memory_bytes). Tiles with turns arrive in file order.
 * Errors: the first of a step or of reading; SLC_ERR_DAMAGED names file, block and offset.
 */
enum slc_status slc_tile_stream_run(struct slc_tile_stream *stream,
                                    struct slc_reader *reader,
                                    unsigned workers,
                                    uint64_t bytes,
                                    const struct slc_tile_steps *steps,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
