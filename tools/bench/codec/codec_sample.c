/* Samples of a store's tiles; see codec_sample.h. */
#include "tools/bench/codec/codec_sample.h"

#include "base/memory/checked.h"
#include "engine/plan/plan.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/* What the loops over blocks and tiles share. */
struct loading {
    const struct slc_store *store;
    struct bench_sample *sample;
    uint64_t tiles_kept; /* of the store, how many to keep */
    struct slc_decoder *decoder;
    struct slc_buffer block;
    int file;
};

/* Copies decoded nonzeros behind those that the sample has. */
static void add_chunk(struct bench_sample *sample,
                      const struct slc_tile_view *tile,
                      struct slc_chunk_view *chunk)
{
    uint64_t *key_lo = (uint64_t *)sample->key_lo.data + sample->nnz;
    uint64_t *key_hi = (uint64_t *)sample->key_hi.data + sample->nnz;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];
        slc_u128 key;

        for (unsigned n = 0; n < tile->order; n++) {
            coords[n] = tile->corner[n] + chunk->offset[n][i];
        }
        key = slc_key_encode(&sample->keys, coords);
        key_lo[i] = (uint64_t)key;
        key_hi[i] = (uint64_t)(key >> 64);
    }
    memcpy((double *)sample->values.data + sample->nnz, chunk->values, chunk->nnz * sizeof(double));
    sample->nnz += chunk->nnz;
}

static enum slc_status
add_tile(struct bench_sample *sample, struct slc_tile_view *tile, struct slc_error *err)
{
    const uint64_t begin = sample->nnz;
    struct slc_chunk_view chunk = {.nnz = 1};

    while (chunk.nnz > 0) {
        SLC_TRY(tile->next(tile, SLC_TILE_NNZ, &chunk, err));
        add_chunk(sample, tile, &chunk);
    }
    sample->tiles[sample->tile_count++] = (struct slc_tile_source){
        .nnz = tile->nnz,
        .key_lo = (uint64_t *)sample->key_lo.data + begin,
        .key_hi = sample->keys.bits > 64 ? (uint64_t *)sample->key_hi.data + begin : NULL,
        .values = (double *)sample->values.data + begin};
    return SLC_OK;
}

/* Whether any tile of the block is to be kept, so that the others need not be read. */
static bool wants_block(const struct loading *loading, const struct slc_block_entry *entry)
{
    const uint64_t count = slc_reader_info(loading->store->reader)->tile_count;

    for (uint32_t i = 0; i < entry->tile_count; i++) {
        if (slc_plan_keeps(loading->tiles_kept, count, entry->first_tile + i)) {
            return true;
        }
    }
    return false;
}

static enum slc_status load_block(struct loading *loading, uint64_t block, struct slc_error *err)
{
    const struct slc_reader *reader = loading->store->reader;
    const uint64_t count = slc_reader_info(reader)->tile_count;
    struct slc_block_entry entry;
    struct slc_block_view view;
    enum slc_status status;

    slc_reader_entry(reader, block, &entry);
    if (!wants_block(loading, &entry)) {
        return SLC_OK;
    }
    status = slc_file_read_at(loading->store->files, loading->file, slc_reader_path(reader),
                              loading->block.data, entry.padded_bytes, entry.offset, err);
    if (status == SLC_OK) {
        status = slc_block_open(reader, block, loading->block.data, false, &view, err);
    }
    for (uint32_t i = 0; i < entry.tile_count && status == SLC_OK; i++) {
        struct slc_tile_view tile;

        if (!slc_plan_keeps(loading->tiles_kept, count, entry.first_tile + i)) {
            continue;
        }
        status = slc_tile_open(loading->decoder, &view, i, &tile, err);
        if (status == SLC_OK) {
            status = add_tile(loading->sample, &tile, err);
        }
    }
    return status;
}

/* Takes the memory: tiles are never larger than SLC_TILE_NNZ, and no store has more than nnz. */
static enum slc_status prepare(struct loading *loading, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(loading->store->reader);
    struct bench_sample *sample = loading->sample;
    const uint64_t room =
        slc_min_u64(info->nnz, loading->tiles_kept * (uint64_t)SLC_TILE_NNZ) * sizeof(uint64_t);

    SLC_TRY(slc_buffer_create(&sample->key_lo, room, SLC_PAGES_HUGE, err));
    SLC_TRY(slc_buffer_create(&sample->key_hi, room, SLC_PAGES_HUGE, err));
    SLC_TRY(slc_buffer_create(&sample->values, room, SLC_PAGES_HUGE, err));
    SLC_TRY(slc_buffer_create(&loading->block, info->max_block_bytes, SLC_PAGES_SMALL, err));
    SLC_TRY(slc_decoder_create(info, SLC_F64, &loading->decoder, err));
    sample->tiles = slc_calloc(loading->tiles_kept + 1, sizeof *sample->tiles);
    if (sample->tiles == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a sample of %" PRIu64 " tiles",
                        loading->tiles_kept);
    }
    return SLC_OK;
}

enum slc_status bench_sample_load(const struct slc_store *store,
                                  uint64_t nnz_max,
                                  struct bench_sample *sample,
                                  struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(store->reader);
    const char *path = slc_reader_path(store->reader);
    struct loading loading = {
        .store = store,
        .sample = sample,
        .tiles_kept = slc_min_u64(info->tile_count, slc_div_up_u64(nnz_max, SLC_TILE_NNZ)),
        .file = -1};
    enum slc_status status;

    sample->order = info->order;
    sample->keys = info->keys;
    memcpy(sample->dims, info->dims, sizeof sample->dims);
    status = prepare(&loading, err);
    if (status == SLC_OK) {
        loading.file = store->files->open(store->files->self, path, O_RDONLY | O_CLOEXEC, 0);
        if (loading.file < 0) {
            status = slc_fail_errno(err, -loading.file, path, "opening the block file");
        }
    }
    for (uint64_t b = 0; b < info->block_count && status == SLC_OK; b++) {
        status = load_block(&loading, b, err);
    }
    if (loading.file >= 0) {
        (void)store->files->close(store->files->self, loading.file);
    }
    slc_decoder_destroy(loading.decoder);
    slc_buffer_destroy(&loading.block);
    return status;
}

void bench_sample_destroy(struct bench_sample *sample)
{
    slc_free(sample->tiles);
    slc_buffer_destroy(&sample->key_lo);
    slc_buffer_destroy(&sample->key_hi);
    slc_buffer_destroy(&sample->values);
    memset(sample, 0, sizeof *sample);
}
