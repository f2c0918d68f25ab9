/* Makes tiles from ordered nonzeros. Each slot of a ring, `struct stage`, holds the nonzeros of one
 * tile. Tile q of the file uses slot q modulo the number of slots, from the time when the previous
 * tile in the slot has been encoded until tile q has been encoded. A thread that needs an occupied
 * slot encodes tiles until the slot is free. The ring cannot deadlock: the oldest incomplete tile
 * has its slot, and its pieces were reserved before all pieces that wait. */
#include "engine/product/ordered.h"

#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Slots in addition to one per worker: one for the tile that is being encoded, and one for the
     * tile that is being filled. */
    MORE_STAGES = 2,
    /* Bytes of the text of coordinates: per mode a number of 20 digits, a comma and a space, and a
     * NUL at the end. */
    COORDS_BYTES = SLC_MAX_ORDER * 22 + 1
};

/* One tile under construction. `filled` and `borrowed` are protected by the lock of the tiles. */
struct stage {
    uint64_t *key_lo;
    uint64_t *key_hi; /* NULL if keys have at most 64 bits */
    double *values;
    uint32_t filled;
    uint32_t borrowed;
};

struct slc_ordered {
    const struct slc_key_layout *layout;
    struct slc_tiles *tiles;
    struct slc_buffer memory;
    unsigned stage_count;
    struct stage *stages;

    /* Accessed only by slc_ordered_reserve and slc_ordered_finish, by one thread at a time. */
    uint64_t reserved; /* nonzeros reserved so far */
    bool open;         /* true if the next piece may add to the last nonzero */
    uint64_t open_lo, open_hi;
    double open_value;
    struct slc_ordered_counts counts;

    /* Protected by the lock of the tiles. */
    uint64_t listed; /* tiles queued for encoding so far */
    bool listing;    /* true while a thread queues the next tile */
};

static unsigned stages_of(unsigned workers)
{
    return workers + MORE_STAGES;
}

static uint64_t stage_bytes(const struct slc_key_layout *layout)
{
    return SLC_TILE_NNZ * ((layout->bits > 64 ? 2 : 1) * sizeof(uint64_t) + sizeof(double));
}

uint64_t slc_ordered_bytes(const struct slc_key_layout *layout, unsigned workers)
{
    return slc_buffer_footprint(stages_of(workers) * stage_bytes(layout), SLC_PAGES_SMALL);
}

enum slc_status slc_ordered_create(const struct slc_ordered_options *options,
                                   struct slc_ordered **ordered,
                                   struct slc_error *err)
{
    struct slc_ordered *o = slc_calloc(1, sizeof *o);
    const bool wide = options->layout->bits > 64;

    SLC_TRY(slc_check_memory(o != NULL, err, "for writing the store"));
    for (unsigned mode = 0; mode < options->layout->order; mode++) {
        assert(options->dims[mode] <= SLC_ORDERED_MODE_MAX);
    }
    o->layout = options->layout;
    o->tiles = options->tiles;
    o->stage_count = stages_of(options->workers);
    o->stages = slc_calloc(o->stage_count, sizeof *o->stages);
    enum slc_status status =
        o->stages == NULL ? slc_fail(err, SLC_ERR_MEMORY, "no memory for writing the store")
                          : slc_buffer_create(&o->memory, o->stage_count * stage_bytes(o->layout),
                                              SLC_PAGES_SMALL, err);
    if (status != SLC_OK) {
        slc_ordered_destroy(o);
        return status;
    }
    uint64_t *at = o->memory.data;
    for (unsigned i = 0; i < o->stage_count; i++) {
        o->stages[i].key_lo = at;
        at += SLC_TILE_NNZ;
        o->stages[i].key_hi = wide ? at : NULL;
        at += wide ? SLC_TILE_NNZ : 0;
        o->stages[i].values = (double *)(void *)at;
        at += SLC_TILE_NNZ;
    }
    *ordered = o;
    return SLC_OK;
}

void slc_ordered_destroy(struct slc_ordered *ordered)
{
    if (ordered == NULL) {
        return;
    }
    slc_buffer_destroy(&ordered->memory);
    slc_free(ordered->stages);
    slc_free(ordered);
}

static uint64_t
high_of(const struct slc_ordered *ordered, const struct slc_ordered_piece *piece, uint32_t i)
{
    return ordered->layout->bits > 64 ? piece->key_hi[i] : 0;
}

static enum slc_status fail_range(const struct slc_ordered *ordered, struct slc_error *err)
{
    const struct slc_key_layout *layout = ordered->layout;
    uint64_t coords[SLC_MAX_ORDER];
    char text[COORDS_BYTES];
    size_t used = 0;

    slc_key_decode(layout, slc_key_join(ordered->open_lo, ordered->open_hi), coords);
    for (unsigned mode = 0; mode < layout->order; mode++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64,
                                 mode == 0 ? "" : ", ", coords[mode] + 1);
    }
    return slc_fail(err, SLC_ERR_INPUT,
                    "the sums at (%s) of the result (indices start at 1) add up to %g, beyond the "
                    "range of f64: scale the vectors",
                    text, ordered->open_value);
}

/* Completes the open nonzero: unless its value is zero, stores it as the head of `place`. */
static enum slc_status close_coordinate(struct slc_ordered *ordered,
                                        struct slc_ordered_place *place,
                                        struct slc_error *err)
{
    if (!ordered->open) {
        return SLC_OK;
    }
    ordered->open = false;
    if (!isfinite(ordered->open_value)) {
        return fail_range(ordered, err);
    }
    if (ordered->open_value == 0) {
        ordered->counts.zeros++;
        return SLC_OK;
    }
    place->has_head = true;
    place->head_lo = ordered->open_lo;
    place->head_hi = ordered->open_hi;
    place->head_value = ordered->open_value;
    ordered->reserved++;
    return SLC_OK;
}

enum slc_status slc_ordered_reserve(struct slc_ordered *ordered,
                                    const struct slc_ordered_piece *piece,
                                    struct slc_ordered_place *place,
                                    struct slc_error *err)
{
    const uint32_t last = piece->count - 1;

    *place = (struct slc_ordered_place){.at = ordered->reserved};
    if (piece->count == 0) {
        return SLC_OK;
    }
    if (ordered->open && ordered->open_lo == piece->key_lo[0] &&
        ordered->open_hi == high_of(ordered, piece, 0)) {
        ordered->open_value += piece->values[0];
        ordered->counts.duplicates++;
        place->begin = 1;
        if (piece->count == 1) {
            place->end = 1;
            return SLC_OK;
        }
    }
    enum slc_status status = close_coordinate(ordered, place, err);
    place->end = last;
    ordered->reserved += place->end - place->begin;
    ordered->open = true;
    ordered->open_lo = piece->key_lo[last];
    ordered->open_hi = high_of(ordered, piece, last);
    ordered->open_value = piece->values[last];
    return status;
}

/* Queues complete tiles for encoding, in order. Needs: the caller holds the lock of the tiles. */
static void list_complete(struct slc_ordered *ordered, unsigned worker, bool last)
{
    struct slc_tiles *tiles = ordered->tiles;

    while (!ordered->listing && !slc_tiles_failed(tiles)) {
        struct stage *stage = &ordered->stages[ordered->listed % ordered->stage_count];
        const uint32_t nnz = stage->filled;
        struct slc_error err = SLC_ERROR_INIT;

        if (nnz < (last ? 1 : SLC_TILE_NNZ)) {
            return;
        }
        /* Keys ascend, so if the first and the last upper half are equal, all upper halves are
         * equal. */
        bool one_upper = stage->key_hi != NULL && stage->key_hi[0] == stage->key_hi[nnz - 1];
        struct slc_tile_source source = {.nnz = nnz,
                                         .key_lo = stage->key_lo,
                                         .key_hi = one_upper ? NULL : stage->key_hi,
                                         .upper = one_upper ? stage->key_hi[0] : 0,
                                         .values = stage->values};
        ordered->listing = true;
        slc_tiles_unlock(tiles);
        if (slc_tiles_queue(tiles, worker, &source, &stage->borrowed, &err) != SLC_OK) {
            slc_error_clear(&err); /* `tiles` keeps the first error */
        }
        slc_tiles_lock(tiles);
        stage->filled = 0;
        ordered->listed++;
        ordered->listing = false;
        slc_tiles_wake(tiles);
    }
}

/* Returns true if the slot for tile `at` of the file is free. Needs: the caller holds the lock of
 * the tiles. */
static bool has_slot(const struct slc_ordered *ordered, uint64_t at)
{
    return at < ordered->stage_count || (ordered->listed > at - ordered->stage_count &&
                                         ordered->stages[at % ordered->stage_count].borrowed == 0);
}

/* Copies `count` nonzeros of a piece, starting with nonzero `begin`, to the positions `at`, `at` +
 * 1, .. of the file. */
static void copy_nonzeros(struct slc_ordered *ordered,
                          unsigned worker,
                          uint64_t at,
                          const struct slc_ordered_piece *piece,
                          uint32_t begin,
                          uint32_t count)
{
    struct slc_tiles *tiles = ordered->tiles;

    while (count > 0) {
        const uint64_t number = at / SLC_TILE_NNZ;
        const uint32_t offset = (uint32_t)(at % SLC_TILE_NNZ);
        const uint32_t fit = (uint32_t)slc_min_u64(count, SLC_TILE_NNZ - offset);
        struct stage *stage = &ordered->stages[number % ordered->stage_count];

        slc_tiles_lock(tiles);
        while (!has_slot(ordered, number) && !slc_tiles_failed(tiles)) {
            if (!slc_tiles_encode_next(tiles, worker)) {
                slc_tiles_wait(tiles);
            }
        }
        bool failed = slc_tiles_failed(tiles);
        slc_tiles_unlock(tiles);
        if (failed) {
            return;
        }
        memcpy(stage->key_lo + offset, piece->key_lo + begin, fit * sizeof *stage->key_lo);
        memcpy(stage->values + offset, piece->values + begin, fit * sizeof *stage->values);
        if (stage->key_hi != NULL) {
            memcpy(stage->key_hi + offset, piece->key_hi + begin, fit * sizeof *stage->key_hi);
        }
        slc_tiles_lock(tiles);
        stage->filled += fit;
        list_complete(ordered, worker, false);
        slc_tiles_unlock(tiles);
        at += fit;
        begin += fit;
        count -= fit;
    }
}

static void
copy_head(struct slc_ordered *ordered, unsigned worker, const struct slc_ordered_place *place)
{
    const struct slc_ordered_piece head = {.count = 1,
                                           .key_lo = &place->head_lo,
                                           .key_hi = &place->head_hi,
                                           .values = &place->head_value};

    if (place->has_head) {
        copy_nonzeros(ordered, worker, place->at, &head, 0, 1);
    }
}

void slc_ordered_deliver(struct slc_ordered *ordered,
                         unsigned worker,
                         const struct slc_ordered_piece *piece,
                         const struct slc_ordered_place *place)
{
    copy_head(ordered, worker, place);
    copy_nonzeros(ordered, worker, place->at + place->has_head, piece, place->begin,
                  place->end - place->begin);
    /* Each delivery encodes one queued tile, so that the queue does not grow. */
    slc_tiles_lock(ordered->tiles);
    (void)slc_tiles_encode_next(ordered->tiles, worker);
    slc_tiles_unlock(ordered->tiles);
}

enum slc_status slc_ordered_finish(struct slc_ordered *ordered,
                                   struct slc_ordered_counts *counts,
                                   struct slc_error *err)
{
    struct slc_ordered_place place = {.at = ordered->reserved};
    enum slc_status status = close_coordinate(ordered, &place, err);

    if (status == SLC_OK) {
        copy_head(ordered, 0, &place);
        slc_tiles_lock(ordered->tiles);
        list_complete(ordered, 0, true);
        slc_tiles_unlock(ordered->tiles);
    }
    for (unsigned i = 0; i < ordered->stage_count && status == SLC_OK; i++) {
        status = slc_tiles_release(ordered->tiles, 0, &ordered->stages[i].borrowed, err);
    }
    *counts = ordered->counts;
    return status;
}
