/*
 * The parts of a stream: stream.c opens it and runs passes, stream_reader.c keeps reads in flight,
 * stream_tiles.c opens blocks that have arrived and hands out their tiles, stream_compute.c gives
 * them to the consumer, stream_ranges.c goes through passes in two phases, stream_feed.c gives
 * whole blocks to a device, which stream_attach.c has made known to the stream, and stream_hybrid.c
 * does both in one pass. Private to engine/stream*.c.
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

/* Whether a block lies in the cache, or in the memory of the stream's device. */
enum slc_cache_state {
    SLC_CACHE_NO,     /* belongs to neither set */
    SLC_CACHE_WANTED, /* belongs to the cached set and has not been read yet */
    SLC_CACHE_YES,
    SLC_CACHE_NEW, /* copied in this pass, in which it was also read: serves from the next one on */
    /* The same of those that belong into the device's memory. */
    SLC_CACHE_RESIDENT_WANTED,
    SLC_CACHE_RESIDENT,
    SLC_CACHE_RESIDENT_NEW
};

/* Where the data of an open block lies. */
#define SLC_NO_SLOT UINT32_MAX

/* A verified block whose tiles are being computed. */
struct slc_open_block {
    struct slc_open_block *next; /* in the list of blocks with tiles left */
    struct slc_block_view view;
    uint32_t slot;   /* of the ring; SLC_NO_SLOT: in the cache */
    uint64_t due_ns; /* of a slot: when its read may be done */
    bool used;       /* of the records for cached blocks: taken */
    uint32_t next_tile;
    _Atomic uint64_t tiles_left; /* tiles to be computed, by every worker that has to */
    uint64_t number;             /* every_worker: its place in the order in which all take blocks */
    unsigned takers;             /* every_worker: who have not taken its last tile */
};

/* One worker's decoder and clocks. */
struct slc_stream_worker {
    struct slc_decoder *decoder;
    struct slc_tile_view inner; /* the decoder's view of the tile at hand */
    uint64_t wait_ns;
    uint64_t decode_ns;
    uint64_t compute_ns;
    uint64_t nnz; /* of the tiles computed */
    /* Of the tile at hand: calls that decode a chunk, the time of the first one and of describing,
     * nonzeros of the others, and of those that were timed. */
    uint64_t chunks, first_ns, chunks_nnz;
    uint64_t timed_ns, timed_nnz;
    uint64_t progress_ns; /* when progress was last reported; worker 0 */
    /* every_worker, under the stream's mutex: the number of the block and the tile to take next. */
    uint64_t serving;
    uint32_t next_tile;
    uint64_t cache_cursor;        /* division: what the stream's is, of the group it begins */
    struct slc_open_block *taken; /* by_partition: the block whose tiles it takes; NULL: none */
    struct slc_tile_rows rows;    /* ranges: cuts the tile at hand */
    const struct slc_holdout *holdout; /* nonzeros to be delivered as 0; NULL: none */
    void *values;                      /* room for a chunk of them */
    uint64_t padding[3];               /* keeps the next worker's clocks on other cache lines */
};

/* One of the layouts that a stream may pass over. */
struct slc_stream_layout {
    unsigned file; /* of the block reader */
    const struct slc_reader *reader;
    const struct slc_layout_info *info;
    uint64_t *order;          /* all blocks in the order of the schedule; a partition's together */
    uint64_t *cache_offset;   /* per block of the cached set: where it lies in the cache */
    uint8_t *cached;          /* enum slc_cache_state per block */
    uint32_t *keep;           /* per block in the device's memory: its name there */
    uint64_t *partition_done; /* by_partition: blocks of each partition that are done */
    uint32_t *uses;           /* ranges: per block, how many of them are not through with it */
    uint64_t *nnz;            /* share: per block, its nonzeros and whose it is */
    uint8_t *hybrid_state;
};

struct slc_stream {
    struct slc_stream_layout *layouts;
    unsigned layout_count;
    unsigned worker_count;
    bool in_order; /* SLC_SCHEDULE_FILE */

    struct slc_io *io;
    bool mapped; /* what was read may change until slc_io_check */
    struct slc_ring *ring;
    unsigned slot_count;
    uint64_t slot_bytes;
    struct slc_io_request *requests; /* one per slot */
    bool *delivered;                 /* per slot: read, and not yet released */
    bool io_failed;                  /* the block reader is beyond use */
    struct slc_read_limit read_limit;

    struct slc_buffer cache;     /* of all layouts */
    struct slc_feeding *feeding; /* of the devices that take whole blocks; NULL: there are none */

    struct slc_stream_worker *workers;

    /* Handing out. Under `mutex` unless said otherwise. */
    pthread_mutex_t mutex;
    struct slc_open_block *slot_blocks;  /* one per slot */
    struct slc_open_block *cache_blocks; /* one per worker */
    struct slc_open_block *open;         /* blocks with tiles left; sorted by block when in order */
    uint64_t serving;                    /* in order: the block whose tiles are handed out */
    uint64_t opened;                     /* not in order: blocks */
    uint64_t cache_cursor;               /* in `order`: no unopened cached block lies before it */

    /* The pass at hand. */
    const struct slc_pass *pass;
    const struct slc_tile_consumer *consumer; /* NULL: blocks go to GPUs alone */
    const struct slc_pass_division *division; /* NULL: neither workers nor GPUs own blocks */
    const struct slc_row_ranges *ranges;      /* NULL: it is no pass in two phases */
    struct slc_hybrid *hybrid;                /* NULL: CPU and GPU do not share it */
    bool feeds;                               /* whole blocks go to GPUs */
    bool every_worker, by_partition;
    struct slc_pass_part part;
    const struct slc_stream_layout *layout;
    const uint64_t *order;            /* in which blocks are read */
    uint64_t first, end;              /* positions in it: those of the part */
    bool strict;                      /* tiles are handed out in ascending ordinal */
    uint64_t next_range;              /* of those not begun, under the mutex */
    uint64_t end_range;               /* of the part */
    struct slc_hybrid_blocks sharing; /* under the mutex, as is what follows */
    /* Blocks that have arrived and nobody has looked at, in a list for each side. */
    struct slc_open_block *arrived[SLC_HYBRID_PARTS], **arrived_end[SLC_HYBRID_PARTS];
    atomic_bool given_up;
    atomic_uint_fast64_t blocks_done;
    atomic_uint_fast64_t bytes_cached, bytes_resident, bytes_read; /* since open */

    struct slc_stream_stats stats;
};

/* Keeps the first fault of the pass, stops everybody, and tells the consumer once. Any thread. */
void slc_stream_give_up(struct slc_stream *stream, const struct slc_error *fault);

/* The reader thread of one pass; `context` is the stream. */
void *slc_stream_reader_run(void *context);

/* Prepares handing out for a pass; before any thread has started. */
void slc_stream_tiles_begin(struct slc_stream *stream);

/* One worker's part of a pass over tiles. */
void slc_stream_tiles_run(struct slc_stream *stream, unsigned worker);

/* Copies a block that has arrived in a slot, unchecked. Errors: those of slc_io_check. */
enum slc_status slc_stream_copy_arrived(
    struct slc_stream *stream, unsigned slot, uint64_t block, void *to, struct slc_error *fault);

/*
 * Checks a block that has arrived in a slot, or its copy, which stays where it belongs to the
 * cached set. The slot's record is then an open block. Errors: those of slc_block_open and
 * slc_io_check.
 */
enum slc_status slc_stream_check_arrived(struct slc_stream *stream,
                                         unsigned slot,
                                         uint64_t block,
                                         struct slc_error *fault);

/* Checks a block that has arrived, and makes its tiles available; or gives the pass up. */
void slc_stream_open_arrived(struct slc_stream *stream, unsigned slot, uint64_t block);
/* A record for a cached block, under the mutex; and what makes the tiles of that available. */
struct slc_open_block *
slc_stream_cached_record(struct slc_stream *stream, unsigned first, unsigned end, uint64_t block);
void slc_stream_open_cached(struct slc_stream *stream, struct slc_open_block *record);
/* Takes a tile of an open block if there is one whose turn it is. */
bool slc_stream_take_open(struct slc_stream *stream,
                          const struct slc_stream_worker *worker,
                          struct slc_open_block **block,
                          uint32_t *tile);

/* Where a block of the cached set lies, or will. */
void *slc_stream_cache_place(const struct slc_stream *stream, uint64_t block);

/* A tile has been computed; the last one of a block returns its slot. */
void slc_stream_tile_done(struct slc_stream *stream, struct slc_open_block *block);

/* Waits for news, or for a block to arrive, which it opens. False when the pass has ended. */
bool slc_stream_await(struct slc_stream *stream, struct slc_stream_worker *worker, uint64_t news);

/* Returns the slot of a block, whose tiles have all been computed. */
void slc_stream_block_release(struct slc_stream *stream, const struct slc_open_block *block);

/*
 * Gives a tile of an open block to `fn`: with a range, as one of its tiles, and not at all where it
 * has none of its rows. Also looks whether the pass is to be stopped. Errors: those of decoding,
 * reading and `fn`, with the place; SLC_ERR_INTERRUPTED.
 */
enum slc_status slc_stream_tile_compute(struct slc_stream *stream,
                                        unsigned worker,
                                        const struct slc_open_block *block,
                                        uint32_t tile,
                                        const struct slc_row_range *range,
                                        slc_tile_fn *fn,
                                        struct slc_error *fault);

/* Where the part ends of a pass that goes through `count` blocks or ranges. */
static inline uint64_t slc_stream_part_end(const struct slc_stream *stream, uint64_t count)
{
    return stream->part.end == 0 ? count : stream->part.end;
}

/* Whether the pass is to be stopped. */
bool slc_stream_stop_wanted(const struct slc_pass *pass);

/* Reports progress where it is time, if this is worker 0. */
void slc_stream_progress(struct slc_stream *stream, unsigned worker);

/* Prepares a pass in two phases, before any thread has started; and one worker's part of it. */
void slc_stream_ranges_begin(struct slc_stream *stream);
void slc_stream_ranges_run(struct slc_stream *stream, unsigned worker);

/* The same of a pass that gives whole blocks to the device. */
void slc_stream_feed_begin(struct slc_stream *stream);
/*
 * Has the devices begin with all blocks that stay in their memory; in a pass that is not shared
 * with the CPU. Errors: those of the devices.
 */
enum slc_status slc_stream_feed_residents(struct slc_stream *stream,
                                          struct slc_error *fault) SLC_NODISCARD;
void slc_stream_feed_run(struct slc_stream *stream, unsigned worker);

/* The same of one that the device shares with the workers; after slc_stream_feed_begin. */
void slc_stream_hybrid_begin(struct slc_stream *stream);
void slc_stream_hybrid_run(struct slc_stream *stream, unsigned worker);
/* Reader thread: whether there is a block to be read, and the one to be read next. */
bool slc_stream_hybrid_to_read(struct slc_stream *stream);
uint64_t slc_stream_hybrid_read(struct slc_stream *stream);

#endif
