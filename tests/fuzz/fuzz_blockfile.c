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

/* The golden files: header, blocks of a page each, one page of index, closing page. */
enum { BLOCKS_MAX = 3, IMAGE_BYTES_MAX = (3 + BLOCKS_MAX) * SLC_PAGE_BYTES };

struct image {
    const char *name;
    size_t blocks;
    uint8_t bytes[IMAGE_BYTES_MAX];
};

static struct image images[] = {{.name = "tiny-packed.slc/blco.blk", .blocks = 1},
                                {.name = "tiny-lz4.slc/blco.blk", .blocks = 1},
                                {.name = "tiny-blco.slc/blco.blk", .blocks = 1},
                                {.name = "tiny-sorted.slc/sorted-2.blk", .blocks = 3},
                                {.name = "tiny-runs.slc/sorted-2.blk", .blocks = 2},
                                {.name = "tiny-fibers.slc/fiber-2.blk", .blocks = 1}};

static size_t index_at(const struct image *image)
{
    return (1 + image->blocks) * SLC_PAGE_BYTES;
}

static size_t closing_at(const struct image *image)
{
    return index_at(image) + SLC_PAGE_BYTES;
}

static size_t image_bytes(const struct image *image)
{
    return closing_at(image) + SLC_PAGE_BYTES;
}

static void load_images(void)
{
    static int loaded;
    char path[1024];

    for (size_t i = 0; i < sizeof images / sizeof images[0] && !loaded; i++) {
        FILE *in;

        (void)snprintf(path, sizeof path, "%s/%s", SLC_GOLDEN, images[i].name);
        in = fopen(path, "rb");
        if (!in || fread(images[i].bytes, 1, IMAGE_BYTES_MAX, in) != image_bytes(&images[i])) {
            abort();
        }
        (void)fclose(in);
    }
    loaded = 1;
}

/* Places where something is written; the rest of a page is zero. */
static size_t place_of(const struct image *image, size_t position)
{
    const struct {
        size_t at, bytes;
    } parts[] = {{0, 256},
                 {4080, 8},
                 {SLC_PAGE_BYTES, 384},
                 {index_at(image), 144 * image->blocks},
                 {closing_at(image), 48},
                 {2 * SLC_PAGE_BYTES, image->blocks > 1 ? 384 : 0},
                 {3 * SLC_PAGE_BYTES, image->blocks > 2 ? 384 : 0}};
    size_t all = 0;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        all += parts[i].bytes;
    }
    position %= all;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (position < parts[i].bytes) {
            return parts[i].at + position;
        }
        position -= parts[i].bytes;
    }
    return 0;
}

static void repair(struct image *image)
{
    uint8_t *header = image->bytes;
    uint8_t *index = image->bytes + index_at(image);
    uint8_t *closing = image->bytes + closing_at(image);

    for (size_t block = 0; block < image->blocks; block++) {
        slc_store_u64(index + block * slc_index_entry_bytes(3) + SLC_INDEX_HASH,
                      slc_hash64(header + (1 + block) * SLC_PAGE_BYTES, SLC_PAGE_BYTES));
    }
    slc_store_u64(header + SLC_HEADER_INDEX_HASH, slc_hash64(index, SLC_PAGE_BYTES));
    slc_store_u64(closing + SLC_CLOSING_INDEX_HASH, slc_load_u64(header + SLC_HEADER_INDEX_HASH));
    slc_store_u64(header + SLC_HEADER_HASH, slc_hash64(header, SLC_HEADER_HASH));
    slc_store_u64(closing + SLC_CLOSING_HEADER_HASH, slc_load_u64(header + SLC_HEADER_HASH));
    slc_store_u64(closing + SLC_CLOSING_HASH, slc_hash64(closing, SLC_CLOSING_HASH));
}

/* What the reader accepts has to be a whole set of partitions. */
static void check_partitions(const struct slc_reader *reader)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    uint64_t blocks = 0;
    uint64_t nnz = 0;

    for (uint64_t p = 0; p < info->partition_count; p++) {
        struct slc_partition partition;

        slc_reader_partition(reader, p, &partition);
        if (partition.first_block != blocks || partition.block_count == 0 ||
            partition.last_row >= info->dims[info->layout_mode] ||
            partition.nnz > info->max_partition_nnz ||
            partition.padded_bytes > info->max_partition_bytes) {
            abort();
        }
        blocks += partition.block_count;
        nnz += partition.nnz;
    }
    if (info->layout == SLC_LAYOUT_SORTED && (blocks != info->block_count || nnz != info->nnz)) {
        abort();
    }
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
    struct slc_reader *reader = NULL;
    struct image image;

    load_images();
    if (bytes < 1) {
        return 0;
    }
    image = images[data[0] % (sizeof images / sizeof images[0])];
    for (size_t i = 1; i + 3 <= bytes; i += 3) {
        image.bytes[place_of(&image, slc_load_u16(data + i))] = data[i + 2];
    }
    repair(&image);
    fuzz_write(fuzz_path("fuzz.blk"), image.bytes, image_bytes(&image));
    if (slc_reader_open(NULL, fuzz_path("fuzz.blk"), &reader, NULL) == SLC_OK) {
        check_partitions(reader);
        decode_all(reader, image.bytes);
        slc_reader_close(reader);
    }
    return 0;
}
