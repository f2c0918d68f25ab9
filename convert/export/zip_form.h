/*
 * Headers and directory of a .zip archive with stored members (APPNOTE 6.3), the container of .npz.
 * Sizes and places of members are known before they are written, checksums after. Numbers of
 * 0xFFFFFFFF and more use ZIP64 fields, which are written only if needed.
 */
#ifndef SLC_CONVERT_ZIP_FORM_H
#define SLC_CONVERT_ZIP_FORM_H

#include <stdint.h>

enum {
    SLC_ZIP_NAME_MAX = 32,
    SLC_ZIP_LOCAL_MAX = 30 + SLC_ZIP_NAME_MAX + 20,
    SLC_ZIP_ENTRY_MAX = 46 + SLC_ZIP_NAME_MAX + 28,
    SLC_ZIP_END_MAX = 56 + 20 + 22
};

struct slc_zip_member {
    const char *name; /* at most SLC_ZIP_NAME_MAX letters */
    uint64_t offset;  /* of its local header in the file */
    uint64_t bytes;   /* of its content */
    uint32_t crc;     /* of its content: CRC-32 */
};

/* Writes the header before the content; returns its size, which depends only on name and bytes. */
uint32_t slc_zip_local(const struct slc_zip_member *member, uint8_t bytes[SLC_ZIP_LOCAL_MAX]);

/* Writes the central directory, which follows the last content at `offset` of the file, to `bytes`
 * (count x SLC_ZIP_ENTRY_MAX + SLC_ZIP_END_MAX). Returns its size. */
uint32_t slc_zip_directory(const struct slc_zip_member *members,
                           unsigned count,
                           uint64_t offset,
                           uint8_t *bytes);

#endif
