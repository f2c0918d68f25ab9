/*
 * Checkpoints: the saved state of a long run, as two generations in files of one folder that are
 * written alternately (docs/FORMAT.md, section "Checkpoints"). A generation is a list of named
 * sections of bytes; this module knows the offsets and verifies the bytes of sections, but does not
 * interpret them. A generation is valid once its header is written, after its sections have been
 * synced. Its file is then not modified until the next generation is valid, so a crash at any
 * moment leaves a valid generation. A generation from which a run resumes is synced again before
 * the other file is overwritten, because it may have been read from the page cache and not be on
 * the drive yet.
 */
#ifndef SLC_STORAGE_CHECKPOINT_H
#define SLC_STORAGE_CHECKPOINT_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Largest number of sections per generation. A decomposition of 16 modes needs two dozen. */
    SLC_CHECKPOINT_SECTIONS = 64,
    SLC_CHECKPOINT_NAME_BYTES = 16, /* including the terminating zero */
    /* Bytes hashed and written at a time: large enough for a drive's full rate. */
    SLC_CHECKPOINT_BUFFER_BYTES = 1 << 20
};

/* Bytes that slc_checkpoint_open and an open generation allocate, rounded up. For memory plans. */
#define SLC_CHECKPOINT_MEMORY_BYTES (2 * ((uint64_t)SLC_CHECKPOINT_BUFFER_BYTES + 16384))

struct slc_checkpoint_section {
    char name[SLC_CHECKPOINT_NAME_BYTES]; /* a-z, 0-9, '-' */
    uint64_t offset;                      /* in the file, page-aligned */
    uint64_t bytes;                       /* without the padding to whole pages */
    uint64_t hash;                        /* of the padded bytes */
};

struct slc_checkpoint_info {
    uint64_t generation; /* starts at 1; increases with every generation written */
    uint64_t file_bytes; /* bytes in use; the file may be longer */
    unsigned section_count;
    struct slc_checkpoint_section sections[SLC_CHECKPOINT_SECTIONS];
};

/* A verified generation. */
struct slc_checkpoint_reader;

/*
 * Opens a file and verifies it completely. *reader is NULL if the file does not exist or has no
 * complete generation. Never allocates more memory than stated above. Owns:
 * slc_checkpoint_reader_close, which accepts NULL. Errors: SLC_ERR_FORMAT for a foreign file,
 * SLC_ERR_UNSUPPORTED for a newer version, SLC_ERR_DAMAGED with the offset, SLC_ERR_IO,
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

/* The section with this name, or NULL. Borrowed. */
const struct slc_checkpoint_section *slc_checkpoint_find(const struct slc_checkpoint_reader *reader,
                                                         const char *name);

/*
 * Reads a section sequentially: seek, any number of gets, end. The first fault is kept, later gets
 * return zeros, and `end` returns it; faults include a missing section, a section with unread bytes
 * left, and bytes that differ from the verified bytes.
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
 * Opens the checkpoint in `folder`, which is created if missing, exclusively for this process, and
 * finds the newest valid generation; with `restart`, removes existing generations first. Owns:
 * slc_checkpoint_close, which accepts NULL. Errors: SLC_ERR_IO, also if another process has it
 * open; SLC_ERR_DAMAGED if there are generations but none is valid; SLC_ERR_FORMAT if a file with
 * the name of a generation is foreign; SLC_ERR_UNSUPPORTED.
 */
enum slc_status slc_checkpoint_open(const struct slc_files *files,
                                    const char *folder,
                                    bool restart,
                                    struct slc_checkpoint **checkpoint,
                                    struct slc_error *err) SLC_NODISCARD;
/* Closes the checkpoint; if no generation has been completed, removes what the run created. */
void slc_checkpoint_close(struct slc_checkpoint *checkpoint);

/* The generation to resume from, or NULL; borrowed until slc_checkpoint_begin. */
struct slc_checkpoint_reader *slc_checkpoint_found(const struct slc_checkpoint *checkpoint);
/* The fault of the other generation; SLC_OK: none. Borrowed. */
const struct slc_error *slc_checkpoint_fault(const struct slc_checkpoint *checkpoint);
const char *slc_checkpoint_folder(const struct slc_checkpoint *checkpoint);

/* Bytes of a generation with sections of these sizes; UINT64_MAX on overflow. */
uint64_t slc_checkpoint_file_bytes(const uint64_t *section_bytes, unsigned count);

/*
 * Reserves `bytes` bytes on disk for each generation, so that a full disk is detected before the
 * work starts, and allocates the memory for writing. Errors: SLC_ERR_NOSPACE, with advice;
 * SLC_ERR_IO; SLC_ERR_MEMORY; existing generations are kept.
 */
enum slc_status slc_checkpoint_reserve(struct slc_checkpoint *checkpoint,
                                       uint64_t bytes,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * Writes a generation sequentially: begin, sections one after another, commit. The first fault is
 * kept and returned by `commit`; the faulty file is then removed, further writes with this
 * checkpoint do nothing, and the previous generation is kept. Files that another process has
 * removed are created again, which is logged. Needs: slc_checkpoint_reserve.
 */
void slc_checkpoint_begin(struct slc_checkpoint *checkpoint);
void slc_checkpoint_section(struct slc_checkpoint *checkpoint, const char *name);
void slc_checkpoint_put(struct slc_checkpoint *checkpoint, const void *data, uint64_t bytes);
void slc_checkpoint_put_u64(struct slc_checkpoint *checkpoint, uint64_t value);
void slc_checkpoint_put_f64(struct slc_checkpoint *checkpoint, double value);
enum slc_status slc_checkpoint_commit(struct slc_checkpoint *checkpoint,
                                      struct slc_error *err) SLC_NODISCARD;

/* Removes both generations when the run is complete. Errors: SLC_ERR_IO. */
enum slc_status slc_checkpoint_remove(struct slc_checkpoint *checkpoint,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Removes the checkpoint in a folder, regardless of the run that wrote it; keeps the folder.
 * Errors: SLC_ERR_IO, also if a run has it open; SLC_ERR_FORMAT if a file with such a name is
 * foreign; SLC_ERR_MEMORY.
 */
enum slc_status slc_checkpoint_discard(const struct slc_files *files,
                                       const char *folder,
                                       struct slc_error *err) SLC_NODISCARD;

/* Path of generation file 0 or 1 of a folder, newly allocated (slc_free); NULL if out of memory. */
char *slc_checkpoint_path(const char *folder, unsigned which);

#endif
