/* Encoded samples in memory; see codec_image.h. */
#include "tools/bench/codec/codec_image.h"

#include "cpu/kernel/kernels.h"

#include <fcntl.h>
#include <unistd.h>

/* Encodes every tile; appends it to `writer` unless NULL. */
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
    enum slc_status status;

    SLC_TRY(slc_writer_open(&options, &writer, err));
    status = encode_tiles(image, sample, writer, err);
    if (status != SLC_OK) {
        slc_writer_abandon(writer);
        return status;
    }
    return slc_writer_finish(writer, &summary, err);
}

/* Reads all blocks of the file, one behind the other. */
static enum slc_status
read_blocks(struct bench_image *image, const char *path, struct slc_error *err)
{
    const struct slc_files *files = slc_files_system();
    const struct slc_layout_info *info;
    struct slc_block_entry entry;
    uint64_t bytes = 0;
    uint64_t at = 0;
    int file;

    enum slc_status status = SLC_OK;

    SLC_TRY(slc_reader_open(files, path, &image->reader, err));
    info = slc_reader_info(image->reader);
    for (uint64_t b = 0; b < info->block_count; b++) {
        slc_reader_entry(image->reader, b, &entry);
        bytes += entry.padded_bytes;
    }
    SLC_TRY(slc_buffer_create(&image->blocks, bytes, SLC_PAGES_HUGE, err));
    file = files->open(files->self, path, O_RDONLY | O_CLOEXEC, 0);
    if (file < 0) {
        return slc_fail_errno(err, -file, path, "opening the block file");
    }
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
    enum slc_status status;

    image->codec = codec;
    if (path == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
    }
    status = slc_encoder_create(&sample->keys, codec, &image->encoder, err);
    if (status == SLC_OK) {
        status = write_file(image, sample, path, err);
    }
    if (status == SLC_OK) {
        status = read_blocks(image, path, err);
    }
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

        /* As a stream opens a cached block: its checksum held when it was read. */
        SLC_TRY(slc_block_open(image->reader, b, at, true, &view, err));
        for (uint32_t i = 0; i < view.entry.tile_count; i++) {
            SLC_TRY(decode_tile(image, &view, i, err));
        }
        at += view.entry.padded_bytes;
    }
    return SLC_OK;
}
