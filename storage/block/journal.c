/* The journal of an unfinished block file: a head with the identity of the build, then records of
 * equal size. Each record repeats the hash of the previous record, and the first record the hash of
 * the head, so that records of another run or at a wrong position are ignored. Records are not
 * trusted: writer_open.c hashes the blocks that they describe.
 *
 *     head:   magic, header hash, target bytes, tag, zeros to 56, hash of bytes 0 to 55
 *     record: previous hash, coordinate bytes, last key lo and hi, flags (bit 0: all values are
 *             f32, bit 1: last block of its partition, bit 2: all values are integers), statistics
 *             of the values (number of distinct values, zeros, smallest, largest, list), index
 *             entry, hash of all preceding bytes
 *
 * Size: the head, and 208 bytes and an index entry per block. */
#include "storage/block/writer_internal.h"

#include "base/hash.h"
#include "base/key.h"
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define JOURNAL_MAGIC "\x89SLCJN2\n"

enum {
    HEAD_BYTES = 64,
    HEAD_HEADER_HASH = 8,
    HEAD_TARGET = 16,
    HEAD_TAG = 24,
    HEAD_HASH = 56,

    RECORD_BEFORE = 0,
    RECORD_COORDINATES = 8,
    RECORD_LAST_KEY = 16,
    RECORD_FLAGS = 32,
    RECORD_DISTINCT = 40,
    RECORD_ZEROS = 48,
    RECORD_LOW = 56,
    RECORD_HIGH = 64,
    RECORD_LISTED = 72,
    RECORD_ENTRY = RECORD_LISTED + 8 * SLC_DISTINCT_MAX,

    FLAG_ALL_F32 = 1,
    FLAG_COMPLETES = 2,
    FLAG_INTEGERS = 4,

    RECORD_BYTES_MAX = RECORD_ENTRY + SLC_INDEX_RANGES + 16 * SLC_MAX_ORDER + 8
};

struct slc_journal {
    const struct slc_files *files;
    char *path;
    int fd;
    unsigned order;
    uint8_t head[HEAD_BYTES];
    uint64_t found; /* number of whole records in the file when the journal was opened */
    uint64_t next;  /* ordinal of the record to be read or added next */
    uint64_t hash;  /* hash of the record before `next`, or of the head */

    uint8_t *pending; /* records not yet written; they belong at offset `written` */
    uint64_t pending_bytes;
    uint64_t pending_capacity;
    uint64_t written;
};

static uint64_t record_bytes(const struct slc_journal *journal)
{
    return RECORD_ENTRY + slc_index_entry_bytes(journal->order) + 8;
}

static uint64_t record_offset(const struct slc_journal *journal, uint64_t record)
{
    return HEAD_BYTES + record * record_bytes(journal);
}

/* Counts the whole records in the file: none if the file has another head than `journal`. */
static enum slc_status count_records(struct slc_journal *journal, struct slc_error *err)
{
    struct slc_file_stat stat;
    uint8_t head[HEAD_BYTES];
    int rc = journal->files->stat_fd(journal->files->self, journal->fd, &stat);

    SLC_TRY(slc_check_call(rc, err, journal->path, "getting the size of the journal"));
    if (stat.bytes < HEAD_BYTES) {
        return SLC_OK;
    }
    SLC_TRY(
        slc_file_read_at(journal->files, journal->fd, journal->path, head, sizeof head, 0, err));
    if (memcmp(head, journal->head, sizeof head) == 0) {
        journal->found = (stat.bytes - HEAD_BYTES) / record_bytes(journal);
    }
    return SLC_OK;
}

enum slc_status slc_journal_open(const struct slc_files *files,
                                 const char *path,
                                 unsigned order,
                                 const struct slc_journal_identity *identity,
                                 struct slc_journal **journal,
                                 struct slc_error *err)
{
    static const char ending[] = ".journal";
    size_t length = strlen(path);
    struct slc_journal *opened = slc_calloc(1, sizeof *opened);

    if (opened == NULL || (opened->path = slc_malloc(length + sizeof ending)) == NULL) {
        slc_free(opened);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for the journal of %s", path);
    }
    memcpy(opened->path, path, length);
    memcpy(opened->path + length, ending, sizeof ending);
    opened->files = files;
    opened->order = order;
    memcpy(opened->head, JOURNAL_MAGIC, sizeof JOURNAL_MAGIC - 1);
    slc_store_u64(opened->head + HEAD_HEADER_HASH, identity->header_hash);
    slc_store_u64(opened->head + HEAD_TARGET, identity->target_bytes);
    slc_store_u64(opened->head + HEAD_TAG, identity->tag);
    opened->hash = slc_hash64(opened->head, HEAD_HASH);
    slc_store_u64(opened->head + HEAD_HASH, opened->hash);

    opened->fd = files->open(files->self, opened->path, O_RDWR | O_CREAT | SLC_OPEN_OWN, 0666);
    enum slc_status status =
        opened->fd < 0 ? slc_fail_errno(err, -opened->fd, opened->path, "opening the journal")
                       : count_records(opened, err);
    if (status != SLC_OK) {
        slc_journal_close(opened);
        return status;
    }
    *journal = opened;
    return SLC_OK;
}

/* Writes the statistics of a record, except for the flag of integers. */
static void store_stats(const struct slc_value_stats *stats, uint8_t *record)
{
    slc_store_u64(record + RECORD_DISTINCT, stats->distinct);
    slc_store_u64(record + RECORD_ZEROS, stats->zeros);
    slc_store_f64(record + RECORD_LOW, stats->low);
    slc_store_f64(record + RECORD_HIGH, stats->high);
    for (unsigned i = 0; i < SLC_DISTINCT_MAX; i++) {
        slc_store_f64(record + RECORD_LISTED + 8 * (size_t)i, stats->listed[i]);
    }
}

static void load_stats(const uint8_t *record, struct slc_value_stats *stats)
{
    stats->distinct =
        (unsigned)slc_min_u64(slc_load_u64(record + RECORD_DISTINCT), SLC_DISTINCT_MAX + 1);
    stats->zeros = slc_load_u64(record + RECORD_ZEROS);
    stats->low = slc_load_f64(record + RECORD_LOW);
    stats->high = slc_load_f64(record + RECORD_HIGH);
    stats->integers = (slc_load_u64(record + RECORD_FLAGS) & FLAG_INTEGERS) != 0;
    for (unsigned i = 0; i < SLC_DISTINCT_MAX; i++) {
        stats->listed[i] = slc_load_f64(record + RECORD_LISTED + 8 * (size_t)i);
    }
}

enum slc_status slc_journal_next(struct slc_journal *journal,
                                 struct slc_journal_record *record,
                                 bool *found,
                                 struct slc_error *err)
{
    uint8_t bytes[RECORD_BYTES_MAX];
    uint64_t hash_at = record_bytes(journal) - 8;

    *found = false;
    if (journal->next >= journal->found) {
        return SLC_OK;
    }
    SLC_TRY(slc_file_read_at(journal->files, journal->fd, journal->path, bytes,
                             record_bytes(journal), record_offset(journal, journal->next), err));
    if (slc_load_u64(bytes + hash_at) != slc_hash64(bytes, hash_at) ||
        slc_load_u64(bytes + RECORD_BEFORE) != journal->hash) {
        journal->found = journal->next;
        return SLC_OK;
    }
    uint64_t flags = slc_load_u64(bytes + RECORD_FLAGS);
    slc_index_entry_decode(bytes + RECORD_ENTRY, journal->order, &record->entry);
    record->coordinate_bytes = slc_load_u64(bytes + RECORD_COORDINATES);
    record->last_key = slc_key_join(slc_load_u64(bytes + RECORD_LAST_KEY),
                                    slc_load_u64(bytes + RECORD_LAST_KEY + 8));
    record->all_f32 = (flags & FLAG_ALL_F32) != 0;
    record->completes = (flags & FLAG_COMPLETES) != 0;
    load_stats(bytes, &record->values);
    record->hash = slc_load_u64(bytes + hash_at);
    journal->hash = record->hash;
    journal->next++;
    *found = true;
    return SLC_OK;
}

enum slc_status slc_journal_keep(struct slc_journal *journal,
                                 uint64_t count,
                                 const struct slc_journal_record *last,
                                 struct slc_error *err)
{
    uint64_t keep = count > 0 ? record_offset(journal, count) : 0;
    int rc = journal->files->truncate(journal->files->self, journal->fd, keep);

    SLC_TRY(slc_check_call(rc, err, journal->path, "truncating the journal"));
    journal->next = count;
    journal->hash = count > 0 ? last->hash : slc_load_u64(journal->head + HEAD_HASH);
    journal->written = record_offset(journal, count);
    return count > 0 ? SLC_OK
                     : slc_file_write_at(journal->files, journal->fd, journal->path, journal->head,
                                         HEAD_BYTES, 0, err);
}

enum slc_status slc_journal_add(struct slc_journal *journal,
                                const struct slc_journal_record *record,
                                struct slc_error *err)
{
    uint64_t bytes = record_bytes(journal);

    if (journal->pending_bytes + bytes > journal->pending_capacity) {
        uint64_t capacity =
            slc_max_u64(journal->pending_bytes + bytes, 2 * journal->pending_capacity);
        uint8_t *grown = slc_realloc(journal->pending, capacity);

        SLC_TRY(slc_check_memory(grown != NULL, err, "for %" PRIu64 " bytes of journal records",
                                 capacity));
        journal->pending = grown;
        journal->pending_capacity = capacity;
    }
    uint8_t *at = journal->pending + journal->pending_bytes;
    slc_store_u64(at + RECORD_BEFORE, journal->hash);
    slc_store_u64(at + RECORD_COORDINATES, record->coordinate_bytes);
    slc_store_u64(at + RECORD_LAST_KEY, (uint64_t)record->last_key);
    slc_store_u64(at + RECORD_LAST_KEY + 8, (uint64_t)(record->last_key >> 64));
    slc_store_u64(at + RECORD_FLAGS, (record->all_f32 ? FLAG_ALL_F32 : 0) |
                                         (record->completes ? FLAG_COMPLETES : 0) |
                                         (record->values.integers ? FLAG_INTEGERS : 0));
    store_stats(&record->values, at);
    slc_index_entry_encode(&record->entry, journal->order, at + RECORD_ENTRY);
    journal->hash = slc_hash64(at, bytes - 8);
    slc_store_u64(at + bytes - 8, journal->hash);
    journal->pending_bytes += bytes;
    journal->next++;
    return SLC_OK;
}

enum slc_status slc_journal_commit(struct slc_journal *journal, struct slc_error *err)
{
    SLC_TRY(slc_file_write_at(journal->files, journal->fd, journal->path, journal->pending,
                              journal->pending_bytes, journal->written, err));
    journal->written += journal->pending_bytes;
    journal->pending_bytes = 0;
    return SLC_OK;
}

enum slc_status slc_journal_sync(struct slc_journal *journal, struct slc_error *err)
{
    int rc = journal->files->sync(journal->files->self, journal->fd);

    return slc_check_call(rc, err, journal->path, "syncing the journal");
}

enum slc_status slc_journal_remove(struct slc_journal *journal, struct slc_error *err)
{
    int rc = journal->files->unlink(journal->files->self, journal->path);

    return slc_check_call(rc, err, journal->path, "removing the journal");
}

void slc_journal_close(struct slc_journal *journal)
{
    if (journal != NULL) {
        if (journal->fd >= 0) {
            (void)journal->files->close(journal->files->self, journal->fd);
        }
        slc_free(journal->pending);
        slc_free(journal->path);
        slc_free(journal);
    }
}
