/*
 * What the fuzz targets of interrupted work share: a disk in memory on which the product itself has
 * done the work once, all that it did recorded. An input says where the work ended, and what was
 * altered of what is there then; checksums are made right again.
 *
 * Input: u16 the moment, then changes of FUZZ_CHANGE_BYTES each.
 */
#ifndef SLC_FUZZ_DISK_H
#define SLC_FUZZ_DISK_H

#include "recorded_files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* u8 file, u16 place among bytes that are not padding (from the end where bit 7 of the file is
 * set), u8 kind, u8 argument. */
enum { FUZZ_CHANGE_BYTES = 5 };

/* A file that may be altered, in the order in which checksums are made right: a journal's hashes
 * cover those of the blocks. */
struct fuzz_file {
    const char *path;
    /* Makes checksums of `bytes` bytes right; `disk` has the other files. NULL: there are none. */
    void (*seal)(const struct slc_files *disk, uint8_t *data, uint64_t bytes);
};

/*
 * The disk as it was at the moment that the input says, altered as it says. Owns:
 * slc_recorded_destroy.
 */
struct slc_recorded *fuzz_disk_at(const struct slc_recorded *done,
                                  const struct fuzz_file *files,
                                  size_t count,
                                  const uint8_t *data,
                                  size_t bytes);

/* A file's bytes (NULL: it is not there; free), and a file of these bytes. */
uint8_t *fuzz_disk_load(const struct slc_files *disk, const char *path, uint64_t *bytes);
void fuzz_disk_store(const struct slc_files *disk,
                     const char *path,
                     const void *data,
                     uint64_t bytes);

/* Seals the journal of the block file `blocks` (storage/block/journal.c), whose tensor has `order`
 * modes: the blocks that its records name are hashed as they are. */
void fuzz_seal_journal(const struct slc_files *disk,
                       const char *blocks,
                       unsigned order,
                       uint8_t *data,
                       uint64_t bytes);

/* The same of what convert/ notes about a build (convert/build/resume/state_file.c), and of the
 * chunks in a spill file (convert/build/spill/chunk.c), which lie one behind the other from where a
 * segment begins, up to zeros. */
void fuzz_seal_state(const struct slc_files *disk, uint8_t *data, uint64_t bytes);
void fuzz_seal_chunks(const struct slc_files *disk, uint8_t *data, uint64_t bytes);

/* No more log: what is begun anew is told each time. */
void fuzz_disk_quiet(void);

/* What a build that ended with this status has to leave at `output`: of leftovers that were not
 * altered comes the store; of others one that can be looked at, or none. */
void fuzz_disk_check(const struct slc_files *disk,
                     const char *output,
                     enum slc_status status,
                     bool altered);

/* Stops the process, saying why, where that does not hold. */
void fuzz_must(bool holds, const char *what);

#endif
