/* Lists of coordinates: room for them, and filling it from tiles. See coo.h. */
#include "tools/bench/rivals/cpu/coo.h"

#include "base/memory/checked.h"
#include "cpu/mttkrp/tile_place.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

const char *slc_coo_kernel_name(enum slc_coo_kernel kernel)
{
    static const char *const names[] = {"genten-a", "genten-b", "genten-c"};

    return (unsigned)kernel < SLC_COO_KERNELS ? names[kernel] : "?";
}

/* Adds what a buffer of `count` elements maps. False where that cannot be counted. */
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
        fits = add_buffer(slc_coo_sort_bytes(shape, workers), 1, &total);
    }
    return fits ? total : UINT64_MAX;
}

static enum slc_status check_shape(const struct slc_tensor_shape *shape, struct slc_error *err)
{
    const uint64_t most = UINT64_C(1) << 32;

    if (shape->order < 1 || shape->order > SLC_MAX_ORDER ||
        (shape->nnz > 0 && shape->tile_nnz == 0)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a list of coordinates has 1 to %d modes and comes in tiles of nonzeros: "
                        "not %u modes in tiles of %u",
                        SLC_MAX_ORDER, shape->order, shape->tile_nnz);
    }
    for (unsigned m = 0; m < shape->order; m++) {
        if (shape->dims[m] > most) {
            return slc_fail(err, SLC_ERR_UNSUPPORTED,
                            "mode %u has length %" PRIu64 ", but the coordinates of a list have 32 "
                            "bits: at most 2^32",
                            m + 1, shape->dims[m]);
        }
    }
    if (shape->nnz >= most) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "there are %" PRIu64 " nonzeros, but their places in a list have 32 bits: "
                        "fewer than 2^32",
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

enum slc_status
slc_coo_add_tile(struct slc_coo *coo, struct slc_tile_view *tile, struct slc_error *err)
{
    uint64_t left = tile->nnz;
    struct slc_chunk_view chunk;
    uint64_t at;

    if (!slc_tile_place(&coo->shape, coo->type, tile, &at)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "tile %" PRIu64 " (order %u, %u nonzeros) is not one of the tensor of "
                        "%" PRIu64 " nonzeros that the list has room for",
                        tile->ordinal, tile->order, tile->nnz, coo->shape.nnz);
    }
    do {
        const enum slc_status status = slc_tile_next(tile, &left, &chunk, err);

        if (status != SLC_OK) {
            return status;
        }
        if (chunk.nnz > 0) {
            add_chunk(coo, tile, &chunk, at);
        }
        at += chunk.nnz;
    } while (chunk.nnz > 0);
    atomic_fetch_add(&coo->loaded, tile->nnz);
    return SLC_OK;
}

enum slc_status slc_coo_check_complete(const struct slc_coo *coo, struct slc_error *err)
{
    const uint64_t loaded = atomic_load(&coo->loaded);

    if (coo->shape.order > 0 && loaded == coo->shape.nnz) {
        return SLC_OK;
    }
    return slc_fail(err, SLC_ERR_USAGE,
                    "the list has room for %" PRIu64 " nonzeros, but %" PRIu64 " came",
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
