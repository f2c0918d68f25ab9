/* What the files of the writer share; private to storage/writer*.c. */
#ifndef SLC_STORAGE_WRITER_INTERNAL_H
#define SLC_STORAGE_WRITER_INTERNAL_H

#include "base/memory/memory.h"
#include "storage/block/file_layout.h"
#include "storage/block/writer.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The journal beside an unfinished block file, PATH.journal: a record of every block, so that a
 * build that was interrupted can go on behind the partitions that are complete. It is gone when the
 * block file is finished, or, where the writer keeps it (slc_writer_options.keep_journal), when its
 * caller has no more use for it; and no part of a store. Private to storage/writer*.c.
 */

/* A block, and the writer's state behind it as far as the block's entry does not tell it. */
struct slc_journal_record {
    struct slc_block_entry entry;
    uint64_t coordinate_bytes; /* of all tiles so far */
    slc_u128 last_key;
    bool all_f32;   /* so far */
    bool completes; /* it is the last block of its partition */
    uint64_t hash;  /* of the record; the next one repeats it */
};

/* What a file depends on; a journal of anything else is not used. */
struct slc_journal_identity {
    uint64_t header_hash; /* of a header without totals */
    uint64_t target_bytes;
    uint64_t tag; /* the caller's */
};

struct slc_journal;

/*
 * Opens the journal of the block file `path`, creating it where there is none. Nothing is changed
 * before slc_journal_keep. Owns: slc_journal_close. Errors: SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status slc_journal_open(const struct slc_files *files,
                                 const char *path,
                                 unsigned order,
                                 const struct slc_journal_identity *identity,
                                 struct slc_journal **journal,
                                 struct slc_error *err) SLC_NODISCARD;
/*
 * Reads the next record, from the first; *found is false behind the last one that is whole and
 * follows the one before, at once in a journal of another identity. Errors: SLC_ERR_IO.
 */
enum slc_status slc_journal_next(struct slc_journal *journal,
                                 struct slc_journal_record *record,
                                 bool *found,
                                 struct slc_error *err) SLC_NODISCARD;
/* Cuts off what follows the first `count` records, the last of which is `last` (NULL for none). */
enum slc_status slc_journal_keep(struct slc_journal *journal,
                                 uint64_t count,
                                 const struct slc_journal_record *last,
                                 struct slc_error *err) SLC_NODISCARD;
/* Adds a record (but for its hash, which is made here), in memory. */
enum slc_status slc_journal_add(struct slc_journal *journal,
                                const struct slc_journal_record *record,
                                struct slc_error *err) SLC_NODISCARD;
/* Writes the records that are only in memory. */
enum slc_status slc_journal_commit(struct slc_journal *journal,
                                   struct slc_error *err) SLC_NODISCARD;
enum slc_status slc_journal_sync(struct slc_journal *journal, struct slc_error *err) SLC_NODISCARD;
/* Removes the file. */
enum slc_status slc_journal_remove(struct slc_journal *journal,
                                   struct slc_error *err) SLC_NODISCARD;
/* Closes the file. Takes NULL. */
void slc_journal_close(struct slc_journal *journal);

/* The partition under way, of sorted-n. Rows and keys are kept to assert what the caller promises.
 */
struct slc_open_partition {
    uint32_t ordinal;
    bool continued;
    bool empty;   /* no tile yet */
    uint64_t low; /* rows so far */
    uint64_t high;
    uint64_t before; /* the largest row of the partition before, if there is one */
};

struct slc_writer {
    const struct slc_files *files;
    char *path;
    int fd;
    int direct_fd;          /* for blocks; -1: none */
    enum slc_status status; /* of the first failure; nothing is written after one */

    struct slc_file_header header; /* totals so far */
    bool all_f32;
    uint64_t coordinate_bytes;
    uint64_t target_bytes;

    struct slc_buffer block; /* tile data of the open block, from its start until it closes */
    uint64_t data_bytes;
    struct slc_block_entry entry; /* of the open block; tile_count 0: none is open */
    slc_u128 last_key;
    struct slc_open_partition partition;

    uint8_t *directory; /* entries of the open block, data offsets counted from the data's start */
    uint64_t directory_room;
    uint8_t *index; /* entries of closed blocks, as in the file */
    uint64_t index_room;

    struct slc_journal *journal; /* NULL where the build cannot be resumed */
    bool keep_journal;           /* when the file is finished */
    uint64_t sync_bytes;         /* after so many .. */
    uint64_t unsynced_bytes;     /* .. of blocks written both are synced */
};

static inline uint64_t slc_pad_to_page(uint64_t bytes)
{
    return (bytes + SLC_PAGE_BYTES - 1) & ~(uint64_t)(SLC_PAGE_BYTES - 1);
}

/* Makes room for `bytes` bytes in a growing array; doubling keeps the copying linear. */
enum slc_status slc_writer_reserve(uint8_t **array,
                                   uint64_t *room,
                                   uint64_t bytes,
                                   struct slc_error *err) SLC_NODISCARD;
/* Makes the block buffer hold a block of `bytes` payload; only a tile beyond the target needs it.
 */
enum slc_status slc_writer_reserve_block(struct slc_writer *writer,
                                         uint64_t bytes,
                                         struct slc_error *err) SLC_NODISCARD;
/* Takes a block that is in the file, behind all others, into the index and the totals. */
enum slc_status slc_writer_note_block(struct slc_writer *writer,
                                      const struct slc_block_entry *entry,
                                      struct slc_error *err) SLC_NODISCARD;
/* Takes rows of the tiles of the open partition into its range. */
void slc_writer_add_rows(struct slc_writer *writer, const uint64_t *min, const uint64_t *max);
/* The open partition, which is not empty, is complete: the next one begins. */
void slc_writer_end_partition(struct slc_writer *writer);
enum slc_status slc_writer_sync(struct slc_writer *writer, struct slc_error *err) SLC_NODISCARD;
/* Closes and frees all there is; files stay. */
void slc_writer_destroy(struct slc_writer *writer);

#endif
