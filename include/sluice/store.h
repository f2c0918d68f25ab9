/* Stores: made from text or random numbers, opened, verified and written as text. */
#ifndef SLUICE_STORE_H
#define SLUICE_STORE_H

#include "sluice/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_convert_options {
    uint64_t struct_bytes; /* set by the init function */
    enum sluice_dialect dialect;
    int32_t index_base;  /* -1 found out, 0 or 1 */
    uint32_t dims_order; /* 0: dims from the header or the data */
    uint64_t dims[SLUICE_MAX_ORDER];
    enum sluice_duplicates duplicates;
    enum sluice_codec codec;
    enum sluice_value value; /* SLUICE_VALUE_F32 rounds */
    uint32_t threads;        /* 0: all */
    uint64_t block_bytes;    /* target size of a block; 0: 4 MiB */
    uint64_t memory_bytes;   /* 0: 80 % of memory */
    const char *temp_folder; /* for spilled data; NULL: beside the output */
    uint64_t max_temp_bytes; /* of spilled data; 0: no limit */
    uint32_t overwrite;      /* non-zero: replace an existing store, at the very end */
    enum sluice_relabel relabel;
    /*
     * Of sluice_convert alone: an interrupted conversion of a file goes on when it is asked for
     * again, unless `restart`, from commits after so many seconds of work (0: 30, where that costs
     * little).
     */
    uint32_t restart;
    uint32_t reserved;
    double commit_seconds;
    /* Called now and then from one thread at a time; `total` 0: unknown. NULL: nobody is. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /*
     * Of sluice_convert alone. `columns` makes the input a table (CSV, TSV), each item of it a
     * mode, as sluice-convert(1) says: "hour(when),origin,int(user)"; NULL: the input is a tensor.
     * What is of tables goes with it alone; dialect, index_base and dims do not.
     */
    const char *columns;
    const char *value_column; /* of the table; NULL: rows are counted */
    const char *delimiter;    /* one character, or "tab"; NULL: a comma, a tab for .tsv and .tab */
    uint32_t no_header;       /* non-zero: the columns are called 1, 2, .. */
    enum sluice_missing missing;
    /* Names of indices, of a tensor: folders with mode-1-TITLE.map, .. or "K=FILE" for mode K from
     * 1. */
    const char *const *labels;
    uint32_t label_count;
    /*
     * Of a builder alone, for the modes in the set `named_modes` (bit n: mode n): the name of each
     * index, from 0 to the end of the mode, which is asked for when the store is otherwise
     * complete. It is copied. NULL: that index and those behind it have none. Called by one thread.
     */
    uint32_t named_modes;
    const char *(*name)(void *context, uint32_t mode, uint64_t index);
    const char *titles[SLUICE_MAX_ORDER]; /* of modes, at most 255 bytes; NULL: none */
    const char
        *values; /* of sluice_convert: the values of coordinates in an .npy file; NULL: none */
    const char *transform; /* of values, the same: "abs,log1p", as of slices; NULL: none */
    /*
     * A non-zero value stops sluice_convert, or a builder's push or finish, with
     * SLC_ERR_INTERRUPTED: it may be set by a signal handler or another thread. NULL: nobody does.
     */
    volatile int *stop;
    /*
     * Whose fibers are kept together; of SLUICE_FIBERS_MODE the mode, and pieces of so many bits of
     * its indices (1 to 24; 0: 12).
     */
    enum sluice_fibers fibers;
    uint32_t fiber_mode;
    uint32_t fiber_bits;
    uint32_t reserved3;
};

/* What a conversion decided and counted. */
struct sluice_convert_report {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    enum sluice_dialect dialect;
    uint32_t order;
    uint64_t dims[SLUICE_MAX_ORDER];
    uint32_t index_base;
    uint32_t reserved;
    uint64_t entries;        /* rows read */
    uint64_t duplicates;     /* merged into an earlier entry */
    uint64_t explicit_zeros; /* dropped */
    uint64_t nnz;            /* stored */
    uint64_t text_bytes;     /* read, decompressed */
    uint64_t store_bytes;    /* of the block file */
    double seconds;
    uint32_t relabelled_modes; /* bit n: mode n is numbered by frequency in the store */
    uint32_t reserved2;
    uint64_t skipped; /* rows of a table that lack something */
};

SLC_API void sluice_convert_options_init(struct sluice_convert_options *options, uint64_t bytes);

/*
 * Converts the tensor or table `input` (text or binary, plain or compressed; "-": standard input)
 * to the store `output`. Needs: `output` does not exist, unless options->overwrite. `report` may be
 * NULL. Order: the store depends on the entries and their order alone, not on threads or memory.
 * Errors: SLC_ERR_INPUT with file, line and column for bad text; SLC_ERR_BUDGET naming the smallest
 * budget; SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_INTERRUPTED. Nothing is left on disk after an error,
 * but what the same call goes on with, where a long one had come to a commit.
 */
SLC_API enum slc_status sluice_convert(const char *input,
                                       const char *output,
                                       const struct sluice_convert_options *options,
                                       struct sluice_convert_report *report,
                                       struct slc_error *err);

/* A store that is being made from entries that the caller has. */
struct sluice_builder;

/*
 * Begins a store `output` of `order` modes. Of the options `dialect` and what is of sluice_convert
 * alone are not looked at; index_base -1 stands for 0, and without dims the lengths are those of
 * the data. Owns: sluice_builder_finish or sluice_builder_abandon ends it. Memory: all is taken
 * here; the caller's arrays come beside it. Errors: SLC_ERR_USAGE, SLC_ERR_BUDGET naming the
 * smallest budget, SLC_ERR_IO (the output exists), ..
 */
SLC_API enum slc_status sluice_builder_create(const char *output,
                                              uint32_t order,
                                              const struct sluice_convert_options *options,
                                              struct sluice_builder **ret_builder,
                                              struct slc_error *err);

/*
 * Adds `count` entries; coords[n] are their indices in mode n. Buckets are chosen by the entries of
 * the first call: one call for all, or random ones first, makes them even. Order: the store depends
 * on the entries and their order alone, not on how they are divided into calls, nor on threads or
 * memory; the order of nonzeros with the mode whose fibers are kept together follows from all.
 * Owns: the arrays are the caller's, and copied. Errors: SLC_ERR_INPUT naming entry and mode (an
 * index out of range, a value that is not finite); SLC_ERR_IO, SLC_ERR_NOSPACE. After one the
 * builder can only be ended.
 */
SLC_API enum slc_status sluice_builder_push(struct sluice_builder *builder,
                                            uint64_t count,
                                            const uint64_t *const *coords,
                                            const double *values,
                                            struct slc_error *err);

/*
 * Sorts, writes and publishes the store, and ends the builder whatever happens. `report` may be
 * NULL. Errors: as sluice_convert; nothing is left on disk after one.
 */
SLC_API enum slc_status sluice_builder_finish(struct sluice_builder *builder,
                                              struct sluice_convert_report *report,
                                              struct slc_error *err);
/* Gives up, and removes what is on disk. Takes NULL. */
SLC_API void sluice_builder_abandon(struct sluice_builder *builder);

struct sluice_append_options {
    uint64_t struct_bytes;
    enum sluice_dialect dialect;
    int32_t index_base; /* -1 found out, or as in what the store was made of; 0 or 1 */
    enum sluice_duplicates duplicates;
    uint32_t fixed_modes;  /* bit n: an index beyond the length of mode n is an error */
    uint32_t again;        /* non-zero: append even what the store remembers to have */
    uint32_t drop_layouts; /* non-zero: further layouts are not built again */
    uint32_t threads;      /* 0: all */
    uint32_t reserved;
    uint64_t block_bytes;    /* target size of a block; 0: 4 MiB */
    uint64_t memory_bytes;   /* 0: 80 % of memory */
    const char *temp_folder; /* for spilled data; NULL: beside the store */
    uint64_t max_temp_bytes; /* of spilled data; 0: no limit */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    volatile int *stop; /* non-zero stops the call: SLC_ERR_INTERRUPTED; NULL: nobody does */
    /*
     * Whose fibers are kept together; of SLUICE_FIBERS_MODE the mode, and pieces of so many bits of
     * its indices (1 to 24; 0: 12).
     */
    enum sluice_fibers fibers;
    uint32_t fiber_mode;
    uint32_t fiber_bits;
    uint32_t reserved2;
    /*
     * Names of indices, as of sluice_convert_options: of a mode that has some a line for every
     * index that there is then. Names that the store has stay.
     */
    const char *const *labels;
    uint32_t label_count;
    /* Non-zero: `input` is a table with the columns that the store was made of, whatever its name
     * (.csv, .tsv and .tab are without being told). */
    uint32_t table;
    const char *values; /* the values of coordinates in an .npy file; NULL: none */
};

struct sluice_append_report {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint32_t order;
    uint32_t known; /* non-zero: the store had these entries, and nothing was done */
    uint64_t dims[SLUICE_MAX_ORDER];
    uint64_t entries;         /* read, or had before */
    uint64_t nnz_before;      /* stored before .. */
    uint64_t nnz;             /* .. and now */
    uint32_t layouts_dropped; /* further ones that were not built again */
    uint32_t reserved;
};

SLC_API void sluice_append_options_init(struct sluice_append_options *options, uint64_t bytes);

/*
 * Adds the nonzeros of the tensor or table `input`, as of sluice_convert, to the store at `path`,
 * as if both texts had been converted one behind the other; modes get as long as is needed, codec
 * and numbering stay, further layouts are built again as far as they fit into memory. What was
 * appended is remembered by its entries, and is not appended again. `report` may be NULL. Whatever
 * ends it, the store is the old or the new one. A store that is open stays as it was. Errors: as
 * sluice_convert, and those of the store.
 */
SLC_API enum slc_status sluice_append(const char *path,
                                      const char *input,
                                      const struct sluice_append_options *options,
                                      struct sluice_append_report *report,
                                      struct slc_error *err);

/* Indices of a mode, from 0; `last` is among them, UINT64_MAX stands for the end of the mode. */
struct sluice_range {
    uint32_t mode;
    uint32_t reserved;
    uint64_t first;
    uint64_t last;
};

struct sluice_reshape_options {
    uint64_t struct_bytes;
    enum sluice_codec codec; /* 0: that of the store */
    enum sluice_relabel relabel;
    uint32_t relabel_given; /* zero: `relabel` is that of the store, whatever is here */
    uint32_t keep_indices;  /* non-zero: of a slice, indices and lengths stay */
    uint32_t overwrite;     /* non-zero: replace an existing store, at the very end */
    uint32_t threads;       /* 0: all */
    const char *transform;  /* of values: "abs,log1p", steps of sluice-convert(1); NULL: none */
    uint64_t block_bytes;
    uint64_t memory_bytes;   /* 0: 80 % of memory */
    const char *temp_folder; /* for spilled data; NULL: beside the output */
    uint64_t max_temp_bytes; /* of spilled data; 0: no limit */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    volatile int *stop; /* non-zero stops the call: SLC_ERR_INTERRUPTED; NULL: nobody does */
    /*
     * Whose fibers are kept together; of SLUICE_FIBERS_MODE the mode, and pieces of so many bits of
     * its indices (1 to 24; 0: 12).
     */
    enum sluice_fibers fibers;
    uint32_t fiber_mode;
    uint32_t fiber_bits;
    uint32_t reserved;
};

SLC_API void sluice_reshape_options_init(struct sluice_reshape_options *options, uint64_t bytes);

/*
 * Makes the store `output` of those nonzeros of the store at `path` that are in `count` ranges: in
 * one of those of each mode that has any. What is left is numbered anew, ascending, unless
 * options->keep_indices. `report` may be NULL; its `entries` are nonzeros of the store at `path`.
 * Errors: SLC_ERR_USAGE for a mode or an index that does not exist, and more than 256 ranges of a
 * mode; SLC_ERR_INPUT naming a value whose transform is not finite; as sluice_convert.
 */
SLC_API enum slc_status sluice_slice(const char *path,
                                     const char *output,
                                     uint32_t count,
                                     const struct sluice_range *ranges,
                                     const struct sluice_reshape_options *options,
                                     struct sluice_convert_report *report,
                                     struct slc_error *err);

/*
 * Makes the store `output` of the store at `path` with its modes in another order: mode k is mode
 * modes[k] of it. `count` is the number of modes. Otherwise as sluice_slice.
 */
SLC_API enum slc_status sluice_permute(const char *path,
                                       const char *output,
                                       uint32_t count,
                                       const uint32_t *modes,
                                       const struct sluice_reshape_options *options,
                                       struct sluice_convert_report *report,
                                       struct slc_error *err);

struct sluice_generate_options {
    uint64_t struct_bytes;
    enum sluice_distribution distribution;
    enum sluice_codec codec;
    double zipf_exponent;
    uint32_t rank; /* > 0: values of a planted low-rank model; 0: integers 1 to 9 */
    uint32_t threads;
    double noise; /* standard deviation relative to the root mean square of the model's values */
    uint64_t seed;
    uint64_t block_bytes;
    uint64_t memory_bytes;
    uint32_t overwrite;
    enum sluice_relabel relabel; /* of a store */
    /* Called now and then from one thread at a time; NULL: nobody is. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    volatile int *stop;      /* non-zero stops the call: SLC_ERR_INTERRUPTED; NULL: nobody does */
    const char *temp_folder; /* for spilled data of a store; NULL: beside the output */
    uint64_t max_temp_bytes; /* of that; 0: no limit */
    /*
     * Whose fibers are kept together; of SLUICE_FIBERS_MODE the mode, and pieces of so many bits of
     * its indices (1 to 24; 0: 12).
     */
    enum sluice_fibers fibers;
    uint32_t fiber_mode;
    uint32_t fiber_bits;
    uint32_t reserved;
    uint32_t
        best_ttm; /* of SLUICE_DIST_BEST: 0: for MTTKRPs; else for a TTM in mode best_ttm - 1 */
    uint32_t reserved2;
};

SLC_API void sluice_generate_options_init(struct sluice_generate_options *options, uint64_t bytes);

/*
 * Writes a random tensor of `order` modes with `nnz` entries: a store when `output` ends in ".slc",
 * text otherwise. Order: a function of options, shape and seed alone.
 * Errors: SLC_ERR_USAGE for shapes that cannot hold nnz entries, those of writing,
 * SLC_ERR_INTERRUPTED; nothing is left on disk after one.
 */
SLC_API enum slc_status sluice_generate(const char *output,
                                        uint32_t order,
                                        const uint64_t *dims,
                                        uint64_t nnz,
                                        const struct sluice_generate_options *options,
                                        struct slc_error *err);

struct sluice_store;

struct sluice_store_info {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint32_t order;
    enum sluice_precision value_type; /* SLUICE_F32 when every value is exactly a float */
    uint64_t dims[SLUICE_MAX_ORDER];
    uint64_t nnz;
    double norm; /* 2-norm of all values */
    uint64_t block_count;
    uint64_t store_bytes; /* of the block file */
    uint64_t content_sum; /* identifies the nonzeros as the store numbers them, in any order */
    enum sluice_codec codec;
    uint32_t relabelled_modes; /* bit n: the store numbers the indices of mode n its own way */
    uint32_t named_modes;      /* bit n: indices of mode n have names */
    uint32_t fiber_bits;       /* fibers are kept together in pieces of 2^fiber_bits, of .. */
    uint32_t fiber_mode;       /* .. this mode; fiber_bits 0: of none */
    uint32_t key_bits;         /* of a coordinate in the order of nonzeros */
    uint64_t tile_count;
    uint64_t max_block_bytes;
    uint64_t total_bytes; /* of all layouts, permutations and names */
    /* What it was made of, entries that were appended included. */
    uint64_t entries;
    uint64_t duplicates;     /* merged into an earlier entry */
    uint64_t explicit_zeros; /* dropped */
    uint32_t index_base;     /* of the input */
    uint32_t appended;       /* later inputs that it remembers: sluice_store_appended */
    char source[512];        /* path as it was given */
    char dialect[32];
    char duplicate_policy[16];
    char transforms[128]; /* of values, in turn; "": none */
    char writer[64];      /* program and version */
};

/* An input that was appended to a store. */
struct sluice_appended {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint64_t entries;
    char source[512];
};

/*
 * Opens a finished store and validates manifest, header and index.
 * Owns: the caller closes *ret_store with sluice_store_close, which takes NULL.
 * Errors: SLC_ERR_FORMAT (not a store), SLC_ERR_UNSUPPORTED, SLC_ERR_DAMAGED, SLC_ERR_IO.
 */
SLC_API enum slc_status
sluice_store_open(const char *path, struct sluice_store **ret_store, struct slc_error *err);
SLC_API void sluice_store_close(struct sluice_store *store);

SLC_API enum slc_status sluice_store_info(const struct sluice_store *store,
                                          struct sluice_store_info *info,
                                          struct slc_error *err);

/* One of those, from 0, the oldest first. Errors: SLC_ERR_USAGE. */
SLC_API enum slc_status sluice_store_appended(const struct sluice_store *store,
                                              uint32_t number,
                                              struct sluice_appended *appended,
                                              struct slc_error *err);

/* What a mode is called, borrowed from the store: "" where nothing is known, or there is no such
 * mode. */
SLC_API const char *sluice_store_title(const struct sluice_store *store, uint32_t mode);
/* So many of its indices, from 0 on, have names; 0: none have. */
SLC_API uint64_t sluice_store_names(const struct sluice_store *store, uint32_t mode);
/*
 * The name of an index as the input numbers it: any bytes but zeros, a zero behind them. NULL where
 * it has none. Owns: the store's, until it is asked for another one or closed. Cost: none beside
 * that of an index before it that is near; else two reads of some KiB. Errors: SLC_ERR_USAGE for a
 * mode or index that does not exist, SLC_ERR_DAMAGED, SLC_ERR_IO, SLC_ERR_MEMORY.
 */
SLC_API enum slc_status sluice_store_name(struct sluice_store *store,
                                          uint32_t mode,
                                          uint64_t index,
                                          const char **ret_name,
                                          struct slc_error *err);

/* One order of the nonzeros on disk. */
struct sluice_layout_info {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    enum sluice_layout kind;
    uint32_t mode; /* of a sorted or fiber layout */
    enum sluice_codec codec;
    uint32_t reserved;
    uint64_t file_bytes;
    uint64_t block_count;
    uint32_t stripes; /* that its file is cut into, in other folders; 0: it is in the store */
    uint32_t reserved2;
};

/* Layouts that the store had when it was opened, and one of them, from 0. */
SLC_API uint32_t sluice_store_layouts(const struct sluice_store *store);
SLC_API enum slc_status sluice_store_layout(const struct sluice_store *store,
                                            uint32_t number,
                                            struct sluice_layout_info *info,
                                            struct slc_error *err);

/*
 * Where a stripe of a layout is, from 0: `path` gets the path of its file, or as much as there is
 * room for in `path_bytes`, always terminated; *ret_bytes, which may be NULL, what it takes with
 * its end. Errors: SLC_ERR_USAGE for a layout or stripe that it has not; those of files.
 */
SLC_API enum slc_status sluice_store_stripe(const struct sluice_store *store,
                                            uint32_t number,
                                            uint32_t stripe,
                                            char *path,
                                            uint64_t path_bytes,
                                            uint64_t *ret_bytes,
                                            struct slc_error *err);

struct sluice_layout_options {
    uint64_t struct_bytes;
    uint64_t memory_bytes; /* 0: 80 % of memory */
    uint32_t threads;      /* 0: all */
    uint32_t reserved;
    volatile int *stop; /* non-zero stops the call; it goes on when it is made again. NULL: none */
    /* Called now and then from one thread at a time; NULL: nobody is. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

SLC_API void sluice_layout_options_init(struct sluice_layout_options *options, uint64_t bytes);

/*
 * Adds the layout of that kind (sorted or fiber) and mode to the store at `path`, unless it is
 * there. Whatever ends it, the store is valid, and a build that was interrupted goes on when it is
 * asked for again. A store that is open does not know of it. Errors: SLC_ERR_USAGE, SLC_ERR_BUDGET,
 * SLC_ERR_IO (also where another run changes the layouts), SLC_ERR_NOSPACE, SLC_ERR_DAMAGED,
 * SLC_ERR_INTERRUPTED.
 */
SLC_API enum slc_status sluice_layout_add(const char *path,
                                          enum sluice_layout kind,
                                          uint32_t mode,
                                          const struct sluice_layout_options *options,
                                          struct slc_error *err);

/* Drops it, or what an interrupted build of it left. Errors: SLC_ERR_USAGE where there is neither.
 */
SLC_API enum slc_status
sluice_layout_drop(const char *path, enum sluice_layout kind, uint32_t mode, struct slc_error *err);

/*
 * Moves a layout of any kind (`mode` of SLUICE_LAYOUT_BLCO is 0) out of the store, in stripes to
 * `count` folders, which exist, from 1 to 16, on drives that are then read at once; or back. It may
 * be there already. Stripes are found where they are as long as the store names their folders, and
 * in those that the environment variable SLUICE_STRIPES names. Whatever ends it, the store is
 * whole. A store that is open reads on from where they were. Errors: SLC_ERR_USAGE for a layout
 * that there is not or a wrong number of folders; SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_INTERRUPTED;
 * the layout is then where it was.
 */
SLC_API enum slc_status sluice_layout_stripe(const char *path,
                                             enum sluice_layout kind,
                                             uint32_t mode,
                                             uint32_t count,
                                             const char *const *folders,
                                             const struct sluice_layout_options *options,
                                             struct slc_error *err);
SLC_API enum slc_status sluice_layout_gather(const char *path,
                                             enum sluice_layout kind,
                                             uint32_t mode,
                                             const struct sluice_layout_options *options,
                                             struct slc_error *err);

struct sluice_check_options {
    uint64_t struct_bytes;
    uint32_t fast;    /* non-zero: checksums only, nothing is decoded */
    uint32_t threads; /* 0: all */
    uint64_t memory_bytes;
    uint32_t max_findings; /* stop after so many; 0: 64 */
    uint32_t reserved;
    /* Called for each fault found, from one thread at a time; NULL to count only. */
    void (*found)(void *context, const struct slc_error *fault);
    void *context;
    volatile int *stop; /* non-zero stops the call: SLC_ERR_INTERRUPTED; NULL: nobody does */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    /* The same for files that interrupted changes of layouts have left, which are no faults. */
    void (*leftover)(void *context, const char *name);
};

SLC_API void sluice_check_options_init(struct sluice_check_options *options, uint64_t bytes);

/*
 * Verifies a store. *ret_findings (may be NULL): faults found.
 * Errors: the status of the first fault; SLC_OK when there is none; SLC_ERR_INTERRUPTED.
 */
SLC_API enum slc_status sluice_check(const char *path,
                                     const struct sluice_check_options *options,
                                     uint64_t *ret_findings,
                                     struct slc_error *err);

struct sluice_export_options {
    uint64_t struct_bytes;
    uint32_t index_base; /* of the text, 0 or 1 */
    uint32_t threads;
    uint64_t memory_bytes;
    uint32_t overwrite;
    enum sluice_export_form form;
    volatile int *stop; /* non-zero stops the call: SLC_ERR_INTERRUPTED; NULL: nobody does */
    /* Called now and then from one thread at a time; NULL: nobody is. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
};

SLC_API void sluice_export_options_init(struct sluice_export_options *options, uint64_t bytes);

/*
 * Writes a store in a form that others read, as `sluice export` does. FROSTT text has values with
 * the fewest digits that read back to the same bits, and may go to "-", standard output; other
 * forms are written in many places at once, and `output` is a file. It is whole or not there.
 * *ret_lines (may be NULL): nonzeros written. Errors: SLC_ERR_UNSUPPORTED where the form cannot
 * hold the tensor; SLC_ERR_USAGE, SLC_ERR_BUDGET, SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_INTERRUPTED,
 * those of the store.
 */
SLC_API enum slc_status sluice_export(const char *path,
                                      const char *output,
                                      const struct sluice_export_options *options,
                                      uint64_t *ret_lines,
                                      struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
