/* Reads the names of a mode (storage/manifest/names.h).
 * Checks every value in the file before using it, so that a forged file is rejected. */
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/manifest/names.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { VERIFY_BYTES = 64 << 10 };

struct slc_names {
    const struct slc_files *files;
    char *path;
    int fd;
    uint64_t count, pieces;
    uint64_t table;   /* offset of the table */
    uint64_t largest; /* bytes of the largest piece */
    /* 1 + number of the piece in memory; 0 if none. */
    uint64_t loaded;
    uint64_t bytes; /* bytes of the loaded piece */
    uint8_t *piece; /* memory for the largest piece and one more byte */
    uint8_t held;   /* byte that the zero after the current name replaces */
    uint64_t zero;  /* position of this zero; 0 if none */
};

static enum slc_status
fail_damaged(const struct slc_names *names, const char *what, struct slc_error *err)
{
    return slc_fail_file(err, SLC_ERR_DAMAGED, names->path,
                         "%s: the names were altered; restore the file or convert the store again",
                         what);
}

static enum slc_status
open_file(struct slc_names *names, const struct slc_store_names *listed, struct slc_error *err)
{
    struct slc_file_stat stat;

    names->fd = slc_file_open(names->files, names->path, SLC_OPEN_PLAIN);
    if (names->fd == -ENOENT) {
        return fail_damaged(names, "the file is missing", err);
    }
    SLC_TRY(slc_check_call(names->fd, err, names->path, "opening the names of a mode"));
    int code = names->files->stat_fd(names->files->self, names->fd, &stat);
    SLC_TRY(slc_check_call(code, err, names->path, "getting the size of the file"));
    if (stat.kind != 'f' || stat.bytes != listed->file_bytes) {
        return fail_damaged(names, "the file does not have the size in the manifest", err);
    }
    return SLC_OK;
}

/* True if header and trailer agree with the file size, mode and count in the manifest. */
static bool is_possible(const struct slc_names *names,
                        const struct slc_store_names *listed,
                        const uint8_t *head,
                        const uint8_t *tail)
{
    uint8_t expected[SLC_NAMES_HEAD_BYTES];
    const uint64_t end = listed->file_bytes - SLC_NAMES_TAIL_BYTES;

    slc_names_encode_head(listed->mode, expected);
    bool possible = memcmp(head, expected, sizeof expected) == 0 && names->count == listed->count;
    for (unsigned i = SLC_NAMES_TAIL_LARGEST + 8; i < SLC_NAMES_TAIL_BYTES; i++) {
        possible = possible && tail[i] == 0;
    }
    /* The table fills the bytes between its offset and the trailer. */
    return possible && names->table >= SLC_NAMES_HEAD_BYTES && names->table <= end &&
           names->pieces <= (end - names->table) / SLC_NAMES_ENTRY_BYTES &&
           names->pieces * SLC_NAMES_ENTRY_BYTES == end - names->table &&
           names->largest <= SLC_NAMES_PIECE_BYTES_MAX &&
           names->largest <= names->table - SLC_NAMES_HEAD_BYTES;
}

static enum slc_status
read_ends(struct slc_names *names, const struct slc_store_names *listed, struct slc_error *err)
{
    uint8_t head[SLC_NAMES_HEAD_BYTES], tail[SLC_NAMES_TAIL_BYTES];

    SLC_TRY(slc_file_read_at(names->files, names->fd, names->path, head, sizeof head, 0, err));
    SLC_TRY(slc_file_read_at(names->files, names->fd, names->path, tail, sizeof tail,
                             listed->file_bytes - sizeof tail, err));
    names->count = slc_load_u64(tail + SLC_NAMES_TAIL_COUNT);
    names->pieces = slc_div_up_u64(names->count, SLC_NAMES_PIECE);
    names->table = slc_load_u64(tail + SLC_NAMES_TAIL_TABLE);
    names->largest = slc_load_u64(tail + SLC_NAMES_TAIL_LARGEST);
    if (!is_possible(names, listed, head, tail)) {
        return fail_damaged(names, "the header and the trailer do not agree with the manifest",
                            err);
    }
    names->piece = slc_malloc(names->largest + 1);
    return slc_check_memory(names->piece != NULL, err, "for reading names");
}

enum slc_status slc_names_open(const struct slc_files *files,
                               const char *folder,
                               const struct slc_store_names *listed,
                               struct slc_names **names,
                               struct slc_error *err)
{
    struct slc_names *opened = slc_calloc(1, sizeof *opened);

    SLC_TRY(slc_check_memory(opened != NULL, err, "for reading names"));
    opened->files = slc_files_or_system(files);
    opened->fd = -1;
    opened->path = slc_path_join(folder, listed->file);
    enum slc_status status = opened->path != NULL
                                 ? open_file(opened, listed, err)
                                 : slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
    SLC_THEN(status, read_ends(opened, listed, err));
    if (status != SLC_OK) {
        slc_names_close(opened);
        return status;
    }
    *names = opened;
    return SLC_OK;
}

void slc_names_close(struct slc_names *names)
{
    if (names != NULL) {
        if (names->fd >= 0) {
            (void)names->files->close(names->files->self, names->fd);
        }
        slc_free(names->piece);
        slc_free(names->path);
        slc_free(names);
    }
}

uint64_t slc_names_held_bytes(const struct slc_names *names)
{
    return names->largest + sizeof *names;
}

uint64_t slc_names_count(const struct slc_names *names)
{
    return names->count;
}

/* Returns the number of names in a piece. */
static uint32_t names_of(const struct slc_names *names, uint64_t piece)
{
    return (uint32_t)slc_min_u64(names->count - piece * SLC_NAMES_PIECE, SLC_NAMES_PIECE);
}

bool slc_name_is_possible(const char *name, size_t bytes)
{
    return bytes <= SLC_NAME_BYTES_MAX && (bytes == 0 || memchr(name, '\0', bytes) == NULL);
}

/* True if the end offsets ascend to the end of the piece and every name is possible. */
static bool are_possible(const struct slc_names *names, uint32_t in_piece)
{
    const uint64_t first = 4 * (uint64_t)in_piece, capacity = names->bytes - first;
    uint32_t before = 0;

    for (uint32_t i = 0; i < in_piece; i++) {
        const uint32_t end = slc_load_u32(names->piece + 4 * (size_t)i);

        if (end < before || end > capacity ||
            !slc_name_is_possible((const char *)names->piece + first + before, end - before)) {
            return false;
        }
        before = end;
    }
    return before == capacity;
}

static enum slc_status load_piece(struct slc_names *names, uint64_t piece, struct slc_error *err)
{
    uint8_t entries[2 * SLC_NAMES_ENTRY_BYTES];
    const uint32_t in_piece = names_of(names, piece);
    const bool last = piece + 1 == names->pieces;
    enum slc_status status =
        slc_file_read_at(names->files, names->fd, names->path, entries,
                         last ? SLC_NAMES_ENTRY_BYTES : 2 * SLC_NAMES_ENTRY_BYTES,
                         names->table + piece * SLC_NAMES_ENTRY_BYTES, err);

    names->loaded = 0;
    names->zero = 0;
    SLC_TRY(status);
    uint64_t begin = slc_load_u64(entries + SLC_NAMES_ENTRY_OFFSET);
    uint64_t end = last ? names->table
                        : slc_load_u64(entries + SLC_NAMES_ENTRY_BYTES + SLC_NAMES_ENTRY_OFFSET);
    if (begin < SLC_NAMES_HEAD_BYTES || end > names->table || end < begin ||
        end - begin > names->largest || end - begin < 4 * (uint64_t)in_piece) {
        return fail_damaged(names, "a piece is not within the file", err);
    }
    names->bytes = end - begin;
    SLC_TRY(slc_file_read_at(names->files, names->fd, names->path, names->piece, names->bytes,
                             begin, err));
    if (slc_hash64(names->piece, names->bytes) != slc_load_u64(entries + SLC_NAMES_ENTRY_HASH)) {
        return fail_damaged(names, "the checksum of a piece is wrong", err);
    }
    if (!are_possible(names, in_piece)) {
        return fail_damaged(names,
                            "a name of a piece is outside of it, too long or has a zero byte", err);
    }
    names->loaded = piece + 1;
    return SLC_OK;
}

enum slc_status slc_names_get(struct slc_names *names,
                              uint64_t index,
                              const char **name,
                              size_t *bytes,
                              struct slc_error *err)
{
    const uint64_t piece = index / SLC_NAMES_PIECE;
    const uint32_t number = (uint32_t)(index % SLC_NAMES_PIECE);

    *name = NULL;
    *bytes = 0;
    if (index >= names->count) {
        return SLC_OK;
    }
    if (names->loaded != piece + 1) {
        SLC_TRY(load_piece(names, piece, err));
    }
    if (names->zero > 0) {
        names->piece[names->zero] = names->held;
    }
    uint64_t first = 4 * (uint64_t)names_of(names, piece);
    uint32_t begin = number > 0 ? slc_load_u32(names->piece + 4 * (size_t)(number - 1)) : 0;
    uint32_t end = slc_load_u32(names->piece + 4 * (size_t)number);
    names->zero = first + end;
    names->held = names->piece[names->zero];
    names->piece[names->zero] = '\0';
    *name = (const char *)names->piece + first + begin;
    *bytes = end - begin;
    return SLC_OK;
}

/* Verifies the hash of the whole file. */
static enum slc_status check_hash(const struct slc_names *names,
                                  const struct slc_store_names *listed,
                                  struct slc_error *err)
{
    struct slc_hash_stream hash;
    uint8_t *bytes = slc_malloc(VERIFY_BYTES);
    enum slc_status status = slc_check_memory(bytes != NULL, err, "for checking names");

    slc_hash_stream_begin(&hash);
    for (uint64_t at = 0; at < listed->file_bytes && status == SLC_OK; at += VERIFY_BYTES) {
        const uint64_t now = slc_min_u64(listed->file_bytes - at, VERIFY_BYTES);

        status = slc_file_read_at(names->files, names->fd, names->path, bytes, now, at, err);
        slc_hash_stream_add(&hash, bytes, status == SLC_OK ? now : 0);
    }
    slc_free(bytes);
    SLC_TRY(status);
    if (slc_hash_stream_end(&hash) != listed->hash) {
        SLC_TRY(fail_damaged(names, "the file does not have the checksum in the manifest", err));
    }
    return SLC_OK;
}

enum slc_status slc_names_verify(const struct slc_files *files,
                                 const char *folder,
                                 const struct slc_store_names *listed,
                                 struct slc_error *err)
{
    struct slc_names *names;

    SLC_TRY(slc_names_open(files, folder, listed, &names, err));
    enum slc_status status = check_hash(names, listed, err);
    for (uint64_t piece = 0; piece < names->pieces && status == SLC_OK; piece++) {
        status = load_piece(names, piece, err);
    }
    slc_names_close(names);
    return status;
}
