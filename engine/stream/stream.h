/*
 * Streams the blocks of layouts, pass after pass, each over one of them, through a bounded ring of
 * slots: a reader thread keeps reads in flight, workers take tiles of blocks that have arrived. All
 * memory is taken when the stream is opened; a pass allocates nothing.
 *
 * A fixed set of blocks (the plan's: as many as fit, spread over the file) is kept, encoded, across
 * passes. The cyclic scan of an iterative solver defeats least-recently-used caching; a fixed set
 * saves its whole size each pass.
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
    uint64_t passes;         /* one in parts counts with the part that is its last */
    uint64_t blocks;         /* delivered */
    uint64_t nnz;            /* of the tiles that were computed; those of ranges once a range */
    uint64_t bytes_read;     /* from the drive */
    uint64_t bytes_cached;   /* served from the cache */
    uint64_t bytes_resident; /* that the device had in its memory */
    uint64_t cache_blocks;   /* held now */
    double wait_seconds;     /* workers idle for want of data, summed over workers */
    double decode_seconds;   /* summed over workers */
    double compute_seconds;  /* inside the consumer without decoding, summed over workers */
    double pass_seconds;     /* wall time inside slc_stream_pass */
    bool direct;             /* reads bypass the page cache */
    enum slc_io_kind io;
    char note[160]; /* what I/O had to do without, or "" */
};

/*
 * Called for every tile of a pass, by workers 0 .. threads-1 at the same time. `tile->next`
 * decodes. Under SLC_SCHEDULE_FILE tiles are handed out in ascending ordinal; but see
 * SLC_TILES_BY_PARTITION.
 */
typedef enum slc_status
slc_tile_fn(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err);

/* Called once for every range of a pass in two phases, between them. */
typedef enum slc_status
slc_turn_fn(void *context, unsigned worker, uint64_t range, struct slc_error *err);

/* Workers in groups, each of which computes blocks of its own. Borrowed. */
struct slc_pass_division {
    const uint32_t *owner; /* of each block of the layout: its group */
    /* All blocks, in the order in which they are read; those of a partition together, ascending. */
    const uint64_t *order;
    unsigned group_workers; /* worker w belongs to group w / group_workers */
};

/*
 * A run of what a pass goes through: positions [first, end) of the blocks in the order in which
 * they are read (slc_stream_order), or of the ranges of a pass in two phases. Both 0: all of it.
 */
struct slc_pass_part {
    uint64_t first, end;
};

/* Who is given the tiles of a pass. */
struct slc_tile_consumer {
    slc_tile_fn *tile;
    /* Called once, from any thread, when the pass is given up: wake workers that wait inside
     * `tile`. */
    void (*wake)(void *context); /* may be NULL */
    void *context;
};

enum slc_tile_order {
    SLC_TILES_BY_SCHEDULE, /* each to one worker */
    /* Every worker is given every tile, in the order of the schedule's blocks. */
    SLC_TILES_TO_EVERY_WORKER,
    /*
     * Of a layout in partitions: the tiles of a partition come one after the other, in ascending
     * order, whoever takes them; those of different partitions come in any order and at the same
     * time, whatever the schedule.
     */
    SLC_TILES_BY_PARTITION
};

enum slc_pass_kind {
    SLC_PASS_TILES,     /* tiles to workers */
    SLC_PASS_GROUPS,    /* the same, to workers in groups, each the blocks it owns */
    SLC_PASS_RANGES,    /* in two phases over ranges of rows */
    SLC_PASS_GPU,       /* whole blocks to the stream's GPU */
    SLC_PASS_GPU_GROUP, /* whole blocks to the stream's GPUs, each those it owns */
    SLC_PASS_HYBRID     /* each block to the stream's GPU, or its tiles to workers */
};

/*
 * One pass. Parts (tiles, ranges) one behind the other give the consumer what the whole pass would,
 * in an order that the whole pass may have, and leave cached blocks of one another alone. They may
 * cut through a partition, whose later tiles then come in a later part. Blocks on both sides of a
 * cut between ranges are read for either.
 *
 * GPUs are those of the stream (slc_stream_attach). They take blocks checked and described, in any
 * order, whatever worker prepares them. All have begun with a job; to end that is the caller's
 * part, also where the pass failed, and before the next pass: until then GPUs may be reading slots.
 */
struct slc_pass {
    enum slc_pass_kind kind;
    unsigned layout; /* which of the stream's layouts */
    union {
        struct {
            struct slc_tile_consumer consumer;
            enum slc_tile_order order;
            struct slc_pass_part part;
        } tiles;
        struct {
            struct slc_tile_consumer consumer;
            const struct slc_pass_division *division;
            bool by_partition; /* as SLC_TILES_BY_PARTITION; else in any order */
        } groups;
        /*
         * A worker takes a range at a time: `tile` gets its tiles in ascending order, `turn` is
         * called, and `again` gets the same tiles once more, all by this worker. Blocks are read
         * once. Tiles say the range's place among `ranges` as their partition, and continue none;
         * where blocks are shared they deliver the nonzeros in rows of the range alone. Ranges are
         * begun in their order, and a worker that has begun one never waits for a later one:
         * consumers may wait for earlier ranges. Needs as many slots as the largest range has
         * blocks.
         */
        struct {
            struct slc_tile_consumer consumer;
            const struct slc_row_ranges *ranges; /* made of this layout */
            slc_turn_fn *turn;
            slc_tile_fn *again;
            struct slc_pass_part part;
        } ranges;
        struct {
            const struct slc_pass_division *division; /* which GPU a block goes to */
        } gpu_group;
        /*
         * None of the workers, who do both, waits while there is either to do. What both have done
         * `sharing` learns from slc_stream_hybrid_end, which has to follow a pass that went well,
         * once the GPU's job has ended.
         */
        struct {
            struct slc_tile_consumer consumer;
            struct slc_hybrid *sharing;
        } hybrid;
    };
    /* Polled between tiles; a non-zero value ends the pass with SLC_ERR_INTERRUPTED. May be NULL.
     */
    const volatile int *stop;
    /* Called from worker 0 between its tiles, at most ten times a second, for progress: blocks of
     * the whole pass, those before a part included, and bytes read by this call. May be NULL. */
    void (*progress)(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes_read);
    void *progress_context;
};

/* NULL: it has none. */
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
 * Opens the files of the layouts for streaming as planned, values decoded to the plan's precision.
 * Their readers are borrowed until close. Errors: SLC_ERR_MEMORY, SLC_ERR_IO, SLC_ERR_UNSUPPORTED
 * (the I/O method), SLC_ERR_SYSTEM, SLC_ERR_USAGE (a plan for other files).
 */
enum slc_status slc_stream_open(const struct slc_files *files,
                                const struct slc_layouts *layouts,
                                const struct slc_plan *plan,
                                struct slc_stream **stream,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * Makes devices, which have been opened for all layouts of the stream, those that passes may give
 * whole blocks to: they are told of the memory that blocks lie in. Blocks that the plan keeps in
 * their memory are read once. They have to stay open until slc_stream_detach or slc_stream_close.
 * Errors: SLC_ERR_USAGE where there are some already, and for none or more than SLC_MAX_DEVICES;
 * SLC_ERR_MEMORY; those of host_register.
 */
enum slc_status slc_stream_attach(struct slc_stream *stream,
                                  struct slc_device *const *devices,
                                  unsigned count,
                                  struct slc_error *err) SLC_NODISCARD;
/* Takes a stream without a device. */
void slc_stream_detach(struct slc_stream *stream);
/* The first, NULL where there is none; and how many there are. */
const struct slc_device *slc_stream_device(const struct slc_stream *stream);
unsigned slc_stream_device_count(const struct slc_stream *stream);
/* What attaching takes of the host's memory, for plans; UINT64_MAX on overflow. */
uint64_t slc_stream_device_bytes(const struct slc_layouts *layouts, const struct slc_plan *plan);

/* All blocks of a layout, in the order in which passes without ranges or division read them. */
const uint64_t *slc_stream_order(const struct slc_stream *stream, unsigned layout);

/*
 * One pass over all blocks of a layout, or a part of it. Errors: the first I/O error, damaged block
 * (file, block, offset) or consumer error; the stream can be used for another pass afterwards.
 */
enum slc_status slc_stream_pass(struct slc_stream *stream,
                                const struct slc_pass *pass,
                                struct slc_error *err) SLC_NODISCARD;

/* The device's job of the pass that went before, which had a share, has ended well. */
void slc_stream_hybrid_end(struct slc_stream *stream);

void slc_stream_stats(const struct slc_stream *stream, struct slc_stream_stats *stats);

struct slc_holdout; /* engine/stream/holdout.h */

/*
 * From now on passes deliver held-out nonzeros with the value 0; `rooms` has SLC_HOLDOUT_ROOM_BYTES
 * for each of the plan's threads. NULL, NULL: all as they are. Both are borrowed until the stream
 * is closed. Not with devices that take whole blocks.
 */
enum { SLC_HOLDOUT_ROOM_BYTES = 1024 * 8 + 64 };
void slc_stream_hold_out(struct slc_stream *stream, const struct slc_holdout *holdout, void *rooms);

/* The reader of one of the stream's layouts; the stream's callers own it. */
const struct slc_reader *slc_stream_reader(const struct slc_stream *stream, unsigned layout);

/* Takes NULL. */
void slc_stream_close(struct slc_stream *stream);

#endif
