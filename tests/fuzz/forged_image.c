/* Loads golden block files, changes them and recomputes their checksums. */
#include "forged_image.h"

#include "base/hash.h"
#include "base/memory/bytes.h"

#include <stdio.h>
#include <stdlib.h>

static size_t index_at(const struct forged_image *image)
{
    return (1 + image->blocks) * SLC_PAGE_BYTES;
}

static size_t closing_at(const struct forged_image *image)
{
    return index_at(image) + SLC_PAGE_BYTES;
}

size_t forged_image_bytes(const struct forged_image *image)
{
    return closing_at(image) + SLC_PAGE_BYTES;
}

void forged_image_load(struct forged_image *image, const char *name)
{
    char path[1024];
    size_t bytes;
    FILE *in;

    (void)snprintf(path, sizeof path, "%s/%s", SLC_GOLDEN, name);
    in = fopen(path, "rb");
    if (in == NULL) {
        abort();
    }
    bytes = fread(image->bytes, 1, FORGED_IMAGE_BYTES_MAX, in);
    image->blocks = slc_load_u64(image->bytes + SLC_HEADER_BLOCK_COUNT);
    if (image->blocks > FORGED_BLOCKS_MAX || bytes != forged_image_bytes(image) ||
        image->bytes[SLC_HEADER_ORDER] != 3) {
        abort();
    }
    (void)fclose(in);
}

void forged_image_change(struct forged_image *image, size_t place, uint8_t byte)
{
    const struct {
        size_t at, bytes;
    } parts[] = {{0, 256},
                 {SLC_HEADER_HASH - 8, 8},
                 {SLC_PAGE_BYTES, 384},
                 {index_at(image), 144 * image->blocks},
                 {closing_at(image), SLC_CLOSING_ZERO},
                 {2 * SLC_PAGE_BYTES, image->blocks > 1 ? 384 : 0},
                 {3 * SLC_PAGE_BYTES, image->blocks > 2 ? 384 : 0}};
    size_t all = 0;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        all += parts[i].bytes;
    }
    place %= all;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (place < parts[i].bytes) {
            image->bytes[parts[i].at + place] = byte;
            return;
        }
        place -= parts[i].bytes;
    }
}

void forged_image_seal(struct forged_image *image)
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
