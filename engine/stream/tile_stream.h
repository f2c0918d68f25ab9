/*
 * The tiles of one layout for an operation that has no plan: each is taken through the steps of
 * storage/scan/tile_scan.h, in one pass of a stream, by any I/O method, largest blocks first where
 * the operation lets tiles come in any order.
 */
#ifndef SLC_ENGINE_TILE_STREAM_H
#define SLC_ENGINE_TILE_STREAM_H

#include "engine/stream/stream.h"
#include "storage/scan/tile_scan.h"

#include <stdint.h>

/* How to read, and what was read. */
struct slc_tile_stream {
    const struct slc_files *files; /* NULL: the operating system */
    enum slc_io_kind io;
    enum slc_schedule schedule; /* where tiles have no turns; AUTO: as blocks differ in size */
    uint64_t read_limit;        /* bytes a second; 0: none */
    /* Polled between tiles; a non-zero value ends a run with SLC_ERR_INTERRUPTED. May be NULL. */
    const volatile int *stop;

    /* Of the last run, also where it failed. */
    struct slc_stream_stats stats;
    enum slc_schedule used_schedule; /* never AUTO */
    unsigned slot_count;
    uint64_t slot_bytes;
    double turn_seconds; /* of workers that waited for the tiles before theirs; summed */
};

/* What delivering the tiles of a layout to so many workers maps: the least that works, or what more
 * would not make it faster. */
uint64_t slc_tile_stream_memory_bytes(const struct slc_tile_stream *stream,
                                      const struct slc_reader *reader,
                                      unsigned workers,
                                      bool least);
/*
 * Takes every tile of the layout, as f64, through the steps, within `bytes`: the least or more.
 * Blocks come in the order of the file where tiles have turns.
 * Errors: the first of a step or of reading; SLC_ERR_DAMAGED names file, block and offset.
 */
enum slc_status slc_tile_stream_run(struct slc_tile_stream *stream,
                                    struct slc_reader *reader,
                                    unsigned workers,
                                    uint64_t bytes,
                                    const struct slc_tile_steps *steps,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
