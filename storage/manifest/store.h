/*
 * A store: the folder NAME.slc with its manifest tensor.json, its block files and labels.
 * docs/FORMAT.md, section "Store".
 */
#ifndef SLC_STORAGE_STORE_H
#define SLC_STORAGE_STORE_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/limits.h"
#include "storage/block/reader.h"
#include "storage/block/writer.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SLC_MAX_LAYOUTS = 1 + 2 * SLC_MAX_ORDER,
    /* Inputs appended to a store that are remembered; of more, the last. A third of a year of days,
     * and 50 KB of manifest. */
    SLC_MAX_APPENDED = 128
};

/* One block file as the manifest lists it. */
struct slc_store_layout {
    char file[64]; /* name within the store, e.g. "blco.blk" */
    enum slc_layout_kind layout;
    unsigned layout_mode;
    enum slc_codec codec;
    uint64_t file_bytes;
    uint64_t block_count;
    uint64_t index_bytes; /* bytes that coordinates take in all tiles: statistics */
    uint64_t header_hash;
};

/* The permutation of a relabelled mode, as the manifest lists it; storage/manifest/labels.h reads
 * it. */
struct slc_store_permutation {
    unsigned mode; /* 0-based */
    char file[64];
    uint64_t file_bytes;
    uint64_t hash; /* of the whole file */
};

/* An input that was appended to a store, so that it is not appended twice. */
struct slc_store_appended {
    char source[104];
    uint64_t input;   /* of the file and the options, before it is read; 0: not from a file */
    uint64_t content; /* of its entries */
    uint64_t entries;
};

/* The names of a mode's indices, as the manifest lists them; storage/manifest/names.h reads them.
 */
struct slc_store_names {
    unsigned mode; /* 0-based */
    char file[64];
    uint64_t count; /* of the first indices; at most the length of the mode */
    uint64_t file_bytes;
    uint64_t hash; /* of the whole file */
};

enum { SLC_TITLE_BYTES = 256 };
/* Of how a table was read, which names a column or two for each mode. */
enum { SLC_TABLE_BYTES = 5120 };

/* Where the data came from: what conversion decided and counted. Statistics only. */
struct slc_store_origin {
    char source[512]; /* path or "-" as given; bytes that are not UTF-8 are kept as U+FFFD */
    char dialect[32];
    unsigned index_base;
    uint64_t entries_read;   /* lines with a nonzero or an explicit zero */
    uint64_t duplicates;     /* entries merged into an earlier one */
    uint64_t explicit_zeros; /* entries dropped because their (summed) value is zero */
    char duplicate_policy[16];
    char writer[64];             /* "sluice 0.1.0" */
    char table[SLC_TABLE_BYTES]; /* how the columns of a table were read (docs/FORMAT.md); "": it
                                    was none */
    char transforms[128];        /* what was made of values, in turn: "abs,log1p"; "": nothing */
    unsigned appended_count;     /* later inputs, which the counts above include */
    struct slc_store_appended appended[SLC_MAX_APPENDED];
};

struct slc_manifest {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    enum slc_value_type value_type;
    double sum_of_squares;
    uint64_t content_sum;
    unsigned layout_count;
    struct slc_store_layout layouts[SLC_MAX_LAYOUTS];
    unsigned permutation_count; /* relabelled modes, ascending */
    struct slc_store_permutation permutations[SLC_MAX_ORDER];
    unsigned names_count; /* modes with names, ascending */
    struct slc_store_names names[SLC_MAX_ORDER];
    char titles[SLC_MAX_ORDER][SLC_TITLE_BYTES]; /* what the modes are called, UTF-8; "": nothing */
    struct slc_store_origin origin;
};

/* Name of the block file that every store has. */
#define SLC_BLCO_NAME "blco.blk"

/* In a store that a conversion has just put in its place: what says so
 * (convert/publish/build_complete.h). Removed last, and no part of the store. */
#define SLC_COMPLETE_STATE_NAME "complete.state"

/* Name of the manifest in the folder, and the largest one that is read. */
#define SLC_MANIFEST_NAME      "tensor.json"
#define SLC_MANIFEST_MAX_BYTES (UINT64_C(1) << 20)

/*
 * Writes FOLDER/tensor.json atomically. The text is JSON; its first member is the checksum of the
 * whole text (docs/FORMAT.md).
 */
enum slc_status slc_manifest_write(const struct slc_files *files,
                                   const char *folder,
                                   const struct slc_manifest *manifest,
                                   struct slc_error *err) SLC_NODISCARD;

/*
 * Reads and validates FOLDER/tensor.json: SLC_ERR_FORMAT when the folder has none (not a finished
 * store) or holds what no writer writes though its checksum is right, SLC_ERR_DAMAGED when the
 * checksum does not hold, SLC_ERR_UNSUPPORTED for newer versions. *manifest changes only on
 * success.
 */
enum slc_status slc_manifest_read(const struct slc_files *files,
                                  const char *folder,
                                  struct slc_manifest *manifest,
                                  struct slc_error *err) SLC_NODISCARD;

/* Bytes of all files that the manifest lists; UINT64_MAX where no drive holds them. */
uint64_t slc_manifest_file_bytes(const struct slc_manifest *manifest);

/* The layout of that kind and 0-based mode (0 for blco) in the manifest, or NULL. Borrowed. */
const struct slc_store_layout *slc_manifest_find(const struct slc_manifest *manifest,
                                                 enum slc_layout_kind layout,
                                                 unsigned layout_mode);

/* The permutation of a mode, or NULL where its indices are those of the input. Borrowed. */
const struct slc_store_permutation *slc_manifest_permutation(const struct slc_manifest *manifest,
                                                             unsigned mode);

/* The names of a mode's indices, or NULL where it has none. Borrowed. */
const struct slc_store_names *slc_manifest_names(const struct slc_manifest *manifest,
                                                 unsigned mode);

/*
 * Compares what the manifest says of a block file with the file's own header. The sum of squares of
 * a layout but blco may differ by rounding, as it is added up in another order.
 * Errors: SLC_ERR_DAMAGED, naming the block file and both values.
 */
enum slc_status slc_manifest_check_layout(const struct slc_manifest *manifest,
                                          const struct slc_store_layout *layout,
                                          const struct slc_reader *reader,
                                          struct slc_error *err) SLC_NODISCARD;

/* "blco", "sorted", "fiber"; "?" if unknown. */
const char *slc_layout_name(enum slc_layout_kind layout);

/* An open store: the manifest and a reader for one of its layouts. */
struct slc_store {
    const struct slc_files *files;
    char *path;
    struct slc_manifest manifest;
    struct slc_reader *reader;
    /* Descriptors of the permutations plus 1, in the manifest's order, 0 where one could not be
     * opened. Held like those of block files: the store may be moved or replaced meanwhile. */
    int permutation_fds[SLC_MAX_ORDER];
};

/*
 * Opens a block file that a sound manifest lists, as slc_reader_open_within does. A file that is
 * not ours is damage here (SLC_ERR_DAMAGED): the manifest is written last and lists only what was
 * there.
 */
enum slc_status slc_store_open_listed(const struct slc_files *files,
                                      const char *path,
                                      uint64_t memory_bytes,
                                      struct slc_reader **reader,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Opens the manifest and its `blco` layout and checks one against the other; refuses
 * (SLC_ERR_BUDGET) a store whose index takes more than `memory_bytes`, before it is read.
 * Owns: slc_store_close, which takes an all-zero struct. Errors: as the two readers.
 */
enum slc_status slc_store_open_within(const struct slc_files *files,
                                      const char *path,
                                      uint64_t memory_bytes,
                                      struct slc_store *store,
                                      struct slc_error *err) SLC_NODISCARD;
/* The same without a limit. */
enum slc_status slc_store_open(const struct slc_files *files,
                               const char *path,
                               struct slc_store *store,
                               struct slc_error *err) SLC_NODISCARD;
void slc_store_close(struct slc_store *store);

/*
 * Opens a further layout of an open store: checks it against the manifest and against `blco`, over
 * whose keys its content sum is taken. Owns: slc_reader_close on *reader.
 * Errors: SLC_ERR_USAGE where the store has no such layout (slc_manifest_find tells before),
 * SLC_ERR_BUDGET as slc_store_open_within, and as slc_store_open_listed.
 */
enum slc_status slc_store_open_layout(const struct slc_store *store,
                                      enum slc_layout_kind layout,
                                      unsigned layout_mode,
                                      uint64_t memory_bytes,
                                      struct slc_reader **reader,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * The layout in which the store's nonzeros lie fiber by fiber of `mode` in ascending key order
 * (slc_key_layout_fibers): `fiber-n` where the store has it, else `blco` where its keys are of that
 * kind, else none, and *reader is NULL. Owns: slc_store_close_layout on *reader.
 * Errors: as slc_store_open_layout.
 */
enum slc_status slc_store_open_fibers(const struct slc_store *store,
                                      unsigned mode,
                                      uint64_t memory_bytes,
                                      struct slc_reader **reader,
                                      struct slc_error *err) SLC_NODISCARD;
/* Closes a reader unless it is the store's own, of `blco`. Takes NULL. */
void slc_store_close_layout(const struct slc_store *store, struct slc_reader *reader);

/*
 * Whether the content sums of two block files of a store are over the same keys.
 * Errors: SLC_ERR_DAMAGED, naming the file of `reader`.
 */
enum slc_status slc_store_check_keys(const struct slc_key_layout *content_keys,
                                     const struct slc_reader *reader,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
