/*
 * Stores: opening them, reading what they record, verifying them, and managing their layouts.
 */
#ifndef SLUICE_STORE_H
#define SLUICE_STORE_H

#include "sluice/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An open store, for use by one thread at a time. */
struct sluice_store;

struct sluice_store_info {
    uint64_t struct_bytes;
    uint32_t order;
    enum sluice_precision value_type; /* SLUICE_F32 if every value is exactly a float */
    uint64_t dims[SLUICE_MAX_ORDER];  /* mode sizes */
    uint64_t nnz;
    double norm;          /* 2-norm of all values */
    uint64_t store_bytes; /* of the block file of the blco layout */
    uint64_t total_bytes; /* of all layouts, permutations and names */
    uint64_t block_count;
    uint64_t tile_count;
    uint64_t max_block_bytes;
    uint64_t content_sum; /* identifies the nonzeros, as the store numbers them, in any order */
    enum sluice_codec codec;
    uint32_t relabelled_modes; /* bit n: the store numbers mode n by frequency */
    uint32_t named_modes;      /* bit n: indices of mode n have names */
    uint32_t fiber_bits;       /* fibers are kept together in pieces of 2^fiber_bits indices .. */
    uint32_t fiber_mode;       /* .. of this mode; fiber_bits 0: of no mode */
    uint32_t key_bits;         /* of a coordinate in the order of nonzeros */
    /* What the store was made from, appended inputs included. */
    uint64_t entries;
    uint64_t duplicates;     /* merged into an earlier entry */
    uint64_t explicit_zeros; /* dropped */
    uint32_t index_base;     /* of the input */
    uint32_t appended;       /* number of inputs for sluice_store_get_appended */
    char source[512];        /* path as it was given */
    char dialect[32];
    char duplicate_policy[16];
    char transforms[128]; /* of values, in turn; "": none */
    char writer[64];      /* program and version */
};

/* An input that was appended to a store. */
struct sluice_appended {
    uint64_t struct_bytes;
    uint64_t entries;
    char source[512]; /* path as it was given */
};

/*
 * Opens the store at `path` and validates its manifest, header and index. The caller closes
 * *ret_store with sluice_store_close. Cost: reads the index, not the blocks.
 * Errors: SLUICE_ERR_FORMAT (not a store), SLUICE_ERR_UNSUPPORTED, SLUICE_ERR_DAMAGED,
 * SLUICE_ERR_IO, SLUICE_ERR_MEMORY.
 */
SLUICE_API enum sluice_status
sluice_store_open(const char *path, struct sluice_store **ret_store, struct sluice_error *err);

/* Closes a store. Accepts NULL. */
SLUICE_API void sluice_store_close(struct sluice_store *store);

/* Fills in `info`. Errors: SLUICE_ERR_USAGE for a wrong struct_bytes. */
SLUICE_API enum sluice_status sluice_store_get_info(const struct sluice_store *store,
                                                    struct sluice_store_info *info,
                                                    struct sluice_error *err);

/* Describes appended input `number`, from 0, the oldest first. Errors: SLUICE_ERR_USAGE. */
SLUICE_API enum sluice_status sluice_store_get_appended(const struct sluice_store *store,
                                                        uint32_t number,
                                                        struct sluice_appended *appended,
                                                        struct sluice_error *err);

/* Returns the title of a mode, borrowed from the store; "" if there is none or no such mode. */
SLUICE_API const char *sluice_store_title(const struct sluice_store *store, uint32_t mode);

/* Returns how many indices of a mode have names: the first ones; 0: none. */
SLUICE_API uint64_t sluice_store_name_count(const struct sluice_store *store, uint32_t mode);

/*
 * Stores the name of an index in *ret_name: any bytes but zeros, zero-terminated; NULL if the index
 * has no name. The store owns the text until the next call for the same store, or its end. Indices
 * are those of the input. Cost: low in ascending order; otherwise two reads of some KiB.
 * Errors: SLUICE_ERR_USAGE for a mode or index that does not exist, SLUICE_ERR_DAMAGED,
 * SLUICE_ERR_IO, SLUICE_ERR_MEMORY.
 */
SLUICE_API enum sluice_status sluice_store_get_name(struct sluice_store *store,
                                                    uint32_t mode,
                                                    uint64_t index,
                                                    const char **ret_name,
                                                    struct sluice_error *err);

/* One order of the nonzeros on disk. */
struct sluice_layout_info {
    uint64_t struct_bytes;
    enum sluice_layout_kind kind;
    uint32_t mode; /* of a sorted or fiber layout */
    enum sluice_codec codec;
    uint32_t stripes; /* number of files in other folders that hold it; 0: it is in the store */
    uint64_t file_bytes;
    uint64_t block_count;
};

/* Returns the number of layouts that the store had when it was opened. */
SLUICE_API uint32_t sluice_store_layout_count(const struct sluice_store *store);

/* Describes layout `number`, from 0. Errors: SLUICE_ERR_USAGE, SLUICE_ERR_IO. */
SLUICE_API enum sluice_status sluice_store_get_layout(const struct sluice_store *store,
                                                      uint32_t number,
                                                      struct sluice_layout_info *info,
                                                      struct sluice_error *err);

/*
 * Copies the path of a stripe of layout `number` into `path`, both from 0. Writes at most
 * `path_bytes` bytes and terminates the text. Stores the bytes that the whole path needs, with its
 * end, in *ret_bytes, which may be NULL.
 * Errors: SLUICE_ERR_USAGE for a layout or stripe that does not exist; SLUICE_ERR_IO.
 */
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

/*
 * Adds a sorted or fiber layout of a mode to the store at `path`, unless the store has it. An
 * interruption at any point leaves a valid store, and the same call then continues. Open handles do
 * not see the new layout. Cost: one pass over the store or more, as the memory budget requires, and
 * one that writes the layout.
 * Errors: SLUICE_ERR_USAGE, SLUICE_ERR_BUDGET, SLUICE_ERR_IO (also while another process changes
 * the layouts), SLUICE_ERR_NOSPACE, SLUICE_ERR_DAMAGED, SLUICE_ERR_INTERRUPTED.
 */
SLUICE_API enum sluice_status sluice_layout_add(const char *path,
                                                enum sluice_layout_kind kind,
                                                uint32_t mode,
                                                const struct sluice_layout_options *options,
                                                struct sluice_error *err);

/* Removes a sorted or fiber layout, or what an interrupted build of it left. Errors:
 * SLUICE_ERR_USAGE if there is neither; SLUICE_ERR_IO. */
SLUICE_API enum sluice_status sluice_layout_drop(const char *path,
                                                 enum sluice_layout_kind kind,
                                                 uint32_t mode,
                                                 struct sluice_error *err);

/*
 * Moves a layout out of the store into stripes in `count` existing folders, 1 to 16, on drives that
 * are then read at the same time. The mode of SLUICE_LAYOUT_BLCO is 0. The store records the
 * folders; stripes that were moved later are found in the folders that the environment variable
 * SLUICE_STRIPES lists. Open handles keep reading from the old files. Cost: reads and writes the
 * layout once.
 * Errors: SLUICE_ERR_USAGE for a layout that does not exist or a wrong number of folders;
 * SLUICE_ERR_IO, SLUICE_ERR_NOSPACE, SLUICE_ERR_INTERRUPTED. The layout is then where it was.
 */
SLUICE_API enum sluice_status sluice_layout_stripe(const char *path,
                                                   enum sluice_layout_kind kind,
                                                   uint32_t mode,
                                                   uint32_t count,
                                                   const char *const *folders,
                                                   const struct sluice_layout_options *options,
                                                   struct sluice_error *err);

/* Moves a striped layout back into the store. Otherwise as sluice_layout_stripe. */
SLUICE_API enum sluice_status sluice_layout_gather(const char *path,
                                                   enum sluice_layout_kind kind,
                                                   uint32_t mode,
                                                   const struct sluice_layout_options *options,
                                                   struct sluice_error *err);

struct sluice_check_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    uint32_t fast;         /* nonzero: checksums only, nothing is decoded */
    uint32_t max_findings; /* stop after this number of faults; 0: 64 */
    /* Called for each fault, from one thread at a time; NULL: only count. */
    void (*found)(void *context, const struct sluice_error *fault);
    /* Called with the name of each file that an interrupted change of layouts left, which is not a
     * fault; NULL: no callback. */
    void (*leftover)(void *context, const char *name);
};

/*
 * Verifies the store at `path`: checksums, counts and, unless options->fast is set, every decoded
 * nonzero. Stores the number of faults in *ret_findings, which may be NULL.
 * Errors: the status of the first fault; SLUICE_ERR_INTERRUPTED. Cost: one pass over each layout.
 */
SLUICE_API enum sluice_status sluice_check(const char *path,
                                           const struct sluice_check_options *options,
                                           uint64_t *ret_findings,
                                           struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
