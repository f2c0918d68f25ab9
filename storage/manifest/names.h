/* Names of a mode's indices. On disk, each mode with names has a file names-K.bin (docs/FORMAT.md,
 * section "Names"). The file consists of pieces with a checksum each, so that looking up a name
 * needs bounded memory. Names belong to the indices of the input, not to the labels of a relabelled
 * mode (storage/manifest/labels.h). A name may consist of any bytes except zeros (UTF-8 by
 * convention), may be empty, and need not be unique. The last indices of a mode may have no
 * names. */
#ifndef SLC_STORAGE_NAMES_H
#define SLC_STORAGE_NAMES_H

#include "base/error/error.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Bytes of the longest name. */
    SLC_NAME_BYTES_MAX = 4095,
    /* Names in each piece of the file except the last. */
    SLC_NAMES_PIECE = 1024
};

struct slc_names_writer;

/* True if a name of `bytes` bytes can be stored: it is not too long and has no zero byte. */
bool slc_name_is_possible(const char *name, size_t bytes);

/* Returns the memory for writing `count` names: two pieces, 32 bytes per piece of the file, and the
 * output buffer. Reading needs less. */
uint64_t slc_names_memory_bytes(uint64_t count);

/* Starts writing FOLDER/names-K.bin for `mode` (0-based). slc_names_writer_finish renames the file
 * to this name. `files` may be NULL. Ownership: release with slc_names_writer_finish or
 * slc_names_writer_abandon. Errors: SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY. */
enum slc_status slc_names_writer_open(const struct slc_files *files,
                                      const char *folder,
                                      unsigned mode,
                                      struct slc_names_writer **writer,
                                      struct slc_error *err) SLC_NODISCARD;

/* Appends a copy of `name` as the name of the next index. Errors: SLC_ERR_INPUT if the name is too
 * long or contains a zero byte; those of file operations. */
enum slc_status slc_names_writer_add(struct slc_names_writer *writer,
                                     const char *name,
                                     size_t bytes,
                                     struct slc_error *err) SLC_NODISCARD;

/* Returns the number of names added. */
uint64_t slc_names_writer_count(const struct slc_names_writer *writer);

/* Syncs and publishes the file, and fills in its manifest entry. Destroys the writer, also after an
 * error; an error removes the file. */
enum slc_status slc_names_writer_finish(struct slc_names_writer *writer,
                                        struct slc_store_names *listed,
                                        struct slc_error *err) SLC_NODISCARD;
/* Removes the file and destroys the writer. Accepts NULL. */
void slc_names_writer_abandon(struct slc_names_writer *writer);

struct slc_names;

/* Opens a listed file in the store's folder. `files` may be NULL. Ownership: release with
 * slc_names_close, which accepts NULL. Errors: SLC_ERR_DAMAGED, with the file, if the file is
 * missing or differs from the manifest; SLC_ERR_IO; SLC_ERR_MEMORY. */
enum slc_status slc_names_open(const struct slc_files *files,
                               const char *folder,
                               const struct slc_store_names *listed,
                               struct slc_names **names,
                               struct slc_error *err) SLC_NODISCARD;
void slc_names_close(struct slc_names *names);

/* Returns the bytes of memory that the open names hold: the largest piece of the file. */
uint64_t slc_names_held_bytes(const struct slc_names *names);

/* Returns the number of names, which belong to indices 0 to count - 1. */
uint64_t slc_names_count(const struct slc_names *names);

/* Returns the name of an index, *bytes long and followed by a zero byte; NULL if the index has no
 * name. Borrowed until the next call. Cost: two reads, or none if the previous name was in the same
 * piece. Errors: SLC_ERR_DAMAGED, with the file; SLC_ERR_IO; SLC_ERR_MEMORY. */
enum slc_status slc_names_get(struct slc_names *names,
                              uint64_t index,
                              const char **name,
                              size_t *bytes,
                              struct slc_error *err) SLC_NODISCARD;

/* Reads the whole file, and checks its checksum and every piece. Errors: those of slc_names_open
 * and slc_names_get. */
enum slc_status slc_names_verify(const struct slc_files *files,
                                 const char *folder,
                                 const struct slc_store_names *listed,
                                 struct slc_error *err) SLC_NODISCARD;

/* Layout of names-K.bin, docs/FORMAT.md, section "Names", shared by writer and reader. */
#define SLC_NAMES_MAGIC "\x89SLCNAM\n"

/* The file has a header, pieces, a table with one entry per piece, and a trailer. A piece has the
 * end offset of each of its names, then the concatenated names. */
enum {
    SLC_NAMES_HEAD_MAGIC = 0,
    SLC_NAMES_HEAD_MODE = 8,   /* u32, 0-based */
    SLC_NAMES_HEAD_PIECE = 12, /* u32, SLC_NAMES_PIECE */
    SLC_NAMES_HEAD_BYTES = 64, /* zeros up to here */

    SLC_NAMES_ENTRY_OFFSET = 0, /* u64, offset of the piece in the file */
    SLC_NAMES_ENTRY_HASH = 8,   /* u64, hash of the piece */
    SLC_NAMES_ENTRY_BYTES = 16,

    SLC_NAMES_TAIL_COUNT = 0,    /* u64, number of names */
    SLC_NAMES_TAIL_TABLE = 8,    /* u64, offset of the table */
    SLC_NAMES_TAIL_LARGEST = 16, /* u64, bytes of the largest piece */
    SLC_NAMES_TAIL_BYTES = 64,   /* zeros up to here */

    /* bytes of the end offsets (u32) of a full piece */
    SLC_NAMES_ENDS_BYTES = 4 * SLC_NAMES_PIECE,
    SLC_NAMES_PIECE_BYTES_MAX = SLC_NAMES_ENDS_BYTES + SLC_NAMES_PIECE * SLC_NAME_BYTES_MAX
};

/* Sets `file` to the file name for a mode's names. */
void slc_names_file(unsigned mode, char file[SLC_STORE_FILE_BYTES]);

/* Encodes the first SLC_NAMES_HEAD_BYTES bytes of a mode's file. */
void slc_names_encode_head(unsigned mode, uint8_t head[SLC_NAMES_HEAD_BYTES]);

#endif
