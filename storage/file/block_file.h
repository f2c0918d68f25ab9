/* Reads the bytes of a block file, which is either a plain file or a list of stripes
 * (storage/file/stripes.h). All code that reads block files opens them with this module. */
#ifndef SLC_STORAGE_BLOCK_FILE_H
#define SLC_STORAGE_BLOCK_FILE_H

#include "base/error/error.h"
#include "storage/file/files.h"
#include "storage/file/stripes.h"

#include <stdint.h>

/* One file on a drive: a plain block file or a stripe. */
struct slc_block_part {
    char *path;
    int fd;
};

struct slc_block_file {
    const struct slc_files *files;
    uint64_t bytes;
    struct slc_stripe_shape shape; /* count is 0 for a plain file, which is parts[0] */
    bool borrowed;                 /* another store folder owns the stripes */
    unsigned part_count;
    struct slc_block_part parts[SLC_MAX_STRIPES];
};

#define SLC_BLOCK_FILE_INIT                                                                        \
    {                                                                                              \
        .part_count = 0                                                                            \
    }

/* Opens the block file at `path` for reading, including all of its stripes. Searches for each
 * stripe in the folders of the environment variable SLUICE_STRIPES, then in the folder listed for
 * it, then in the other listed folders, and opens the first stripe found. If another store folder
 * owns the stripes, logs a note, unless the last note was about the same folder. `what` is a text
 * for messages, such as "opening the file". Ownership: release with slc_block_file_close, which
 * accepts SLC_BLOCK_FILE_INIT. Errors: SLC_ERR_IO; SLC_ERR_FORMAT if `path` is not a plain file;
 * those of slc_stripe_list_decode; SLC_ERR_IO if a stripe is missing, SLC_ERR_DAMAGED if a file
 * with the stripe's name is not the stripe, both with the path. */
enum slc_status slc_block_file_open(const struct slc_files *files,
                                    const char *path,
                                    const char *what,
                                    struct slc_block_file *file,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_block_file_close(struct slc_block_file *file);

/* Maps `offset` to a part and the offset *at in this part; returns the number of contiguous bytes
 * from there. */
uint64_t slc_block_file_place(const struct slc_block_file *file,
                              uint64_t offset,
                              unsigned *part,
                              uint64_t *at);

/* Reads exactly `bytes` bytes at `offset`. Threads: any number. Errors: those of slc_file_read_at,
 * with the path of the part and the offset in it. */
enum slc_status slc_block_file_read(const struct slc_block_file *file,
                                    void *data,
                                    uint64_t bytes,
                                    uint64_t offset,
                                    struct slc_error *err) SLC_NODISCARD;

/* Calls files->advise_file for every part that overlaps the range; ignores the results. */
void slc_block_file_advise(const struct slc_block_file *file,
                           uint64_t offset,
                           uint64_t bytes,
                           int advice);

#endif
