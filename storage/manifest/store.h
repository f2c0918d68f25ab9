/* A store: the folder NAME.slc with its manifest tensor.json, block files, permutations and names
 * (docs/FORMAT.md, section "Store"). */
#ifndef SLC_STORAGE_STORE_H
#define SLC_STORAGE_STORE_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/limits.h"
#include "storage/block/reader.h"
#include "storage/block/writer.h"
#include "storage/file/held_folder.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_MAX_LAYOUTS = 1 + 2 * SLC_MAX_ORDER,
    /* Bytes of a file name within a store, with the terminating zero. */
    SLC_STORE_FILE_BYTES = 64,
    /* Number of appended inputs that a store records; older inputs are dropped. 128 daily inputs
     * are four months; they need 50 KB of the manifest. */
    SLC_MAX_APPENDED = 128
};

/* A block file as listed in the manifest. */
struct slc_store_layout {
    char file[SLC_STORE_FILE_BYTES]; /* name within the store, e.g. "blco.blk" */
    enum slc_layout_kind layout;
    unsigned layout_mode;
    enum slc_codec codec;
    uint64_t file_bytes;
    uint64_t block_count;
    uint64_t index_bytes; /* bytes of coordinates in all tiles; for statistics */
    uint64_t header_hash;
};

/* The permutation of a relabelled mode as listed in the manifest; see storage/manifest/labels.h. */
struct slc_store_permutation {
    unsigned mode; /* mode number, 0-based */
    char file[SLC_STORE_FILE_BYTES];
    uint64_t file_bytes;
    uint64_t hash; /* hash of the whole file */
};

/* An input that was appended to a store; recorded so that it is not appended twice. */
struct slc_store_appended {
    char source[104];
    uint64_t input;   /* hash of the input file and the options; 0 if the input is not a file */
    uint64_t content; /* fingerprint of its entries */
    uint64_t entries;
};

/* The names of a mode's indices as listed in the manifest; read by storage/manifest/names.h. */
struct slc_store_names {
    unsigned mode; /* 0-based */
    char file[SLC_STORE_FILE_BYTES];
    uint64_t count; /* the first `count` indices have names; at most the mode size */
    uint64_t file_bytes;
    uint64_t hash; /* hash of the whole file */
};

enum { SLC_TITLE_BYTES = 256 };
/* Bytes of the text that names the columns read from a table, one or two per mode. */
enum { SLC_TABLE_BYTES = 5120 };
/* Bytes of the text that describes a part of a product (engine/product/part_record.h). */
enum { SLC_PART_RECORD_BYTES = 1024 };

/* Origin of the data: decisions and counts of the conversion. Computations do not use it. */
struct slc_store_origin {
    char source[512]; /* path or "-" as given; bytes that are not UTF-8 are stored as U+FFFD */
    char dialect[32];
    unsigned index_base;
    uint64_t entries_read;   /* lines with a nonzero or an explicit zero */
    uint64_t duplicates;     /* entries merged into an earlier entry */
    uint64_t explicit_zeros; /* entries dropped because their (summed) value is zero */
    bool keeps_zeros;        /* values of zero are stored; then explicit_zeros is 0 */
    char duplicate_policy[16];
    char writer[64];             /* program, such as "sluice 0.1.0" */
    char table[SLC_TABLE_BYTES]; /* how table columns were read (docs/FORMAT.md); "" if no table */
    char transforms[128];        /* transforms of the values, in order: "abs,log1p"; "" if none */
    char part[SLC_PART_RECORD_BYTES]; /* record of a part of a product; "" if it is none */
    unsigned appended_count; /* number of later inputs; the counts above include their entries */
    struct slc_store_appended appended[SLC_MAX_APPENDED];
};

struct slc_manifest {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    enum slc_value_type value_type;
    double sum_of_squares;
    uint64_t content_sum;
    struct slc_value_stats values; /* older stores have none: `distinct` is 0 */
    unsigned layout_count;
    struct slc_store_layout layouts[SLC_MAX_LAYOUTS];
    unsigned permutation_count; /* number of permutations, which ascend by mode */
    struct slc_store_permutation permutations[SLC_MAX_ORDER];
    unsigned names_count; /* number of modes with names, which ascend by mode */
    struct slc_store_names names[SLC_MAX_ORDER];
    char titles[SLC_MAX_ORDER][SLC_TITLE_BYTES]; /* titles of the modes, UTF-8; "" if none */
    struct slc_store_origin origin;
};

/* Name of the block file that every store has. */
#define SLC_BLCO_NAME "blco.blk"

/* File that marks a store that a conversion has just published (convert/publish/build_complete.h).
 * The conversion removes the file last; it is not part of the store. */
#define SLC_COMPLETE_STATE_NAME "complete.state"

/* File name of the manifest, and the size of the largest manifest that is read. */
#define SLC_MANIFEST_NAME      "tensor.json"
#define SLC_MANIFEST_MAX_BYTES (UINT64_C(1) << 20)

/* Writes FOLDER/tensor.json atomically. The text is JSON; its first member is the checksum of the
 * whole text (docs/FORMAT.md). */
enum slc_status slc_manifest_write(const struct slc_files *files,
                                   const char *folder,
                                   const struct slc_manifest *manifest,
                                   struct slc_error *err) SLC_NODISCARD;

/* Reads and validates FOLDER/tensor.json. Errors: SLC_ERR_FORMAT if the file does not exist (the
 * folder is not a finished store) or its contents are invalid despite a correct checksum,
 * SLC_ERR_DAMAGED if the checksum is wrong, SLC_ERR_UNSUPPORTED for newer versions. *manifest
 * changes only on success. */
enum slc_status slc_manifest_read(const struct slc_files *files,
                                  const char *folder,
                                  struct slc_manifest *manifest,
                                  struct slc_error *err) SLC_NODISCARD;

/* Returns the bytes of all files listed in the manifest; UINT64_MAX on overflow. */
uint64_t slc_manifest_file_bytes(const struct slc_manifest *manifest);

/* Returns the layout of this kind and 0-based mode (0 for blco), or NULL. Borrowed. */
const struct slc_store_layout *slc_manifest_find(const struct slc_manifest *manifest,
                                                 enum slc_layout_kind layout,
                                                 unsigned layout_mode);

/* Returns the permutation of a mode, or NULL if the mode is not relabelled. Borrowed. */
const struct slc_store_permutation *slc_manifest_permutation(const struct slc_manifest *manifest,
                                                             unsigned mode);

/* Returns the names of a mode's indices, or NULL if the mode has no names. Borrowed. */
const struct slc_store_names *slc_manifest_names(const struct slc_manifest *manifest,
                                                 unsigned mode);

/* Compares a block file's manifest entry with the header of the block file. The sum of squares of
 * layouts other than blco may differ by rounding, because their nonzeros are added in another
 * order. Errors: SLC_ERR_DAMAGED, with the block file and both values. */
enum slc_status slc_manifest_check_layout(const struct slc_manifest *manifest,
                                          const struct slc_store_layout *layout,
                                          const struct slc_reader *reader,
                                          struct slc_error *err) SLC_NODISCARD;

/* Returns "blco", "sorted" or "fiber"; "?" if unknown. */
const char *slc_layout_name(enum slc_layout_kind layout);

/* An open store: the manifest and a reader for its blco layout. The files that the manifest lists
 * stay open, because the store may be moved or replaced: read them with `files`, so that all of
 * them belong to one store. A listed file that is missing or unreadable is reported when it is
 * read. */
struct slc_store {
    const struct slc_files *files; /* table of `held` */
    struct slc_held_folder *held;  /* NULL if another open store owns it */
    char *path;
    struct slc_manifest manifest;
    struct slc_reader *reader;
};

/* Opens the folder of a store, its manifest, and all files that the manifest lists, which stay
 * open; the files are neither read nor checked. If the store is replaced or its layouts change
 * meanwhile, starts again. Ownership: release *held with slc_held_folder_close, also after an
 * error, if it is not NULL. Errors: those of slc_manifest_read. */
enum slc_status slc_store_hold(const struct slc_files *files,
                               const char *path,
                               struct slc_held_folder **held,
                               struct slc_manifest *manifest,
                               struct slc_error *err) SLC_NODISCARD;

/* Opens a block file listed in a valid manifest, like slc_reader_open_within. A foreign file is
 * reported as damage (SLC_ERR_DAMAGED): the manifest is written last and lists only existing
 * files. */
enum slc_status slc_store_open_listed(const struct slc_files *files,
                                      const char *path,
                                      uint64_t memory_bytes,
                                      struct slc_reader **reader,
                                      struct slc_error *err) SLC_NODISCARD;

/* Opens the manifest and the `blco` layout and checks them against each other. If the store is
 * replaced or its layouts change meanwhile, opens it again. Before reading the index, rejects an
 * index that needs more than `memory_bytes` (SLC_ERR_BUDGET). If `files` is the table of an open
 * store at `path`, opens the files of that store, which must be closed after the new one.
 * Ownership: release with slc_store_close, which accepts an all-zero struct. Errors: those of
 * slc_manifest_read and slc_store_open_listed. */
enum slc_status slc_store_open_within(const struct slc_files *files,
                                      const char *path,
                                      uint64_t memory_bytes,
                                      struct slc_store *store,
                                      struct slc_error *err) SLC_NODISCARD;
/* Like slc_store_open_within, but without a memory limit. */
enum slc_status slc_store_open(const struct slc_files *files,
                               const char *path,
                               struct slc_store *store,
                               struct slc_error *err) SLC_NODISCARD;
void slc_store_close(struct slc_store *store);

/* Opens another layout of an open store. Checks it against the manifest, and that its content sum
 * uses the keys of `blco`. Ownership: release with slc_reader_close on *reader.
 * Errors: SLC_ERR_USAGE if the store has no such layout (test with slc_manifest_find),
 * SLC_ERR_BUDGET like slc_store_open_within, and those of slc_store_open_listed. */
enum slc_status slc_store_open_layout(const struct slc_store *store,
                                      enum slc_layout_kind layout,
                                      unsigned layout_mode,
                                      uint64_t memory_bytes,
                                      struct slc_reader **reader,
                                      struct slc_error *err) SLC_NODISCARD;

/* Opens a layout that stores the nonzeros of each fiber of `mode` together, in ascending key order
 * (slc_key_layout_fibers): `fiber-n` if the store has it, otherwise `blco` if its key order keeps
 * these fibers together. If there is no such layout, *reader is NULL. Ownership: release with
 * slc_store_close_layout on *reader. Errors: those of slc_store_open_layout. */
enum slc_status slc_store_open_fibers(const struct slc_store *store,
                                      unsigned mode,
                                      uint64_t memory_bytes,
                                      struct slc_reader **reader,
                                      struct slc_error *err) SLC_NODISCARD;
/* Closes a reader unless it is the store's own reader of `blco`. Accepts NULL. */
void slc_store_close_layout(const struct slc_store *store, struct slc_reader *reader);

/* Checks that the content sums of two block files of a store use the same keys.
 * Errors: SLC_ERR_DAMAGED, with the file of `reader`. */
enum slc_status slc_store_check_keys(const struct slc_key_layout *content_keys,
                                     const struct slc_reader *reader,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
