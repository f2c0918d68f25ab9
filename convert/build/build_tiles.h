/* Encodes tiles and appends them to the block file. One thread at a time queues tiles in file
 * order, any thread encodes the next tile, and encoded tiles are appended in file order. The file
 * therefore does not depend on the timing of threads, and threads need no barriers.
 *
 * A tile is encoded directly from the caller's memory. The caller passes a counter of the tiles in
 * that memory that are not yet in the file, and may reuse the memory when the counter is 0. */
#ifndef SLC_CONVERT_BUILD_TILES_H
#define SLC_CONVERT_BUILD_TILES_H

#include "base/error/error.h"
#include "storage/block/writer.h"
#include "storage/codec/codec.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_tiles_options {
    const struct slc_key_layout *layout;
    const struct slc_key_layout *content; /* key layout of content sums; NULL: `layout` */
    /* Borrowed mode sizes; every index must be below them. NULL: keys are known to be valid. */
    const uint64_t *dims;
    enum slc_codec codec;
    unsigned workers;
    struct slc_writer *writer; /* borrowed */
};

struct slc_tiles;

/* Memory: one encoder per worker. slc_tiles_destroy accepts NULL. */
enum slc_status slc_tiles_create(const struct slc_tiles_options *options,
                                 struct slc_tiles **tiles,
                                 struct slc_error *err) SLC_NODISCARD;
void slc_tiles_destroy(struct slc_tiles *tiles);

/* Queues a tile; if the queue is full, `worker` first encodes earlier tiles. Increments *borrowed,
 * and decrements it when the tile is in the file. Errors: those of the first tile that failed. */
enum slc_status slc_tiles_queue(struct slc_tiles *tiles,
                                unsigned worker,
                                const struct slc_tile_source *source,
                                uint32_t *borrowed,
                                struct slc_error *err) SLC_NODISCARD;

/* Marks the next tile to be queued as the first of a partition (slc_writer_next_partition). */
void slc_tiles_next_partition(struct slc_tiles *tiles, bool continued);

/* Encodes tiles, and waits for workers, until *borrowed is 0. Errors: those of slc_tiles_queue. */
enum slc_status slc_tiles_release(struct slc_tiles *tiles,
                                  unsigned worker,
                                  const uint32_t *borrowed,
                                  struct slc_error *err) SLC_NODISCARD;

/* The next functions serve a loop that divides its threads between tiles and other work
 * (build_pipeline.c). The lock also protects the state of that loop. Callers of the functions below
 * must hold the lock, which slc_tiles_encode_next releases while it encodes. */
void slc_tiles_lock(struct slc_tiles *tiles);
void slc_tiles_unlock(struct slc_tiles *tiles);
void slc_tiles_wait(struct slc_tiles *tiles); /* waits for a finished tile or slc_tiles_wake */
void slc_tiles_wake(struct slc_tiles *tiles);
/* Encodes the next queued tile. Returns false if no tile is queued. */
bool slc_tiles_encode_next(struct slc_tiles *tiles, unsigned worker);
/* Records the fault and stops all work. After the first call, further faults are ignored. */
void slc_tiles_fail(struct slc_tiles *tiles, const struct slc_error *fault);
bool slc_tiles_failed(const struct slc_tiles *tiles);

/* Returns the fault that stopped the work; SLC_OK if there was none. */
enum slc_status slc_tiles_status(const struct slc_tiles *tiles,
                                 struct slc_error *err) SLC_NODISCARD;

/* Returns the seconds spent in encoding and in appending, summed over workers. */
void slc_tiles_seconds(const struct slc_tiles *tiles, double *encode, double *write);

#endif
