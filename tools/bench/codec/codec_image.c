/* Loads a sample of a store, and encodes and decodes it with each codec. */
#include "tools/bench/codec/codec_image.h"

#include "base/memory/checked.h"
#include "cpu/kernel/kernels.h"
#include "engine/plan/plan.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* State of loading a sample, for the loops over blocks and tiles. */
struct loading {
    const struct slc_store *store;
    struct bench_sample *sample;
    uint64_t tiles_kept; /* number of tiles to keep */
    struct slc_decoder *decoder;
    struct slc_buffer block;
    int file;
};

/* Appends the decoded nonzeros of a chunk to the sample. */
static void add_chunk(struct bench_sample *sample,
                      const struct slc_tile_view *tile,
                      struct slc_chunk_view *chunk)
{
    uint64_t *key_lo = (uint64_t *)sample->key_lo.data + sample->nnz;
    uint64_t *key_hi = (uint64_t *)sample->key_hi.data + sample->nnz;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        for (unsigned n = 0; n < tile->order; n++) {
            coords[n] = tile->corner[n] + chunk->offset[n][i];
        }
        slc_u128 key = slc_key_encode(&sample->keys, coords);
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

/* Returns true if a tile of the block is kept, so that the block must be read. */
static bool keeps_block(const struct loading *loading, const struct slc_block_entry *entry)
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

    slc_reader_entry(reader, block, &entry);
    if (!keeps_block(loading, &entry)) {
        return SLC_OK;
    }
    SLC_TRY(slc_file_read_at(loading->store->files, loading->file, slc_reader_path(reader),
                             loading->block.data, entry.padded_bytes, entry.offset, err));
    SLC_TRY(slc_block_open(reader, block, loading->block.data, false, &view, err));
    for (uint32_t i = 0; i < entry.tile_count; i++) {
        struct slc_tile_view tile;

        if (!slc_plan_keeps(loading->tiles_kept, count, entry.first_tile + i)) {
            continue;
        }
        SLC_TRY(slc_tile_open(loading->decoder, &view, i, &tile, err));
        SLC_TRY(add_tile(loading->sample, &tile, err));
    }
    return SLC_OK;
}

/* Allocates the buffers for the sample: at most SLC_TILE_NNZ nonzeros per kept tile, and at most
 * all nonzeros of the store. */
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
    SLC_TRY(slc_check_memory(sample->tiles != NULL, err, "for a sample of %" PRIu64 " tiles",
                             loading->tiles_kept));
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

    sample->order = info->order;
    sample->keys = info->keys;
    memcpy(sample->dims, info->dims, sizeof sample->dims);
    enum slc_status status = prepare(&loading, err);
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

/* ---- encoded images */

/* Encodes every tile of the sample. Appends the encoded tiles to `writer` unless it is NULL. */
static enum slc_status encode_tiles(struct bench_image *image,
                                    const struct bench_sample *sample,
                                    struct slc_writer *writer,
                                    struct slc_error *err)
{
    for (uint64_t t = 0; t < sample->tile_count; t++) {
        struct slc_tile_blob blob;

        SLC_TRY(slc_tile_encode(image->encoder, &sample->tiles[t], &blob, err));
        if (writer != NULL) {
            image->index_bytes += blob.index_bytes;
            image->data_bytes += blob.data_bytes;
            SLC_TRY(slc_writer_append(writer, &blob, err));
        }
    }
    return SLC_OK;
}

static enum slc_status write_file(struct bench_image *image,
                                  const struct bench_sample *sample,
                                  const char *path,
                                  struct slc_error *err)
{
    const struct slc_writer_options options = {.path = path,
                                               .layout = SLC_LAYOUT_BLCO,
                                               .order = sample->order,
                                               .dims = sample->dims,
                                               .run = sample->keys.run,
                                               .codec = image->codec};
    struct slc_writer_summary summary;
    struct slc_writer *writer;

    SLC_TRY(slc_writer_open(&options, &writer, err));
    enum slc_status status = encode_tiles(image, sample, writer, err);
    if (status != SLC_OK) {
        slc_writer_abandon(writer);
        return status;
    }
    return slc_writer_finish(writer, &summary, err);
}

/* Reads all blocks of the file into one array. */
static enum slc_status
read_blocks(struct bench_image *image, const char *path, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    struct slc_block_entry entry;
    uint64_t bytes = 0;
    uint64_t at = 0;

    enum slc_status status = SLC_OK;

    SLC_TRY(slc_reader_open(files, path, &image->reader, err));
    const struct slc_layout_info *info = slc_reader_info(image->reader);
    for (uint64_t b = 0; b < info->block_count; b++) {
        slc_reader_entry(image->reader, b, &entry);
        bytes += entry.padded_bytes;
    }
    SLC_TRY(slc_buffer_create(&image->blocks, bytes, SLC_PAGES_HUGE, err));
    int file = files->open(files->self, path, O_RDONLY | O_CLOEXEC, 0);
    SLC_TRY(slc_check_call(file, err, path, "opening the block file"));
    for (uint64_t b = 0; b < info->block_count && status == SLC_OK; b++) {
        slc_reader_entry(image->reader, b, &entry);
        status = slc_file_read_at(files, file, path, (char *)image->blocks.data + at,
                                  entry.padded_bytes, entry.offset, err);
        at += entry.padded_bytes;
    }
    (void)files->close(files->self, file);
    return status;
}

enum slc_status bench_image_make(const struct bench_sample *sample,
                                 enum slc_codec codec,
                                 const char *folder,
                                 struct bench_image *image,
                                 struct slc_error *err)
{
    char *path = slc_path_join(folder, slc_codec_name(codec));

    image->codec = codec;
    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    enum slc_status status = slc_encoder_create(&sample->keys, codec, &image->encoder, err);
    SLC_THEN(status, write_file(image, sample, path, err));
    SLC_THEN(status, read_blocks(image, path, err));
    (void)unlink(path);
    slc_free(path);
    SLC_TRY(status);
    return slc_decoder_create(slc_reader_info(image->reader), SLC_F64, &image->decoder, err);
}

void bench_image_destroy(struct bench_image *image)
{
    slc_decoder_destroy(image->decoder);
    slc_reader_close(image->reader);
    slc_encoder_destroy(image->encoder);
    slc_buffer_destroy(&image->blocks);
    *image = (struct bench_image){.encoder = NULL};
}

enum slc_status bench_image_encode(struct bench_image *image,
                                   const struct bench_sample *sample,
                                   struct slc_error *err)
{
    return encode_tiles(image, sample, NULL, err);
}

static enum slc_status decode_tile(struct bench_image *image,
                                   const struct slc_block_view *block,
                                   uint32_t index,
                                   struct slc_error *err)
{
    struct slc_chunk_view chunk = {.nnz = 1};
    struct slc_tile_view tile;

    SLC_TRY(slc_tile_open(image->decoder, block, index, &tile, err));
    while (chunk.nnz > 0) {
        SLC_TRY(tile.next(&tile, SLC_CHUNK_NNZ, &chunk, err));
    }
    return SLC_OK;
}

enum slc_status bench_image_decode(struct bench_image *image, struct slc_error *err)
{
    const uint64_t blocks = slc_reader_info(image->reader)->block_count;
    const char *at = image->blocks.data;

    for (uint64_t b = 0; b < blocks; b++) {
        struct slc_block_view view;

        /* The block is opened like a cached block, without a checksum: reading has verified it. */
        SLC_TRY(slc_block_open(image->reader, b, at, true, &view, err));
        for (uint32_t i = 0; i < view.entry.tile_count; i++) {
            SLC_TRY(decode_tile(image, &view, i, err));
        }
        at += view.entry.padded_bytes;
    }
    return SLC_OK;
}
