/* Allocates lists of coordinates, fills them from tiles, and builds the permutations that sort
 * their nonzeros by one mode.
 *
 * The sort is a radix sort that begins with the lowest digit of 11 bits, one digit per sweep. Every
 * worker counts the digits in its share of the list. Prefix sums of the counts are the positions to
 * which each worker moves its nonzeros of each digit. The first sweep reads coordinates, the next
 * sweeps move pairs of coordinate and position, and the last sweep writes only positions. A mode of
 * up to 2,048 rows needs one sweep, which is the first and the last, and no scratch except counts.
 * The sort is stable, and its result is the same for any number of workers.
 *
 * Cost: 8 to 10 ns per nonzero and sweep with one worker, including the first touch of pages
 * (flights-4d and wordnet30-srs). */
#include "tools/bench/rivals/cpu/coo.h"

#include "base/memory/checked.h"
#include "base/thread/team.h"
#include "cpu/mttkrp/tile_place.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
    RADIX_BITS = 11, /* the counts of a worker fit the first-level cache */
    RADIX_BUCKETS = 1 << RADIX_BITS
};

/* One sweep of a sort. */
struct sweep {
    const struct slc_coo *coo;
    unsigned mode;
    unsigned shift;       /* first bit of the digit within the coordinate */
    const uint64_t *from; /* pairs (coordinate << 32 | position); NULL in the first sweep */
    uint64_t *to;         /* destination of pairs; NULL in the last sweep */
    uint32_t *order;      /* destination of positions in the last sweep */
    uint32_t *start;      /* RADIX_BUCKETS elements per worker */
};

/* Returns the number of sweeps that sort coordinates below `length`: 1 to 3. */
static unsigned sweeps_of(uint64_t length)
{
    const unsigned bits = length > 1 ? 64U - (unsigned)__builtin_clzll(length - 1) : 1;

    return (bits + RADIX_BITS - 1) / RADIX_BITS;
}

static uint64_t count_bytes(unsigned workers)
{
    return (uint64_t)workers * RADIX_BUCKETS * sizeof(uint32_t);
}

/* Returns the bytes of scratch for the mode that needs the most, UINT64_MAX on overflow. */
static uint64_t sort_bytes(const struct slc_tensor_shape *shape, unsigned workers)
{
    unsigned sweeps = 1;
    uint64_t bytes;

    for (unsigned m = 0; m < shape->order; m++) {
        sweeps = sweeps_of(shape->dims[m]) > sweeps ? sweeps_of(shape->dims[m]) : sweeps;
    }
    /* Pairs move between two arrays. The first sweep only writes them, the last only reads them. */
    return slc_mul_u64(shape->nnz, (sweeps - 1) * sizeof(uint64_t), &bytes) &&
                   slc_add_u64(bytes, count_bytes(workers), &bytes)
               ? bytes
               : UINT64_MAX;
}

const char *slc_coo_kernel_name(enum slc_coo_kernel kernel)
{
    static const char *const names[] = {"genten-a", "genten-b", "genten-c"};

    return (unsigned)kernel < SLC_COO_KERNELS ? names[kernel] : "?";
}

/* Adds the bytes of a buffer of `count` elements, in whole pages, to *total. Returns false on
 * overflow. */
static bool add_buffer(uint64_t count, uint64_t element_bytes, uint64_t *total)
{
    uint64_t bytes;

    return slc_mul_u64(count, element_bytes, &bytes) && bytes <= SIZE_MAX / 2 &&
           slc_add_u64(*total, slc_buffer_footprint(bytes, SLC_PAGES_HUGE), total);
}

uint64_t slc_coo_bytes(const struct slc_tensor_shape *shape,
                       enum slc_value_type type,
                       bool permuted,
                       unsigned workers)
{
    uint64_t total = 0;
    bool fits = add_buffer(shape->nnz, shape->order * sizeof(uint32_t), &total) &&
                add_buffer(shape->nnz, slc_value_bytes(type), &total);

    for (unsigned m = 0; fits && permuted && m < shape->order; m++) {
        fits = add_buffer(shape->nnz, sizeof(uint32_t), &total);
    }
    if (fits && permuted) {
        fits = add_buffer(sort_bytes(shape, workers), 1, &total);
    }
    return fits ? total : UINT64_MAX;
}

static enum slc_status check_shape(const struct slc_tensor_shape *shape, struct slc_error *err)
{
    const uint64_t most = UINT64_C(1) << 32;

    if (shape->order < 1 || shape->order > SLC_MAX_ORDER ||
        (shape->nnz > 0 && shape->tile_nnz == 0)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a list of coordinates needs 1 to %d modes and tiles with nonzeros, not %u "
                        "modes and tiles of %u nonzeros",
                        SLC_MAX_ORDER, shape->order, shape->tile_nnz);
    }
    for (unsigned m = 0; m < shape->order; m++) {
        if (shape->dims[m] > most) {
            return slc_fail(err, SLC_ERR_UNSUPPORTED,
                            "mode %u has size %" PRIu64
                            ", but a list of coordinates is limited to mode size 2^32",
                            m + 1, shape->dims[m]);
        }
    }
    if (shape->nnz >= most) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "there are %" PRIu64
                        " nonzeros, but a list of coordinates is limited to 2^32 - 1 nonzeros",
                        shape->nnz);
    }
    return SLC_OK;
}

enum slc_status slc_coo_create(struct slc_coo *coo,
                               const struct slc_tensor_shape *shape,
                               enum slc_value_type type,
                               struct slc_error *err)
{
    SLC_TRY(check_shape(shape, err));
    coo->shape = *shape;
    coo->type = type;
    atomic_store(&coo->loaded, 0);
    SLC_TRY(slc_buffer_create(&coo->coords, shape->nnz * shape->order * sizeof(uint32_t),
                              SLC_PAGES_HUGE, err));
    return slc_buffer_create(&coo->values, shape->nnz * slc_value_bytes(type), SLC_PAGES_HUGE, err);
}

static void add_chunk(const struct slc_coo *coo,
                      const struct slc_tile_view *tile,
                      const struct slc_chunk_view *chunk,
                      uint64_t at)
{
    const unsigned order = coo->shape.order;
    const uint64_t value_bytes = slc_value_bytes(coo->type);
    uint32_t *coords = (uint32_t *)coo->coords.data + at * order;

    for (unsigned m = 0; m < order; m++) {
        const uint32_t corner = (uint32_t)tile->corner[m];

        for (uint32_t i = 0; i < chunk->nnz; i++) {
            coords[(uint64_t)i * order + m] = corner + chunk->offset[m][i];
        }
    }
    memcpy((unsigned char *)coo->values.data + at * value_bytes, chunk->values,
           chunk->nnz * value_bytes);
}

static enum slc_status
refuse_tile(const struct slc_coo *coo, const struct slc_tile_view *tile, struct slc_error *err)
{
    return slc_fail(
        err, SLC_ERR_USAGE,
        "tile %" PRIu64
        " (order %u, %u nonzeros) is of another tensor than the list, which has %" PRIu64
        " nonzeros",
        tile->ordinal, tile->order, tile->nnz, coo->shape.nnz);
}

enum slc_status slc_coo_add_tile_at(struct slc_coo *coo,
                                    struct slc_tile_view *tile,
                                    uint64_t at,
                                    struct slc_error *err)
{
    uint64_t left = tile->nnz;
    struct slc_chunk_view chunk;

    if (!slc_tile_fits(&coo->shape, coo->type, tile) || at > coo->shape.nnz ||
        left > coo->shape.nnz - at) {
        return refuse_tile(coo, tile, err);
    }
    do {
        const enum slc_status status = slc_tile_next(tile, &left, &chunk, err);

        SLC_TRY(status);
        if (chunk.nnz > 0) {
            add_chunk(coo, tile, &chunk, at);
        }
        at += chunk.nnz;
    } while (chunk.nnz > 0);
    atomic_fetch_add(&coo->loaded, tile->nnz);
    return SLC_OK;
}

enum slc_status
slc_coo_add_tile(struct slc_coo *coo, struct slc_tile_view *tile, struct slc_error *err)
{
    uint64_t at;

    return slc_tile_place(&coo->shape, coo->type, tile, &at)
               ? slc_coo_add_tile_at(coo, tile, at, err)
               : refuse_tile(coo, tile, err);
}

enum slc_status slc_coo_check_complete(const struct slc_coo *coo, struct slc_error *err)
{
    const uint64_t loaded = atomic_load(&coo->loaded);

    if (coo->shape.order > 0 && loaded == coo->shape.nnz) {
        return SLC_OK;
    }
    return slc_fail(err, SLC_ERR_USAGE,
                    "the list expects %" PRIu64 " nonzeros, but %" PRIu64 " were added",
                    coo->shape.nnz, loaded);
}

void slc_coo_destroy(struct slc_coo *coo)
{
    slc_buffer_destroy(&coo->coords);
    slc_buffer_destroy(&coo->values);
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        slc_buffer_destroy(&coo->orders[m]);
    }
    memset(&coo->shape, 0, sizeof coo->shape);
}

/* ---- permutations */

/* Returns element `i` of the input of a sweep as a pair of coordinate and position. */
static inline uint64_t pair_at(const struct sweep *sweep, uint64_t i)
{
    if (sweep->from != NULL) {
        return sweep->from[i];
    }
    return (uint64_t)((const uint32_t *)
                          sweep->coo->coords.data)[i * sweep->coo->shape.order + sweep->mode]
               << 32 |
           i;
}

static inline uint32_t digit_of(const struct sweep *sweep, uint64_t pair)
{
    return (uint32_t)(pair >> (32 + sweep->shift)) & (RADIX_BUCKETS - 1);
}

/* Returns the first position of the share of a worker. For worker `workers`, this is the end of the
 * list. */
static uint64_t share_begin(const struct sweep *sweep, unsigned worker, unsigned workers)
{
    return sweep->coo->shape.nnz * worker / workers; /* no overflow: both are below 2^32 */
}

static void count_share(void *context, unsigned worker, unsigned workers)
{
    const struct sweep *sweep = context;
    const uint64_t end = share_begin(sweep, worker + 1, workers);
    uint32_t *start = sweep->start + (uint64_t)worker * RADIX_BUCKETS;

    for (unsigned b = 0; b < RADIX_BUCKETS; b++) {
        start[b] = 0;
    }
    for (uint64_t i = share_begin(sweep, worker, workers); i < end; i++) {
        start[digit_of(sweep, pair_at(sweep, i))]++;
    }
}

/* Replaces each count with the position of the first nonzero of this digit and worker. Positions
 * are ordered by digit, then by worker. */
static void add_up(const struct sweep *sweep, unsigned workers)
{
    uint32_t sum = 0;

    for (unsigned b = 0; b < RADIX_BUCKETS; b++) {
        for (unsigned w = 0; w < workers; w++) {
            uint32_t *start = &sweep->start[(uint64_t)w * RADIX_BUCKETS + b];
            const uint32_t here = *start;

            *start = sum;
            sum += here;
        }
    }
}

static void move_share(void *context, unsigned worker, unsigned workers)
{
    const struct sweep *sweep = context;
    const uint64_t end = share_begin(sweep, worker + 1, workers);
    uint32_t *start = sweep->start + (uint64_t)worker * RADIX_BUCKETS;

    for (uint64_t i = share_begin(sweep, worker, workers); i < end; i++) {
        const uint64_t pair = pair_at(sweep, i);
        const uint32_t at = start[digit_of(sweep, pair)]++;

        if (sweep->to != NULL) {
            sweep->to[at] = pair;
        } else {
            sweep->order[at] = (uint32_t)pair;
        }
    }
}

static enum slc_status run_sweep(struct sweep *sweep, unsigned workers, struct slc_error *err)
{
    SLC_TRY(slc_team_run(workers, count_share, sweep, err));
    add_up(sweep, workers);
    return slc_team_run(workers, move_share, sweep, err);
}

static enum slc_status sort_mode(const struct slc_coo *coo,
                                 unsigned mode,
                                 unsigned workers,
                                 void *scratch,
                                 uint32_t *order,
                                 struct slc_error *err)
{
    const unsigned sweeps = sweeps_of(coo->shape.dims[mode]);
    uint64_t *pairs = (uint64_t *)(void *)((unsigned char *)scratch + count_bytes(workers));
    struct sweep sweep = {.coo = coo, .mode = mode, .order = order, .start = scratch};

    for (unsigned s = 0; s < sweeps; s++) {
        sweep.shift = s * RADIX_BITS;
        sweep.to = s + 1 < sweeps ? pairs + s * coo->shape.nnz : NULL;
        SLC_TRY(run_sweep(&sweep, workers, err));
        sweep.from = sweep.to;
    }
    return SLC_OK;
}

enum slc_status
slc_coo_permute(struct slc_coo *coo, unsigned mode, unsigned workers, struct slc_error *err)
{
    struct slc_buffer scratch = SLC_BUFFER_INIT;

    SLC_TRY(slc_coo_check_complete(coo, err));
    if (mode >= coo->shape.order || workers < 1 || workers > SLC_MAX_THREADS) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "cannot sort mode %u of %u with %u threads: modes start at 1, threads 1 "
                        "to %d",
                        mode + 1, coo->shape.order, workers, SLC_MAX_THREADS);
    }
    slc_buffer_destroy(&coo->orders[mode]);
    enum slc_status status = slc_buffer_create(
        &coo->orders[mode], coo->shape.nnz * sizeof(uint32_t), SLC_PAGES_HUGE, err);
    SLC_THEN(status,
             slc_buffer_create(&scratch, sort_bytes(&coo->shape, workers), SLC_PAGES_HUGE, err));
    SLC_THEN(status, sort_mode(coo, mode, workers, scratch.data, coo->orders[mode].data, err));
    slc_buffer_destroy(&scratch);
    if (status != SLC_OK) {
        slc_buffer_destroy(&coo->orders[mode]);
    }
    return status;
}
