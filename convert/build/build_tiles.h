/*
 * Tiles on their way to the block file: one thread at a time lists them in the order of the file,
 * any thread encodes the next one, and what is encoded is appended in order. So the file never
 * depends on which thread was faster, and nobody waits for a round to end.
 *
 * A tile is encoded from where its nonzeros lie. Whoever owns that memory gives a count of its
 * tiles that are not yet in the file, and may use it again when that is 0.
 */
#ifndef SLC_CONVERT_BUILD_TILES_H
#define SLC_CONVERT_BUILD_TILES_H

#include "base/error/error.h"
#include "storage/block/writer.h"
#include "storage/codec/codec.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_tiles_options {
    const struct slc_key_layout *layout;
    const struct slc_key_layout *content; /* of content sums; NULL: `layout` */
    /* Lengths of the modes, borrowed, where keys may be others than those within them: that is an
     * error then. NULL: they are within. */
    const uint64_t *dims;
    enum slc_codec codec;
    unsigned workers;
    struct slc_writer *writer; /* borrowed */
};

struct slc_tiles;

/* Memory: an encoder per worker. Takes NULL in destroy. */
enum slc_status slc_tiles_create(const struct slc_tiles_options *options,
                                 struct slc_tiles **tiles,
                                 struct slc_error *err) SLC_NODISCARD;
void slc_tiles_destroy(struct slc_tiles *tiles);

/*
 * Lists a tile; `worker` encodes earlier ones meanwhile if there is no room. *borrowed goes up by
 * one until the tile is in the file. Errors: those of the first tile that failed.
 */
enum slc_status slc_tiles_put(struct slc_tiles *tiles,
                              unsigned worker,
                              const struct slc_tile_source *source,
                              uint32_t *borrowed,
                              struct slc_error *err) SLC_NODISCARD;

/* The tile that is listed next is the first of a partition (slc_writer_next_partition). */
void slc_tiles_next_partition(struct slc_tiles *tiles, bool continued);

/* Encodes what is listed, and waits for others, until *borrowed is 0. Errors: as above. */
enum slc_status slc_tiles_release(struct slc_tiles *tiles,
                                  unsigned worker,
                                  const uint32_t *borrowed,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * For a loop that shares its threads between tiles and other work (build_pipeline.c): its own state
 * is under this lock, too. What follows is called with the lock held; encode_next gives it up
 * meanwhile.
 */
void slc_tiles_lock(struct slc_tiles *tiles);
void slc_tiles_unlock(struct slc_tiles *tiles);
void slc_tiles_wait(struct slc_tiles *tiles); /* until a tile or slc_tiles_wake changes anything */
void slc_tiles_wake(struct slc_tiles *tiles);
/* False when there is nothing to encode. */
bool slc_tiles_encode_next(struct slc_tiles *tiles, unsigned worker);
/* Ends everything; the first fault is kept. */
void slc_tiles_fail(struct slc_tiles *tiles, const struct slc_error *fault);
bool slc_tiles_failed(const struct slc_tiles *tiles);

/* The fault that ended everything, if any. */
enum slc_status slc_tiles_status(const struct slc_tiles *tiles,
                                 struct slc_error *err) SLC_NODISCARD;

/* Seconds of all workers, encoding and appending. */
void slc_tiles_seconds(const struct slc_tiles *tiles, double *encode, double *write);

#endif
