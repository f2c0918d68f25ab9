/* Interrupted work on a disk in memory, with modified files and recomputed checksums. */
#include "fuzz_disk.h"

#include "base/error/log.h"
#include "base/hash.h"
#include "base/memory/bytes.h"
#include "storage/block/file_layout.h"
#include "storage/verify/verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* storage/block/journal.c: the head, and the index entry after the writer's state in a
     * record. */
    JOURNAL_HEAD = 64,
    JOURNAL_ENTRY = 200,
    /* convert/build/resume/state_file.c and convert/build/spill/chunk.c. */
    STATE_HEAD = 24,
    CHUNK_BYTES = 20,
    CHUNK_HEAD = 72,
    /* A change of this kind flips a bit and truncates the file. */
    CUT = 249,
    /* More bytes than any file that the library writes in these targets. */
    FILE_BYTES_MAX = 64 << 20
};

static uint64_t padded(uint64_t bytes)
{
    return (bytes + SLC_PAGE_BYTES - 1) / SLC_PAGE_BYTES * SLC_PAGE_BYTES;
}

void fuzz_must(bool holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "fuzz: %s\n", what);
        abort();
    }
}

uint8_t *fuzz_disk_load(const struct slc_files *disk, const char *path, uint64_t *bytes)
{
    struct slc_file_stat stat;
    uint8_t *data;
    int fd;

    if (disk->stat_path(disk->self, path, &stat) < 0 || stat.kind != 'f') {
        return NULL;
    }
    fuzz_must(stat.bytes <= FILE_BYTES_MAX, "a file of the product is larger than it should be");
    data = malloc(stat.bytes + 1);
    fd = disk->open(disk->self, path, O_RDONLY, 0);
    fuzz_must(data != NULL && fd >= 0 &&
                  disk->read_at(disk->self, fd, data, stat.bytes, 0) == (int64_t)stat.bytes &&
                  disk->close(disk->self, fd) == 0,
              "a file that is there cannot be read");
    *bytes = stat.bytes;
    return data;
}

void fuzz_disk_store(const struct slc_files *disk,
                     const char *path,
                     const void *data,
                     uint64_t bytes)
{
    const int fd = disk->open(disk->self, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    fuzz_must(fd >= 0 && disk->write_at(disk->self, fd, data, bytes, 0) == (int64_t)bytes &&
                  disk->close(disk->self, fd) == 0,
              "a file cannot be written");
}

/* Whether the word or a neighbour is nonzero: most of a file is padding. */
static bool is_written(const uint8_t *data, uint64_t bytes, uint64_t word)
{
    const uint64_t words = bytes / 8;

    return slc_load_u64(data + 8 * word) != 0 ||
           (word > 0 && slc_load_u64(data + 8 * (word - 1)) != 0) ||
           (word + 1 < words && slc_load_u64(data + 8 * (word + 1)) != 0);
}

/* The byte that `place` selects, counted over nonzero regions, from the start or the end. */
static uint64_t find_place(const uint8_t *data, uint64_t bytes, uint64_t place, bool back)
{
    const uint64_t words = bytes / 8;
    uint64_t written = 0;

    for (uint64_t word = 0; word < words; word++) {
        written += is_written(data, bytes, word);
    }
    if (written == 0) {
        return place % bytes;
    }
    place %= 8 * written;
    place = back ? 8 * written - 1 - place : place;
    for (uint64_t word = 0, before = 0; word < words; word++) {
        before += is_written(data, bytes, word);
        if (before > place / 8) {
            return 8 * word + place % 8;
        }
    }
    return 0;
}

/* Makes one change; wider numbers in files are aligned to 8 bytes. */
static void alter(uint8_t *data, uint64_t *bytes, uint64_t at, uint8_t kind, uint8_t argument)
{
    uint64_t word;

    if (kind % 8 == 0) {
        data[at] = argument;
        return;
    }
    if (kind % 8 == 1) {
        *bytes = kind == CUT ? at : *bytes;
        data[at] ^= (uint8_t)(1U << argument % 8);
        return;
    }
    at -= at % 8;
    if (*bytes - at < 8) {
        return;
    }
    word = slc_load_u64(data + at);
    switch (kind % 8) {
    case 2:
        word = argument;
        break;
    case 3:
        word = ~(uint64_t)argument;
        break;
    case 4:
        word += argument;
        break;
    case 5:
        word -= argument;
        break;
    case 6:
        word = UINT64_C(1) << argument % 64;
        break;
    default:
        word = (UINT64_C(1) << argument % 64) - 1;
        break;
    }
    slc_store_u64(data + at, word);
}

/* Applies the changes to file number `file`. */
static void alter_file(const struct slc_files *disk,
                       const struct fuzz_file *file,
                       size_t number,
                       size_t count,
                       const uint8_t *changes,
                       size_t change_bytes)
{
    bool altered = false;
    uint64_t bytes = 0;
    uint8_t *data = fuzz_disk_load(disk, file->path, &bytes);

    for (size_t i = 0; data != NULL && i + FUZZ_CHANGE_BYTES <= change_bytes;
         i += FUZZ_CHANGE_BYTES) {
        const uint64_t place = slc_load_u16(changes + i + 1);

        if ((changes[i] & 0x7fU) % count == number && bytes > 0) {
            alter(data, &bytes, find_place(data, bytes, place, (changes[i] & 0x80U) != 0),
                  changes[i + 3], changes[i + 4]);
            altered = true;
        }
    }
    /* A journal covers blocks, too, which may have been modified. */
    if (data != NULL && (altered || file->seal != NULL)) {
        if (file->seal != NULL) {
            file->seal(disk, data, bytes);
        }
        fuzz_disk_store(disk, file->path, data, bytes);
    }
    free(data);
}

struct slc_recorded *fuzz_disk_at(const struct slc_recorded *done,
                                  const struct fuzz_file *files,
                                  size_t count,
                                  const uint8_t *data,
                                  size_t bytes)
{
    struct slc_recorded *disk;
    uint64_t changes;

    (void)slc_recorded_changes(done, &changes);
    disk = slc_recorded_continue(done, bytes < 2 ? changes : slc_load_u16(data) % (changes + 1));
    for (size_t i = 0; i < count && bytes >= 2 + FUZZ_CHANGE_BYTES; i++) {
        alter_file(slc_recorded_files(disk), &files[i], i, count, data + 2, bytes - 2);
    }
    return disk;
}

void fuzz_seal_journal(
    const struct slc_files *disk, const char *blocks, unsigned order, uint8_t *data, uint64_t bytes)
{
    const uint64_t record_bytes = JOURNAL_ENTRY + slc_index_entry_bytes(order) + 8;
    uint64_t block_bytes = 0;
    uint8_t *block_file = fuzz_disk_load(disk, blocks, &block_bytes);
    uint64_t hash;

    if (bytes >= JOURNAL_HEAD) {
        /* The hash of the head; if the head was changed, the journal is useless. */
        hash = slc_load_u64(data + JOURNAL_HEAD - 8);
        for (uint64_t at = JOURNAL_HEAD; bytes - at >= record_bytes; at += record_bytes) {
            uint8_t *entry = data + at + JOURNAL_ENTRY;
            const uint64_t offset = slc_load_u64(entry + SLC_INDEX_OFFSET);
            const uint64_t length = slc_load_u64(entry + SLC_INDEX_BYTES);

            if (length <= block_bytes && padded(length) <= block_bytes &&
                offset <= block_bytes - padded(length)) {
                slc_store_u64(entry + SLC_INDEX_HASH,
                              slc_hash64(block_file + offset, padded(length)));
            }
            slc_store_u64(data + at, hash);
            hash = slc_hash64(data + at, record_bytes - 8);
            slc_store_u64(data + at + record_bytes - 8, hash);
        }
    }
    free(block_file);
}

void fuzz_seal_state(const struct slc_files *disk, uint8_t *data, uint64_t bytes)
{
    (void)disk;
    if (bytes >= STATE_HEAD) {
        slc_store_u64(data + 16, bytes - STATE_HEAD);
        slc_store_u64(data + 8, slc_hash64(data + 16, bytes - 16));
    }
}

void fuzz_seal_chunks(const struct slc_files *disk, uint8_t *data, uint64_t bytes)
{
    uint64_t at = 0;

    (void)disk;
    while (bytes - at >= CHUNK_HEAD) {
        const uint64_t length = slc_load_u32(data + at + CHUNK_BYTES);

        if (length >= CHUNK_HEAD && length <= bytes - at) {
            slc_store_u64(data + at, slc_hash64(data + at + 8, length - 8));
            at += length;
        } else {
            at = at / SLC_PAGE_BYTES * SLC_PAGE_BYTES + SLC_PAGE_BYTES;
            at = at < bytes ? at : bytes;
        }
    }
}

static void no_log(void *context, enum slc_log_level level, const char *message)
{
    (void)context, (void)level, (void)message;
}

void fuzz_disk_quiet(void)
{
    slc_log_set_sink(no_log, NULL);
}

void fuzz_disk_check(const struct slc_files *disk,
                     const char *output,
                     enum slc_status status,
                     bool altered)
{
    const struct slc_verify_options options = {.files = disk, .decode = true, .threads = 1};
    struct slc_verify_report report;
    struct slc_file_stat stat;
    enum slc_status found;

    if (disk->stat_path(disk->self, output, &stat) < 0) {
        fuzz_must(status != SLC_OK && altered, "a build ends without a store");
        return;
    }
    found = slc_verify_store(output, &options, &report, NULL);
    fuzz_must(found == SLC_OK || altered, "what goes on makes no whole store");
}
