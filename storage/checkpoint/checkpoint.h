/*
 * Checkpoints: what a long run is saved in, as two generations in files of one folder that are
 * written in turns (docs/FORMAT.md, section "Checkpoints"). A generation is a list of named
 * sections of bytes; this file knows where these lie and that they are whole, and nothing of what
 * they mean.
 *
 * A generation counts once its header is written, which is after its sections have been synced. Its
 * file is then left alone until the next one counts, too: a crash at any moment leaves one that is
 * whole. A generation that a run goes on from is synced once more before the other is written over,
 * for it may have been read from the page cache of a system that has not written it yet.
 */
#ifndef SLC_STORAGE_CHECKPOINT_H
#define SLC_STORAGE_CHECKPOINT_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Of a generation: two dozen serve a decomposition of 16 modes. */
    SLC_CHECKPOINT_SECTIONS = 64,
    SLC_CHECKPOINT_NAME_BYTES = 16, /* with the zero at the end */
    /* Bytes that are hashed and written at a time: large enough for a drive's full rate. */
    SLC_CHECKPOINT_BUFFER_BYTES = 1 << 20
};

/* What slc_checkpoint_open and a generation that is read map and allocate, rounded up. For plans.
 */
#define SLC_CHECKPOINT_MEMORY_BYTES (2 * ((uint64_t)SLC_CHECKPOINT_BUFFER_BYTES + 16384))

struct slc_checkpoint_section {
    char name[SLC_CHECKPOINT_NAME_BYTES]; /* a-z, 0-9, '-' */
    uint64_t offset;                      /* in the file, at a page boundary */
    uint64_t bytes;                       /* without the padding to whole pages */
    uint64_t hash;                        /* of the padded bytes */
};

struct slc_checkpoint_info {
    uint64_t generation; /* from 1; rises with every one that is written */
    uint64_t file_bytes; /* that count; the file may be longer */
    unsigned section_count;
    struct slc_checkpoint_section sections[SLC_CHECKPOINT_SECTIONS];
};

/* One generation that has been found whole. */
struct slc_checkpoint_reader;

/*
 * Opens a file and verifies all of it. *reader is NULL where no generation has been completed in
 * the file, or there is no such file. Whatever the file claims, no more memory is taken than stated
 * above. Owns: slc_checkpoint_reader_close, which takes NULL. Errors: SLC_ERR_FORMAT for a foreign
 * file, SLC_ERR_UNSUPPORTED for a newer one, SLC_ERR_DAMAGED naming the offset, SLC_ERR_IO,
 * SLC_ERR_MEMORY.
 */
enum slc_status slc_checkpoint_reader_open(const struct slc_files *files,
                                           const char *path,
                                           struct slc_checkpoint_reader **reader,
                                           struct slc_error *err) SLC_NODISCARD;
void slc_checkpoint_reader_close(struct slc_checkpoint_reader *reader);
const struct slc_checkpoint_info *
slc_checkpoint_reader_info(const struct slc_checkpoint_reader *reader);
const char *slc_checkpoint_reader_path(const struct slc_checkpoint_reader *reader);

/* The section of that name; NULL where there is none. Borrowed. */
const struct slc_checkpoint_section *slc_checkpoint_find(const struct slc_checkpoint_reader *reader,
                                                         const char *name);

/*
 * Reads a section from front to back: seek, any number of gets, end. The first fault is kept, what
 * is got after it is zeros, and `end` tells it: also where the section is missing, does not end
 * there, or is not what has been verified before.
 */
void slc_checkpoint_seek(struct slc_checkpoint_reader *reader, const char *name);
void slc_checkpoint_get(struct slc_checkpoint_reader *reader, void *data, uint64_t bytes);
uint64_t slc_checkpoint_get_u64(struct slc_checkpoint_reader *reader);
double slc_checkpoint_get_f64(struct slc_checkpoint_reader *reader);
enum slc_status slc_checkpoint_end(struct slc_checkpoint_reader *reader,
                                   struct slc_error *err) SLC_NODISCARD;

/* The two generations of a run. */
struct slc_checkpoint;

/*
 * Opens the checkpoint in `folder`, which is made where it is missing, for this process alone, and
 * finds the newest generation that is whole; with `restart` what is there is removed first.
 * Owns: slc_checkpoint_close, which takes NULL. Errors: SLC_ERR_IO where another process has it
 * open; SLC_ERR_DAMAGED where there are generations, but none is whole; SLC_ERR_FORMAT where a file
 * of that name is none of ours; SLC_ERR_UNSUPPORTED.
 */
enum slc_status slc_checkpoint_open(const struct slc_files *files,
                                    const char *folder,
                                    bool restart,
                                    struct slc_checkpoint **checkpoint,
                                    struct slc_error *err) SLC_NODISCARD;
/* Where no generation has been completed nothing is left behind. */
void slc_checkpoint_close(struct slc_checkpoint *checkpoint);

/* The generation to go on from, NULL for none; borrowed, until the next one is begun. */
struct slc_checkpoint_reader *slc_checkpoint_found(const struct slc_checkpoint *checkpoint);
/* What is wrong with the other one; SLC_OK: nothing. Borrowed. */
const struct slc_error *slc_checkpoint_fault(const struct slc_checkpoint *checkpoint);
const char *slc_checkpoint_folder(const struct slc_checkpoint *checkpoint);

/* Bytes of a generation with sections of these lengths; UINT64_MAX on overflow. */
uint64_t slc_checkpoint_file_bytes(const uint64_t *section_bytes, unsigned count);

/*
 * Sets `bytes` aside on the disk for each generation, so that a full disk shows before the work and
 * not after it, and takes the memory for writing. Errors: SLC_ERR_NOSPACE, with what to do;
 * SLC_ERR_IO; SLC_ERR_MEMORY; generations that were there stay.
 */
enum slc_status slc_checkpoint_reserve(struct slc_checkpoint *checkpoint,
                                       uint64_t bytes,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * Writes a generation from front to back: begin, sections one after the other, commit. The first
 * fault is kept and `commit` tells it. Then the file at fault is removed, nothing is tried again
 * with this checkpoint, and the generation before stays. Where somebody has removed the files, they
 * are made anew, which is said. Needs: slc_checkpoint_reserve.
 */
void slc_checkpoint_begin(struct slc_checkpoint *checkpoint);
void slc_checkpoint_section(struct slc_checkpoint *checkpoint, const char *name);
void slc_checkpoint_put(struct slc_checkpoint *checkpoint, const void *data, uint64_t bytes);
void slc_checkpoint_put_u64(struct slc_checkpoint *checkpoint, uint64_t value);
void slc_checkpoint_put_f64(struct slc_checkpoint *checkpoint, double value);
enum slc_status slc_checkpoint_commit(struct slc_checkpoint *checkpoint,
                                      struct slc_error *err) SLC_NODISCARD;

/* The run is done: removes both generations. Errors: SLC_ERR_IO. */
enum slc_status slc_checkpoint_remove(struct slc_checkpoint *checkpoint,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Removes what is in a folder, whatever that is of; the folder stays. Errors: SLC_ERR_IO where a
 * run has it open; SLC_ERR_FORMAT where a file of that name is none of ours; SLC_ERR_MEMORY.
 */
enum slc_status slc_checkpoint_discard(const struct slc_files *files,
                                       const char *folder,
                                       struct slc_error *err) SLC_NODISCARD;

/* The path of generation file 0 or 1 of a folder, in fresh memory (slc_free); NULL without. */
char *slc_checkpoint_path(const char *folder, unsigned which);

#endif
