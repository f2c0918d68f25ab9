/* Block files in memory that the input of a fuzz target modifies: the golden files, with three
 * modes each. All checksums are recomputed after the changes. */
#ifndef SLC_FORGED_IMAGE_H
#define SLC_FORGED_IMAGE_H

#include "storage/block/file_layout.h"

#include <stddef.h>
#include <stdint.h>

/* Header, blocks of one page each, one index page, closing page. */
enum { FORGED_BLOCKS_MAX = 3, FORGED_IMAGE_BYTES_MAX = (3 + FORGED_BLOCKS_MAX) * SLC_PAGE_BYTES };

struct forged_image {
    size_t blocks;
    uint8_t bytes[FORGED_IMAGE_BYTES_MAX];
};

/* Loads a golden file; stops the process if it does not have that form. */
void forged_image_load(struct forged_image *image, const char *name);
size_t forged_image_bytes(const struct forged_image *image);

/* Changes a byte among those in use: most bytes of a page are zero padding. */
void forged_image_change(struct forged_image *image, size_t place, uint8_t byte);
/* Recomputes all checksums, from the blocks to the closing page. */
void forged_image_seal(struct forged_image *image);

#endif
