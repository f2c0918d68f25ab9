/* State shared by the files of the writer; private to storage/block/writer*.c and journal.c. */
#ifndef SLC_STORAGE_WRITER_INTERNAL_H
#define SLC_STORAGE_WRITER_INTERNAL_H

#include "base/memory/memory.h"
#include "storage/block/file_layout.h"
#include "storage/block/writer.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

/* The journal of an unfinished block file, PATH.journal: one record per block, so that an
 * interrupted build can be resumed after its last complete partition. slc_writer_finish removes it
 * or, with slc_writer_options.keep_journal, leaves it to the caller. It is never part of a
 * store. */

/* A block's index entry, and further state of the writer at the end of the block. */
struct slc_journal_record {
    struct slc_block_entry entry;
    uint64_t coordinate_bytes; /* bytes of coordinates in this block and all previous blocks */
    slc_u128 last_key;
    bool all_f32;                  /* this block and all previous blocks only have f32 values */
    struct slc_value_stats values; /* values of this block and all previous blocks */
    bool completes;                /* this is the last block of its partition */
    uint64_t hash;                 /* hash of this record; the next record repeats it */
};

/* Identity of a build; a journal with another identity is not used. */
struct slc_journal_identity {
    uint64_t header_hash; /* hash of the header without totals */
    uint64_t target_bytes;
    uint64_t tag; /* identifies everything else that determines the file (slc_writer_resume) */
};

struct slc_journal;

/* Opens the journal of the block file `path`, or creates the journal. The contents do not change
 * before slc_journal_keep. Ownership: release with slc_journal_close. Errors: SLC_ERR_IO,
 * SLC_ERR_MEMORY. */
enum slc_status slc_journal_open(const struct slc_files *files,
                                 const char *path,
                                 unsigned order,
                                 const struct slc_journal_identity *identity,
                                 struct slc_journal **journal,
                                 struct slc_error *err) SLC_NODISCARD;
/* Reads the next record, starting with the first. *found is false after the last whole record that
 * continues the chain of hashes; a journal of another identity has no records. Errors:
 * SLC_ERR_IO. */
enum slc_status slc_journal_next(struct slc_journal *journal,
                                 struct slc_journal_record *record,
                                 bool *found,
                                 struct slc_error *err) SLC_NODISCARD;
/* Truncates the journal to its first `count` records. `last` is the last of these records; NULL if
 * `count` is 0. */
enum slc_status slc_journal_keep(struct slc_journal *journal,
                                 uint64_t count,
                                 const struct slc_journal_record *last,
                                 struct slc_error *err) SLC_NODISCARD;
/* Adds a record in memory; computes the record's hash. */
enum slc_status slc_journal_add(struct slc_journal *journal,
                                const struct slc_journal_record *record,
                                struct slc_error *err) SLC_NODISCARD;
/* Writes the records that are only in memory. */
enum slc_status slc_journal_commit(struct slc_journal *journal,
                                   struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_journal_sync(struct slc_journal *journal, struct slc_error *err) SLC_NODISCARD;
/* Removes the journal file. */
enum slc_status slc_journal_remove(struct slc_journal *journal,
                                   struct slc_error *err) SLC_NODISCARD;
/* Closes the journal file. Accepts NULL. */
void slc_journal_close(struct slc_journal *journal);

/* The open partition of sorted-n. Its rows are kept to assert that the caller appends partitions in
 * ascending order. */
struct slc_open_partition {
    uint32_t ordinal;
    bool continued;
    bool empty;   /* no tile yet */
    uint64_t low; /* smallest and largest row so far */
    uint64_t high;
    uint64_t before; /* largest row of the previous partition, if any */
};

struct slc_writer {
    const struct slc_files *files;
    char *path;
    int fd;
    int direct_fd;          /* descriptor for direct writes of blocks, or -1 */
    enum slc_status status; /* status of the first failure; nothing is written after a failure */

    struct slc_file_header header; /* header with the totals so far */
    bool all_f32;
    struct slc_value_stats values; /* values of all tiles so far */
    uint64_t coordinate_bytes;
    uint64_t target_bytes;

    /* tile data of the open block; close_block adds its header and directory */
    struct slc_buffer block;
    uint64_t data_bytes;
    struct slc_block_entry entry; /* entry of the open block; tile_count is 0 if none is open */
    slc_u128 last_key;
    struct slc_open_partition partition;

    uint8_t *directory; /* tile entries of the open block; data offsets count from the first tile */
    uint64_t directory_capacity;
    uint8_t *index; /* entries of closed blocks, as stored in the file */
    uint64_t index_capacity;

    struct slc_journal *journal; /* NULL if the build cannot be resumed */
    bool keep_journal;           /* keep the journal when the file is finished */
    uint64_t sync_bytes;         /* blocks and journal are synced after this many bytes */
    uint64_t unsynced_bytes;     /* bytes of blocks written since the last sync */
};

static inline uint64_t slc_pad_to_page(uint64_t bytes)
{
    return (bytes + SLC_PAGE_BYTES - 1) & ~(uint64_t)(SLC_PAGE_BYTES - 1);
}

/* Grows an array to at least `bytes` bytes. Doubles the capacity to bound the cost of copying. */
enum slc_status slc_writer_reserve(uint8_t **array,
                                   uint64_t *capacity,
                                   uint64_t bytes,
                                   struct slc_error *err) SLC_NODISCARD;
/* Grows the block buffer to `bytes` of payload; only a tile larger than the target needs this. */
enum slc_status slc_writer_reserve_block(struct slc_writer *writer,
                                         uint64_t bytes,
                                         struct slc_error *err) SLC_NODISCARD;
/* Adds a block, which follows all blocks in the index, to the index and the totals. */
enum slc_status slc_writer_add_block(struct slc_writer *writer,
                                     const struct slc_block_entry *entry,
                                     struct slc_error *err) SLC_NODISCARD;
/* Extends the row range of the open partition to include the rows of a tile or block. */
void slc_writer_add_rows(struct slc_writer *writer, const uint64_t *min, const uint64_t *max);
/* Completes the open partition, which must not be empty, and starts the next. */
void slc_writer_end_partition(struct slc_writer *writer);
enum slc_status slc_writer_sync(struct slc_writer *writer, struct slc_error *err) SLC_NODISCARD;
/* Closes the files and frees the writer; the files stay on disk. */
void slc_writer_destroy(struct slc_writer *writer);

#endif
