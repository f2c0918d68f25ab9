#include "convert/export/zip_form.h"

#include "base/memory/bytes.h"

#include <stdbool.h>
#include <string.h>

enum {
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    END_BYTES = 22,
    VERSION = 20,   /* version of zip that reads stored members */
    VERSION64 = 45, /* version of zip that reads ZIP64 fields */
    DATE = 0x21     /* 1 January 1980, so that the same tensor yields the same bytes */
};

#define BEYOND UINT64_C(0xFFFFFFFF)

/* Returns the number if it fits 32 bits, otherwise the mark that it is in a ZIP64 field. */
static uint32_t short_form(uint64_t number)
{
    return (uint32_t)(number < BEYOND ? number : BEYOND);
}

uint32_t slc_zip_local(const struct slc_zip_member *member, uint8_t bytes[SLC_ZIP_LOCAL_MAX])
{
    const uint16_t name = (uint16_t)strlen(member->name);
    const bool large = member->bytes >= BEYOND;
    uint8_t *extra = bytes + LOCAL_BYTES + name;

    memset(bytes, 0, LOCAL_BYTES);
    slc_store_u32(bytes, 0x04034b50);
    slc_store_u16(bytes + 4, large ? VERSION64 : VERSION);
    slc_store_u16(bytes + 12, DATE);
    slc_store_u32(bytes + 14, member->crc);
    slc_store_u32(bytes + 18, short_form(member->bytes));
    slc_store_u32(bytes + 22, short_form(member->bytes));
    slc_store_u16(bytes + 26, name);
    slc_store_u16(bytes + 28, large ? 20 : 0);
    memcpy(bytes + LOCAL_BYTES, member->name, name);
    if (large) {
        slc_store_u16(extra, 1);
        slc_store_u16(extra + 2, 16);
        slc_store_u64(extra + 4, member->bytes);
        slc_store_u64(extra + 12, member->bytes);
    }
    return (uint32_t)LOCAL_BYTES + name + (large ? 20U : 0U);
}

static uint32_t write_entry(const struct slc_zip_member *member, uint8_t *bytes)
{
    const uint16_t name = (uint16_t)strlen(member->name);
    uint8_t *extra = bytes + ENTRY_BYTES + name;
    uint16_t more = 0;

    memset(bytes, 0, ENTRY_BYTES);
    if (member->bytes >= BEYOND) {
        slc_store_u64(extra + 4, member->bytes);
        slc_store_u64(extra + 12, member->bytes);
        more = 16;
    }
    if (member->offset >= BEYOND) {
        slc_store_u64(extra + 4 + more, member->offset);
        more = (uint16_t)(more + 8);
    }
    if (more > 0) {
        slc_store_u16(extra, 1);
        slc_store_u16(extra + 2, more);
        more = (uint16_t)(more + 4);
    }
    slc_store_u32(bytes, 0x02014b50);
    slc_store_u16(bytes + 4, more > 0 ? VERSION64 : VERSION);
    slc_store_u16(bytes + 6, more > 0 ? VERSION64 : VERSION);
    slc_store_u16(bytes + 14, DATE);
    slc_store_u32(bytes + 16, member->crc);
    slc_store_u32(bytes + 20, short_form(member->bytes));
    slc_store_u32(bytes + 24, short_form(member->bytes));
    slc_store_u16(bytes + 28, name);
    slc_store_u16(bytes + 30, more);
    slc_store_u32(bytes + 42, short_form(member->offset));
    memcpy(bytes + ENTRY_BYTES, member->name, name);
    return (uint32_t)ENTRY_BYTES + name + more;
}

/* Writes the ZIP64 end records of an archive whose directory begins at 4 GiB or later. */
static uint32_t write_end64(unsigned count, uint64_t offset, uint32_t directory, uint8_t *bytes)
{
    memset(bytes, 0, END64_BYTES + LOCATOR_BYTES);
    slc_store_u32(bytes, 0x06064b50);
    slc_store_u64(bytes + 4, END64_BYTES - 12);
    slc_store_u16(bytes + 12, VERSION64);
    slc_store_u16(bytes + 14, VERSION64);
    slc_store_u64(bytes + 24, count);
    slc_store_u64(bytes + 32, count);
    slc_store_u64(bytes + 40, directory);
    slc_store_u64(bytes + 48, offset);
    bytes += END64_BYTES;
    slc_store_u32(bytes, 0x07064b50);
    slc_store_u64(bytes + 8, offset + directory);
    slc_store_u32(bytes + 16, 1);
    return END64_BYTES + LOCATOR_BYTES;
}

uint32_t slc_zip_directory(const struct slc_zip_member *members,
                           unsigned count,
                           uint64_t offset,
                           uint8_t *bytes)
{
    uint8_t *at = bytes;

    for (unsigned i = 0; i < count; i++) {
        at += write_entry(&members[i], at);
    }
    uint32_t directory = (uint32_t)(at - bytes);
    if (offset >= BEYOND) {
        at += write_end64(count, offset, directory, at);
    }
    memset(at, 0, END_BYTES);
    slc_store_u32(at, 0x06054b50);
    slc_store_u16(at + 8, (uint16_t)count);
    slc_store_u16(at + 10, (uint16_t)count);
    slc_store_u32(at + 12, directory);
    slc_store_u32(at + 16, short_form(offset));
    return (uint32_t)(at - bytes) + END_BYTES;
}
