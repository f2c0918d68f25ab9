/* Verifies one tile. Computes every nonzero's key from its decoded coordinates, and adds the key
 * and the bits of the value to the content sum. This detects errors of the decoder as well as
 * forged files.
 *
 * Cost: decoding, and about 20 ns per nonzero to compute and mix the key. */
#include "storage/verify/verify_internal.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "storage/codec/block_layout.h"

#include <inttypes.h>
#include <math.h>

/* Number of nonzeros requested at a time, regardless of the chunk size that the decoder prefers. */
enum { CHUNK_NNZ = 1024 };

static void
load_tile(const struct slc_block_view *block, uint32_t index, struct slc_tile_entry *tile)
{
    unsigned order = slc_reader_info(block->reader)->order;

    slc_tile_entry_load(block->data + slc_tile_entry_offset(order, index), order, tile);
}

/* Adds the position of the tile's data to a fault. */
static enum slc_status locate_fault(const struct slc_block_view *block,
                                    const struct slc_tile_entry *tile,
                                    enum slc_status status,
                                    struct slc_error *err)
{
    slc_error_locate_block(err, slc_reader_path(block->reader), block->block,
                           block->entry.offset + tile->data_offset);
    return status;
}

/* Sets *key to the first key of the tile after tile `index`. Returns false if no further tile
 * belongs to the same key sequence. */
static bool next_first_key(const struct slc_block_view *block, uint32_t index, slc_u128 *key)
{
    const struct slc_layout_info *info = slc_reader_info(block->reader);

    if (index + 1 < block->entry.tile_count) {
        struct slc_tile_entry following;

        load_tile(block, index + 1, &following);
        *key = slc_key_join(following.first_lo, following.first_hi);
        return true;
    }
    if (block->block + 1 < info->block_count) {
        struct slc_block_entry following;

        slc_reader_entry(block->reader, block->block + 1, &following);
        *key = slc_key_join(following.first_key_lo, following.first_key_hi);
        return info->layout != SLC_LAYOUT_SORTED || following.partition == block->entry.partition;
    }
    return false;
}

/* For fiber-n, checks that a tile ends with a complete fiber, or contains only part of a single
 * fiber. */
static enum slc_status check_fiber_cut(const struct slc_block_view *block,
                                       const struct slc_tile_entry *tile,
                                       uint32_t index,
                                       slc_u128 next_key,
                                       struct slc_error *err)
{
    const struct slc_key_layout *keys = &slc_reader_info(block->reader)->keys;
    const slc_u128 last = slc_key_join(tile->last_lo, tile->last_hi);

    if (!slc_key_same_fiber(keys, last, next_key) ||
        slc_key_same_fiber(keys, slc_key_join(tile->first_lo, tile->first_hi), last)) {
        return SLC_OK;
    }
    return locate_fault(
        block, tile,
        slc_fail(
            err, SLC_ERR_DAMAGED,
            "tile %" PRIu32
            " of the block ends within a fiber that is not its only fiber, which no writer does",
            index),
        err);
}

uint64_t
slc_verify_fibers_ended(const struct slc_block_view *block, uint32_t index, uint64_t pieces)
{
    const struct slc_key_layout *keys = &slc_reader_info(block->reader)->keys;
    struct slc_tile_entry tile;
    slc_u128 next_key;

    load_tile(block, index, &tile);
    return pieces - (next_first_key(block, index, &next_key) &&
                     slc_key_same_fiber(keys, slc_key_join(tile.last_lo, tile.last_hi), next_key));
}

enum slc_status
slc_verify_tile_cut(const struct slc_block_view *block, uint32_t index, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(block->reader);
    struct slc_tile_entry tile;
    uint64_t next[SLC_MAX_ORDER];
    slc_u128 next_key;

    load_tile(block, index, &tile);
    if (!next_first_key(block, index, &next_key)) {
        return SLC_OK; /* the last tile of the file or of a partition */
    }
    if (info->layout == SLC_LAYOUT_FIBER) {
        enum slc_status status = check_fiber_cut(block, &tile, index, next_key, err);

        if (status != SLC_OK ||
            !slc_key_same_fiber(&info->keys, slc_key_join(tile.last_lo, tile.last_hi), next_key)) {
            return status;
        }
    }
    if (tile.nnz == SLC_TILE_NNZ) {
        return SLC_OK;
    }
    slc_key_decode(&info->keys, next_key, next);
    for (unsigned mode = 0; mode < info->order; mode++) {
        uint64_t low = slc_min_u64(tile.corner[mode], next[mode]);
        uint64_t high = slc_max_u64(tile.corner[mode] + tile.extent[mode], next[mode]);

        if (high - low >= UINT32_MAX) {
            return SLC_OK;
        }
    }
    return locate_fault(block, &tile,
                        slc_fail(err, SLC_ERR_DAMAGED,
                                 "tile %" PRIu32 " of the block ends after %" PRIu32
                                 " nonzeros, but the next nonzero would fit: no writer does this",
                                 index, tile.nnz),
                        err);
}

/* Totals of the nonzeros decoded so far. */
struct tile_tally {
    uint64_t nnz;
    uint64_t fibers; /* number of fiber runs */
    uint64_t content_sum;
    double sum_of_squares;
    slc_u128 first_key, last_key;
    uint32_t min[SLC_MAX_ORDER];
    uint32_t max[SLC_MAX_ORDER];
};

/* Extends the coordinate ranges to include a chunk's nonzeros. Fails if a coordinate is outside the
 * tile's range. */
static enum slc_status tally_ranges(const struct slc_tile_view *tile,
                                    const struct slc_chunk_view *chunk,
                                    struct tile_tally *tally,
                                    struct slc_error *err)
{
    for (unsigned mode = 0; mode < tile->order; mode++) {
        const uint32_t *offset = chunk->offset[mode];
        uint32_t min = tally->nnz == 0 ? UINT32_MAX : tally->min[mode];
        uint32_t max = tally->nnz == 0 ? 0 : tally->max[mode];

        for (uint32_t i = 0; i < chunk->nnz; i++) {
            min = offset[i] < min ? offset[i] : min;
            max = offset[i] > max ? offset[i] : max;
        }
        if (max > tile->extent[mode]) {
            return slc_fail(err, SLC_ERR_DAMAGED,
                            "tile %" PRIu64 " has a coordinate %" PRIu32
                            " above its corner in mode %u, but its extent is %" PRIu32,
                            tile->ordinal, max, mode + 1, tile->extent[mode]);
        }
        tally->min[mode] = min;
        tally->max[mode] = max;
    }
    return SLC_OK;
}

/* Adds keys and values of a chunk to the totals. Fails if keys do not ascend or a value is not
 * allowed. */
static enum slc_status tally_nonzeros(const struct slc_layout_info *info,
                                      const struct slc_tile_view *tile,
                                      const struct slc_chunk_view *chunk,
                                      struct tile_tally *tally,
                                      struct slc_error *err)
{
    const bool same_sum = slc_fiber_run_same(info->keys.run, info->content_keys.run);
    const double *values = chunk->values;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        for (unsigned mode = 0; mode < tile->order; mode++) {
            coords[mode] = tile->corner[mode] + chunk->offset[mode][i];
        }
        slc_u128 key = slc_key_encode(&info->keys, coords);
        if (tally->nnz == 0 && i == 0) {
            tally->first_key = key;
        } else if (key <= tally->last_key) {
            return slc_fail(err, SLC_ERR_DAMAGED,
                            "the keys of tile %" PRIu64 " do not ascend at its nonzero %" PRIu64,
                            tile->ordinal, tally->nnz + i);
        }
        tally->fibers +=
            (tally->nnz == 0 && i == 0) || !slc_key_same_fiber(&info->keys, key, tally->last_key);
        tally->last_key = key;
        if (!isfinite(values[i]) || (values[i] == 0 && !info->has_zeros) ||
            (info->value_type == SLC_F32 && (double)(float)values[i] != values[i])) {
            return slc_fail(err, SLC_ERR_DAMAGED,
                            "nonzero %" PRIu64 " of tile %" PRIu64
                            " has the value %.17g, which a tensor of type %s cannot hold",
                            tally->nnz + i, tile->ordinal, values[i],
                            info->value_type == SLC_F32 ? "f32" : "f64");
        }
        tally->sum_of_squares += values[i] * values[i];
        if (!same_sum) {
            key = slc_key_encode(&info->content_keys, coords);
        }
        tally->content_sum +=
            slc_content_term((uint64_t)key, (uint64_t)(key >> 64), slc_bits_f64(values[i]));
    }
    tally->nnz += chunk->nnz;
    return SLC_OK;
}

/* Merges the statistics of a chunk's values into *stats. */
static void tally_values(const struct slc_chunk_view *chunk, struct slc_value_stats *stats)
{
    const double *values = chunk->values;
    struct slc_value_stats found = {.integers = true, .low = values[0], .high = values[0]};

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        found.low = values[i] < found.low ? values[i] : found.low;
        found.high = values[i] > found.high ? values[i] : found.high;
        found.integers =
            found.integers && fabs(values[i]) <= 0x1p53 && trunc(values[i]) == values[i];
    }
    slc_value_stats_collect(&found, values, chunk->nnz);
    slc_value_stats_merge(stats, &found);
}

/* Compares the whole tile with its directory entry. */
static enum slc_status compare_entry(const struct slc_tile_view *view,
                                     const struct slc_tile_entry *tile,
                                     const struct tile_tally *tally,
                                     struct slc_error *err)
{
    if (tally->nnz != tile->nnz) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "tile %" PRIu64 " decodes to %" PRIu64
                        " nonzeros, but its directory entry has %" PRIu32,
                        view->ordinal, tally->nnz, tile->nnz);
    }
    if (tally->first_key != slc_key_join(tile->first_lo, tile->first_hi) ||
        tally->last_key != slc_key_join(tile->last_lo, tile->last_hi)) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "the first or last key of tile %" PRIu64
                        " differs from its directory entry",
                        view->ordinal);
    }
    for (unsigned mode = 0; mode < view->order; mode++) {
        if (tally->min[mode] != 0 || tally->max[mode] != tile->extent[mode]) {
            return slc_fail(err, SLC_ERR_DAMAGED,
                            "tile %" PRIu64 " covers %" PRIu64 " to %" PRIu64
                            " in mode %u, but its directory entry has %" PRIu64 " to %" PRIu64,
                            view->ordinal, tile->corner[mode] + tally->min[mode],
                            tile->corner[mode] + tally->max[mode], mode + 1, tile->corner[mode],
                            tile->corner[mode] + tile->extent[mode]);
        }
    }
    if (slc_bits_f64(tally->sum_of_squares) != slc_bits_f64(tile->sum_of_squares)) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "tile %" PRIu64
                        " has the sum of squares %.17g, but its directory entry has %.17g",
                        view->ordinal, tally->sum_of_squares, tile->sum_of_squares);
    }
    if (tally->content_sum != tile->content_sum) {
        return slc_fail(err, SLC_ERR_DAMAGED,
                        "tile %" PRIu64 " has the content sum %016" PRIx64
                        ", but its directory entry has %016" PRIx64,
                        view->ordinal, tally->content_sum, tile->content_sum);
    }
    return SLC_OK;
}

enum slc_status slc_verify_tile(struct slc_decoder *decoder,
                                const struct slc_block_view *block,
                                uint32_t index,
                                uint64_t *fibers,
                                struct slc_value_stats *values,
                                struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(block->reader);
    struct tile_tally tally = {0};
    struct slc_tile_entry entry;
    struct slc_tile_view tile;
    struct slc_chunk_view chunk;

    load_tile(block, index, &entry);
    enum slc_status status = slc_tile_open(decoder, block, index, &tile, err);
    while (status == SLC_OK) {
        status = tile.next(&tile, CHUNK_NNZ, &chunk, err);
        if (status != SLC_OK || chunk.nnz == 0) {
            break;
        }
        /* Never accept more nonzeros than the entry's count; otherwise a faulty decoder could loop
         * forever. */
        if (chunk.nnz > entry.nnz - tally.nnz) {
            tally.nnz += chunk.nnz;
            break;
        }
        status = tally_ranges(&tile, &chunk, &tally, err);
        SLC_THEN(status, tally_nonzeros(info, &tile, &chunk, &tally, err));
        if (status == SLC_OK) {
            tally_values(&chunk, values);
        }
    }
    SLC_THEN(status, compare_entry(&tile, &entry, &tally, err));
    *fibers = tally.fibers;
    return status == SLC_OK ? SLC_OK : locate_fault(block, &entry, status, err);
}
