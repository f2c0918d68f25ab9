/*
 * Headers and directory of a .zip archive with stored members (APPNOTE 6.3), the container of .npz.
 * Sizes and offsets of members are known before the members are written, checksums only afterwards.
 * ZIP64 fields are written only for numbers of 0xFFFFFFFF and more.
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

/* Forms the local header, which precedes the content. Returns its size, which depends only on the
 * name and the size of the member. */
uint32_t slc_zip_local(const struct slc_zip_member *member, uint8_t bytes[SLC_ZIP_LOCAL_MAX]);

/* Forms the central directory, which follows the last content, at `offset` of the file. `bytes`:
 * count x SLC_ZIP_ENTRY_MAX + SLC_ZIP_END_MAX. Returns its size. */
uint32_t slc_zip_directory(const struct slc_zip_member *members,
                           unsigned count,
                           uint64_t offset,
                           uint8_t *bytes);

#endif
