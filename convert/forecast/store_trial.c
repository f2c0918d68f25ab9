#include "convert/forecast/store_trial.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "convert/number/format.h"
#include "storage/file/block_file.h"

#include <string.h>

enum {
    CHUNK_NNZ = 1024,
    BLOCKS = 8,
    TILES = 64, /* tiles decoded in all blocks together */
    /* One chunk in 8 is formatted as text, which costs about as much as decoding all 8 chunks. */
    FORMATTED = 8,
    BLOCK_BYTES_MOST = 64 << 20
};

struct work {
    const struct slc_reader *reader;
    struct slc_decoder *decoder;
    struct slc_buffer block;
    struct slc_block_file file;
    struct slc_store_sample *sample; /* NULL: no sample */
    uint32_t blocks;                 /* number of blocks to try */
    uint32_t quota;                  /* sampled nonzeros per tile */
    uint64_t nnz, formatted, text_bytes, decode_ns, format_ns;
};

static uint64_t
row_bytes(const struct slc_tile_view *tile, const struct slc_chunk_view *chunk, uint32_t i)
{
    const double *values = chunk->values;
    char text[SLC_FORMAT_F64_BYTES];
    uint64_t bytes = 0;

    for (unsigned n = 0; n < tile->order; n++) {
        bytes += slc_format_u64(text, tile->corner[n] + chunk->offset[n][i] + 1) + UINT64_C(1);
    }
    return bytes + slc_format_f64(text, values[i]) + 1;
}

/* Adds every `step`-th nonzero of the tile to the sample if it is in this chunk. The chunk starts
 * at nonzero `before` of the tile. */
static void draw_sample(struct slc_store_sample *sample,
                        const struct slc_tile_view *tile,
                        const struct slc_chunk_view *chunk,
                        uint32_t before,
                        uint32_t step)
{
    const double *values = chunk->values;

    for (uint32_t i = (step - before % step) % step;
         i < chunk->nnz && sample->count < sample->capacity; i += step) {
        for (unsigned n = 0; n < tile->order; n++) {
            sample->coords[n][sample->count] = tile->corner[n] + chunk->offset[n][i];
        }
        sample->values[sample->count++] = values[i];
    }
}

static enum slc_status try_tile(struct work *work,
                                const struct slc_block_view *view,
                                uint32_t index,
                                struct slc_error *err)
{
    struct slc_chunk_view chunk = {.nnz = 1};
    struct slc_tile_view tile;
    uint64_t start_ns = slc_clock_thread_ns(), decoded_ns;
    uint32_t before = 0, step;
    enum slc_status status = slc_tile_open(work->decoder, view, index, &tile, err);

    step = status == SLC_OK && work->quota > 0 ? tile.nnz / work->quota + 1 : 1;

    while (status == SLC_OK && chunk.nnz > 0) {
        status = tile.next(&tile, CHUNK_NNZ, &chunk, err);
        decoded_ns = slc_clock_thread_ns();
        if (status == SLC_OK && before / CHUNK_NNZ % FORMATTED == 0) {
            for (uint32_t i = 0; i < chunk.nnz; i++) {
                work->text_bytes += row_bytes(&tile, &chunk, i);
            }
            work->formatted += chunk.nnz;
        }
        work->nnz += status == SLC_OK ? chunk.nnz : 0;
        work->decode_ns += decoded_ns - start_ns;
        start_ns = slc_clock_thread_ns();
        work->format_ns += start_ns - decoded_ns;
        if (status == SLC_OK && work->sample != NULL) {
            draw_sample(work->sample, &tile, &chunk, before, step);
            start_ns = slc_clock_thread_ns();
        }
        before += chunk.nnz;
    }
    return status;
}

/* Decodes the first tile without measuring the time, to touch tables and buffers. */
static enum slc_status
warm_up(struct work *work, const struct slc_block_view *view, struct slc_error *err)
{
    const struct work before = *work;

    work->sample = NULL;
    enum slc_status status = try_tile(work, view, 0, err);
    *work = before;
    return status;
}

static enum slc_status try_block(struct work *work, uint64_t block, struct slc_error *err)
{
    struct slc_block_entry entry;
    struct slc_block_view view;

    slc_reader_entry(work->reader, block, &entry);
    uint64_t tried = slc_min_u64(entry.tile_count, TILES / work->blocks);
    SLC_TRY(
        slc_block_file_read(&work->file, work->block.data, entry.padded_bytes, entry.offset, err));
    uint64_t start_ns = slc_clock_thread_ns();
    enum slc_status status =
        slc_block_open(work->reader, block, work->block.data, false, &view, err);
    if (status == SLC_OK) {
        /* The whole block was checked; count only the part of the time for decoded tiles. */
        work->decode_ns += (slc_clock_thread_ns() - start_ns) * tried / entry.tile_count;
    }
    if (work->sample != NULL) {
        work->quota = work->sample->capacity / (work->blocks * (uint32_t)tried);
    }
    SLC_TRY(status);
    if (work->nnz == 0) {
        SLC_TRY(warm_up(work, &view, err));
    }
    for (uint64_t t = 0; t < tried; t++) {
        SLC_TRY(try_tile(work, &view, (uint32_t)(t * entry.tile_count / tried), err));
    }
    return SLC_OK;
}

static enum slc_status try_blocks(struct work *work, double seconds, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(work->reader);
    const uint64_t start_ns = slc_clock_ns();
    const uint64_t blocks = info->block_count < BLOCKS ? info->block_count : BLOCKS;
    enum slc_status status =
        slc_buffer_create(&work->block, info->max_block_bytes, SLC_PAGES_SMALL, err);

    SLC_THEN(status, slc_decoder_create(info, SLC_F64, &work->decoder, err));
    work->blocks = (uint32_t)blocks;
    for (uint64_t k = 0; k < blocks && status == SLC_OK; k++) {
        if (k > 0 && slc_seconds_since(start_ns) >= seconds) {
            break;
        }
        status = try_block(work, k * info->block_count / blocks, err);
    }
    return status;
}

enum slc_status slc_store_trial(const struct slc_reader *reader,
                                double seconds,
                                struct slc_store_sample *sample,
                                struct slc_store_trial *trial,
                                struct slc_error *err)
{
    struct work work = {.reader = reader, .block = SLC_BUFFER_INIT, .sample = sample};

    *trial = (struct slc_store_trial){.nnz = 0};
    if (slc_reader_info(reader)->max_block_bytes > BLOCK_BYTES_MOST) {
        return SLC_OK;
    }
    SLC_TRY(slc_block_file_open(slc_reader_files(reader), slc_reader_path(reader),
                                "opening the block file", &work.file, err));
    enum slc_status status = try_blocks(&work, seconds, err);
    if (status == SLC_OK && work.nnz > 0) {
        trial->nnz = work.nnz;
        trial->decode_seconds = 1e-9 * (double)work.decode_ns / (double)work.nnz;
        trial->format_seconds = 1e-9 * (double)work.format_ns / (double)work.formatted;
        trial->row_bytes = (double)work.text_bytes / (double)work.formatted;
    }
    slc_decoder_destroy(work.decoder);
    slc_buffer_destroy(&work.block);
    slc_block_file_close(&work.file);
    return status;
}
