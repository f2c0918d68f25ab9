/* Shared by the fuzz targets of interrupted work: a disk in memory on which the product has done
 * the work once, with all changes recorded. An input selects the moment of the interruption and the
 * changes to the files at that moment; checksums are recomputed afterwards.
 *
 * Input: u16 the moment, then changes of FUZZ_CHANGE_BYTES each. */
#ifndef SLC_FUZZ_DISK_H
#define SLC_FUZZ_DISK_H

#include "recorded_files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* u8 file, u16 place among the bytes that are not padding (from the end if bit 7 of the file is
 * set), u8 kind, u8 argument. */
enum { FUZZ_CHANGE_BYTES = 5 };

/* A file that may be modified, in the order in which checksums are recomputed: the hashes of a
 * journal cover those of the blocks. */
struct fuzz_file {
    const char *path;
    /* Recomputes the checksums of `bytes` bytes; `disk` has the other files. NULL: no checksums. */
    void (*seal)(const struct slc_files *disk, uint8_t *data, uint64_t bytes);
};

/* The disk at the moment that the input selects, with its changes. Ownership: release with
 * slc_recorded_destroy. */
struct slc_recorded *fuzz_disk_at(const struct slc_recorded *done,
                                  const struct fuzz_file *files,
                                  size_t count,
                                  const uint8_t *data,
                                  size_t bytes);

/* Loads a file (NULL if it does not exist; release with free); stores a file. */
uint8_t *fuzz_disk_load(const struct slc_files *disk, const char *path, uint64_t *bytes);
void fuzz_disk_store(const struct slc_files *disk,
                     const char *path,
                     const void *data,
                     uint64_t bytes);

/* Seals the journal of the block file `blocks` (storage/block/journal.c), whose tensor has
 * `order` modes: hashes the current contents of the blocks named by its records. */
void fuzz_seal_journal(const struct slc_files *disk,
                       const char *blocks,
                       unsigned order,
                       uint8_t *data,
                       uint64_t bytes);

/* The same for the state of a build in convert/ (convert/build/resume/state_file.c), and for the
 * chunks of a spill file (convert/build/spill/chunk.c), which are contiguous from the start of a
 * segment to the first zeros. */
void fuzz_seal_state(const struct slc_files *disk, uint8_t *data, uint64_t bytes);
void fuzz_seal_chunks(const struct slc_files *disk, uint8_t *data, uint64_t bytes);

/* Disables logging; restarts are logged every time. */
void fuzz_disk_quiet(void);

/* Checks the files that a build with this status must leave at `output`: the expected store if
 * the leftovers were not modified; otherwise a store that can be read, or none. */
void fuzz_disk_check(const struct slc_files *disk,
                     const char *output,
                     enum slc_status status,
                     bool altered);

/* Stops the process with the reason if the condition is false. */
void fuzz_must(bool holds, const char *what);

#endif
