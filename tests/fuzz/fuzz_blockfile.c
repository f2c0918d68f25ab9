/*
 * Forged block files: the input is a list of changes to a good tiny file, after which every
 * checksum is made right again. Whatever the reader then accepts is decoded to the last nonzero.
 */
#include "fuzz_store.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "storage/file_layout.h"
#include "storage/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The golden files: header, one block, index, closing page. */
enum {
    IMAGE_BYTES = 4 * SLC_PAGE_BYTES,
    IMAGES = 3,
    BLOCK_AT = 4096,
    INDEX_AT = 8192,
    CLOSING_AT = 12288
};
static const char *const names[IMAGES] = {"packed", "lz4", "blco"};
static uint8_t images[IMAGES][IMAGE_BYTES];

static void load_images(void)
{
    static int loaded;
    char path[1024];

    for (int i = 0; i < IMAGES && !loaded; i++) {
        FILE *in;

        (void)snprintf(path, sizeof path, "%s/tiny-%s.slc/blco.blk", SLC_GOLDEN, names[i]);
        in = fopen(path, "rb");
        if (!in || fread(images[i], 1, IMAGE_BYTES, in) != IMAGE_BYTES) {
            abort();
        }
        (void)fclose(in);
    }
    loaded = 1;
}

/* Places where something is written; the rest of a page is zero. */
static size_t place_of(unsigned position)
{
    static const struct {
        size_t at, bytes;
    } parts[] = {{0, 256}, {4080, 8}, {BLOCK_AT, 384}, {INDEX_AT, 144}, {CLOSING_AT, 48}};

    position %= 256 + 8 + 384 + 144 + 48;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (position < parts[i].bytes) {
            return parts[i].at + position;
        }
        position -= (unsigned)parts[i].bytes;
    }
    return 0;
}

static void repair(uint8_t *image)
{
    slc_store_u64(image + INDEX_AT + SLC_INDEX_HASH, slc_hash64(image + BLOCK_AT, SLC_PAGE_BYTES));
    slc_store_u64(image + SLC_HEADER_INDEX_HASH, slc_hash64(image + INDEX_AT, SLC_PAGE_BYTES));
    slc_store_u64(image + CLOSING_AT + SLC_CLOSING_INDEX_HASH,
                  slc_load_u64(image + SLC_HEADER_INDEX_HASH));
    slc_store_u64(image + SLC_HEADER_HASH, slc_hash64(image, SLC_HEADER_HASH));
    slc_store_u64(image + CLOSING_AT + SLC_CLOSING_HEADER_HASH,
                  slc_load_u64(image + SLC_HEADER_HASH));
    slc_store_u64(image + CLOSING_AT + SLC_CLOSING_HASH,
                  slc_hash64(image + CLOSING_AT, SLC_CLOSING_HASH));
}

static void decode_all(const struct slc_reader *reader, const uint8_t *image)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    struct slc_decoder *decoder = NULL;

    if (slc_decoder_create(info, SLC_F64, &decoder, NULL) != SLC_OK) {
        return;
    }
    for (uint64_t b = 0; b < info->block_count; b++) {
        struct slc_block_view view;
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        if (slc_block_open(reader, b, image + entry.offset, false, &view, NULL) != SLC_OK) {
            continue;
        }
        for (uint32_t t = 0; t < view.entry.tile_count; t++) {
            struct slc_tile_view tile;
            struct slc_chunk_view chunk;

            if (slc_tile_open(decoder, &view, t, &tile, NULL) != SLC_OK) {
                continue;
            }
            while (tile.next(&tile, SLC_GROUP_NNZ, &chunk, NULL) == SLC_OK && chunk.nnz > 0) {
                for (uint32_t i = 0; i < chunk.nnz; i++) {
                    for (unsigned n = 0; n < tile.order; n++) {
                        if (tile.corner[n] + chunk.offset[n][i] >= info->dims[n]) {
                            abort(); /* a kernel would leave its matrix */
                        }
                    }
                }
            }
        }
    }
    slc_decoder_destroy(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint8_t image[IMAGE_BYTES];
    struct slc_reader *reader = NULL;

    load_images();
    if (bytes < 1) {
        return 0;
    }
    memcpy(image, images[data[0] % IMAGES], IMAGE_BYTES);
    for (size_t i = 1; i + 3 <= bytes; i += 3) {
        image[place_of(slc_load_u16(data + i))] = data[i + 2];
    }
    repair(image);
    fuzz_write(fuzz_path("fuzz.blk"), image, IMAGE_BYTES);
    if (slc_reader_open(NULL, fuzz_path("fuzz.blk"), &reader, NULL) == SLC_OK) {
        decode_all(reader, image);
        slc_reader_close(reader);
    }
    return 0;
}
