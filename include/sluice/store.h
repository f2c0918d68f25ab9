/* Functions that open, describe and verify stores and manage their layouts. */
#ifndef SLUICE_STORE_H
#define SLUICE_STORE_H

#include "sluice/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Largest number of distinct values that a store lists. */
enum { SLUICE_MAX_DISTINCT = 16 };

/* An open store, for use by one thread at a time. */
struct sluice_store;

struct sluice_store_info {
    uint64_t struct_bytes;
    uint32_t order;
    enum sluice_precision value_type; /* type of the stored values */
    uint64_t dims[SLUICE_MAX_ORDER];  /* mode sizes */
    uint64_t nnz;
    double norm;          /* 2-norm of all values */
    uint64_t store_bytes; /* size of the block file of the blco layout */
    uint64_t total_bytes; /* size of all layouts, permutations and names */
    uint64_t block_count;
    uint64_t tile_count;
    uint64_t max_block_bytes;
    /* checksum over all nonzeros, with indices as numbered in the store; independent of their
     * order */
    uint64_t content_sum;
    enum sluice_codec codec;
    uint32_t relabelled_modes; /* bit n is set if the store numbers mode n by frequency */
    uint32_t named_modes;      /* bit n is set if the indices of mode n have names */
    /* fibers of fiber_mode are kept together in runs of 2^fiber_bits indices; 0 if they are not */
    uint32_t fiber_bits;
    uint32_t fiber_mode; /* the mode whose fibers are kept together, if fiber_bits is not 0 */
    uint32_t key_bits;   /* bits of a key, which linearizes the coordinates of a nonzero */
    /* The members below describe the input of the store, including appended inputs. */
    uint64_t entries;
    uint64_t duplicates;     /* entries merged into an earlier entry */
    uint64_t explicit_zeros; /* entries of value zero, which are not stored */
    uint32_t index_base;     /* number of the first index of a mode in the input: 0 or 1 */
    uint32_t appended;       /* number of inputs for sluice_store_get_appended */
    char source[512];        /* path as passed to the conversion */
    char dialect[32];
    char duplicate_policy[16];
    char transforms[128]; /* steps applied to values, in order; "" if there were none */
    char writer[64];      /* program and version */
    /* if not 0, the store keeps values of zero (sluice_convert_options.keep_zeros) */
    uint32_t keep_zeros;
    /* The members below are statistics of the values. They are 0 if distinct_count is 0: there are
     * no nonzeros, or an older version has written the store. */
    uint32_t all_integers; /* not 0 if every value is an integer of magnitude at most 2^53 */
    uint64_t listed_zeros; /* nonzeros whose value is zero */
    double value_min;
    double value_max;
    uint64_t distinct_count; /* number of distinct values; SLUICE_MAX_DISTINCT + 1 means more */
    /* the distinct values, ascending; all 0 if there are more than SLUICE_MAX_DISTINCT */
    double distinct_values[SLUICE_MAX_DISTINCT];
};

/* An input that was appended to a store. */
struct sluice_appended {
    uint64_t struct_bytes;
    uint64_t entries;
    char source[512]; /* path as passed to sluice_append */
};

/* Opens the store at `path` and validates its manifest, header and index. Opens all files of the
 * store, so that it can be moved or replaced until it is closed; functions with this store read the
 * opened files.
 * Ownership: the caller closes *ret_store with sluice_store_close.
 * Errors: SLUICE_ERR_FORMAT if `path` is not a store, SLUICE_ERR_UNSUPPORTED, SLUICE_ERR_DAMAGED,
 * SLUICE_ERR_IO, SLUICE_ERR_MEMORY, SLUICE_ERR_USAGE. On error, *ret_store is unchanged.
 * Cost: reads the manifest and the index, not the blocks. */
SLUICE_API enum sluice_status
sluice_store_open(const char *path, struct sluice_store **ret_store, struct sluice_error *err);

/* Closes a store. Accepts NULL. Ownership: frees the store and all text borrowed from it. Cost:
 * constant. */
SLUICE_API void sluice_store_close(struct sluice_store *store);

/* Describes a store. Errors: SLUICE_ERR_USAGE for a wrong struct_bytes. On error, `info` is
 * unchanged. Cost: constant. */
SLUICE_API enum sluice_status sluice_store_get_info(const struct sluice_store *store,
                                                    struct sluice_store_info *info,
                                                    struct sluice_error *err);

/* Describes appended input `number`; inputs are numbered from 0 in the order of appending. Errors:
 * SLUICE_ERR_USAGE if the store has no appended input of this number. On error, `appended` is
 * unchanged. Cost: constant. */
SLUICE_API enum sluice_status sluice_store_get_appended(const struct sluice_store *store,
                                                        uint32_t number,
                                                        struct sluice_appended *appended,
                                                        struct sluice_error *err);

/* Returns the title of a mode, or "" if the mode does not exist or has no title. Ownership: the
 * text is valid until the store is closed. Cost: constant. */
SLUICE_API const char *sluice_store_title(const struct sluice_store *store, uint32_t mode);

/* Returns the number n of named indices of a mode; the named indices are 0 to n - 1. Cost:
 * constant. */
SLUICE_API uint64_t sluice_store_name_count(const struct sluice_store *store, uint32_t mode);

/* Stores the name of `index` in *ret_name (NULL: no name). `index` counts from 0 in the order of
 * the input, even in a relabelled mode. A name is zero-terminated; other bytes are arbitrary.
 * Ownership: the store owns the text, which is valid until the next call for the same store or
 * until the store is closed. Errors: SLUICE_ERR_USAGE for a mode or index that does not exist,
 * SLUICE_ERR_DAMAGED, SLUICE_ERR_IO, SLUICE_ERR_MEMORY. On error, *ret_name is unchanged or NULL.
 * Cost: small for ascending indices; otherwise two reads of a few KiB. */
SLUICE_API enum sluice_status sluice_store_get_name(struct sluice_store *store,
                                                    uint32_t mode,
                                                    uint64_t index,
                                                    const char **ret_name,
                                                    struct sluice_error *err);

/* A layout of a store: one order of the nonzeros on disk. */
struct sluice_layout_info {
    uint64_t struct_bytes;
    enum sluice_layout_kind kind;
    uint32_t mode; /* mode of a sorted or fiber layout */
    enum sluice_codec codec;
    uint32_t stripes; /* number of stripes; 0 if the layout is one file in the store */
    uint64_t file_bytes;
    uint64_t block_count;
};

/* Returns the number of layouts that the store had when it was opened. Cost: constant. */
SLUICE_API uint32_t sluice_store_layout_count(const struct sluice_store *store);

/* Describes layout `number`, from 0.
 * Errors: SLUICE_ERR_USAGE if there is no such layout, SLUICE_ERR_DAMAGED, SLUICE_ERR_IO,
 * SLUICE_ERR_MEMORY. On error, `info` is unchanged.
 * Cost: if the layout has stripes, reads the list of stripes, a small file. */
SLUICE_API enum sluice_status sluice_store_get_layout(const struct sluice_store *store,
                                                      uint32_t number,
                                                      struct sluice_layout_info *info,
                                                      struct sluice_error *err);

/* Copies the path of stripe `stripe` of layout `number` to `path`. Layouts and stripes are numbered
 * from 0. Writes at most `path_bytes` bytes, including the terminating zero. Stores the number of
 * bytes that the whole path needs, including the terminating zero, in *ret_bytes, which may be
 * NULL.
 * Ownership: the caller owns `path`, which may be NULL if `path_bytes` is 0.
 * Errors: SLUICE_ERR_USAGE for a layout or stripe that does not exist, SLUICE_ERR_DAMAGED,
 * SLUICE_ERR_IO, SLUICE_ERR_MEMORY. On error, `path` and *ret_bytes are unchanged.
 * Cost: opens the files of the layout. */
SLUICE_API enum sluice_status sluice_store_get_stripe(const struct sluice_store *store,
                                                      uint32_t number,
                                                      uint32_t stripe,
                                                      char *path,
                                                      uint64_t path_bytes,
                                                      uint64_t *ret_bytes,
                                                      struct sluice_error *err);

struct sluice_layout_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
};

/* Adds a sorted or fiber layout of a mode to the store at `path`. Does nothing if the store has
 * this layout. Open handles do not see the new layout.
 * Errors: SLUICE_ERR_USAGE, SLUICE_ERR_BUDGET, SLUICE_ERR_IO (also while another process changes
 * the layouts), SLUICE_ERR_NOSPACE, SLUICE_ERR_DAMAGED, SLUICE_ERR_MEMORY, SLUICE_ERR_INTERRUPTED.
 * On error, also after a crash, the store is valid without the new layout, and the same call
 * continues the work.
 * Cost: one or more passes over the store, depending on the memory budget, and one pass that writes
 * the layout. */
SLUICE_API enum sluice_status sluice_layout_add(const char *path,
                                                enum sluice_layout_kind kind,
                                                uint32_t mode,
                                                const struct sluice_layout_options *options,
                                                struct sluice_error *err);

/* Removes a sorted or fiber layout, or the files that an interrupted sluice_layout_add left.
 * Errors: SLUICE_ERR_USAGE if the store has neither the layout nor such files, SLUICE_ERR_IO,
 * SLUICE_ERR_MEMORY, and those of sluice_store_open. On error, the store is valid, with or without
 * the layout.
 * Cost: opens the store and removes the files of the layout. */
SLUICE_API enum sluice_status sluice_layout_drop(const char *path,
                                                 enum sluice_layout_kind kind,
                                                 uint32_t mode,
                                                 struct sluice_error *err);

/* Moves a layout out of the store and divides the layout into stripes in 1 to 16 existing folders.
 * Stripes on several drives are read at the same time. `mode` is 0 for SLUICE_LAYOUT_BLCO. The
 * store records the absolute paths of the folders. If stripe files are moved later, list their new
 * folders in the environment variable SLUICE_STRIPES. Open handles keep reading the old files.
 * Stripes belong to the store folder for which they were written; a copy of this folder reads them,
 * but never changes or removes them.
 * Ownership: `folders` has `count` paths, which are copied.
 * Errors: SLUICE_ERR_USAGE for a layout that does not exist or a wrong number of folders,
 * SLUICE_ERR_IO, SLUICE_ERR_NOSPACE, SLUICE_ERR_DAMAGED, SLUICE_ERR_MEMORY, SLUICE_ERR_INTERRUPTED.
 * On error, the layout is unchanged.
 * Cost: reads and writes the layout once. */
SLUICE_API enum sluice_status sluice_layout_stripe(const char *path,
                                                   enum sluice_layout_kind kind,
                                                   uint32_t mode,
                                                   uint32_t count,
                                                   const char *const *folders,
                                                   const struct sluice_layout_options *options,
                                                   struct sluice_error *err);

/* Moves a striped layout back into the store. `mode` is 0 for SLUICE_LAYOUT_BLCO. Open handles keep
 * reading the old files.
 * Errors: those of sluice_layout_stripe. On error, the layout is unchanged.
 * Cost: reads and writes the layout once. */
SLUICE_API enum sluice_status sluice_layout_gather(const char *path,
                                                   enum sluice_layout_kind kind,
                                                   uint32_t mode,
                                                   const struct sluice_layout_options *options,
                                                   struct sluice_error *err);

struct sluice_check_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    uint32_t fast;         /* if not 0, only checksums are verified, and nothing is decoded */
    uint32_t max_findings; /* the check stops after this number of faults; 0 means 64 */
    /* Called for each fault, by one thread at a time; NULL means no callback. */
    void (*found)(void *context, const struct sluice_error *fault);
    /* Called with the name of each file that an interrupted change of layouts left in the store.
     * The file is not a fault. NULL means no callback. */
    void (*leftover)(void *context, const char *name);
};

/* Verifies the store at `path`: checksums, counts and, unless `fast` is set, every nonzero. Stores
 * the number of faults in *ret_findings, which may be NULL.
 * Errors: the status of the first fault, mostly SLUICE_ERR_DAMAGED, SLUICE_ERR_FORMAT or
 * SLUICE_ERR_IO; SLUICE_ERR_USAGE, SLUICE_ERR_MEMORY, SLUICE_ERR_INTERRUPTED. On error,
 * *ret_findings is the number of faults found so far.
 * Cost: one pass over each layout. */
SLUICE_API enum sluice_status sluice_check(const char *path,
                                           const struct sluice_check_options *options,
                                           uint64_t *ret_findings,
                                           struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
