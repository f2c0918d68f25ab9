/* Declarations that the source files of a stream share. stream.c opens a stream and runs passes.
 * stream_reader.c keeps reads in flight. stream_tiles.c opens blocks that have arrived and assigns
 * their tiles to workers, and stream_compute.c delivers tiles to the consumer. stream_ranges.c runs
 * passes in two phases. stream_attach.c attaches devices, stream_feed.c feeds whole blocks to them,
 * and stream_hybrid.c divides a pass between a device and the workers. Private to
 * engine/stream*.c. */
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

/* State of a block: cached in host memory, resident in device memory, or neither. */
enum slc_cache_state {
    SLC_CACHE_NO,     /* the plan neither caches the block nor keeps it resident */
    SLC_CACHE_WANTED, /* the plan caches the block, but it has not been read yet */
    SLC_CACHE_YES,
    SLC_CACHE_NEW, /* cached in this pass; used from the next pass on */
    /* The same three states for resident blocks. */
    SLC_CACHE_RESIDENT_WANTED,
    SLC_CACHE_RESIDENT,
    SLC_CACHE_RESIDENT_NEW
};

/* Slot number of a block that is not in a slot. */
#define SLC_NO_SLOT UINT32_MAX

/* A verified block whose tiles are being computed. A prefix such as `every_worker:` names the only
 * passes that use the member. */
struct slc_open_block {
    struct slc_open_block *next; /* next block in the list of open blocks */
    struct slc_block_view view;
    uint32_t slot;   /* slot of the block; SLC_NO_SLOT: the block is in the cache */
    uint64_t due_ns; /* if the block is in a slot: earliest time at which its read may complete */
    bool used;       /* records for cached blocks: true if the record is in use */
    uint32_t next_tile;
    /* number of tiles not yet computed; every_worker: multiplied by the number of workers */
    _Atomic uint64_t tiles_left;
    uint64_t number; /* every_worker: position in the order in which all workers visit blocks */
    unsigned takers; /* every_worker: number of workers that have not yet taken the last tile */
};

/* Decoder, measured times and state of one worker. */
struct slc_stream_worker {
    struct slc_decoder *decoder;
    struct slc_tile_view inner; /* the decoder's view of the current tile */
    uint64_t wait_ns;
    uint64_t decode_ns;
    uint64_t compute_ns;
    uint64_t nnz; /* nonzeros of computed tiles */
    /* For the current tile: number of decoded chunks; time of the first chunk and of describing;
     * nonzeros of all other chunks; time and nonzeros of the other chunks that were timed. */
    uint64_t chunks, first_ns, chunks_nnz;
    uint64_t timed_ns, timed_nnz;
    uint64_t progress_ns; /* worker 0: time of the last progress report */
    /* every_worker: number of the next block, and its next tile. Protected by the stream's
     * mutex. */
    uint64_t serving;
    uint32_t next_tile;
    /* groups: like the stream's cache_cursor, for one group; used in the first worker of the
     * group */
    uint64_t cache_cursor;
    /* by_partition: the block whose tiles the worker takes; may be NULL */
    struct slc_open_block *taken;
    /* ranges: restricts the current tile; its arrays also hold chunks without held-out nonzeros */
    struct slc_tile_rows rows;
    /* selects nonzeros that are delivered as 0 or dropped; NULL: nothing is held out */
    const struct slc_holdout *holdout;
    void *values;        /* buffer for the values of a chunk with held-out nonzeros */
    uint64_t padding[3]; /* keeps the members of two workers on different cache lines */
};

/* A layout of a stream. */
struct slc_stream_layout {
    unsigned file; /* index of the file for the I/O method */
    const struct slc_reader *reader;
    const struct slc_layout_info *info;
    /* all blocks in the order of the schedule; blocks of a partition are adjacent */
    uint64_t *order;
    uint64_t *cache_offset;   /* per block that the plan caches: its position in the cache */
    uint8_t *cached;          /* enum slc_cache_state per block */
    uint32_t *keep;           /* per block: its handle on the device, or SLC_NOT_RESIDENT */
    uint64_t *partition_done; /* by_partition: number of completed blocks per partition */
    uint32_t *uses;           /* ranges: per block, number of ranges that still need it */
    uint64_t *nnz;            /* hybrid: per block, its nonzeros and its state (hybrid_blocks.h) */
    uint8_t *hybrid_state;
};

struct slc_stream {
    struct slc_stream_layout *layouts;
    unsigned layout_count;
    unsigned worker_count;
    bool in_order; /* the schedule is SLC_SCHEDULE_FILE */

    struct slc_io *io;
    bool mapped; /* files are mapped: data may change until slc_io_check succeeds */
    struct slc_ring *ring;
    unsigned slot_count;
    uint64_t slot_bytes;
    struct slc_io_request *requests; /* one per slot */
    bool *delivered;                 /* per slot: true if its block was read and not yet released */
    bool io_failed;                  /* true if the I/O method has failed permanently */
    struct slc_read_limit read_limit;

    struct slc_buffer cache;     /* cached blocks of all layouts */
    struct slc_feeding *feeding; /* attached devices; NULL if there are none */
    bool may_keep_cached;        /* plan->gpu.keeps_cached */

    struct slc_stream_worker *workers;

    /* Assignment of tiles. `mutex` protects these members unless noted otherwise. */
    pthread_mutex_t mutex;
    struct slc_open_block *slot_blocks;  /* records, one per slot */
    struct slc_open_block *cache_blocks; /* records for cached blocks, one per worker */
    /* list of open blocks with tiles left; sorted by block if strict */
    struct slc_open_block *open;
    uint64_t serving;      /* strict: position of the block whose tiles are assigned now */
    uint64_t opened;       /* not strict: number of opened blocks */
    uint64_t cache_cursor; /* all cached blocks before this position in `order` have been opened */

    /* The current pass. */
    const struct slc_pass *pass;
    const struct slc_tile_consumer *consumer; /* NULL if only GPUs get blocks */
    const struct slc_pass_division *division; /* NULL if neither groups nor GPUs own blocks */
    const struct slc_row_ranges *ranges;      /* NULL if the pass is not over ranges of rows */
    struct slc_hybrid *hybrid;                /* NULL if CPU and GPU do not share the pass */
    bool feeds;                               /* true if whole blocks are fed to GPUs */
    bool keeps_cached; /* true if cached blocks that are fed also become resident */
    bool every_worker, by_partition;
    struct slc_pass_part part;
    const struct slc_stream_layout *layout;
    const uint64_t *blocks; /* list of the blocks of the pass; NULL: all blocks of the layout */
    uint64_t block_count;   /* number of blocks of the whole pass */
    const uint64_t *order;  /* order in which blocks are read */
    uint64_t first, end;    /* positions of the part in `order` */
    bool strict;            /* true if tiles are assigned in ascending ordinal */
    uint64_t next_range;    /* number of the next range to begin; protected by the mutex */
    uint64_t end_range;     /* end of the ranges of the part */
    struct slc_hybrid_blocks sharing; /* protected by the mutex, as are the lists below */
    /* Blocks that have arrived and are not yet used: one list for the CPU and one for the GPU. */
    struct slc_open_block *arrived[SLC_HYBRID_PARTS], **arrived_end[SLC_HYBRID_PARTS];
    atomic_bool aborted;
    atomic_uint_fast64_t blocks_done;
    /* Totals since the stream was opened. */
    atomic_uint_fast64_t bytes_cached, bytes_resident, bytes_read;

    struct slc_stream_stats stats;
};

/* Keeps the first error of the pass, stops all threads, and wakes the consumer once. Threads:
 * any. */
void slc_stream_abort(struct slc_stream *stream, const struct slc_error *fault);

/* Main function of the reader thread of one pass. `context` is the stream. */
void *slc_stream_reader_run(void *context);

/* Prepares the assignment of tiles for a pass. Called before any thread starts. */
void slc_stream_tiles_begin(struct slc_stream *stream);

/* Runs one worker of a pass over tiles. */
void slc_stream_tiles_run(struct slc_stream *stream, unsigned worker);

/* Copies a block that has arrived in a slot to `to`. Does not verify its checksum. Errors: those of
 * slc_io_check. */
enum slc_status slc_stream_copy_arrived(
    struct slc_stream *stream, unsigned slot, uint64_t block, void *to, struct slc_error *fault);

/* Verifies the checksum of a block that has arrived in a slot, and fills the slot's record. If the
 * block belongs to the cache, it is copied to the cache first, and the copy is verified. Errors:
 * those of slc_block_open and slc_io_check. */
enum slc_status slc_stream_check_arrived(struct slc_stream *stream,
                                         unsigned slot,
                                         uint64_t block,
                                         struct slc_error *fault);

/* Verifies a block that has arrived, and makes its tiles available. Aborts the pass if the block is
 * damaged. */
void slc_stream_open_arrived(struct slc_stream *stream, unsigned slot, uint64_t block);
/* slc_stream_cached_record returns a free record of the workers first .. end - 1 for a cached
 * block, or NULL; the caller holds the mutex. slc_stream_open_cached makes the tiles of this block
 * available. */
struct slc_open_block *
slc_stream_cached_record(struct slc_stream *stream, unsigned first, unsigned end, uint64_t block);
void slc_stream_open_cached(struct slc_stream *stream, struct slc_open_block *record);
/* Takes the next tile of an open block. Returns false if no tile may be taken now. */
bool slc_stream_take_open_tile(struct slc_stream *stream,
                               const struct slc_stream_worker *worker,
                               struct slc_open_block **block,
                               uint32_t *tile);

/* Returns the address in the cache of a block that the plan caches. */
void *slc_stream_cache_place(const struct slc_stream *stream, uint64_t block);

/* Called when a tile has been computed. After the last tile of a block, releases its slot or
 * record. */
void slc_stream_tile_done(struct slc_stream *stream, struct slc_open_block *block);

/* Waits until slc_ring_news differs from `news`, or takes and opens a block. Returns false if the
 * pass has ended. */
bool slc_stream_await(struct slc_stream *stream, struct slc_stream_worker *worker, uint64_t news);

/* Releases the slot of a block that has been computed or copied. */
void slc_stream_block_release(struct slc_stream *stream, const struct slc_open_block *block);

/* Delivers a tile of an open block to `fn`. In a pass with ranges, the tile is restricted to the
 * rows of the range; a tile without such rows is skipped. Errors: those of decoding, reading and
 * `fn`, with the position; SLC_ERR_INTERRUPTED if a stop is requested. */
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

/* Returns true if a stop is requested. */
bool slc_stream_stop_requested(const struct slc_pass *pass);

/* Reports progress if `worker` is 0 and a report is due. */
void slc_stream_progress(struct slc_stream *stream, unsigned worker);

/* slc_stream_ranges_begin prepares a pass in two phases before any thread starts.
 * slc_stream_ranges_run runs one worker of the pass. */
void slc_stream_ranges_begin(struct slc_stream *stream);
void slc_stream_ranges_run(struct slc_stream *stream, unsigned worker);

/* slc_stream_feed_begin prepares a pass that feeds whole blocks to devices, before any thread
 * starts. slc_stream_feed_run runs one worker of the pass. */
void slc_stream_feed_begin(struct slc_stream *stream);
/* Makes the devices start all resident blocks. Only for passes without the CPU. Errors: those of
 * the devices. */
enum slc_status slc_stream_feed_residents(struct slc_stream *stream,
                                          struct slc_error *fault) SLC_NODISCARD;
void slc_stream_feed_run(struct slc_stream *stream, unsigned worker);

/* For a pass that a device shares with the CPU: slc_stream_hybrid_begin prepares the pass, after
 * slc_stream_feed_begin; slc_stream_hybrid_run runs one worker, instead of slc_stream_feed_run. */
void slc_stream_hybrid_begin(struct slc_stream *stream);
void slc_stream_hybrid_run(struct slc_stream *stream, unsigned worker);
/* For the reader thread. slc_stream_hybrid_to_read returns true if there is a block to read;
 * slc_stream_hybrid_read takes the next block to read. */
bool slc_stream_hybrid_to_read(struct slc_stream *stream);
uint64_t slc_stream_hybrid_read(struct slc_stream *stream);

#endif
