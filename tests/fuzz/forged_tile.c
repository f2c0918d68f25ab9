/* Builds a block with one tile from the input of a fuzz target. */
#include "forged_tile.h"

#include "fuzz_store.h"

#include "base/memory/bytes.h"
#include "storage/block/writer.h"

#include <stdlib.h>
#include <string.h>

enum { DATA_BYTES_MAX = 4096 };
const uint64_t forged_dims[FORGED_MODES] = {1 << 24, 1 << 20, 1 << 18, 1 << 19, 1 << 12};
static const struct slc_fiber_run runs[2] = {{0, 0}, {.mode = 3, .bits = 6}};

/* A valid file with one nonzero, whose reader has the shape that the forged tiles claim. */
static struct slc_reader *wide_reader(bool fibers)
{
    static struct slc_reader *readers[2];
    struct slc_reader **reader = &readers[fibers];
    const uint64_t key = 0;
    const double value = 1;
    const struct slc_tile_source source = {1, &key, NULL, &value, 0};
    struct slc_writer_options options = {.path = fuzz_path(fibers ? "fibers.blk" : "wide.blk"),
                                         .layout = SLC_LAYOUT_BLCO,
                                         .order = FORGED_MODES,
                                         .dims = forged_dims,
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
    if (slc_key_layout_init_run(&keys, FORGED_MODES, forged_dims, runs[fibers], NULL) != SLC_OK ||
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

/* Usually makes the entry consistent with the first and last key, so that the tile is not rejected
 * for its ranges: bytes 40 to 44 raise the corner, 45 to 54 lower the largest coordinates. */
static void
choose_ranges(struct slc_tile_entry *entry, const struct slc_key_layout *keys, const uint8_t *data)
{
    const slc_u128 first = slc_key_join(entry->first_lo, entry->first_hi);
    const slc_u128 last = slc_key_join(entry->last_lo, entry->last_hi);
    uint64_t low[SLC_MAX_ORDER], high[SLC_MAX_ORDER];
    slc_u128 vary = first ^ last;

    for (unsigned shift = 1; shift < 128; shift *= 2) {
        vary |= vary >> shift;
    }
    slc_key_decode(keys, first & ~vary, low);
    slc_key_decode(keys, first | vary, high);
    for (unsigned n = 0; n < FORGED_MODES; n++) {
        /* All mode sizes are powers of two, so every key is in range. */
        entry->corner[n] = low[n] + data[40 + n];
        entry->extent[n] = (uint32_t)(high[n] - slc_load_u16(data + 45 + 2 * n) - entry->corner[n]);
    }
}

bool forged_tile_make(struct forged_tile *forged, const uint8_t *data, size_t bytes)
{
    const uint32_t directory_end = (uint32_t)slc_tile_entry_offset(FORGED_MODES, 1);
    struct slc_tile_entry *entry = &forged->entry;
    struct slc_block_view *view = &forged->view;
    uint8_t *block;

    if (bytes < FORGED_HEAD_BYTES || bytes - FORGED_HEAD_BYTES > DATA_BYTES_MAX) {
        return false;
    }
    memset(forged, 0, sizeof *forged);
    entry->data_offset = directory_end;
    entry->data_bytes = ((uint32_t)(bytes - FORGED_HEAD_BYTES) + 7) & ~7U;
    entry->nnz = slc_load_u16(data) + 1U;
    entry->first_lo = slc_load_u64(data + 8);
    entry->first_hi = slc_load_u64(data + 16) & 0x1fffffff;
    entry->last_lo = slc_load_u64(data + 24);
    entry->last_hi = slc_load_u64(data + 32) & 0x1fffffff;
    view->reader = wide_reader(data[4] % 2);
    choose_ranges(entry, &slc_reader_info(view->reader)->keys, data);
    view->entry.padded_bytes = directory_end + entry->data_bytes + SLC_BLOCK_SLACK_BYTES;
    view->entry.bytes = view->entry.padded_bytes;
    view->entry.nnz = entry->nnz;
    view->entry.tile_count = 1;
    view->entry.codec = (enum slc_codec)(1 + data[2] % 3);
    block = calloc(1, view->entry.padded_bytes);
    if (!block) {
        return false;
    }
    slc_tile_entry_store(block + slc_tile_entry_offset(FORGED_MODES, 0), FORGED_MODES, entry);
    memcpy(block + directory_end, data + FORGED_HEAD_BYTES, bytes - FORGED_HEAD_BYTES);
    view->data = block;
    return true;
}

void forged_tile_free(struct forged_tile *forged)
{
    free((void *)(uintptr_t)forged->view.data);
}
