/* A checkpoint is the saved state of a long run: two generations in two files of one folder, which
 * are written alternately (docs/FORMAT.md, section "Checkpoints"). A generation is a list of named
 * sections of bytes; this module knows the offsets and verifies the bytes of sections, but does not
 * interpret them. A generation is valid once its header is written, after its sections have been
 * synced. Its file is then not modified until the next generation is valid, so a crash at any
 * moment leaves a valid generation. A generation from which a run resumes is synced again before
 * the other file is overwritten, because it may have been read from the page cache and not be on
 * the drive yet. */
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

/* Memory of an open checkpoint, rounded up, for memory plans: the buffers of two open generations,
 * or of one open generation and the next one. */
#define SLC_CHECKPOINT_MEMORY_BYTES (2 * ((uint64_t)SLC_CHECKPOINT_BUFFER_BYTES + 16384))

struct slc_checkpoint_section {
    char name[SLC_CHECKPOINT_NAME_BYTES]; /* a-z, 0-9, '-' */
    uint64_t offset;                      /* offset in the file, page-aligned */
    uint64_t bytes;                       /* size without the padding to whole pages */
    uint64_t hash;                        /* hash of the padded bytes */
};

struct slc_checkpoint_info {
    uint64_t generation; /* starts at 1; increases with every generation written */
    uint64_t file_bytes; /* bytes in use; the file may be longer */
    unsigned section_count;
    struct slc_checkpoint_section sections[SLC_CHECKPOINT_SECTIONS];
};

/* A verified generation. */
struct slc_checkpoint_reader;

/* Opens a file and verifies it completely. *reader is NULL if the file does not exist or has no
 * complete generation. Allocates at most SLC_CHECKPOINT_MEMORY_BYTES. Ownership:
 * release with slc_checkpoint_reader_close, which accepts NULL. Errors: SLC_ERR_FORMAT for a
 * foreign file, SLC_ERR_UNSUPPORTED for a newer version, SLC_ERR_DAMAGED with the offset,
 * SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_checkpoint_reader_open(const struct slc_files *files,
                                           const char *path,
                                           struct slc_checkpoint_reader **reader,
                                           struct slc_error *err) SLC_NODISCARD;
void slc_checkpoint_reader_close(struct slc_checkpoint_reader *reader);
const struct slc_checkpoint_info *
slc_checkpoint_reader_info(const struct slc_checkpoint_reader *reader);
const char *slc_checkpoint_reader_path(const struct slc_checkpoint_reader *reader);

/* Returns the section with this name, or NULL. Borrowed. */
const struct slc_checkpoint_section *slc_checkpoint_find(const struct slc_checkpoint_reader *reader,
                                                         const char *name);

/* Reads a section sequentially: call seek, any number of get functions, then end. After the first
 * fault, get functions return zeros and end returns the fault. Faults are a missing section, too
 * many or too few bytes read, bytes that differ from the verified bytes, and failed reads. */
void slc_checkpoint_seek(struct slc_checkpoint_reader *reader, const char *name);
void slc_checkpoint_get(struct slc_checkpoint_reader *reader, void *data, uint64_t bytes);
uint64_t slc_checkpoint_get_u64(struct slc_checkpoint_reader *reader);
double slc_checkpoint_get_f64(struct slc_checkpoint_reader *reader);
enum slc_status slc_checkpoint_end(struct slc_checkpoint_reader *reader,
                                   struct slc_error *err) SLC_NODISCARD;

/* The two generations of a run. */
struct slc_checkpoint;

/* Opens the checkpoint in `folder` exclusively for this process and finds the newest valid
 * generation. Creates the folder if it is missing; with `restart`, removes existing generations.
 * Ownership: release with slc_checkpoint_close, which accepts NULL. Errors: SLC_ERR_IO, also if
 * another process has the checkpoint open; SLC_ERR_DAMAGED if there are generations but none is
 * valid; SLC_ERR_FORMAT if a file with the name of a generation is foreign; SLC_ERR_UNSUPPORTED. */
enum slc_status slc_checkpoint_open(const struct slc_files *files,
                                    const char *folder,
                                    bool restart,
                                    struct slc_checkpoint **checkpoint,
                                    struct slc_error *err) SLC_NODISCARD;
/* Closes the checkpoint. If no generation is complete, removes the created files and folder. */
void slc_checkpoint_close(struct slc_checkpoint *checkpoint);

/* Returns the generation to resume from, or NULL; borrowed until slc_checkpoint_begin. */
struct slc_checkpoint_reader *slc_checkpoint_found(const struct slc_checkpoint *checkpoint);
/* Returns the fault of the generation that was ignored; status SLC_OK means none. Borrowed. */
const struct slc_error *slc_checkpoint_fault(const struct slc_checkpoint *checkpoint);
const char *slc_checkpoint_folder(const struct slc_checkpoint *checkpoint);

/* Returns the file size of a generation with sections of these sizes; UINT64_MAX on overflow. */
uint64_t slc_checkpoint_file_bytes(const uint64_t *section_bytes, unsigned count);

/* Reserves `bytes` bytes on disk for each generation, so that a full disk is detected before the
 * work starts, and allocates the memory for writing. Errors: SLC_ERR_NOSPACE, with advice;
 * SLC_ERR_IO; SLC_ERR_MEMORY. After an error, existing generations are kept. */
enum slc_status slc_checkpoint_reserve(struct slc_checkpoint *checkpoint,
                                       uint64_t bytes,
                                       struct slc_error *err) SLC_NODISCARD;

/* Writes a generation: call begin, then `section` and `put` functions for each section, then
 * commit. After the first fault, `put` functions do nothing, and commit removes the faulty file and
 * returns the fault; the previous generation is kept, and no further generation is written. Files
 * that another process has removed are created again, with a warning. Needs:
 * slc_checkpoint_reserve. */
void slc_checkpoint_begin(struct slc_checkpoint *checkpoint);
void slc_checkpoint_section(struct slc_checkpoint *checkpoint, const char *name);
void slc_checkpoint_put(struct slc_checkpoint *checkpoint, const void *data, uint64_t bytes);
void slc_checkpoint_put_u64(struct slc_checkpoint *checkpoint, uint64_t value);
void slc_checkpoint_put_f64(struct slc_checkpoint *checkpoint, double value);
enum slc_status slc_checkpoint_commit(struct slc_checkpoint *checkpoint,
                                      struct slc_error *err) SLC_NODISCARD;

/* Removes both generations. Call it when the run is complete. Errors: SLC_ERR_IO. */
enum slc_status slc_checkpoint_remove(struct slc_checkpoint *checkpoint,
                                      struct slc_error *err) SLC_NODISCARD;

/* Removes the checkpoint in a folder, regardless of the run that wrote it; keeps the folder.
 * Errors: SLC_ERR_IO, also if a run has the checkpoint open; SLC_ERR_FORMAT if a file with the name
 * of a generation is foreign; SLC_ERR_MEMORY. */
enum slc_status slc_checkpoint_discard(const struct slc_files *files,
                                       const char *folder,
                                       struct slc_error *err) SLC_NODISCARD;

/* Returns the path of generation file 0 or 1, or NULL if out of memory. Ownership: release with
 * slc_free. */
char *slc_checkpoint_path(const char *folder, unsigned which);

#endif
