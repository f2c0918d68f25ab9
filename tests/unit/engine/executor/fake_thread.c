/* The thread of a fake device: copies blocks late, decodes and multiplies them. */
#include "fake_impl.h"

#include "base/hash.h"
#include "base/random.h"
#include "storage/block/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void *fake_take(size_t bytes)
{
    void *memory = calloc(1, bytes > 0 ? bytes : 1);

    if (memory == NULL) {
        printf("Bail out! no memory for a device\n");
        exit(1);
    }
    return memory;
}

void fake_require(struct fake *fake, bool holds, const char *what)
{
    if (!holds) {
        printf("# the device: %s\n", what);
        atomic_fetch_add(&fake->counts.wrongs, 1); /* by either thread */
    }
}

static void multiply_chunk(struct fake *fake,
                           const struct slc_tile_view *tile,
                           const struct slc_chunk_view *chunk)
{
    const unsigned mode = fake->job.mode;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        const double value = ((const double *)chunk->values)[i];
        double *row =
            slc_matrix_row_f64(&fake->output, tile->corner[mode] + chunk->offset[mode][i]);

        fake->squares += value * value;
        for (uint32_t r = 0; r < fake->problem.rank; r++) {
            double product = value;

            for (unsigned m = 0; m < fake->problem.order; m++) {
                if (m != mode) {
                    product *=
                        slc_matrix_get(&fake->factors[m], tile->corner[m] + chunk->offset[m][i], r);
                }
            }
            row[r] += product;
        }
    }
}

/* Adds a block to the output, nonzero by nonzero. */
static void multiply(struct fake *fake, const struct work *work)
{
    const struct slc_reader *reader = fake->options.layouts->reader[fake->job.layout];
    struct slc_decoder *decoder = NULL;
    struct slc_block_view view = {.entry = {.tile_count = 0}};
    struct slc_tile_view tile;
    struct slc_chunk_view chunk;
    bool sound = slc_decoder_create(slc_reader_info(reader), SLC_F64, &decoder, NULL) == SLC_OK &&
                 slc_block_open(reader, work->block, work->data, false, &view, NULL) == SLC_OK;

    for (uint32_t t = 0; t < view.entry.tile_count && sound; t++) {
        sound = slc_tile_open(decoder, &view, t, &tile, NULL) == SLC_OK;
        do {
            sound = sound && tile.next(&tile, 1024, &chunk, NULL) == SLC_OK;
            if (sound) {
                multiply_chunk(fake, &tile, &chunk);
            }
        } while (sound && chunk.nnz > 0);
    }
    fake_require(fake, sound, "a block that cannot be decoded");
    slc_decoder_destroy(decoder);
}

static void copy_late(struct fake *fake, struct work *work)
{
    const uint64_t late_ns = slc_random_below(fake->options.seed, 1, work->ticket,
                                              (uint64_t)fake->options.late_us * 1000 + 1);

    (void)nanosleep(&(struct timespec){.tv_nsec = (long)late_ns}, NULL);
    /* The padding of a block on disk is not copied; it is zero. */
    work->data = fake_take(work->padded_bytes);
    memcpy(work->data, work->host, work->bytes);
    fake_require(fake, slc_hash64(work->data, work->bytes) == work->hash,
                 "a block was changed before its copy was made");
    work->host = NULL;
}

void *fake_run(void *context)
{
    struct fake *fake = context;

    pthread_mutex_lock(&fake->mutex);
    while (!fake->leave || fake->first != NULL) {
        struct work *work = fake->first;

        if (work == NULL) {
            pthread_cond_wait(&fake->changed, &fake->mutex);
            continue;
        }
        fake->first = work->next;
        fake->end = fake->first != NULL ? fake->end : &fake->first;
        pthread_mutex_unlock(&fake->mutex);
        if (work->host != NULL) {
            copy_late(fake, work);
        }
        pthread_mutex_lock(&fake->mutex);
        fake->done = work->ticket > fake->done ? work->ticket : fake->done;
        pthread_cond_broadcast(&fake->changed);
        pthread_mutex_unlock(&fake->mutex);
        multiply(fake, work);
        pthread_mutex_lock(&fake->mutex);
        if ((int64_t)work->block == fake->damaged) {
            fake->found_damaged = fake->damaged;
            fake->damaged = NO_BLOCK;
        }
        fake->nnz_done += work->nnz;
        if (!work->stays) {
            free(work->data);
            free(work);
        }
        fake->queued--;
        pthread_cond_broadcast(&fake->changed);
    }
    pthread_mutex_unlock(&fake->mutex);
    return NULL;
}

void fake_enqueue(struct fake *fake, struct work *work, unsigned most)
{
    pthread_mutex_lock(&fake->mutex);
    while (fake->queued >= most) {
        pthread_cond_wait(&fake->changed, &fake->mutex);
    }
    work->next = NULL;
    *fake->end = work;
    fake->end = &work->next;
    fake->queued++;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_drain(struct fake *fake)
{
    pthread_mutex_lock(&fake->mutex);
    while (fake->queued > 0) {
        pthread_cond_wait(&fake->changed, &fake->mutex);
    }
    pthread_mutex_unlock(&fake->mutex);
}

unsigned fake_queued(struct fake *fake)
{
    unsigned queued;

    pthread_mutex_lock(&fake->mutex);
    queued = fake->queued;
    pthread_mutex_unlock(&fake->mutex);
    return queued;
}
