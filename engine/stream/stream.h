/*
 * Streams the blocks of layouts through a bounded ring of slots, pass after pass, each over one
 * layout: a reader thread keeps reads in flight, and workers compute tiles of blocks that have
 * arrived. All memory is allocated when the stream is opened; a pass allocates nothing.
 *
 * A fixed set of blocks, chosen by the plan (as many as fit, spread over the file), stays encoded
 * in memory across passes. The cyclic scan of an iterative solver defeats least-recently-used
 * caching; a fixed set saves its whole size in each pass.
 */
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
    uint64_t passes;     /* number of passes; a pass in parts is counted with its last part */
    uint64_t blocks;     /* blocks delivered */
    uint64_t nnz;        /* nonzeros of the computed tiles; tiles of ranges count once per range */
    uint64_t bytes_read; /* bytes read from the drive */
    uint64_t bytes_cached;   /* bytes served from the cache */
    uint64_t bytes_resident; /* bytes served from device memory */
    uint64_t cache_blocks;   /* blocks held in the cache now */
    double wait_seconds;     /* time in which workers waited for data, summed over workers */
    double decode_seconds;   /* time of decoding, summed over workers */
    double compute_seconds;  /* time in the consumer without decoding, summed over workers */
    double pass_seconds;     /* wall time in slc_stream_pass */
    bool direct;             /* reads bypass the page cache */
    enum slc_io_kind io;
    char note[160]; /* restrictions of the I/O method, or "" */
};

/*
 * Called for every tile of a pass, concurrently by workers 0 .. threads-1. `tile->next` decodes.
 * Under SLC_SCHEDULE_FILE tiles are delivered in ascending ordinal, except with
 * SLC_TILES_BY_PARTITION.
 */
typedef enum slc_status
slc_tile_fn(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err);

/* Called once for every range of a pass in two phases, between the phases. */
typedef enum slc_status
slc_range_done_fn(void *context, unsigned worker, uint64_t range, struct slc_error *err);

/*
 * Division of the workers into groups, each of which computes only the blocks that it owns.
 * Borrowed.
 */
struct slc_pass_division {
    const uint32_t *owner; /* for each block of the layout: the group that owns it */
    /* All blocks, in the order of reading; the blocks of a partition are adjacent and ascending. */
    const uint64_t *order;
    unsigned group_workers; /* worker w belongs to group w / group_workers */
};

/* A part of a pass: positions [first, end) of the blocks in the order of reading
 * (slc_stream_order), or of the ranges of a pass in two phases. If both are 0, the part is the
 * whole pass. */
struct slc_pass_part {
    uint64_t first, end;
};

/* Receives the tiles of a pass. */
struct slc_tile_consumer {
    slc_tile_fn *tile;
    /* Called once, from any thread, when the pass is aborted: must wake workers that wait inside
     * `tile`. */
    void (*wake)(void *context); /* may be NULL */
    void *context;
};

enum slc_tile_order {
    SLC_TILES_BY_SCHEDULE, /* each tile is delivered to one worker */
    /* Every worker gets every tile, in the order of the schedule's blocks. */
    SLC_TILES_TO_EVERY_WORKER,
    /*
     * For a layout with partitions: the tiles of one partition are delivered one after the other,
     * in ascending order, to any workers. Tiles of different partitions are delivered in any order
     * and concurrently, regardless of the schedule.
     */
    SLC_TILES_BY_PARTITION
};

enum slc_pass_kind {
    SLC_PASS_TILES, /* delivers tiles to workers */
    /* Delivers tiles to groups of workers; each group gets the blocks that it owns. */
    SLC_PASS_GROUPS,
    SLC_PASS_RANGES, /* delivers ranges of rows to workers, in two phases */
    SLC_PASS_GPU,    /* feeds whole blocks to the stream's GPU */
    /* Feeds whole blocks to the stream's GPUs; each GPU gets the blocks that it owns. */
    SLC_PASS_GPU_GROUP,
    SLC_PASS_HYBRID /* feeds each block to the stream's GPU or delivers its tiles to workers */
};

/*
 * One pass. Consecutive parts of a pass over tiles or ranges deliver the same tiles as the whole
 * pass, in an order that is also possible in the whole pass, and later parts find the blocks that
 * earlier parts have cached. A part may end within a partition, whose later tiles then belong to a
 * later part. Blocks on both sides of a cut between ranges are read for both parts.
 *
 * GPUs are those of the stream (slc_stream_attach). They get checked and described blocks, in any
 * order, prepared by any worker. The caller must have begun a job on each GPU. Even after a failed
 * pass, the caller must end these jobs before the next pass, because until then GPUs may be reading
 * slots.
 */
struct slc_pass {
    enum slc_pass_kind kind;
    unsigned layout; /* index among the stream's layouts */
    union {
        struct {
            struct slc_tile_consumer consumer;
            enum slc_tile_order order;
            struct slc_pass_part part;
        } tiles;
        struct {
            struct slc_tile_consumer consumer;
            const struct slc_pass_division *division;
            bool by_partition; /* deliver as in SLC_TILES_BY_PARTITION; otherwise in any order */
        } groups;
        /*
         * A worker computes one range at a time: it calls `tile` for its tiles in ascending order,
         * then `range_done`, then `again` for the same tiles. Blocks are read once. The partition
         * of a tile is the index of the range in `ranges`, and no tile continues a partition. If
         * blocks are shared, tiles deliver only the nonzeros in rows of the range. Ranges begin in
         * their order, and a worker that has begun a range never waits for a later range, so
         * consumers may wait for earlier ranges. Needs as many slots as the largest range has
         * blocks.
         */
        struct {
            struct slc_tile_consumer consumer;
            const struct slc_row_ranges *ranges; /* made from this layout */
            slc_range_done_fn *range_done;
            slc_tile_fn *again;
            struct slc_pass_part part;
        } ranges;
        struct {
            const struct slc_pass_division *division; /* determines which GPU gets a block */
        } gpu_group;
        /*
         * Every worker both feeds the GPU and computes tiles, and waits only if it can do neither.
         * slc_stream_hybrid_end records the work of both sides in `sharing`; it is called after a
         * successful pass, once the job of the GPU has ended.
         */
        struct {
            struct slc_tile_consumer consumer;
            struct slc_hybrid *sharing;
        } hybrid;
    };
    /*
     * Polled between tiles; a value other than 0 ends the pass with SLC_ERR_INTERRUPTED. May be
     * NULL.
     */
    const volatile int *stop;
    /*
     * Called by worker 0 between its tiles, at most ten times a second, to report progress: blocks
     * of the whole pass, including those before a part, and bytes read by this call of
     * slc_stream_pass. May be NULL.
     */
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

/*
 * Opens the files of the layouts for streaming as planned, with values decoded to the plan's
 * precision. Readers are borrowed until close. Errors: SLC_ERR_MEMORY, SLC_ERR_IO,
 * SLC_ERR_UNSUPPORTED (the I/O method), SLC_ERR_SYSTEM, SLC_ERR_USAGE (a plan for other files).
 */
enum slc_status slc_stream_open(const struct slc_files *files,
                                const struct slc_layouts *layouts,
                                const struct slc_plan *plan,
                                struct slc_stream **stream,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * Attaches devices to which passes may feed whole blocks, and registers the memory of the blocks
 * with them. The devices must be open for all layouts of the stream. Blocks that the plan keeps in
 * device memory are read once. The devices must stay open until slc_stream_detach or
 * slc_stream_close. Errors: SLC_ERR_USAGE if devices are already attached, or if their number is 0
 * or above SLC_MAX_DEVICES; SLC_ERR_MEMORY; those of host_register.
 */
enum slc_status slc_stream_attach(struct slc_stream *stream,
                                  struct slc_device *const *devices,
                                  unsigned count,
                                  struct slc_error *err) SLC_NODISCARD;
/* Accepts a stream without devices. */
void slc_stream_detach(struct slc_stream *stream);
/* Returns the first device; NULL if no devices are attached. */
const struct slc_device *slc_stream_device(const struct slc_stream *stream);
unsigned slc_stream_device_count(const struct slc_stream *stream);
/* Returns the host memory that attaching devices needs, for plans; UINT64_MAX on overflow. */
uint64_t slc_stream_device_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan);

/*
 * Returns all blocks of a layout, in the order in which passes without ranges or division read
 * them.
 */
const uint64_t *slc_stream_order(const struct slc_stream *stream, unsigned layout);

/* Makes one pass over all blocks of a layout, or a part of it. Errors: the first I/O error, damaged
 * block (file, block, offset) or consumer error; the stream can then be used for another pass. */
enum slc_status slc_stream_pass(struct slc_stream *stream,
                                const struct slc_pass *pass,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * Called after the last pass, which was a hybrid one, once the device's job has ended successfully.
 */
void slc_stream_hybrid_end(struct slc_stream *stream);

void slc_stream_stats(const struct slc_stream *stream, struct slc_stream_stats *stats);

struct slc_holdout; /* engine/stream/holdout.h */

/*
 * From now on passes deliver held-out nonzeros with the value 0; `scratch` has
 * SLC_HOLDOUT_SCRATCH_BYTES for each of the plan's threads. If both are NULL, nothing is held out.
 * Both are borrowed until the stream is closed. Not possible with devices that process whole
 * blocks.
 */
enum { SLC_HOLDOUT_SCRATCH_BYTES = 1024 * 8 + 64 };
void slc_stream_hold_out(struct slc_stream *stream,
                         const struct slc_holdout *holdout,
                         void *scratch);

/*
 * Returns the reader of one of the stream's layouts. The reader belongs to the caller of
 * slc_stream_open.
 */
const struct slc_reader *slc_stream_reader(const struct slc_stream *stream, unsigned layout);

/* Accepts NULL. */
void slc_stream_close(struct slc_stream *stream);

#endif
