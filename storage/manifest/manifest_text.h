/* The fixed first bytes of the manifest, which the writer and the reader share (docs/FORMAT.md,
 * section 9). */
#ifndef SLC_STORAGE_MANIFEST_TEXT_H
#define SLC_STORAGE_MANIFEST_TEXT_H

#define SLC_MANIFEST_PREFIX "{\"checksum\":\"xxh3-64:"
#define SLC_MANIFEST_FORMAT "sluice-store"

enum {
    SLC_MANIFEST_PREFIX_BYTES = sizeof SLC_MANIFEST_PREFIX - 1,
    SLC_MANIFEST_DIGITS = 16, /* digits of a 64-bit number in hexadecimal */
    /* Stores with permutations have version 2, which programs that know only version 1 reject. */
    SLC_MANIFEST_VERSION = 1,
    SLC_MANIFEST_VERSION_RELABELLED = 2
};

#endif
