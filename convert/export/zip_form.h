/* Writes the headers and the directory of a .zip archive with stored (uncompressed) members
 * (APPNOTE 6.3), the container of .npz files. The sizes and offsets of members are known before the
 * members are written, the checksums only afterwards. ZIP64 fields are written only for numbers of
 * 0xFFFFFFFF and more. */
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
    const char *name; /* at most SLC_ZIP_NAME_MAX bytes */
    uint64_t offset;  /* file offset of the local header */
    uint64_t bytes;   /* size of the content */
    uint32_t crc;     /* CRC-32 of the content */
};

/* Writes the local header, which precedes the content. Returns the size of the header, which
 * depends only on the name and the size of the member. */
uint32_t slc_zip_local(const struct slc_zip_member *member, uint8_t bytes[SLC_ZIP_LOCAL_MAX]);

/* Writes the central directory, which follows the last content at `offset` of the file. `bytes`:
 * space for count x SLC_ZIP_ENTRY_MAX + SLC_ZIP_END_MAX bytes. Returns the size of the
 * directory. */
uint32_t slc_zip_directory(const struct slc_zip_member *members,
                           unsigned count,
                           uint64_t offset,
                           uint8_t *bytes);

#endif
