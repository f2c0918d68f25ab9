/* Encodes, decodes and checks the header and the section table of a generation.
 *
 *     header, page 0:  0 magic, 8 u16 major, 10 u16 minor, 12 u32 header bytes, 16 generation,
 *                      24 section count, 32 file bytes, 40 hash of page 1, zeros, 504 hash of
 *                      bytes 0 to 503, zeros
 *     table, page 1:   40 bytes per section: name, offset, bytes, hash of the padded bytes; zeros
 *
 * All header fields are in the first 512 bytes, which drives write atomically, so that after a
 * power failure the header is either the old or the new header. A section starts where the previous
 * section ends. Its offset is therefore compared with the sum of the previous sizes, and its size
 * is checked against the rest of the file. */
#include "storage/checkpoint/checkpoint_internal.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"

#include <inttypes.h>
#include <string.h>

#define MAGIC "\x89SLCKPT\n"

enum {
    MAJOR = 1,
    HEADER_VERSION = 8,
    HEADER_MINOR = 10,
    HEADER_BYTES = 12,
    HEADER_GENERATION = 16,
    HEADER_COUNT = 24,
    HEADER_FILE_BYTES = 32,
    HEADER_TABLE_HASH = 40,
    HEADER_ZEROS = 48,
    HEADER_HASH = 504,
    HEADER_END = 512,

    ENTRY_OFFSET = SLC_CHECKPOINT_NAME_BYTES,
    ENTRY_LENGTH = ENTRY_OFFSET + 8,
    ENTRY_HASH = ENTRY_OFFSET + 16,
    ENTRY_BYTES = ENTRY_OFFSET + 24
};

/* Largest valid generation number: far more than a run writes, and far from overflow. */
#define GENERATION_MAX (UINT64_C(1) << 48)

enum slc_status
slc_checkpoint_damaged(struct slc_error *err, const char *path, uint64_t offset, const char *what)
{
    (void)slc_fail_field(err, SLC_ERR_DAMAGED, SLC_FIELD_RESTART,
                         "%s: the checkpoint is damaged; restart the run from the beginning", what);
    slc_error_locate_block(err, path, SLC_NOWHERE, offset);
    return SLC_ERR_DAMAGED;
}

void slc_checkpoint_table_encode(const struct slc_checkpoint_info *info, uint8_t *table)
{
    memset(table, 0, SLC_PAGE_BYTES);
    for (unsigned s = 0; s < info->section_count; s++) {
        uint8_t *entry = table + (size_t)s * ENTRY_BYTES;

        memcpy(entry, info->sections[s].name, strlen(info->sections[s].name));
        slc_store_u64(entry + ENTRY_OFFSET, info->sections[s].offset);
        slc_store_u64(entry + ENTRY_LENGTH, info->sections[s].bytes);
        slc_store_u64(entry + ENTRY_HASH, info->sections[s].hash);
    }
}

void slc_checkpoint_header_encode(const struct slc_checkpoint_info *info,
                                  const uint8_t *table,
                                  uint8_t *header)
{
    memset(header, 0, SLC_PAGE_BYTES);
    memcpy(header, MAGIC, sizeof MAGIC - 1);
    slc_store_u16(header + HEADER_VERSION, MAJOR);
    slc_store_u32(header + HEADER_BYTES, SLC_PAGE_BYTES);
    slc_store_u64(header + HEADER_GENERATION, info->generation);
    slc_store_u64(header + HEADER_COUNT, info->section_count);
    slc_store_u64(header + HEADER_FILE_BYTES, info->file_bytes);
    slc_store_u64(header + HEADER_TABLE_HASH, slc_hash64(table, SLC_PAGE_BYTES));
    slc_store_u64(header + HEADER_HASH, slc_hash64(header, HEADER_HASH));
}

static bool all_zero(const uint8_t *bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static enum slc_status
fail_foreign(struct slc_error *err, const char *path, uint64_t offset, const char *what)
{
    (void)slc_fail(err, SLC_ERR_FORMAT, "%s", what);
    slc_error_locate_block(err, path, SLC_NOWHERE, offset);
    return SLC_ERR_FORMAT;
}

enum slc_status slc_checkpoint_header_decode(const uint8_t *header,
                                             uint64_t available,
                                             const char *path,
                                             struct slc_checkpoint_info *info,
                                             bool *empty,
                                             struct slc_error *err)
{
    *empty = all_zero(header, available);
    if (*empty) {
        return SLC_OK;
    }
    if (available < sizeof MAGIC - 1 || memcmp(header, MAGIC, sizeof MAGIC - 1) != 0) {
        return fail_foreign(err, path, 0, "not a checkpoint of sluice: move the file elsewhere");
    }
    if (available < SLC_PAGE_BYTES) {
        return slc_checkpoint_damaged(err, path, available, "the header is truncated");
    }
    if (slc_load_u64(header + HEADER_HASH) != slc_hash64(header, HEADER_HASH)) {
        return slc_checkpoint_damaged(err, path, HEADER_HASH, "checksum mismatch in the header");
    }
    if (slc_load_u16(header + HEADER_VERSION) != MAJOR) {
        (void)slc_fail(err, SLC_ERR_UNSUPPORTED,
                       "checkpoint version %u is not supported; this program reads version %d: use "
                       "a newer program",
                       slc_load_u16(header + HEADER_VERSION), MAJOR);
        slc_error_locate_block(err, path, SLC_NOWHERE, HEADER_VERSION);
        return SLC_ERR_UNSUPPORTED;
    }
    if (slc_load_u32(header + HEADER_BYTES) != SLC_PAGE_BYTES) {
        return fail_foreign(err, path, HEADER_BYTES,
                            "the header of the checkpoint has an unexpected size");
    }
    if (!all_zero(header + HEADER_ZEROS, HEADER_HASH - HEADER_ZEROS)) {
        return fail_foreign(err, path, HEADER_ZEROS, "the checkpoint has unknown fields");
    }
    if (!all_zero(header + HEADER_END, SLC_PAGE_BYTES - HEADER_END)) {
        return slc_checkpoint_damaged(err, path, HEADER_END, "bytes after the header are not 0");
    }
    info->generation = slc_load_u64(header + HEADER_GENERATION);
    info->file_bytes = slc_load_u64(header + HEADER_FILE_BYTES);
    if (info->generation == 0 || info->generation > GENERATION_MAX) {
        return fail_foreign(err, path, HEADER_GENERATION,
                            "the checkpoint has no valid generation number");
    }
    if (slc_load_u64(header + HEADER_COUNT) > SLC_CHECKPOINT_SECTIONS) {
        return fail_foreign(err, path, HEADER_COUNT, "the checkpoint has too many sections");
    }
    info->section_count = (unsigned)slc_load_u64(header + HEADER_COUNT);
    return SLC_OK;
}

/* True if `name` has 1 to 15 characters a-z, 0-9 or '-', then zeros. */
static bool is_name(const char *name)
{
    size_t length = 0;

    while (length < SLC_CHECKPOINT_NAME_BYTES &&
           ((name[length] >= 'a' && name[length] <= 'z') ||
            (name[length] >= '0' && name[length] <= '9') || name[length] == '-')) {
        length++;
    }
    return length > 0 && length < SLC_CHECKPOINT_NAME_BYTES &&
           all_zero((const uint8_t *)name + length, SLC_CHECKPOINT_NAME_BYTES - length);
}

/* Decodes table entry `s`. Its section must start at *next; advances *next to the section's end. */
static enum slc_status decode_entry(const uint8_t *entry,
                                    unsigned s,
                                    uint64_t *next,
                                    const char *path,
                                    struct slc_checkpoint_info *info,
                                    struct slc_error *err)
{
    const uint64_t at = SLC_CHECKPOINT_TABLE_OFFSET + (uint64_t)s * ENTRY_BYTES;
    struct slc_checkpoint_section *section = &info->sections[s];
    uint64_t padded;

    memcpy(section->name, entry, SLC_CHECKPOINT_NAME_BYTES);
    if (!is_name(section->name)) {
        return fail_foreign(err, path, at, "a section of a checkpoint has no valid name");
    }
    for (unsigned before = 0; before < s; before++) {
        if (strcmp(section->name, info->sections[before].name) == 0) {
            return fail_foreign(err, path, at, "two sections of a checkpoint have the same name");
        }
    }
    section->offset = slc_load_u64(entry + ENTRY_OFFSET);
    section->bytes = slc_load_u64(entry + ENTRY_LENGTH);
    section->hash = slc_load_u64(entry + ENTRY_HASH);
    if (section->offset != *next) {
        return fail_foreign(err, path, at + ENTRY_OFFSET,
                            "a section does not start where the previous section ends");
    }
    if (!slc_round_up_u64(section->bytes, SLC_PAGE_BYTES, &padded) ||
        padded > info->file_bytes - *next) {
        return fail_foreign(err, path, at + ENTRY_LENGTH,
                            "a section ends after the end of the checkpoint");
    }
    *next += padded;
    return SLC_OK;
}

enum slc_status slc_checkpoint_table_decode(const uint8_t *header,
                                            const uint8_t *table,
                                            uint64_t file_bytes,
                                            const char *path,
                                            struct slc_checkpoint_info *info,
                                            struct slc_error *err)
{
    const uint64_t used = (uint64_t)info->section_count * ENTRY_BYTES;
    uint64_t next = SLC_CHECKPOINT_BODY_OFFSET;

    if (slc_load_u64(header + HEADER_TABLE_HASH) != slc_hash64(table, SLC_PAGE_BYTES)) {
        return slc_checkpoint_damaged(err, path, SLC_CHECKPOINT_TABLE_OFFSET,
                                      "checksum mismatch in the table of sections");
    }
    if (info->file_bytes > file_bytes) {
        return slc_checkpoint_damaged(err, path, file_bytes, "the file is truncated");
    }
    if (info->file_bytes < next) {
        return fail_foreign(err, path, HEADER_FILE_BYTES,
                            "the checkpoint has no table of sections");
    }
    for (unsigned s = 0; s < info->section_count; s++) {
        SLC_TRY(decode_entry(table + (size_t)s * ENTRY_BYTES, s, &next, path, info, err));
    }
    if (next != info->file_bytes) {
        SLC_TRY(fail_foreign(err, path, HEADER_FILE_BYTES,
                             "the checkpoint is longer than its sections"));
    }
    if (!all_zero(table + used, SLC_PAGE_BYTES - used)) {
        SLC_TRY(fail_foreign(err, path, SLC_CHECKPOINT_TABLE_OFFSET + used,
                             "the checkpoint has more sections than its header states"));
    }
    return SLC_OK;
}
