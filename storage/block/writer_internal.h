/* What the files of the writer share; private to storage/writer*.c. */
#ifndef SLC_STORAGE_WRITER_INTERNAL_H
#define SLC_STORAGE_WRITER_INTERNAL_H

#include "base/memory/memory.h"
#include "storage/block/file_layout.h"
#include "storage/block/journal.h"
#include "storage/block/writer.h"

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
