/* State of an open checkpoint (checkpoint.c, checkpoint_write.c), and the layout of its files. */
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
    bool created_folder;    /* the folder was created by this run or by the run that it resumes */
    uint32_t folder_number; /* low bits of the folder's inode number */
    bool made[2];           /* this run created the file */
    char *path[2];
    int fd[2];     /* descriptors for writing; -1 until disk space is reserved */
    int committed; /* file of the valid generation, 0 or 1; -1 if none */
    uint64_t generation;
    uint64_t reserved_bytes; /* disk space reserved for each file */
    bool folders_synced;     /* folders were synced after the files were created */
    struct slc_checkpoint_reader *found;
    struct slc_error other_fault;

    struct slc_buffer memory;
    uint8_t *buffer;                /* in `memory` */
    struct slc_hash_stream *stream; /* in `memory` */
    unsigned target;                /* the file being written */
    bool begun;                     /* slc_checkpoint_begin has started to write the target */
    struct slc_checkpoint_info info;
    uint64_t used; /* bytes in the buffer */
    uint64_t at;   /* offset in the file of the bytes in the buffer */
    struct slc_error fault;
};

/* Sets `name` to the name of an empty section, which records that a run created the folder with
 * inode number `number`. A resumed run that finds the section may remove the folder. */
void slc_checkpoint_name_folder(uint32_t number, char name[SLC_CHECKPOINT_NAME_BYTES]);

/* Creates the folder if it is missing and locks it for this process. */
enum slc_status slc_checkpoint_open_folder(struct slc_checkpoint *checkpoint,
                                           const char *folder,
                                           struct slc_error *err) SLC_NODISCARD;

/* Opens file `which` and reserves `bytes` bytes for it. */
enum slc_status slc_checkpoint_reserve_file(struct slc_checkpoint *checkpoint,
                                            unsigned which,
                                            uint64_t bytes,
                                            struct slc_error *err) SLC_NODISCARD;

/* Removes file `which` if it exists. */
enum slc_status slc_checkpoint_remove_file(struct slc_checkpoint *checkpoint,
                                           unsigned which,
                                           struct slc_error *err) SLC_NODISCARD;

/* Byte offsets of a generation's file, and their checks (docs/FORMAT.md, section "Checkpoints").
 * Private to storage/checkpoint/. */
enum {
    SLC_CHECKPOINT_TABLE_OFFSET = SLC_PAGE_BYTES,
    SLC_CHECKPOINT_BODY_OFFSET = 2 * SLC_PAGE_BYTES /* offset of the first section */
};

/* The next two functions encode one page each. The header contains the hash of the table. */
void slc_checkpoint_table_encode(const struct slc_checkpoint_info *info, uint8_t *table);
void slc_checkpoint_header_encode(const struct slc_checkpoint_info *info,
                                  const uint8_t *table,
                                  uint8_t *header);

/* Decodes the first page of a file, of which `available` bytes could be read. Sets *empty if the
 * file has no complete generation. Errors: SLC_ERR_FORMAT, SLC_ERR_UNSUPPORTED, SLC_ERR_DAMAGED,
 * each with the offset. */
enum slc_status slc_checkpoint_header_decode(const uint8_t *header,
                                             uint64_t available,
                                             const char *path,
                                             struct slc_checkpoint_info *info,
                                             bool *empty,
                                             struct slc_error *err) SLC_NODISCARD;
/* Decodes the table that belongs to `header`, in a file of `file_bytes` bytes. */
enum slc_status slc_checkpoint_table_decode(const uint8_t *header,
                                            const uint8_t *table,
                                            uint64_t file_bytes,
                                            const char *path,
                                            struct slc_checkpoint_info *info,
                                            struct slc_error *err) SLC_NODISCARD;

/* Returns SLC_ERR_DAMAGED; the message is `what` and advice, and the error has `offset`. */
enum slc_status
slc_checkpoint_damaged(struct slc_error *err, const char *path, uint64_t offset, const char *what);

#endif
