/* Feeds the devices of a stream with whole blocks. stream_attach.c creates a struct slc_feed per
 * device, stream_feed.c feeds blocks in passes that use only devices, and stream_hybrid.c feeds
 * blocks in passes that a device shares with the CPU. Private to engine/stream. */
#ifndef SLC_ENGINE_STREAM_FEED_H
#define SLC_ENGINE_STREAM_FEED_H

#include "engine/stream/copy_buffers.h"
#include "engine/stream/stream_impl.h"

enum {
    SLC_FEED_REGIONS = 3 /* regions of memory registered with a device: slots, cache, buffers */
};

#define SLC_FEED_NO_BUFFER UINT32_MAX

/* A copy of a block that a device is making. */
struct slc_feed_copy {
    uint64_t ticket;
    uint32_t slot; /* slot from which the device reads; SLC_NO_SLOT: it reads from a buffer */
    uint32_t buffer;
};

/* The state of feeding one device. */
struct slc_feed {
    struct slc_device *device;
    pthread_mutex_t mutex;        /* protects the device and the members below */
    struct slc_feed_copy *copies; /* circular queue, copy_most elements */
    unsigned copy_most, first, count;
    bool gathered; /* true if the device may have a batch of blocks that it has not started */
    /* hybrid passes: number of blocks that workers are preparing for the device */
    unsigned preparing;

    void *registered[SLC_FEED_REGIONS];
    unsigned registered_count;
};

struct slc_feeding {
    struct slc_feed feeds[SLC_MAX_DEVICES];
    unsigned count;
    struct slc_buffer tiles; /* descriptions of tiles: tiles_most per worker */
    uint64_t tiles_most;

    struct slc_copy_buffers buffers; /* buffers for blocks of a mapped file */
};

/* Locks the mutex of a feed. */
void slc_stream_feed_lock(struct slc_feed *feed);

/* Releases the slots and buffers whose copies are complete. With `wait`, first waits for the oldest
 * copy. Needs: the caller holds the mutex of the feed. */
enum slc_status slc_stream_feed_reclaim(struct slc_stream *stream,
                                        struct slc_feed *feed,
                                        bool wait,
                                        struct slc_error *fault);

/* Returns true if a block is resident in device memory and was not fed in this pass. */
static inline bool slc_stream_is_resident(const struct slc_stream_layout *layout, uint64_t block)
{
    const uint8_t state = layout->cached[block];

    return state == SLC_CACHE_RESIDENT ||
           (state == SLC_CACHE_YES && layout->keep[block] != SLC_NOT_RESIDENT);
}

/* Makes one step of a worker. Sets *end if the pass has ended. */
typedef enum slc_status
slc_stream_step_fn(struct slc_stream *stream, unsigned number, bool *end, struct slc_error *fault);
/* Runs a worker, step by step, until the pass ends or is stopped. */
void slc_stream_run_steps(struct slc_stream *stream, unsigned number, slc_stream_step_fn *step);

/* Worker `number` checks, describes and feeds a block that has arrived. */
enum slc_status slc_stream_feed_arrived(struct slc_stream *stream,
                                        unsigned number,
                                        unsigned slot,
                                        uint64_t number_of_block,
                                        struct slc_error *fault);
/* Worker `number` feeds a cached or resident block. */
enum slc_status slc_stream_feed_held(struct slc_stream *stream,
                                     unsigned number,
                                     uint64_t block,
                                     struct slc_error *fault);

#endif
