/*
 * The parts of a stream. stream.c opens it and runs passes, stream_reader.c keeps reads in flight,
 * stream_tiles.c opens blocks that have arrived and assigns their tiles to workers,
 * stream_compute.c delivers tiles to the consumer, stream_ranges.c runs passes in two phases,
 * stream_attach.c attaches devices, stream_feed.c feeds them whole blocks, and stream_hybrid.c
 * divides a pass between a device and the workers. Private to engine/stream*.c.
 */
#ifndef SLC_ENGINE_STREAM_IMPL_H
#define SLC_ENGINE_STREAM_IMPL_H

#include "engine/hybrid/hybrid_blocks.h"
#include "engine/stream/read_limit.h"
#include "engine/stream/ring.h"
#include "engine/stream/stream.h"
#include "engine/stream/tile_rows.h"
#include "storage/io/io.h"

#include <pthread.h>
#include <stdatomic.h>

/* State of a block with respect to the cache and to the memory of the stream's device. */
enum slc_cache_state {
    SLC_CACHE_NO,     /* the block is in neither the cached nor the resident set */
    SLC_CACHE_WANTED, /* the block is in the cached set, but has not been read */
    SLC_CACHE_YES,
    SLC_CACHE_NEW, /* read and copied in this pass; usable from the next pass on */
    /* The same states for the set of resident blocks. */
    SLC_CACHE_RESIDENT_WANTED,
    SLC_CACHE_RESIDENT,
    SLC_CACHE_RESIDENT_NEW
};

/* Slot number of a block that is not in a slot. */
#define SLC_NO_SLOT UINT32_MAX

/* A verified block whose tiles are being computed. */
struct slc_open_block {
    struct slc_open_block *next; /* link in the list of blocks with tiles left */
    struct slc_block_view view;
    uint32_t slot;   /* slot of the ring; SLC_NO_SLOT: the block is in the cache */
    uint64_t due_ns; /* if in a slot: earliest completion of its read */
    bool used;       /* if in a record for a cached block: the record is in use */
    uint32_t next_tile;
    _Atomic uint64_t tiles_left; /* number of tiles to be computed, times workers if every_worker */
    uint64_t number;             /* every_worker: position in the common order of blocks */
    unsigned takers; /* every_worker: number of workers that have not taken the block's last tile */
};

/* One worker's decoder and clocks. */
struct slc_stream_worker {
    struct slc_decoder *decoder;
    struct slc_tile_view inner; /* the decoder's view of the current tile */
    uint64_t wait_ns;
    uint64_t decode_ns;
    uint64_t compute_ns;
    uint64_t nnz; /* nonzeros of the tiles computed */
    /* Of the current tile: number of calls that decode a chunk, time of the first chunk and of
     * describing, nonzeros of the other chunks, and nonzeros of those that were timed. */
    uint64_t chunks, first_ns, chunks_nnz;
    uint64_t timed_ns, timed_nnz;
    uint64_t progress_ns; /* worker 0: time of the last progress report */
    /*
     * every_worker, protected by the stream's mutex: number of the block and of the tile to take
     * next.
     */
    uint64_t serving;
    uint32_t next_tile;
    /* Groups: like the stream's cache_cursor, for the group whose first worker this is. */
    uint64_t cache_cursor;
    /* by_partition: the block whose tiles the worker takes; NULL if there is none. */
    struct slc_open_block *taken;
    struct slc_tile_rows rows;         /* ranges: restricts the current tile */
    const struct slc_holdout *holdout; /* nonzeros to deliver as 0; NULL: nothing is held out */
    void *values;                      /* buffer for the values of a chunk with held-out nonzeros */
    uint64_t padding[3];               /* keeps the next worker's clocks on other cache lines */
};

/* One of the layouts over which a stream may make passes. */
struct slc_stream_layout {
    unsigned file; /* index of the file in the block reader */
    const struct slc_reader *reader;
    const struct slc_layout_info *info;
    uint64_t *order;          /* all blocks in the order of the schedule, grouped by partition */
    uint64_t *cache_offset;   /* per block of the cached set: its position in the cache */
    uint8_t *cached;          /* enum slc_cache_state per block */
    uint32_t *keep;           /* per block in device memory: its handle */
    uint64_t *partition_done; /* by_partition: number of done blocks per partition */
    uint32_t *uses;           /* ranges: per block, number of ranges that are not done with it */
    uint64_t *nnz;            /* hybrid: per block, its nonzeros and its owner */
    uint8_t *hybrid_state;
};

struct slc_stream {
    struct slc_stream_layout *layouts;
    unsigned layout_count;
    unsigned worker_count;
    bool in_order; /* the schedule is SLC_SCHEDULE_FILE */

    struct slc_io *io;
    bool mapped; /* data that has been read may change until slc_io_check */
    struct slc_ring *ring;
    unsigned slot_count;
    uint64_t slot_bytes;
    struct slc_io_request *requests; /* requests, one per slot */
    bool *delivered;                 /* per slot: its block was read and has not been released */
    bool io_failed;                  /* the block reader can no longer be used */
    struct slc_read_limit read_limit;

    struct slc_buffer cache;     /* cached blocks of all layouts */
    struct slc_feeding *feeding; /* devices that process whole blocks; NULL if there are none */

    struct slc_stream_worker *workers;

    /* Members for assigning tiles, protected by `mutex` unless noted. */
    pthread_mutex_t mutex;
    struct slc_open_block *slot_blocks;  /* records, one per slot */
    struct slc_open_block *cache_blocks; /* records for cached blocks, one per worker */
    struct slc_open_block *open;         /* blocks with tiles left; sorted by block if in order */
    uint64_t serving;                    /* in order: the block whose tiles are assigned */
    uint64_t opened;                     /* not in order: number of opened blocks */
    uint64_t cache_cursor; /* position in `order` before which all cached blocks have been opened */

    /* The current pass. */
    const struct slc_pass *pass;
    const struct slc_tile_consumer *consumer; /* NULL: only GPUs get blocks */
    const struct slc_pass_division *division; /* NULL: neither workers nor GPUs own blocks */
    const struct slc_row_ranges *ranges;      /* NULL: the pass does not have two phases */
    struct slc_hybrid *hybrid;                /* NULL: CPU and GPU do not share the pass */
    bool feeds;                               /* whole blocks go to GPUs */
    bool every_worker, by_partition;
    struct slc_pass_part part;
    const struct slc_stream_layout *layout;
    const uint64_t *order;            /* order of reading */
    uint64_t first, end;              /* positions of the part in `order` */
    bool strict;                      /* tiles are assigned in ascending ordinal */
    uint64_t next_range;              /* next range to begin, protected by the mutex */
    uint64_t end_range;               /* end of the ranges of the part */
    struct slc_hybrid_blocks sharing; /* protected by the mutex, like the lists below */
    /* Blocks that have arrived and are not yet used, in one list per side. */
    struct slc_open_block *arrived[SLC_HYBRID_PARTS], **arrived_end[SLC_HYBRID_PARTS];
    atomic_bool aborted;
    atomic_uint_fast64_t blocks_done;
    /* Totals since the stream was opened. */
    atomic_uint_fast64_t bytes_cached, bytes_resident, bytes_read;

    struct slc_stream_stats stats;
};

/*
 * Keeps the first error of the pass, stops all threads, and wakes the consumer once. Threads: any.
 */
void slc_stream_abort(struct slc_stream *stream, const struct slc_error *fault);

/* The reader thread of one pass; `context` is the stream. */
void *slc_stream_reader_run(void *context);

/* Prepares the assignment of tiles for a pass, before any thread starts. */
void slc_stream_tiles_begin(struct slc_stream *stream);

/* Runs one worker's part of a pass over tiles. */
void slc_stream_tiles_run(struct slc_stream *stream, unsigned worker);

/* Copies a block that has arrived in a slot, without checking it. Errors: those of slc_io_check. */
enum slc_status slc_stream_copy_arrived(
    struct slc_stream *stream, unsigned slot, uint64_t block, void *to, struct slc_error *fault);

/* Checks a block that has arrived in a slot, or its copy in the cache if the block belongs there,
 * and makes the slot's record an open block. Errors: those of slc_block_open and slc_io_check. */
enum slc_status slc_stream_check_arrived(struct slc_stream *stream,
                                         unsigned slot,
                                         uint64_t block,
                                         struct slc_error *fault);

/*
 * Checks a block that has arrived, and makes its tiles available; aborts the pass if the check
 * fails.
 */
void slc_stream_open_arrived(struct slc_stream *stream, unsigned slot, uint64_t block);
/* slc_stream_cached_record returns a record for a cached block and is called under the mutex;
 * slc_stream_open_cached makes the tiles of such a record available. */
struct slc_open_block *
slc_stream_cached_record(struct slc_stream *stream, unsigned first, unsigned end, uint64_t block);
void slc_stream_open_cached(struct slc_stream *stream, struct slc_open_block *record);
/* Takes the next tile of an open block, if there is a tile that may be taken. */
bool slc_stream_take_open_tile(struct slc_stream *stream,
                               const struct slc_stream_worker *worker,
                               struct slc_open_block **block,
                               uint32_t *tile);

/* Returns the position in the cache of a block of the cached set. */
void *slc_stream_cache_place(const struct slc_stream *stream, uint64_t block);

/* Called when a tile has been computed; the last tile of a block releases its slot. */
void slc_stream_tile_done(struct slc_stream *stream, struct slc_open_block *block);

/*
 * Waits for news, or for a block to arrive; opens such a block. Returns false when the pass has
 * ended.
 */
bool slc_stream_await(struct slc_stream *stream, struct slc_stream_worker *worker, uint64_t news);

/* Releases the slot of a block whose tiles have all been computed. */
void slc_stream_block_release(struct slc_stream *stream, const struct slc_open_block *block);

/*
 * Delivers a tile of an open block to `fn`. In a pass with ranges, the tile is restricted to the
 * rows of the range, and is skipped if it has none of them. Also checks for a stop. Errors: those
 * of decoding, reading and `fn`, with the position; SLC_ERR_INTERRUPTED.
 */
enum slc_status slc_stream_tile_compute(struct slc_stream *stream,
                                        unsigned worker,
                                        const struct slc_open_block *block,
                                        uint32_t tile,
                                        const struct slc_row_range *range,
                                        slc_tile_fn *fn,
                                        struct slc_error *fault);

/* Returns the end of the current part of a pass over `count` blocks or ranges. */
static inline uint64_t slc_stream_part_end(const struct slc_stream *stream, uint64_t count)
{
    return stream->part.end == 0 ? count : stream->part.end;
}

/* True if the pass must stop. */
bool slc_stream_stop_requested(const struct slc_pass *pass);

/* Reports progress if a report is due and `worker` is 0. */
void slc_stream_progress(struct slc_stream *stream, unsigned worker);

/* slc_stream_ranges_begin prepares a pass in two phases, before any thread starts;
 * slc_stream_ranges_run runs one worker's part of it. */
void slc_stream_ranges_begin(struct slc_stream *stream);
void slc_stream_ranges_run(struct slc_stream *stream, unsigned worker);

/*
 * Like slc_stream_ranges_begin and slc_stream_ranges_run, for a pass that feeds whole blocks to
 * devices.
 */
void slc_stream_feed_begin(struct slc_stream *stream);
/* Makes the devices start all resident blocks, in a pass that the CPU does not share. Errors: those
 * of the devices. */
enum slc_status slc_stream_feed_residents(struct slc_stream *stream,
                                          struct slc_error *fault) SLC_NODISCARD;
void slc_stream_feed_run(struct slc_stream *stream, unsigned worker);

/*
 * Like slc_stream_feed_begin, which must be called first, for a pass that device and workers share.
 */
void slc_stream_hybrid_begin(struct slc_stream *stream);
void slc_stream_hybrid_run(struct slc_stream *stream, unsigned worker);
/* For the reader thread: slc_stream_hybrid_to_read returns whether there is a block to read,
 * slc_stream_hybrid_read takes the next one. */
bool slc_stream_hybrid_to_read(struct slc_stream *stream);
uint64_t slc_stream_hybrid_read(struct slc_stream *stream);

#endif
