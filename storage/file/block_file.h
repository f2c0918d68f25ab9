/*
 * The bytes of a block file, wherever they lie: in the file itself, or in stripes that a list in
 * its place names (storage/file/stripes.h). Everything that reads block files opens them here.
 */
#ifndef SLC_STORAGE_BLOCK_FILE_H
#define SLC_STORAGE_BLOCK_FILE_H

#include "base/error/error.h"
#include "storage/file/files.h"
#include "storage/file/stripes.h"

#include <stdint.h>

/* One file on a drive. */
struct slc_block_part {
    char *path;
    int fd;
};

struct slc_block_file {
    const struct slc_files *files;
    uint64_t bytes;
    struct slc_stripe_shape shape; /* count 0: a plain file, which is parts[0] */
    unsigned part_count;
    struct slc_block_part parts[SLC_MAX_STRIPES];
};

#define SLC_BLOCK_FILE_INIT                                                                        \
    {                                                                                              \
        .part_count = 0                                                                            \
    }

/*
 * Opens the block file at `path` for reading, and all of its stripes: each is looked for in the
 * folders of the environment variable SLUICE_STRIPES, in the folder listed for it, and in the other
 * listed ones, and taken from the first that holds it. `what`: of a message, "opening the file".
 * Owns: slc_block_file_close, which takes a SLC_BLOCK_FILE_INIT.
 * Errors: SLC_ERR_IO; SLC_ERR_FORMAT: no plain file; those of slc_stripe_list_decode; SLC_ERR_IO
 * where a stripe is nowhere, SLC_ERR_DAMAGED where what has its name is not it, naming the place.
 */
enum slc_status slc_block_file_open(const struct slc_files *files,
                                    const char *path,
                                    const char *what,
                                    struct slc_block_file *file,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_block_file_close(struct slc_block_file *file);

/* Where bytes from `offset` on lie: in which part, where there; returns how many are contiguous. */
uint64_t slc_block_file_place(const struct slc_block_file *file,
                              uint64_t offset,
                              unsigned *part,
                              uint64_t *at);

/*
 * Reads exactly `bytes` at `offset`. Threads: any number. Errors: as slc_file_read_at, with the
 * file that they arose in and the offset in it.
 */
enum slc_status slc_block_file_read(const struct slc_block_file *file,
                                    void *data,
                                    uint64_t bytes,
                                    uint64_t offset,
                                    struct slc_error *err) SLC_NODISCARD;

/* As the table's advise_file, for every part that the range lies in; what it says is left. */
void slc_block_file_advise(const struct slc_block_file *file,
                           uint64_t offset,
                           uint64_t bytes,
                           int advice);

#endif
