/*
 * The names of a mode's indices: what a user calls user 4711 or the 17th word. On disk a file
 * names-K.bin per mode that has them (docs/FORMAT.md, section "Names"), in pieces with a checksum
 * each, so that one name is found in bounded memory, however many there are.
 *
 * Names belong to indices as they stood in the input: of a relabelled mode
 * (storage/manifest/labels.h) to its indices, not to its labels. A name is any bytes but zeros,
 * UTF-8 by convention, and may be empty; of two indices it may be the same. The last indices of a
 * mode may have none.
 */
#ifndef SLC_STORAGE_NAMES_H
#define SLC_STORAGE_NAMES_H

#include "base/error/error.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"

#include <stddef.h>
#include <stdint.h>

enum {
    /* Bytes of the longest name. */
    SLC_NAME_BYTES_MAX = 4095,
    /* Names of a piece of the file, but the last. */
    SLC_NAMES_PIECE = 1024
};

struct slc_names_writer;

/*
 * What writing so many names takes: a piece of the file, and 16 bytes for each piece. That of a
 * reader is less.
 */
uint64_t slc_names_memory_bytes(uint64_t count);

/*
 * Begins FOLDER/names-K.bin for `mode` (0-based). It is there after slc_names_writer_finish.
 * `files` may be NULL. Owns: slc_names_writer_finish or slc_names_writer_abandon. Errors:
 * SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_MEMORY.
 */
enum slc_status slc_names_writer_open(const struct slc_files *files,
                                      const char *folder,
                                      unsigned mode,
                                      struct slc_names_writer **writer,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Adds the name of the next index; copies it. Errors: SLC_ERR_INPUT for one that is too long or has
 * a zero; those of files.
 */
enum slc_status slc_names_writer_add(struct slc_names_writer *writer,
                                     const char *name,
                                     size_t bytes,
                                     struct slc_error *err) SLC_NODISCARD;

/* Names so far. */
uint64_t slc_names_writer_count(const struct slc_names_writer *writer);

/* Puts the file in its place, synced, and fills in what the manifest says of it. The writer is gone
 * afterwards, also after an error, when nothing is left of the file. */
enum slc_status slc_names_writer_finish(struct slc_names_writer *writer,
                                        struct slc_store_names *listed,
                                        struct slc_error *err) SLC_NODISCARD;
/* Takes NULL. */
void slc_names_writer_abandon(struct slc_names_writer *writer);

struct slc_names;

/*
 * Opens a listed file in the store's folder. `files` may be NULL. Owns: slc_names_close, which
 * takes NULL. Errors: SLC_ERR_DAMAGED, naming the file, where it is not there or not what is
 * listed; SLC_ERR_IO; SLC_ERR_MEMORY.
 */
enum slc_status slc_names_open(const struct slc_files *files,
                               const char *folder,
                               const struct slc_store_names *listed,
                               struct slc_names **names,
                               struct slc_error *err) SLC_NODISCARD;
void slc_names_close(struct slc_names *names);

/* What the open names hold in memory: room for the largest piece of the file. */
uint64_t slc_names_held_bytes(const struct slc_names *names);

/* Indices 0 to count - 1 have names. */
uint64_t slc_names_count(const struct slc_names *names);

/*
 * The name of an index, *bytes long, a zero behind it; NULL where it has none. Borrowed until the
 * next call. Cost: none beside that of the name before where both are of one piece of the file,
 * else two reads. Errors: SLC_ERR_DAMAGED, naming the file; SLC_ERR_IO; SLC_ERR_MEMORY.
 */
enum slc_status slc_names_get(struct slc_names *names,
                              uint64_t index,
                              const char **name,
                              size_t *bytes,
                              struct slc_error *err) SLC_NODISCARD;

/*
 * Reads the whole file: every byte is what was written, and every piece can be read. Errors: as
 * slc_names_open and slc_names_get.
 */
enum slc_status slc_names_verify(const struct slc_files *files,
                                 const char *folder,
                                 const struct slc_store_names *listed,
                                 struct slc_error *err) SLC_NODISCARD;

/* The form of names-K.bin, docs/FORMAT.md, section "Names": what its writer and reader share. */
#define SLC_NAMES_MAGIC "\x89SLCNAM\n"

/*
 * A header; pieces; a table with an entry for each piece; a trailer. A piece is where each of its
 * names ends, and the names one behind the other.
 */
enum {
    SLC_NAMES_HEAD_MAGIC = 0,
    SLC_NAMES_HEAD_MODE = 8,   /* u32, 0-based */
    SLC_NAMES_HEAD_PIECE = 12, /* u32, SLC_NAMES_PIECE */
    SLC_NAMES_HEAD_BYTES = 64, /* zeros up to here */

    SLC_NAMES_ENTRY_OFFSET = 0, /* u64, of the piece in the file */
    SLC_NAMES_ENTRY_HASH = 8,   /* u64, of the piece */
    SLC_NAMES_ENTRY_BYTES = 16,

    SLC_NAMES_TAIL_COUNT = 0,    /* u64, names */
    SLC_NAMES_TAIL_TABLE = 8,    /* u64, offset of the table */
    SLC_NAMES_TAIL_LARGEST = 16, /* u64, bytes of the largest piece */
    SLC_NAMES_TAIL_BYTES = 64,   /* zeros up to here */

    /* Before each name's end, an u32 each. */
    SLC_NAMES_ENDS_BYTES = 4 * SLC_NAMES_PIECE,
    SLC_NAMES_PIECE_BYTES_MAX = SLC_NAMES_ENDS_BYTES + SLC_NAMES_PIECE * SLC_NAME_BYTES_MAX
};

/* The name of the file of a mode in its folder. */
void slc_names_file(unsigned mode, char file[64]);

/* The first SLC_NAMES_HEAD_BYTES bytes of that of a mode. */
void slc_names_encode_head(unsigned mode, uint8_t head[SLC_NAMES_HEAD_BYTES]);

#endif
