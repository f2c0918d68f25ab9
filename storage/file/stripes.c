/* Encodes and decodes lists of stripes and headers of stripes. Checks sizes and counts of a list
 * before they are used. */
#include "storage/file/stripes.h"

#include "base/error/log.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A list and the header of a stripe start with the same fields. */
enum {
    AT_MAJOR = 8,
    AT_MINOR = 10,
    AT_BYTES = 12, /* size of the list or of the header */
    AT_RESERVED = 16,
    AT_ID = 24,
    AT_FILE_BYTES = 32,
    AT_HEADER_HASH = 40,
    AT_UNIT = 48,
    AT_COUNT = 56,
    AT_ORDINAL = 60, /* zero in a list */
    AT_FOLDERS = 64,
    OWNER_BYTES = 24, /* bytes of the owner, which precedes the hash */
    HASH_BYTES = 8,   /* the last bytes are the hash of all bytes before them */
    TAIL_BYTES = OWNER_BYTES + HASH_BYTES,
    MAGIC_BYTES = 8,
    MAJOR = 1,
    LENGTH_BYTES = 4
};

uint64_t slc_stripe_bytes(const struct slc_stripe_shape *shape, unsigned ordinal)
{
    const uint64_t round = shape->unit * shape->count;
    const uint64_t rest = shape->file_bytes % round, before = ordinal * shape->unit;

    return shape->file_bytes / round * shape->unit +
           (rest > before ? slc_min_u64(rest - before, shape->unit) : 0);
}

uint64_t slc_stripe_place(const struct slc_stripe_shape *shape,
                          uint64_t offset,
                          unsigned *ordinal,
                          uint64_t *at)
{
    const uint64_t piece = offset / shape->unit;

    *ordinal = (unsigned)(piece % shape->count);
    *at = SLC_PAGE_BYTES + piece / shape->count * shape->unit + offset % shape->unit;
    return shape->count == 1 ? UINT64_MAX : shape->unit - offset % shape->unit;
}

bool slc_stripe_list_is(const void *data, uint64_t bytes)
{
    return bytes >= MAGIC_BYTES && memcmp(data, SLC_STRIPE_LIST_MAGIC, MAGIC_BYTES) == 0;
}

static void encode_head(const struct slc_stripe_shape *shape,
                        const char *magic,
                        uint32_t bytes,
                        unsigned ordinal,
                        uint8_t *data)
{
    memset(data, 0, bytes);
    memcpy(data, magic, MAGIC_BYTES);
    slc_store_u16(data + AT_MAJOR, MAJOR);
    slc_store_u32(data + AT_BYTES, bytes);
    slc_store_u64(data + AT_ID, shape->id);
    slc_store_u64(data + AT_FILE_BYTES, shape->file_bytes);
    slc_store_u64(data + AT_HEADER_HASH, shape->header_hash);
    slc_store_u64(data + AT_UNIT, shape->unit);
    slc_store_u32(data + AT_COUNT, shape->count);
    slc_store_u32(data + AT_ORDINAL, ordinal);

    uint8_t *owner = data + bytes - TAIL_BYTES;
    slc_store_u64(owner, shape->owner.inode);
    slc_store_u64(owner + 8, shape->owner.file_system);
    slc_store_u64(owner + 16, shape->owner.born_ns);
}

static void append_hash(uint8_t *data, uint64_t bytes)
{
    slc_store_u64(data + bytes - HASH_BYTES, slc_hash64(data, bytes - HASH_BYTES));
}

enum slc_status slc_stripe_list_encode(const struct slc_stripe_list *list,
                                       uint8_t **data,
                                       uint64_t *bytes,
                                       struct slc_error *err)
{
    uint64_t need = AT_FOLDERS + TAIL_BYTES, at = AT_FOLDERS;

    for (unsigned k = 0; k < list->shape.count; k++) {
        const size_t length = strlen(list->folders[k]);

        if (length == 0 || length > SLC_MAX_STRIPE_FOLDER) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "a folder of stripes has a path of %zu bytes; 1 to %d are possible",
                            length, (int)SLC_MAX_STRIPE_FOLDER);
        }
        need += LENGTH_BYTES + length;
    }
    need = (need + SLC_PAGE_BYTES - 1) / SLC_PAGE_BYTES * SLC_PAGE_BYTES;
    uint8_t *list_bytes = slc_malloc(need);
    SLC_TRY(slc_check_memory(list_bytes != NULL, err, "for a list of stripes"));
    encode_head(&list->shape, SLC_STRIPE_LIST_MAGIC, (uint32_t)need, 0, list_bytes);
    for (unsigned k = 0; k < list->shape.count; k++) {
        const size_t length = strlen(list->folders[k]);

        slc_store_u32(list_bytes + at, (uint32_t)length);
        memcpy(list_bytes + at + LENGTH_BYTES, list->folders[k], length);
        at += LENGTH_BYTES + length;
    }
    append_hash(list_bytes, need);
    *data = list_bytes;
    *bytes = need;
    return SLC_OK;
}

static enum slc_status
fail_at(struct slc_error *err, enum slc_status status, uint64_t offset, const char *what)
{
    (void)slc_fail(err, status, "%s", what);
    slc_error_locate_block(err, NULL, SLC_NOWHERE, offset);
    return status;
}

/* Decodes all fields but the folders, after the checksum was verified. */
static enum slc_status decode_shape(const uint8_t *data,
                                    uint64_t bytes,
                                    struct slc_stripe_shape *shape,
                                    struct slc_error *err)
{
    const uint8_t *owner = data + bytes - TAIL_BYTES;

    if (slc_load_u16(data + AT_MAJOR) != MAJOR || slc_load_u64(data + AT_RESERVED) != 0) {
        return fail_at(
            err, SLC_ERR_UNSUPPORTED, AT_MAJOR,
            "the list of stripes has a newer version than this program reads: use a newer program");
    }
    *shape = (struct slc_stripe_shape){.id = slc_load_u64(data + AT_ID),
                                       .file_bytes = slc_load_u64(data + AT_FILE_BYTES),
                                       .header_hash = slc_load_u64(data + AT_HEADER_HASH),
                                       .unit = slc_load_u64(data + AT_UNIT),
                                       .owner = {.inode = slc_load_u64(owner),
                                                 .file_system = slc_load_u64(owner + 8),
                                                 .born_ns = slc_load_u64(owner + 16)},
                                       .count = slc_load_u32(data + AT_COUNT)};
    if (shape->count == 0 || shape->count > SLC_MAX_STRIPES) {
        return fail_at(err, SLC_ERR_FORMAT, AT_COUNT,
                       "the number of stripes in the list is not between 1 and 16");
    }
    if (slc_load_u32(data + AT_ORDINAL) != 0) {
        return fail_at(err, SLC_ERR_FORMAT, AT_ORDINAL,
                       "unused bytes of the list of stripes are not zero");
    }
    if (shape->unit == 0 || shape->unit % SLC_PAGE_BYTES != 0 ||
        shape->unit > SLC_MAX_BLOCK_BYTES) {
        return fail_at(err, SLC_ERR_FORMAT, AT_UNIT,
                       "the unit of the stripes is not a number of whole pages up to 1 GiB");
    }
    if (shape->file_bytes == 0 || shape->file_bytes % SLC_PAGE_BYTES != 0 ||
        shape->file_bytes > INT64_MAX / 2) {
        return fail_at(
            err, SLC_ERR_FORMAT, AT_FILE_BYTES,
            "the size of the block file is not a number of whole pages up to 2^62 bytes");
    }
    return SLC_OK;
}

/* Decodes the folders and checks the zeros after them. */
static enum slc_status decode_folders(const uint8_t *data,
                                      uint64_t bytes,
                                      struct slc_stripe_list *list,
                                      struct slc_error *err)
{
    const uint64_t end = bytes - TAIL_BYTES;
    uint64_t at = AT_FOLDERS;

    for (unsigned k = 0; k < list->shape.count; k++) {
        uint64_t length = end - at < LENGTH_BYTES ? 0 : slc_load_u32(data + at);

        if (length == 0 || length > SLC_MAX_STRIPE_FOLDER || length > end - at - LENGTH_BYTES ||
            memchr(data + at + LENGTH_BYTES, '\0', length) != NULL) {
            return fail_at(
                err, SLC_ERR_FORMAT, at,
                "the path of a folder is not valid or does not fit into the list of stripes");
        }
        list->folders[k] = slc_malloc(length + 1);
        SLC_TRY(slc_check_memory(list->folders[k] != NULL, err, "for the path of a folder"));
        memcpy(list->folders[k], data + at + LENGTH_BYTES, length);
        list->folders[k][length] = '\0';
        at += LENGTH_BYTES + length;
    }
    for (; at < end; at++) {
        if (data[at] != 0) {
            return fail_at(err, SLC_ERR_FORMAT, at,
                           "unused bytes of the list of stripes are not zero");
        }
    }
    return SLC_OK;
}

enum slc_status slc_stripe_list_decode(const uint8_t *data,
                                       uint64_t bytes,
                                       struct slc_stripe_list *list,
                                       struct slc_error *err)
{
    struct slc_stripe_list read = {.shape = {0}};

    if (!slc_stripe_list_is(data, bytes)) {
        return fail_at(err, SLC_ERR_FORMAT, 0, "not a list of stripes");
    }
    if (bytes < SLC_PAGE_BYTES || bytes > SLC_MAX_STRIPE_LIST || bytes % SLC_PAGE_BYTES != 0 ||
        slc_load_u32(data + AT_BYTES) != bytes) {
        return fail_at(err, SLC_ERR_DAMAGED, AT_BYTES,
                       "the list of stripes was truncated or extended");
    }
    if (slc_load_u64(data + bytes - HASH_BYTES) != slc_hash64(data, bytes - HASH_BYTES)) {
        return fail_at(err, SLC_ERR_DAMAGED, bytes - HASH_BYTES,
                       "checksum mismatch in the list of stripes: it was altered");
    }
    enum slc_status status = decode_shape(data, bytes, &read.shape, err);
    SLC_THEN(status, decode_folders(data, bytes, &read, err));
    if (status != SLC_OK) {
        slc_stripe_list_clear(&read);
        return status;
    }
    *list = read;
    return SLC_OK;
}

void slc_stripe_list_clear(struct slc_stripe_list *list)
{
    for (unsigned k = 0; k < SLC_MAX_STRIPES; k++) {
        slc_free(list->folders[k]);
        list->folders[k] = NULL;
    }
    list->shape.count = 0;
}

void slc_stripe_header_encode(const struct slc_stripe_shape *shape, unsigned ordinal, uint8_t *page)
{
    encode_head(shape, SLC_STRIPE_MAGIC, SLC_PAGE_BYTES, ordinal, page);
    append_hash(page, SLC_PAGE_BYTES);
}

enum slc_status slc_stripe_header_check(const struct slc_stripe_shape *shape,
                                        unsigned ordinal,
                                        const uint8_t *page,
                                        struct slc_error *err)
{
    uint8_t expected[SLC_PAGE_BYTES];

    if (memcmp(page, SLC_STRIPE_MAGIC, MAGIC_BYTES) != 0) {
        return fail_at(err, SLC_ERR_DAMAGED, 0, "the file is not a stripe of a store");
    }
    slc_stripe_header_encode(shape, ordinal, expected);
    if (memcmp(page, expected, sizeof expected) == 0) {
        return SLC_OK;
    }
    if (slc_load_u64(page + SLC_PAGE_BYTES - HASH_BYTES) !=
        slc_hash64(page, SLC_PAGE_BYTES - HASH_BYTES)) {
        return fail_at(err, SLC_ERR_DAMAGED, SLC_PAGE_BYTES - HASH_BYTES,
                       "checksum mismatch in the header of the stripe: it was altered");
    }
    (void)slc_fail(err, SLC_ERR_DAMAGED,
                   "the file is stripe %" PRIu32 " of %" PRIu32 " of set %016" PRIx64
                   ", expected stripe %u of %u of set %016" PRIx64
                   ": it belongs to another store, or was renamed",
                   slc_load_u32(page + AT_ORDINAL) + 1, slc_load_u32(page + AT_COUNT),
                   slc_load_u64(page + AT_ID), ordinal + 1, shape->count, shape->id);
    return SLC_ERR_DAMAGED;
}

char *slc_stripe_path(const struct slc_stripe_shape *shape,
                      const char *list_path,
                      const char *folder,
                      unsigned ordinal)
{
    char name[64];
    char *parent, *from = NULL, *path = NULL;

    (void)snprintf(name, sizeof name, "%016" PRIx64 "-%uof%u.stripe", shape->id, ordinal + 1,
                   shape->count);
    if (folder[0] == '/') {
        return slc_path_join(folder, name);
    }
    parent = slc_path_parent(list_path);
    if (parent != NULL) {
        from = slc_path_join(parent, folder);
    }
    if (from != NULL) {
        path = slc_path_join(from, name);
    }
    slc_free(parent);
    slc_free(from);
    return path;
}

enum slc_status slc_stripe_owner_find(const struct slc_files *files,
                                      const char *list_path,
                                      struct slc_stripe_owner *owner,
                                      struct slc_error *err)
{
    char *folder = slc_path_parent(list_path);
    struct slc_file_stat stat;
    enum slc_status status = slc_check_memory(folder != NULL, err, "for a path");

    if (status == SLC_OK) {
        int code = files->stat_path(files->self, folder, &stat);
        status = slc_check_call(code, err, folder, "identifying the store's folder");
    }
    if (status == SLC_OK) {
        *owner = (struct slc_stripe_owner){.inode = stat.inode,
                                           .file_system = stat.file_system,
                                           .born_ns = (uint64_t)stat.born_ns};
    }
    slc_free(folder);
    return status;
}

enum slc_status slc_stripe_is_own(const struct slc_files *files,
                                  const char *list_path,
                                  const struct slc_stripe_shape *shape,
                                  bool *own,
                                  struct slc_error *err)
{
    const struct slc_stripe_owner *owner = &shape->owner;
    struct slc_stripe_owner here = {.inode = 0};

    *own = false;
    SLC_TRY(slc_stripe_owner_find(files, list_path, &here, err));
    *own = owner->inode != 0 && owner->inode == here.inode &&
           owner->file_system == here.file_system &&
           (owner->born_ns == here.born_ns || owner->born_ns == 0 || here.born_ns == 0);
    return SLC_OK;
}

void slc_stripe_note_kept(const char *list_path, const struct slc_stripe_list *list)
{
    char *first = slc_stripe_path(&list->shape, list_path, list->folders[0], 0);

    if (first != NULL) {
        slc_log(SLC_LOG_NOTE,
                "%s and the other stripes of this set (%u in total) are kept, because another "
                "store folder owns them; if no store reads them any more, remove them",
                first, list->shape.count);
    }
    slc_free(first);
}

enum slc_status slc_stripe_list_load(const struct slc_files *files,
                                     const char *path,
                                     struct slc_stripe_list *list,
                                     bool *found,
                                     struct slc_error *err)
{
    int fd = slc_file_open(files, path, SLC_OPEN_PLAIN);
    uint8_t magic[MAGIC_BYTES] = {0};
    struct slc_file_stat stat;
    enum slc_status status = SLC_OK;
    void *data = NULL;
    uint64_t bytes = 0;

    *found = false;
    if (fd < 0) {
        return fd == -ENOENT ? SLC_OK
                             : slc_fail_errno(err, -fd, path, "looking for a list of stripes");
    }
    int rc = files->stat_fd(files->self, fd, &stat);
    if (rc < 0) {
        status = slc_fail_errno(err, -rc, path, "getting the size of the file");
    } else if (stat.kind == 'f' && stat.bytes >= SLC_PAGE_BYTES) {
        status = slc_file_read_at(files, fd, path, magic, sizeof magic, 0, err);
    }
    (void)files->close(files->self, fd);
    if (status != SLC_OK || !slc_stripe_list_is(magic, sizeof magic)) {
        return status;
    }
    status = slc_file_load(files, path, SLC_MAX_STRIPE_LIST, &data, &bytes, err);
    if (status == SLC_OK) {
        status = slc_stripe_list_decode(data, bytes, list, err);
        slc_free(data);
    }
    *found = status == SLC_OK;
    if (status != SLC_OK) {
        slc_error_locate_file(err, path);
    }
    return status;
}

enum slc_status slc_stripe_open(const struct slc_files *files,
                                const struct slc_stripe_shape *shape,
                                unsigned ordinal,
                                const char *path,
                                int *fd,
                                struct slc_error *err)
{
    const uint64_t bytes = SLC_PAGE_BYTES + slc_stripe_bytes(shape, ordinal);
    uint8_t page[SLC_PAGE_BYTES] = {0};
    struct slc_file_stat stat;
    enum slc_status status;

    *fd = slc_file_open(files, path, SLC_OPEN_PLAIN);
    if (*fd < 0) {
        return slc_fail_errno(err, -*fd, path, "opening a stripe");
    }
    int rc = files->stat_fd(files->self, *fd, &stat);
    if (rc < 0) {
        status = slc_fail_errno(err, -rc, path, "getting the size of the stripe");
    } else if (stat.kind != 'f') {
        status = slc_fail(err, SLC_ERR_DAMAGED, "the stripe is not a plain file");
    } else {
        status =
            slc_file_read_at(files, *fd, path, page, slc_min_u64(stat.bytes, sizeof page), 0, err);
        SLC_THEN(status, slc_stripe_header_check(shape, ordinal, page, err));
        if (status == SLC_OK && stat.bytes != bytes) {
            status = slc_fail(err, SLC_ERR_DAMAGED,
                              "the stripe has %" PRIu64 " bytes, expected %" PRIu64
                              ": it was truncated or extended",
                              stat.bytes, bytes);
        }
    }
    if (status != SLC_OK) {
        slc_error_locate_file(err, path);
        (void)files->close(files->self, *fd);
        *fd = -1;
    }
    return status;
}
