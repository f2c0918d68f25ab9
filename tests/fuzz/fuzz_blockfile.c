/* Forged block files: the input is a list of changes to a tiny valid file, after which every
 * checksum is recomputed. If the reader accepts the result, every nonzero is decoded. */
#include "forged_image.h"
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "base/memory/bytes.h"
#include "storage/block/reader.h"

#include <stdlib.h>

static const char *const names[] = {"tiny-packed.slc/blco.blk",   "tiny-lz4.slc/blco.blk",
                                    "tiny-blco.slc/blco.blk",     "tiny-sorted.slc/sorted-2.blk",
                                    "tiny-runs.slc/sorted-2.blk", "tiny-fibers.slc/fiber-2.blk"};

enum { NAMES = sizeof names / sizeof names[0] };

/* An accepted file must have a complete set of partitions. */
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
                            abort(); /* a kernel would write outside its matrix */
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
    static struct forged_image images[NAMES];
    struct slc_reader *reader = NULL;
    struct forged_image image;

    for (size_t i = 0; i < NAMES && images[i].blocks == 0; i++) {
        forged_image_load(&images[i], names[i]);
    }
    if (bytes < 1) {
        return 0;
    }
    image = images[data[0] % NAMES];
    for (size_t i = 1; i + 3 <= bytes; i += 3) {
        forged_image_change(&image, slc_load_u16(data + i), data[i + 2]);
    }
    forged_image_seal(&image);
    fuzz_write(fuzz_path("fuzz.blk"), image.bytes, forged_image_bytes(&image));
    if (slc_reader_open(NULL, fuzz_path("fuzz.blk"), &reader, NULL) == SLC_OK) {
        check_partitions(reader);
        decode_all(reader, image.bytes);
        slc_reader_close(reader);
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    static const struct fuzz_changes form = {1, 3, 0};

    return fuzz_mutate_changes(data, bytes, room, seed, &form);
}
