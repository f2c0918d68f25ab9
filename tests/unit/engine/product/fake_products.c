/* Multiplies tiles on the CPU and checks the contract of tile products. */
#include "fake_products.h"

#include "base/device.h"
#include "base/memory/checked.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

/* A tile's fibers. */
struct fake_lane {
    bool used;
    uint32_t count, given;
    uint32_t offset[SLC_MAX_ORDER][SLC_TILE_NNZ];
    double sums[FAKE_COLUMNS * SLC_TILE_NNZ];
};

/* Whether this call must fail; the mutex must be held. */
static enum slc_status may_fail(struct fake_products *fake, const char *what, struct slc_error *err)
{
    return ++fake->calls == fake->refuse ? slc_fail(err, SLC_ERR_SYSTEM, "refused to %s", what)
                                         : SLC_OK;
}

static enum slc_status plan(void *self,
                            const struct slc_reader *reader,
                            uint32_t modes,
                            const struct slc_used used[SLC_MAX_ORDER],
                            uint32_t columns,
                            unsigned threads,
                            struct slc_products_plan *planned,
                            struct slc_error *err)
{
    struct fake_products *fake = self;

    fake->wrongs += fake->is_open || reader == NULL || columns != fake->columns || modes == 0;
    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode++) {
        fake->wrongs += used[mode].words != NULL;
        fake->planned[mode] = used[mode].count;
    }
    fake->plans++;
    fake->modes = modes;
    planned->workers =
        (unsigned)slc_max_u64(threads, 1) + (fake->side == FAKE_NONE ? 0 : fake->lanes);
    planned->host_bytes = fake->host_bytes;
    return may_fail(fake, "plan", err);
}

static enum slc_status open_fake(void *self,
                                 const struct slc_matrix *const matrices[SLC_MAX_ORDER],
                                 const struct slc_used used[SLC_MAX_ORDER],
                                 struct slc_error *err)
{
    struct fake_products *fake = self;
    const enum slc_status status = may_fail(fake, "open", err);

    fake->wrongs += fake->is_open || fake->plans == 0;
    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode++) {
        fake->wrongs += ((fake->modes >> mode & 1) != 0) != (matrices[mode] != NULL);
        fake->vectors[mode] = matrices[mode];
        fake->used[mode] = used[mode];
        fake->wrongs += used[mode].count > fake->planned[mode];
    }
    fake->is_open = status == SLC_OK;
    fake->opens += fake->is_open;
    return status;
}

/* Whether nonzero i of a chunk belongs to the lane's last fiber. */
static bool continues_fiber(const struct fake_products *fake,
                            const struct fake_lane *lane,
                            const struct slc_tile_view *tile,
                            const struct slc_chunk_view *chunk,
                            uint32_t i)
{
    for (unsigned mode = 0; mode < tile->order; mode++) {
        if (fake->vectors[mode] == NULL && lane->count > 0 &&
            lane->offset[mode][lane->count - 1] != chunk->offset[mode][i]) {
            return false;
        }
    }
    return lane->count > 0;
}

static void take_nonzero(const struct fake_products *fake,
                         struct fake_lane *lane,
                         const struct slc_tile_view *tile,
                         const struct slc_chunk_view *chunk,
                         uint32_t i)
{
    double product[FAKE_COLUMNS];

    for (uint32_t r = 0; r < fake->columns; r++) {
        product[r] = ((const double *)chunk->values)[i];
    }
    for (unsigned mode = 0; mode < tile->order; mode++) {
        if (fake->vectors[mode] != NULL) {
            const struct slc_used *used = &fake->used[mode];
            const uint64_t index = tile->corner[mode] + chunk->offset[mode][i];

            const double *row = slc_matrix_row_f64(
                fake->vectors[mode], used->end > 0 ? slc_used_position(used, index) : index);

            for (uint32_t r = 0; r < fake->columns; r++) {
                product[r] *= row[r];
            }
        }
    }
    if (!continues_fiber(fake, lane, tile, chunk, i)) {
        for (unsigned mode = 0; mode < tile->order; mode++) {
            lane->offset[mode][lane->count] = chunk->offset[mode][i];
        }
        memset(lane->sums + (size_t)lane->count++ * fake->columns, 0,
               fake->columns * sizeof *lane->sums);
    }
    for (uint32_t r = 0; r < fake->columns; r++) {
        lane->sums[(size_t)(lane->count - 1) * fake->columns + r] += product[r];
    }
}

static enum slc_status multiply(const struct fake_products *fake,
                                struct fake_lane *lane,
                                struct slc_tile_view *tile,
                                struct slc_error *err)
{
    struct slc_chunk_view chunk = {.nnz = 1};
    enum slc_status status = SLC_OK;

    lane->count = 0;
    lane->given = 0;
    while (status == SLC_OK && chunk.nnz > 0) {
        status = tile->next(tile, 1024, &chunk, err);
        for (uint32_t i = 0; status == SLC_OK && i < chunk.nnz; i++) {
            take_nonzero(fake, lane, tile, &chunk, i);
        }
    }
    return status;
}

static void
give(const struct fake_products *fake, struct fake_lane *lane, struct slc_device_fibers *fibers)
{
    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode++) {
        fibers->offset[mode] =
            fake->vectors[mode] == NULL ? lane->offset[mode] + lane->given : NULL;
    }
    fibers->sums = lane->sums + (size_t)lane->given * fake->columns;
    fibers->count = (uint32_t)slc_min_u64(lane->count - lane->given, fake->room);
    lane->given += fibers->count;
    fibers->more = lane->given < lane->count;
}

static struct fake_lane *free_lane(const struct fake_products *fake)
{
    for (unsigned l = 0; l < fake->lanes; l++) {
        if (!fake->lane[l].used) {
            return &fake->lane[l];
        }
    }
    return NULL;
}

/* The mutex must be held. NULL: the worker multiplies itself. */
static struct fake_lane *choose_lane(struct fake_products *fake, const struct slc_tile_view *tile)
{
    struct fake_lane *lane = NULL;

    if (fake->side == FAKE_FREE) {
        lane = free_lane(fake);
    }
    if (fake->side == FAKE_ALL || (fake->side == FAKE_ODD && tile->ordinal % 2 == 1)) {
        while ((lane = free_lane(fake)) == NULL) {
            pthread_cond_wait(&fake->changed, &fake->mutex);
        }
    }
    if (lane != NULL) {
        lane->used = true;
    }
    return lane;
}

static void leave(void *self, unsigned worker)
{
    struct fake_products *fake = self;

    pthread_mutex_lock(&fake->mutex);
    fake->wrongs += !fake->inside[worker];
    fake->inside[worker] = false;
    if (fake->lane_of[worker] != NULL) {
        fake->lane_of[worker]->used = false;
        fake->lane_of[worker] = NULL;
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
}

static enum slc_status take(void *self,
                            unsigned worker,
                            struct slc_tile_view *tile,
                            struct slc_device_fibers *fibers,
                            struct slc_error *err)
{
    struct fake_products *fake = self;
    struct fake_lane *lane;
    enum slc_status status;

    pthread_mutex_lock(&fake->mutex);
    fake->wrongs += fake->inside[worker] || !fake->is_open;
    fake->inside[worker] = true;
    status = may_fail(fake, "multiply", err);
    if (status == SLC_OK && tile->ordinal + 1 == fake->damaged) {
        status = slc_fail(err, SLC_ERR_DAMAGED, "tile %u is damaged", (unsigned)tile->ordinal);
    }
    lane = status == SLC_OK ? choose_lane(fake, tile) : NULL;
    fake->lane_of[worker] = lane;
    fake->here += lane != NULL;
    fake->elsewhere += status == SLC_OK && lane == NULL;
    pthread_mutex_unlock(&fake->mutex);
    fibers->count = 0;
    if (lane != NULL) {
        status = multiply(fake, lane, tile, err);
        give(fake, lane, fibers);
    }
    if (status != SLC_OK) {
        leave(fake, worker);
    }
    return status;
}

static enum slc_status
more(void *self, unsigned worker, struct slc_device_fibers *fibers, struct slc_error *err)
{
    struct fake_products *fake = self;
    enum slc_status status;

    pthread_mutex_lock(&fake->mutex);
    fake->wrongs += fake->lane_of[worker] == NULL || !fibers->more;
    status = may_fail(fake, "give more", err);
    pthread_mutex_unlock(&fake->mutex);
    if (status == SLC_OK) {
        give(fake, fake->lane_of[worker], fibers);
    }
    return status;
}

static void close_fake(void *self)
{
    struct fake_products *fake = self;

    fake->wrongs += !fake->is_open;
    fake->is_open = false;
    fake->closes++;
}

void fake_products_begin(struct fake_products *fake)
{
    pthread_mutex_init(&fake->mutex, NULL);
    pthread_cond_init(&fake->changed, NULL);
    fake->columns = fake->columns > 0 ? fake->columns : 1;
    fake->lane = calloc(fake->lanes, sizeof *fake->lane);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fake->lane);
    fake->table = (struct slc_tile_products){.self = fake,
                                             .plan = plan,
                                             .open = open_fake,
                                             .take = take,
                                             .more = more,
                                             .leave = leave,
                                             .close = close_fake};
}

void fake_products_end(struct fake_products *fake)
{
    for (unsigned w = 0; w < SLC_MAX_THREADS; w++) {
        CU_ASSERT_FALSE(fake->inside[w]);
    }
    CU_ASSERT_EQUAL(fake->opens, fake->closes);
    CU_ASSERT_EQUAL(fake->wrongs, 0);
    free(fake->lane);
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->mutex);
}
