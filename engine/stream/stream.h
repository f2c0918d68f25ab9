/* Streams the blocks of layouts through a bounded ring of slots. Each pass is over one layout: a
 * reader thread keeps reads in flight, and workers compute tiles of blocks that have arrived. All
 * memory is allocated when the stream is opened; a pass allocates nothing.
 *
 * A fixed set of blocks, chosen by the plan (as many as fit, at equal distances in the file), stays
 * encoded in memory from pass to pass. Each pass then reads only the other blocks. A
 * least-recently-used cache would save nothing, because an iterative solver scans the blocks
 * cyclically. */
#ifndef SLC_ENGINE_STREAM_H
#define SLC_ENGINE_STREAM_H

#include "base/block.h"
#include "base/device.h"
#include "base/error/error.h"
#include "engine/hybrid/hybrid.h"
#include "engine/plan/layouts.h"
#include "engine/plan/plan.h"
#include "engine/stream/row_ranges.h"
#include "storage/block/reader.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_stream;

struct slc_stream_stats {
    uint64_t passes; /* number of passes; a pass in parts counts when its last part ends */
    uint64_t blocks; /* blocks computed, or fed to GPUs */
    /* nonzeros of computed tiles; a tile counts once for each range that needs its block */
    uint64_t nnz;
    uint64_t bytes_read;     /* bytes read from the drive */
    uint64_t bytes_cached;   /* bytes taken from the cache instead of the drive */
    uint64_t bytes_resident; /* bytes of blocks that were resident in device memory */
    uint64_t cache_blocks;   /* blocks in the cache now */
    double wait_seconds;     /* time that workers waited for data, summed over workers */
    double decode_seconds;   /* time of decoding, summed over workers */
    double compute_seconds;  /* time of the consumer without decoding, summed over workers */
    double pass_seconds;     /* elapsed time in slc_stream_pass */
    bool direct;             /* true if reads bypass the page cache */
    enum slc_io_kind io;
    char note[160]; /* restrictions of the I/O method; "" if there are none */
};

/* Called for every tile of a pass, concurrently by workers 0 .. threads - 1. `tile->next` decodes
 * the tile. With SLC_SCHEDULE_FILE, SLC_PASS_TILES delivers tiles in ascending ordinal, except with
 * SLC_TILES_BY_PARTITION. */
typedef enum slc_status
slc_tile_fn(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err);

/* Called once for every range of a pass over ranges of rows: between the two phases of the range,
 * or instead of them. */
typedef enum slc_status
slc_range_done_fn(void *context, unsigned worker, uint64_t range, struct slc_error *err);

/* Division of the workers into groups, each of which computes only the blocks that it owns.
 * Borrowed. */
struct slc_pass_division {
    const uint32_t *owner; /* per block of the layout: the group that owns it */
    /* All blocks, in the order in which they are read. The blocks of a partition are adjacent and
     * ascending. */
    const uint64_t *order;
    unsigned group_workers; /* worker w belongs to group w / group_workers */
};

/* A part of a pass: positions first .. end - 1 in the order in which blocks are read
 * (slc_stream_order, or the list of blocks), or, in a pass over ranges of rows, among its ranges.
 * If first and end are 0, the part is the whole pass. */
struct slc_pass_part {
    uint64_t first, end;
};

/* Receives the tiles of a pass. */
struct slc_tile_consumer {
    slc_tile_fn *tile;
    /* Called once, by any thread, if the pass is aborted. Must wake workers that wait inside
     * `tile`. */
    void (*wake)(void *context); /* may be NULL */
    void *context;
};

enum slc_tile_order {
    SLC_TILES_BY_SCHEDULE, /* in the order of the schedule, each tile to one worker */
    /* Every worker gets every tile, in the order of the schedule. */
    SLC_TILES_TO_EVERY_WORKER,
    /* Only for a layout with partitions. The tiles of one partition are delivered one after the
     * other, in ascending order, to any workers. Tiles of different partitions are delivered
     * concurrently and in any order, with every schedule. */
    SLC_TILES_BY_PARTITION
};

enum slc_pass_kind {
    SLC_PASS_TILES, /* delivers tiles to workers */
    /* Delivers tiles to groups of workers. Each group gets the blocks that it owns. */
    SLC_PASS_GROUPS,
    SLC_PASS_RANGES, /* delivers ranges of rows to workers, for example in two phases */
    SLC_PASS_GPU,    /* feeds whole blocks to the stream's GPU */
    /* Feeds whole blocks to the stream's GPUs. Each GPU gets the blocks that it owns. */
    SLC_PASS_GPU_GROUP,
    /* feeds blocks to the stream's GPU, and delivers the tiles of other blocks to workers */
    SLC_PASS_HYBRID
};

/* Arguments of one pass. Consecutive parts of a pass over tiles or ranges deliver the same tiles as
 * the whole pass, in an order in which the whole pass may also deliver them. Later parts use the
 * blocks that earlier parts have cached. A part may end within a partition; the next part then
 * continues this partition. If ranges of two parts share a block, both parts read it.
 *
 * GPUs are the devices that were attached to the stream (slc_stream_attach). Workers check and
 * describe blocks and feed them to the GPUs in any order. The caller must have begun a job on each
 * GPU. The caller must end these jobs before the next pass, even if the pass failed, because until
 * then GPUs may read slots. */
struct slc_pass {
    enum slc_pass_kind kind;
    unsigned layout; /* index among the stream's layouts */
    union {
        struct {
            struct slc_tile_consumer consumer;
            enum slc_tile_order order;
            /* Ascending block numbers: the pass reads only these blocks, and assigns their tiles in
             * ascending order with every schedule. `order` is SLC_TILES_BY_SCHEDULE. NULL: all
             * blocks of the layout. */
            const uint64_t *blocks;
            uint64_t block_count;
            struct slc_pass_part part;
        } tiles;
        struct {
            struct slc_tile_consumer consumer;
            const struct slc_pass_division *division;
            /* true: deliver as with SLC_TILES_BY_PARTITION; false: in any order */
            bool by_partition;
        } groups;
        /* A worker computes one range at a time: it calls `tile` for the tiles of the range in
         * ascending order, then `range_done`, then `again` for the same tiles. Blocks are read
         * once. tile->partition is the number of the range in `ranges`, and tile->continued is
         * false, because no row is divided between ranges. If blocks are shared, tiles deliver only
         * the nonzeros in rows of the range. Ranges begin in their order, and a worker that has
         * begun a range never waits for a later range, so the consumer may wait for earlier ranges.
         * If `compute` is set, the worker calls only this function, which requests tiles in any
         * order and any number of times (slc_stream_range_tile). Tiles count in the statistics when
         * they are passed to consumer.tile.
         * Needs: at least ranges->max_blocks slots. */
        struct {
            struct slc_tile_consumer consumer;
            const struct slc_row_ranges *ranges; /* made from this layout */
            slc_range_done_fn *range_done;
            slc_tile_fn *again;
            slc_range_done_fn *compute;
            struct slc_pass_part part;
        } ranges;
        struct {
            const struct slc_pass_division *division; /* determines which GPU gets a block */
        } gpu_group;
        /* Every worker feeds the GPU and computes tiles, and waits only if it can do neither. After
         * a successful pass, when the job of the GPU has ended, the caller calls
         * slc_stream_hybrid_end, which records the work of CPU and GPU in `sharing`. */
        struct {
            struct slc_tile_consumer consumer;
            struct slc_hybrid *sharing;
        } hybrid;
    };
    /* Read between tiles; if *stop is not 0, the pass ends with SLC_ERR_INTERRUPTED. May be
     * NULL. */
    const volatile int *stop;
    /* Called by worker 0 between tiles, at most ten times a second. Reports the completed blocks of
     * the whole pass, including earlier parts, and the bytes read by this call of slc_stream_pass.
     * May be NULL. */
    void (*progress)(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes_read);
    void *progress_context;
};

/* Returns the consumer of a pass; NULL if the pass has none. */
static inline const struct slc_tile_consumer *slc_pass_consumer(const struct slc_pass *pass)
{
    switch (pass->kind) {
    case SLC_PASS_TILES:
        return &pass->tiles.consumer;
    case SLC_PASS_GROUPS:
        return &pass->groups.consumer;
    case SLC_PASS_RANGES:
        return &pass->ranges.consumer;
    case SLC_PASS_HYBRID:
        return &pass->hybrid.consumer;
    case SLC_PASS_GPU:
    case SLC_PASS_GPU_GROUP:
        break;
    }
    return NULL;
}

/* Opens the files of the layouts for streaming as planned. Values are decoded to the plan's
 * precision. Ownership: release with slc_stream_close; the readers of the layouts are borrowed
 * until then. Errors: SLC_ERR_MEMORY, SLC_ERR_IO, SLC_ERR_SYSTEM; SLC_ERR_UNSUPPORTED if the I/O
 * method is not available; SLC_ERR_USAGE if the plan was made for other layouts. */
enum slc_status slc_stream_open(const struct slc_files *files,
                                const struct slc_layouts *layouts,
                                const struct slc_plan *plan,
                                struct slc_stream **stream,
                                struct slc_error *err) SLC_NODISCARD;

/* Attaches devices, to which passes may then feed whole blocks, and registers the memory of slots
 * and cache with them. The devices must be open for all layouts of the stream. Blocks that the plan
 * keeps resident in device memory are read only once. The devices must stay open until
 * slc_stream_detach or slc_stream_close. Errors: SLC_ERR_USAGE if devices are already attached, or
 * if their number is 0 or above SLC_MAX_DEVICES; SLC_ERR_MEMORY; those of host_register. */
enum slc_status slc_stream_attach(struct slc_stream *stream,
                                  struct slc_device *const *devices,
                                  unsigned count,
                                  struct slc_error *err) SLC_NODISCARD;
/* Detaches all devices. Accepts a stream without devices. */
void slc_stream_detach(struct slc_stream *stream);
/* Returns the first device; NULL if no devices are attached. */
const struct slc_device *slc_stream_device(const struct slc_stream *stream);
unsigned slc_stream_device_count(const struct slc_stream *stream);
/* Returns true if a pass by devices over this layout would copy a block, because some block is not
 * resident in device memory. */
bool slc_stream_copies(const struct slc_stream *stream, unsigned layout);
/* Returns the bytes of host memory that slc_stream_attach allocates; UINT64_MAX on overflow. */
uint64_t slc_stream_device_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan);

/* Returns all blocks of a layout in the order in which passes read them. Passes with ranges or with
 * a division use a different order. */
const uint64_t *slc_stream_order(const struct slc_stream *stream, unsigned layout);

/* Makes one pass over all blocks of a layout, or a part of a pass. Errors: the first I/O error,
 * damaged block (with file, block and offset) or consumer error. After an error the stream can be
 * used for another pass. */
enum slc_status slc_stream_pass(struct slc_stream *stream,
                                const struct slc_pass *pass,
                                struct slc_error *err) SLC_NODISCARD;

/* Called by the function `compute` of a pass over ranges: waits until a block of the worker's range
 * is in memory, and passes one of its tiles to `fn`, with the context of the consumer. Errors:
 * those of decoding, reading and `fn`; SLC_ERR_INTERRUPTED if a stop is requested or the pass was
 * aborted. */
enum slc_status slc_stream_range_tile(struct slc_stream *stream,
                                      unsigned worker,
                                      uint64_t range,
                                      uint64_t block,
                                      uint32_t tile,
                                      slc_tile_fn *fn,
                                      struct slc_error *err) SLC_NODISCARD;

/* Records the work of CPU and GPU in a hybrid pass. Called after the pass, when the device's job
 * has ended successfully. */
void slc_stream_hybrid_end(struct slc_stream *stream);

void slc_stream_stats(const struct slc_stream *stream, struct slc_stream_stats *stats);

struct slc_holdout; /* engine/stream/holdout.h */

/* Makes all later passes deliver held-out nonzeros with the value 0, or not at all if
 * holdout->drop. `scratch` has SLC_HOLDOUT_SCRATCH_BYTES bytes for each of the plan's threads; it
 * may be NULL if nonzeros are dropped. The number of nonzeros of a tile view is then an upper
 * bound. If both arguments are NULL, no nonzeros are held out. Both arguments are borrowed until
 * the stream is closed. Not possible with devices that process whole blocks. */
enum { SLC_HOLDOUT_SCRATCH_BYTES = 1024 * 8 + 64 };
void slc_stream_hold_out(struct slc_stream *stream,
                         const struct slc_holdout *holdout,
                         void *scratch);

/* Returns true if passes leave held-out nonzeros out. */
bool slc_stream_drops(const struct slc_stream *stream);

/* Returns the reader of number `layout` of the stream's layouts. The caller of slc_stream_open owns
 * the reader. */
const struct slc_reader *slc_stream_reader(const struct slc_stream *stream, unsigned layout);

/* Detaches the devices and closes the stream. Accepts NULL. */
void slc_stream_close(struct slc_stream *stream);

#endif
