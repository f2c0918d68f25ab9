/*
 * The journal beside an unfinished block file, PATH.journal: a record of every block, so that a
 * build that was interrupted can go on behind the partitions that are complete. It is gone when the
 * block file is finished, or, where the writer keeps it (slc_writer_options.keep_journal), when its
 * caller has no more use for it; and no part of a store. Private to storage/writer*.c.
 */
#ifndef SLC_STORAGE_JOURNAL_H
#define SLC_STORAGE_JOURNAL_H

#include "storage/block/file_layout.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

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

#endif
