/* Streams the tiles of one layout for an operation without a plan. In one pass of a stream, with
 * any I/O method, calls the steps of storage/scan/tile_scan.h for each tile. The largest blocks
 * come first if the operation accepts tiles in any order. */
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
    /* Read between tiles; if *stop is not 0, the run ends with SLC_ERR_INTERRUPTED. May be NULL. */
    const volatile int *stop;
    const struct slc_part *part; /* reads only the blocks of this part; NULL: all blocks */

    /* Statistics of the last run, even if it failed. */
    struct slc_stream_stats stats;
    enum slc_schedule used_schedule; /* schedule of the last run, never SLC_SCHEDULE_AUTO */
    unsigned slot_count;
    uint64_t slot_bytes;
    double turn_seconds; /* time that workers waited for their turns, summed over workers */
};

/* Returns the bytes of memory for delivering the tiles of a layout to `workers` workers: the
 * minimum if `least` is set, otherwise the number beyond which more memory saves no time. */
uint64_t slc_tile_stream_memory_bytes(const struct slc_tile_stream *stream,
                                      const struct slc_reader *reader,
                                      unsigned workers,
                                      bool least);
/* Calls the steps for every tile of the layout, with f64 values and at most `bytes` bytes of
 * memory, which must be sufficient (slc_tile_stream_memory_bytes). If steps have turns, tiles
 * arrive in file order. Errors: the first error of a step or of reading; SLC_ERR_DAMAGED with file,
 * block and offset. */
enum slc_status slc_tile_stream_run(struct slc_tile_stream *stream,
                                    struct slc_reader *reader,
                                    unsigned workers,
                                    uint64_t bytes,
                                    const struct slc_tile_steps *steps,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
