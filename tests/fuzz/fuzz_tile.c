/*
 * Any bytes as the data of one tile, in each codec, under directory entries that the input chooses:
 * the decoders alone, behind every checksum, with keys of 93 bits.
 */
#include "fuzz_store.h"

#include "base/bytes.h"
#include "storage/block_layout.h"
#include "storage/reader.h"
#include "storage/writer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODES = 5, DATA_BYTES_MAX = 4096, HEAD_BYTES = 64 };
static const uint64_t dims[MODES] = {1 << 24, 1 << 20, 1 << 18, 1 << 19, 1 << 12};

/* A sound file of one nonzero: the reader whose shape the forged tiles claim. */
static struct slc_reader *wide_reader(void)
{
    static struct slc_reader *reader;
    const uint64_t key = 0;
    const double value = 1;
    const struct slc_tile_source source = {1, &key, NULL, &value, 0};
    struct slc_writer_options options = {.path = fuzz_path("wide.blk"),
                                         .layout = SLC_LAYOUT_BLCO,
                                         .order = MODES,
                                         .dims = dims,
                                         .codec = SLC_CODEC_PACKED};
    struct slc_writer_summary summary;
    struct slc_writer *writer = NULL;
    struct slc_encoder *encoder = NULL;
    struct slc_key_layout keys;
    struct slc_tile_blob blob;

    if (reader) {
        return reader;
    }
    if (slc_key_layout_init(&keys, MODES, dims, NULL) != SLC_OK ||
        slc_encoder_create(&keys, SLC_CODEC_PACKED, &encoder, NULL) != SLC_OK ||
        slc_writer_open(&options, &writer, NULL) != SLC_OK ||
        slc_tile_encode(encoder, &source, &blob, NULL) != SLC_OK ||
        slc_writer_append(writer, &blob, NULL) != SLC_OK ||
        slc_writer_finish(writer, &summary, NULL) != SLC_OK ||
        slc_reader_open(NULL, fuzz_path("wide.blk"), &reader, NULL) != SLC_OK) {
        abort();
    }
    slc_encoder_destroy(encoder);
    return reader;
}

static void decode(const struct slc_reader *reader,
                   struct slc_block_view *view,
                   const struct slc_tile_entry *entry,
                   enum slc_value_type type)
{
    struct slc_decoder *decoder = NULL;
    struct slc_tile_view tile;
    struct slc_chunk_view chunk;
    uint64_t seen = 0;

    if (slc_decoder_create(slc_reader_info(reader), type, &decoder, NULL) != SLC_OK) {
        return;
    }
    if (slc_tile_open(decoder, view, 0, &tile, NULL) == SLC_OK) {
        while (tile.next(&tile, 256, &chunk, NULL) == SLC_OK && chunk.nnz > 0) {
            seen += chunk.nnz;
            if (seen > entry->nnz) {
                abort();
            }
            for (unsigned n = 0; n < MODES; n++) {
                for (uint32_t i = 0; i < chunk.nnz; i++) {
                    if (chunk.offset[n][i] > tile.extent[n] ||
                        tile.corner[n] + chunk.offset[n][i] >= dims[n]) {
                        abort();
                    }
                }
            }
        }
    }
    slc_decoder_destroy(decoder);
}

/* Input: 64 bytes that choose the directory entry, then the tile's data. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint32_t directory_end = (uint32_t)slc_tile_entry_offset(MODES, 1);
    const struct slc_reader *reader = wide_reader();
    struct slc_block_view view = {.reader = reader};
    struct slc_tile_entry entry = {0};
    uint8_t *block;
    uint32_t data_bytes;

    if (bytes < HEAD_BYTES || bytes - HEAD_BYTES > DATA_BYTES_MAX) {
        return 0;
    }
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
