/*
 * Block files in memory that a fuzz target's input alters: the golden ones, with three modes each,
 * whose checksums are made right again afterwards.
 */
#ifndef SLC_FORGED_IMAGE_H
#define SLC_FORGED_IMAGE_H

#include "storage/block/file_layout.h"

#include <stddef.h>
#include <stdint.h>

/* Header, blocks of a page each, one page of index, closing page. */
enum { FORGED_BLOCKS_MAX = 3, FORGED_IMAGE_BYTES_MAX = (3 + FORGED_BLOCKS_MAX) * SLC_PAGE_BYTES };

struct forged_image {
    size_t blocks;
    uint8_t bytes[FORGED_IMAGE_BYTES_MAX];
};

/* Loads a file of the golden folder; stops the process where it is none of that form. */
void forged_image_load(struct forged_image *image, const char *name);
size_t forged_image_bytes(const struct forged_image *image);

/* Sets the byte at a place where something is written: of a page, most bytes are zero. */
void forged_image_change(struct forged_image *image, size_t place, uint8_t byte);
/* Makes all checksums right, from those of blocks to that of the closing page. */
void forged_image_seal(struct forged_image *image);

#endif
