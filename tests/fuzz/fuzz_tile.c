/*
 * Any bytes as the data of one tile, in each codec, under directory entries that the input chooses:
 * the decoders alone, behind every checksum, with keys of 93 bits, in ALTO order or with fibers
 * together. A tile that decodes as runs of fibers must decode nonzero by nonzero to the same.
 */
#include "fuzz_store.h"

#include "base/bytes.h"
#include "storage/block_layout.h"
#include "storage/reader.h"
#include "storage/writer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODES = 5, DATA_BYTES_MAX = 4096, HEAD_BYTES = 64 };
static const uint64_t dims[MODES] = {1 << 24, 1 << 20, 1 << 18, 1 << 19, 1 << 12};
static const struct slc_fiber_run runs[2] = {{0, 0}, {.mode = 3, .bits = 6}};

/* A sound file of one nonzero: the reader whose shape the forged tiles claim. */
static struct slc_reader *wide_reader(bool fibers)
{
    static struct slc_reader *readers[2];
    struct slc_reader **reader = &readers[fibers];
    const uint64_t key = 0;
    const double value = 1;
    const struct slc_tile_source source = {1, &key, NULL, &value, 0};
    struct slc_writer_options options = {.path = fuzz_path(fibers ? "fibers.blk" : "wide.blk"),
                                         .layout = SLC_LAYOUT_BLCO,
                                         .order = MODES,
                                         .dims = dims,
                                         .run = runs[fibers],
                                         .codec = SLC_CODEC_PACKED};
    struct slc_writer_summary summary;
    struct slc_writer *writer = NULL;
    struct slc_encoder *encoder = NULL;
    struct slc_key_layout keys;
    struct slc_tile_blob blob;

    if (*reader) {
        return *reader;
    }
    if (slc_key_layout_init_run(&keys, MODES, dims, runs[fibers], NULL) != SLC_OK ||
        slc_encoder_create(&keys, SLC_CODEC_PACKED, &encoder, NULL) != SLC_OK ||
        slc_writer_open(&options, &writer, NULL) != SLC_OK ||
        slc_tile_encode(encoder, &source, &blob, NULL) != SLC_OK ||
        slc_writer_append(writer, &blob, NULL) != SLC_OK ||
        slc_writer_finish(writer, &summary, NULL) != SLC_OK ||
        slc_reader_open(NULL, fuzz_path(fibers ? "fibers.blk" : "wide.blk"), reader, NULL) !=
            SLC_OK) {
        abort();
    }
    slc_encoder_destroy(encoder);
    return *reader;
}

/* The offset of one nonzero, or of all of a run, in mode n. */
static void check_offset(const struct slc_tile_view *tile, unsigned n, uint32_t offset)
{
    if (offset > tile->extent[n] || tile->corner[n] + offset >= dims[n]) {
        abort();
    }
}

static void check_chunk(const struct slc_tile_view *tile, const struct slc_chunk_view *chunk)
{
    for (unsigned n = 0; n < MODES; n++) {
        for (uint32_t i = 0; i < chunk->nnz; i++) {
            check_offset(tile, n, chunk->offset[n][i]);
        }
    }
}

/* Runs that cover the chunk and say what `chunk`, the same nonzeros one by one, says. */
static void check_fibers(const struct slc_tile_view *tile,
                         const struct slc_fiber_view *fibers,
                         const struct slc_chunk_view *chunk)
{
    const size_t element = tile->value_type == SLC_F64 ? 8 : 4;

    if (chunk->nnz != fibers->nnz || fibers->begin[0] != 0 ||
        fibers->begin[fibers->runs] != fibers->nnz ||
        memcmp(fibers->values, chunk->values, fibers->nnz * element) != 0) {
        abort();
    }
    for (uint32_t r = 0; r < fibers->runs; r++) {
        if (fibers->begin[r] >= fibers->begin[r + 1]) {
            abort();
        }
        for (uint32_t i = fibers->begin[r]; i < fibers->begin[r + 1]; i++) {
            for (unsigned n = 0; n < MODES; n++) {
                const uint32_t offset = fibers->offset[n][n == fibers->mode ? i : r];

                check_offset(tile, n, offset);
                if (offset != chunk->offset[n][i]) {
                    abort();
                }
            }
        }
    }
}

static uint64_t decode_nonzeros(struct slc_tile_view *tile)
{
    struct slc_chunk_view chunk;
    uint64_t seen = 0;

    while (tile->next(tile, 256, &chunk, NULL) == SLC_OK && chunk.nnz > 0) {
        seen += chunk.nnz;
        check_chunk(tile, &chunk);
    }
    return seen;
}

/* Runs from one decoder beside nonzeros from another. */
static uint64_t decode_fibers(struct slc_tile_view *tile, struct slc_tile_view *twin)
{
    struct slc_fiber_view fibers;
    struct slc_chunk_view chunk;
    uint64_t seen = 0;

    while (tile->next_fibers(tile, 256, &fibers, NULL) == SLC_OK && fibers.nnz > 0) {
        seen += fibers.nnz;
        if (twin->next(twin, 256, &chunk, NULL) != SLC_OK) {
            abort();
        }
        check_fibers(tile, &fibers, &chunk);
    }
    return seen;
}

static void decode(const struct slc_reader *reader,
                   struct slc_block_view *view,
                   const struct slc_tile_entry *entry,
                   enum slc_value_type type)
{
    struct slc_decoder *decoder = NULL, *other = NULL;
    struct slc_tile_view tile, twin;

    if (slc_decoder_create(slc_reader_info(reader), type, &decoder, NULL) == SLC_OK &&
        slc_decoder_create(slc_reader_info(reader), type, &other, NULL) == SLC_OK &&
        slc_tile_open(decoder, view, 0, &tile, NULL) == SLC_OK &&
        slc_tile_open(other, view, 0, &twin, NULL) == SLC_OK) {
        const uint64_t seen =
            tile.next_fibers ? decode_fibers(&tile, &twin) : decode_nonzeros(&tile);

        if (seen > entry->nnz) {
            abort();
        }
    }
    slc_decoder_destroy(decoder);
    slc_decoder_destroy(other);
}

/* Input: 64 bytes that choose the directory entry, then the tile's data. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint32_t directory_end = (uint32_t)slc_tile_entry_offset(MODES, 1);
    const struct slc_reader *reader;
    struct slc_block_view view = {0};
    struct slc_tile_entry entry = {0};
    uint8_t *block;
    uint32_t data_bytes;

    if (bytes < HEAD_BYTES || bytes - HEAD_BYTES > DATA_BYTES_MAX) {
        return 0;
    }
    reader = wide_reader(data[4] % 2);
    data_bytes = ((uint32_t)(bytes - HEAD_BYTES) + 7) & ~7U;
    entry.data_offset = directory_end;
    entry.data_bytes = data_bytes;
    entry.nnz = slc_load_u16(data) + 1U;
    entry.first_lo = slc_load_u64(data + 8);
    entry.first_hi = slc_load_u64(data + 16) & 0x1fffffff;
    entry.last_lo = slc_load_u64(data + 24);
    entry.last_hi = slc_load_u64(data + 32) & 0x1fffffff;
    for (unsigned n = 0; n < MODES; n++) {
        /* Mostly the whole mode, so that a decoded tile is not refused for its range. */
        entry.corner[n] = data[40 + n] == 0 ? 0 : data[40 + n] % dims[n];
        entry.extent[n] = (uint32_t)(dims[n] - 1 - entry.corner[n]);
    }
    view.reader = reader;
    /* Exactly the bytes there are, so that AddressSanitizer sees the first read beyond. */
    view.entry.padded_bytes = directory_end + data_bytes + SLC_BLOCK_SLACK_BYTES;
    view.entry.bytes = view.entry.padded_bytes;
    view.entry.nnz = entry.nnz;
    view.entry.tile_count = 1;
    view.entry.codec = (enum slc_codec)(1 + data[2] % 3);
    block = calloc(1, view.entry.padded_bytes);
    if (!block) {
        return 0;
    }
    slc_tile_entry_store(block + slc_tile_entry_offset(MODES, 0), MODES, &entry);
    memcpy(block + directory_end, data + HEAD_BYTES, bytes - HEAD_BYTES);
    view.data = block;
    (void)slc_decoder_force(data[3] % 2 ? "portable" : NULL);
    decode(reader, &view, &entry, data[3] % 4 < 2 ? SLC_F64 : SLC_F32);
    free(block);
    return 0;
}
