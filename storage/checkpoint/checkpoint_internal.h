/* A checkpoint, for the two halves that know how it is kept: checkpoint.c and checkpoint_write.c.
 */
#ifndef SLC_STORAGE_CHECKPOINT_INTERNAL_H
#define SLC_STORAGE_CHECKPOINT_INTERNAL_H

#include "base/hash.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "storage/checkpoint/checkpoint.h"

struct slc_checkpoint {
    const struct slc_files *files;
    char *folder;
    int lock_fd;
    bool made_folder;       /* by this run, or by one that it goes on from */
    uint32_t folder_number; /* the low bits of its inode's */
    bool made[2];           /* the file by this run */
    char *path[2];
    int fd[2];     /* for writing; -1 until space is reserved */
    int committed; /* the generation that counts, 0 or 1; -1: none */
    uint64_t generation;
    uint64_t reserved_bytes; /* of each file */
    bool folders_synced;     /* since the files were made */
    struct slc_checkpoint_reader *found;
    struct slc_error other_fault;

    struct slc_buffer memory;
    uint8_t *buffer;                /* in it */
    struct slc_hash_stream *stream; /* the same */
    unsigned target;                /* the file that is being written */
    bool begun;                     /* to write it */
    struct slc_checkpoint_info info;
    uint64_t used; /* bytes of the buffer */
    uint64_t at;   /* where in the file these go */
    struct slc_error fault;
};

/* The section, of no bytes, which says that a run has made the folder with this number: a later one
 * that goes on knows by it that the folder is not somebody's own. */
void slc_checkpoint_name_folder(uint32_t number, char name[SLC_CHECKPOINT_NAME_BYTES]);

/* The folder, for this process alone; it is made where it is missing. */
enum slc_status slc_checkpoint_take_folder(struct slc_checkpoint *checkpoint,
                                           const char *folder,
                                           struct slc_error *err) SLC_NODISCARD;

/* Opens file `which`, and sets `bytes` aside for it. */
enum slc_status slc_checkpoint_reserve_file(struct slc_checkpoint *checkpoint,
                                            unsigned which,
                                            uint64_t bytes,
                                            struct slc_error *err) SLC_NODISCARD;

/* Removes file `which`, where it is. */
enum slc_status slc_checkpoint_remove_file(struct slc_checkpoint *checkpoint,
                                           unsigned which,
                                           struct slc_error *err) SLC_NODISCARD;

/*
 * Where things stand in the file of a generation, and whether they may (docs/FORMAT.md, section
 * "Checkpoints"). Private to storage/checkpoint*.c.
 */
enum {
    SLC_CHECKPOINT_TABLE_OFFSET = SLC_PAGE_BYTES,
    SLC_CHECKPOINT_BODY_OFFSET = 2 * SLC_PAGE_BYTES /* of the first section */
};

/* A page each: `header` needs the table's page. */
void slc_checkpoint_table_encode(const struct slc_checkpoint_info *info, uint8_t *table);
void slc_checkpoint_header_encode(const struct slc_checkpoint_info *info,
                                  const uint8_t *table,
                                  uint8_t *header);

/*
 * The first page of a file: *empty where no generation has been completed in it. `available` of
 * the page's bytes could be read. Errors: SLC_ERR_FORMAT, SLC_ERR_UNSUPPORTED, SLC_ERR_DAMAGED,
 * each with the offset.
 */
enum slc_status slc_checkpoint_header_decode(const uint8_t *header,
                                             uint64_t available,
                                             const char *path,
                                             struct slc_checkpoint_info *info,
                                             bool *empty,
                                             struct slc_error *err) SLC_NODISCARD;
/* The table behind that header, of a file of `file_bytes` bytes. */
enum slc_status slc_checkpoint_table_decode(const uint8_t *header,
                                            const uint8_t *table,
                                            uint64_t file_bytes,
                                            const char *path,
                                            struct slc_checkpoint_info *info,
                                            struct slc_error *err) SLC_NODISCARD;

/* SLC_ERR_DAMAGED at `offset`, with what to do. */
enum slc_status
slc_checkpoint_damaged(struct slc_error *err, const char *path, uint64_t offset, const char *what);

#endif
