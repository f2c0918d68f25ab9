/*
 * What goes to the devices of a stream: stream_attach.c makes it, stream_feed.c hands blocks over,
 * in passes of devices alone, and stream_hybrid.c in such that the CPU has a share in. Private to
 * engine/stream*.c.
 */
#ifndef SLC_ENGINE_STREAM_FEED_H
#define SLC_ENGINE_STREAM_FEED_H

#include "engine/stream/copy_buffers.h"
#include "engine/stream/stream_impl.h"

enum {
    SLC_FEED_REGIONS = 3 /* of memory that a device is told of: slots, cache, buffers */
};

#define SLC_FEED_NO_BUFFER UINT32_MAX

/* A copy that the device makes. */
struct slc_feed_copy {
    uint64_t ticket;
    uint32_t slot; /* that it reads; SLC_NO_SLOT: a buffer */
    uint32_t buffer;
};

/* What goes to one device. */
struct slc_feed {
    struct slc_device *device;
    pthread_mutex_t mutex;        /* whoever holds it uses the device and what follows */
    struct slc_feed_copy *copies; /* a circle of copy_most */
    unsigned copy_most, first, count;
    bool gathered;   /* blocks that the device may not have begun with */
    unsigned coming; /* with a share: blocks that workers are preparing for it */

    void *registered[SLC_FEED_REGIONS];
    unsigned registered_count;
};

struct slc_feeding {
    struct slc_feed feeds[SLC_MAX_DEVICES];
    unsigned count;
    struct slc_buffer tiles; /* descriptions: tiles_most of each worker */
    uint64_t tiles_most;

    struct slc_copy_buffers buffers; /* for blocks of a map */
};

/*
 * Gives back the slots and buffers whose copies have been made; with `wait` the oldest copy is
 * waited for. Under the mutex.
 */
enum slc_status slc_stream_feed_settle(struct slc_stream *stream,
                                       struct slc_feed *feed,
                                       bool wait,
                                       struct slc_error *fault);

/* Something that a worker does next; *end: the pass has ended. */
typedef enum slc_status
slc_stream_step_fn(struct slc_stream *stream, unsigned number, bool *end, struct slc_error *fault);
/* A worker's part of a pass, step by step, until that ends or is to be stopped. */
void slc_stream_run_steps(struct slc_stream *stream, unsigned number, slc_stream_step_fn *step);

/* A block that has arrived, by worker `number`: checked, described and handed over. */
enum slc_status slc_stream_feed_arrived(struct slc_stream *stream,
                                        unsigned number,
                                        unsigned slot,
                                        uint64_t number_of_block,
                                        struct slc_error *fault);
/* The same of one of the cache, or of the device's memory. */
enum slc_status slc_stream_feed_held(struct slc_stream *stream,
                                     unsigned number,
                                     uint64_t block,
                                     struct slc_error *fault);

#endif
