/* Encodes and appends tiles, through a ring of queued tiles with appended <= taken <= listed. */
#include "convert/build/build_tiles.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"

#include <inttypes.h>
#include <pthread.h>

enum { TILES_MAX = 256 };

/* Position of a tile in its partition. */
enum beginning { WITHIN_PARTITION, OF_PARTITION, OF_CONTINUED_PARTITION };

struct listed_tile {
    struct slc_tile_source source;
    uint32_t *borrowed;
    enum beginning beginning;
};

struct slc_tiles {
    struct slc_writer *writer;
    const uint64_t *dims; /* NULL: keys are known to be in range */
    unsigned order;
    unsigned workers;
    struct slc_encoder **encoders;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum beginning next; /* position of the next tile */
    uint64_t listed;     /* tiles queued so far */
    uint64_t taken;      /* tiles whose encoding has started */
    uint64_t appended;   /* tiles in the file */
    uint64_t encode_ns, write_ns;
    struct slc_error fault; /* the first fault; status SLC_OK: none */
    struct listed_tile ring[TILES_MAX];
};

enum slc_status slc_tiles_create(const struct slc_tiles_options *options,
                                 struct slc_tiles **tiles,
                                 struct slc_error *err)
{
    struct slc_tiles *t = slc_calloc(1, sizeof *t);
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(t != NULL, err, "for a list of tiles"));
    t->writer = options->writer;
    t->dims = options->dims;
    t->order = options->layout->order;
    t->workers = options->workers;
    /* With default attributes, these two calls cannot fail on Linux. */
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    t->encoders = slc_calloc(t->workers, sizeof *t->encoders);
    if (t->encoders == NULL) {
        status = slc_fail(err, SLC_ERR_MEMORY, "no memory for %u encoders", t->workers);
    }
    for (unsigned i = 0; i < t->workers && status == SLC_OK; i++) {
        status = slc_encoder_create(options->layout, options->codec, &t->encoders[i], err);
        if (status == SLC_OK && options->content != NULL) {
            status = slc_encoder_sum_over(t->encoders[i], options->content, err);
        }
    }
    if (status != SLC_OK) {
        slc_tiles_destroy(t);
        return status;
    }
    *tiles = t;
    return SLC_OK;
}

void slc_tiles_destroy(struct slc_tiles *tiles)
{
    if (tiles == NULL) {
        return;
    }
    for (unsigned i = 0; i < tiles->workers && tiles->encoders != NULL; i++) {
        slc_encoder_destroy(tiles->encoders[i]);
    }
    slc_free(tiles->encoders);
    pthread_cond_destroy(&tiles->changed);
    pthread_mutex_destroy(&tiles->lock);
    slc_free(tiles);
}

void slc_tiles_lock(struct slc_tiles *tiles)
{
    pthread_mutex_lock(&tiles->lock);
}

void slc_tiles_unlock(struct slc_tiles *tiles)
{
    pthread_mutex_unlock(&tiles->lock);
}

void slc_tiles_wait(struct slc_tiles *tiles)
{
    pthread_cond_wait(&tiles->changed, &tiles->lock);
}

void slc_tiles_wake(struct slc_tiles *tiles)
{
    pthread_cond_broadcast(&tiles->changed);
}

void slc_tiles_fail(struct slc_tiles *tiles, const struct slc_error *fault)
{
    if (tiles->fault.status == SLC_OK) {
        tiles->fault = *fault;
    }
    slc_tiles_wake(tiles);
}

bool slc_tiles_failed(const struct slc_tiles *tiles)
{
    return tiles->fault.status != SLC_OK;
}

enum slc_status slc_tiles_status(const struct slc_tiles *tiles, struct slc_error *err)
{
    return slc_error_pass(err, &tiles->fault);
}

static enum slc_status append_tile(struct slc_writer *writer,
                                   enum beginning beginning,
                                   const struct slc_tile_blob *blob,
                                   struct slc_error *err)
{
    if (beginning != WITHIN_PARTITION) {
        SLC_TRY(slc_writer_next_partition(writer, beginning == OF_CONTINUED_PARTITION, err));
    }
    return slc_writer_append(writer, blob, err);
}

/* Appends tile number `at` when its turn comes. Needs the lock. */
static enum slc_status append_in_turn(struct slc_tiles *tiles,
                                      uint64_t at,
                                      enum beginning beginning,
                                      const struct slc_tile_blob *blob,
                                      struct slc_error *err)
{
    while (tiles->appended != at && !slc_tiles_failed(tiles)) {
        slc_tiles_wait(tiles);
    }
    if (slc_tiles_failed(tiles)) {
        return SLC_OK; /* the first fault is recorded already */
    }
    pthread_mutex_unlock(&tiles->lock);
    uint64_t start = slc_clock_ns();
    enum slc_status status = append_tile(tiles->writer, beginning, blob, err);
    start = slc_clock_ns() - start;
    pthread_mutex_lock(&tiles->lock);
    tiles->write_ns += start;
    return status;
}

/* Checks that indices are below the mode sizes. Only a damaged state of another run can violate
 * this. */
static enum slc_status
check_within(const struct slc_tiles *tiles, const struct slc_tile_blob *blob, struct slc_error *err)
{
    for (unsigned n = 0; n < tiles->order && tiles->dims != NULL; n++) {
        if (blob->max[n] >= tiles->dims[n]) {
            return slc_fail(err, SLC_ERR_DAMAGED,
                            "index %" PRIu64 " of mode %u is not below the mode size %" PRIu64
                            ": the spill file was changed after it was written",
                            blob->max[n] + 1, n + 1, tiles->dims[n]);
        }
    }
    return SLC_OK;
}

bool slc_tiles_encode_next(struct slc_tiles *tiles, unsigned worker)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_tile_blob blob;

    if (tiles->taken == tiles->listed || slc_tiles_failed(tiles)) {
        return false;
    }
    uint64_t at = tiles->taken++;
    struct listed_tile *tile = &tiles->ring[at % TILES_MAX];
    pthread_mutex_unlock(&tiles->lock);
    uint64_t start = slc_clock_ns();
    enum slc_status status = slc_tile_encode(tiles->encoders[worker], &tile->source, &blob, &err);
    SLC_THEN(status, check_within(tiles, &blob, &err));
    start = slc_clock_ns() - start;
    pthread_mutex_lock(&tiles->lock);
    tiles->encode_ns += start;
    SLC_THEN(status, append_in_turn(tiles, at, tile->beginning, &blob, &err));
    if (status != SLC_OK) {
        slc_tiles_fail(tiles, &err);
    }
    if (!slc_tiles_failed(tiles)) {
        tiles->appended++;
        --*tile->borrowed;
        slc_tiles_wake(tiles);
    }
    return true;
}

enum slc_status slc_tiles_queue(struct slc_tiles *tiles,
                                unsigned worker,
                                const struct slc_tile_source *source,
                                uint32_t *borrowed,
                                struct slc_error *err)
{
    pthread_mutex_lock(&tiles->lock);
    while (tiles->listed - tiles->appended == TILES_MAX && !slc_tiles_failed(tiles)) {
        if (!slc_tiles_encode_next(tiles, worker)) {
            slc_tiles_wait(tiles);
        }
    }
    enum slc_status status = slc_tiles_status(tiles, err);
    if (status == SLC_OK) {
        tiles->ring[tiles->listed++ % TILES_MAX] =
            (struct listed_tile){*source, borrowed, tiles->next};
        tiles->next = WITHIN_PARTITION;
        ++*borrowed;
        slc_tiles_wake(tiles);
    }
    pthread_mutex_unlock(&tiles->lock);
    return status;
}

void slc_tiles_next_partition(struct slc_tiles *tiles, bool continued)
{
    pthread_mutex_lock(&tiles->lock);
    tiles->next = continued ? OF_CONTINUED_PARTITION : OF_PARTITION;
    pthread_mutex_unlock(&tiles->lock);
}

enum slc_status slc_tiles_release(struct slc_tiles *tiles,
                                  unsigned worker,
                                  const uint32_t *borrowed,
                                  struct slc_error *err)
{
    pthread_mutex_lock(&tiles->lock);
    while (*borrowed > 0 && !slc_tiles_failed(tiles)) {
        if (!slc_tiles_encode_next(tiles, worker)) {
            slc_tiles_wait(tiles);
        }
    }
    enum slc_status status = slc_tiles_status(tiles, err);
    pthread_mutex_unlock(&tiles->lock);
    return status;
}

void slc_tiles_seconds(const struct slc_tiles *tiles, double *encode, double *write)
{
    *encode = (double)tiles->encode_ns * 1e-9;
    *write = (double)tiles->write_ns * 1e-9;
}
