/*
 * Making stores: from files, from arrays, from other stores and from random numbers; and writing
 * them in other formats.
 *
 * All of these functions leave either the complete result or nothing on disk, unless they say
 * otherwise, and stop on request (sluice_run_options.stop). Common errors, which the descriptions
 * do not repeat: SLUICE_ERR_USAGE for options out of range, SLUICE_ERR_BUDGET naming the smallest
 * budget, SLUICE_ERR_IO, SLUICE_ERR_NOSPACE, SLUICE_ERR_MEMORY, SLUICE_ERR_INTERRUPTED, and those
 * of sluice_store_open for a store that is read. Cost, unless stated: one pass over the input, a
 * sort, and one pass that writes the store; data beyond the memory budget goes to a temporary file
 * once.
 */
#ifndef SLUICE_CONVERT_H
#define SLUICE_CONVERT_H

#include "sluice/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What happens to nonzeros with the same indices. */
enum sluice_duplicates {
    SLUICE_DUPLICATES_SUM,
    SLUICE_DUPLICATES_ERROR,
    SLUICE_DUPLICATES_KEEP_FIRST,
    SLUICE_DUPLICATES_KEEP_LAST
};

/* Type of stored values. */
enum sluice_value {
    SLUICE_VALUE_AUTO, /* f32 if every value is exactly a float, else f64 */
    SLUICE_VALUE_F32,  /* rounds */
    SLUICE_VALUE_F64
};

/* What happens to rows of a table with an empty field in a column that is used. */
enum sluice_missing {
    SLUICE_MISSING_ERROR,
    SLUICE_MISSING_SKIP,
    SLUICE_MISSING_NAME /* the empty string is a name like any other */
};

/* What the entries of a new store mean: a shared part. */
struct sluice_entry_options {
    enum sluice_index_base index_base; /* of a builder, SLUICE_BASE_AUTO is zero */
    enum sluice_duplicates duplicates;
    enum sluice_value value;
    uint32_t dims_order;             /* how many of `dims` are set: the order, or 0: none */
    uint64_t dims[SLUICE_MAX_ORDER]; /* mode sizes; without them those of the input */
};

/* How a CSV or TSV file becomes a tensor: a shared part. All members but `columns` may only be set
 * together with it. */
struct sluice_table_options {
    /* A mode for each item, as sluice-convert(1) describes: "hour(when),origin,int(user)". NULL:
     * the input is a tensor. */
    const char *columns;
    const char *value_column;    /* NULL: count rows */
    char delimiter;              /* 0: a tab for .tsv and .tab files, else a comma */
    uint32_t no_header;          /* nonzero: there is no header row; columns are 1, 2, .. */
    enum sluice_missing missing; /* empty fields */
};

struct sluice_convert_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    struct sluice_entry_options entries; /* not with a table, except duplicates and value */
    enum sluice_dialect dialect;         /* not with a table */
    /* Nonzero: discard what an interrupted conversion of the same file left, instead of continuing
     * it. */
    uint32_t restart;
    double commit_seconds; /* of work between commits; 0: 30, if they cost little */
    struct sluice_table_options table;
    /* Names of indices of a tensor: folders with mode-1-TITLE.map, .., or "K=FILE" for mode K from
     * 1. */
    const char *const *labels;
    uint64_t label_count;
    const char *values;    /* file with the values of coordinates in an .npy file; NULL: none */
    const char *transform; /* applied to values in turn: "abs,log1p"; NULL: none */
};

/* What a conversion decided and counted. */
struct sluice_convert_report {
    uint64_t struct_bytes;
    enum sluice_dialect dialect;
    uint32_t order;
    uint64_t dims[SLUICE_MAX_ORDER];
    uint32_t index_base;       /* 0 or 1 */
    uint32_t relabelled_modes; /* bit n: the store numbers mode n by frequency */
    uint64_t entries;          /* rows read; of a slice or permutation, nonzeros of its source */
    uint64_t skipped;          /* rows of a table with empty fields */
    uint64_t duplicates;       /* merged into an earlier entry */
    uint64_t explicit_zeros;   /* dropped */
    uint64_t nnz;              /* stored */
    uint64_t text_bytes;       /* read, after decompression */
    uint64_t store_bytes;      /* of the block file */
    double seconds;
};

/*
 * Converts the tensor or table `input` to the store `output`. The input is text or binary, plain or
 * compressed; "-" is standard input. `output` must not exist unless output.overwrite is set.
 * `report` may be NULL. The store depends on the entries and their order alone, not on threads or
 * memory. A long conversion of a file commits its state now and then; the same call continues after
 * an interruption.
 * Errors: SLUICE_ERR_INPUT with file, line and column. After an error, what the same call continues
 * from stays on disk.
 */
SLUICE_API enum sluice_status sluice_convert(const char *input,
                                             const char *output,
                                             const struct sluice_convert_options *options,
                                             struct sluice_convert_report *report,
                                             struct sluice_error *err);

/* A store that is being made from entries that the caller pushes. */
struct sluice_builder;

struct sluice_builder_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    struct sluice_entry_options entries;
    /* Returns the name of an index of a mode in the set `named_modes`. sluice_builder_finish calls
     * it from one thread, for each mode with index 0, 1, .. until the end of the mode or until it
     * returns NULL. The name is copied. */
    const char *(*name)(void *context, uint32_t mode, uint64_t index);
    uint64_t named_modes;                 /* bit n: mode n */
    const char *titles[SLUICE_MAX_ORDER]; /* of modes, up to 255 bytes, copied; NULL: none */
};

/*
 * Starts a store `output` of `order` modes. The caller ends *ret_builder with sluice_builder_finish
 * or sluice_builder_abandon. Allocates all memory that the builder uses; the caller's arrays count
 * in addition.
 */
SLUICE_API enum sluice_status sluice_builder_create(const char *output,
                                                    uint32_t order,
                                                    const struct sluice_builder_options *options,
                                                    struct sluice_builder **ret_builder,
                                                    struct sluice_error *err);

/*
 * Adds `count` entries: coords[n][i] is the index of entry i in mode n, values[i] its value. Copies
 * the arrays. The store depends on the entries and their order alone, not on how calls divide them.
 * The first call chooses how entries are distributed for sorting: push all entries at once, or
 * random ones first.
 * Errors: SLUICE_ERR_INPUT naming entry and mode for an index out of range or a value that is not
 * finite. After an error the builder can only be ended.
 */
SLUICE_API enum sluice_status sluice_builder_push(struct sluice_builder *builder,
                                                  uint64_t count,
                                                  const uint64_t *const *coords,
                                                  const double *values,
                                                  struct sluice_error *err);

/* Sorts, writes and publishes the store, and destroys the builder in every case. `report` may be
 * NULL. Errors: as sluice_convert. */
SLUICE_API enum sluice_status sluice_builder_finish(struct sluice_builder *builder,
                                                    struct sluice_convert_report *report,
                                                    struct sluice_error *err);

/* Destroys the builder and removes its files. Accepts NULL. */
SLUICE_API void sluice_builder_abandon(struct sluice_builder *builder);

struct sluice_append_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output; /* codec, relabel and overwrite must be 0: they stay */
    enum sluice_dialect dialect;
    enum sluice_index_base index_base; /* SLUICE_BASE_AUTO: detected, or as in the first input */
    enum sluice_duplicates duplicates;
    uint32_t fixed_modes;  /* bit n: an index beyond the size of mode n is an error */
    uint32_t again;        /* nonzero: append an input that the store already contains */
    uint32_t drop_layouts; /* nonzero: do not build further layouts again */
    /* Names of indices, as in sluice_convert_options: one for every index of the mode afterwards.
     * Names that the store has stay. */
    const char *const *labels;
    uint32_t label_count;
    /* Nonzero: `input` is a table with the columns that the store was made from, whatever its name.
     * Files that end in .csv, .tsv or .tab need no flag. */
    uint32_t table;
    const char *values; /* file with the values of coordinates in an .npy file; NULL: none */
};

struct sluice_append_report {
    uint64_t struct_bytes;
    uint32_t order;
    uint32_t layouts_dropped; /* further layouts that were not built again */
    uint64_t dims[SLUICE_MAX_ORDER];
    uint64_t known;      /* nonzero: the store already contained the input and did not change */
    uint64_t entries;    /* of the input */
    uint64_t nnz_before; /* nonzeros stored before */
    uint64_t nnz;        /* nonzeros stored now */
};

/*
 * Adds the nonzeros of the tensor or table `input` to the store at `path`, as if both inputs had
 * been converted one after the other. Modes grow as needed; codec and numbering stay; further
 * layouts are built again if they fit into memory. The store remembers its inputs by their entries
 * and skips one that it already contains. `report` may be NULL. An interruption at any point leaves
 * the old or the new store. Handles that are open read on from the old one.
 * Errors: as sluice_convert. Cost: one pass over the store and the input, a merge, and one pass
 * that writes the new store, for which the disk needs space.
 */
SLUICE_API enum sluice_status sluice_append(const char *path,
                                            const char *input,
                                            const struct sluice_append_options *options,
                                            struct sluice_append_report *report,
                                            struct sluice_error *err);

/* Options of sluice_slice and sluice_permute. */
struct sluice_reshape_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    const char *transform; /* applied to values in turn: "abs,log1p"; NULL: none */
    uint64_t keep_indices; /* nonzero: a slice keeps indices and mode sizes */
};

/* Indices `first` to `last` of a mode, from 0; UINT64_MAX as `last` is the end of the mode. */
struct sluice_range {
    uint32_t mode;
    uint64_t first;
    uint64_t last;
};

/*
 * Makes the store `output` from those nonzeros of the store at `path` whose index is in a range of
 * every mode that has ranges. Remaining indices are numbered anew, ascending, unless
 * options->keep_indices is set. `report` may be NULL.
 * Errors: SLUICE_ERR_USAGE for a mode or index that does not exist, and for more than 256 ranges of
 * a mode; SLUICE_ERR_INPUT naming a value whose transform is not finite.
 */
SLUICE_API enum sluice_status sluice_slice(const char *path,
                                           const char *output,
                                           uint32_t count,
                                           const struct sluice_range *ranges,
                                           const struct sluice_reshape_options *options,
                                           struct sluice_convert_report *report,
                                           struct sluice_error *err);

/*
 * Makes the store `output` from the store at `path` with its modes in another order: mode k of the
 * result is mode modes[k] of the source. `count` is the number of modes. Otherwise as sluice_slice.
 */
SLUICE_API enum sluice_status sluice_permute(const char *path,
                                             const char *output,
                                             uint32_t count,
                                             const uint32_t *modes,
                                             const struct sluice_reshape_options *options,
                                             struct sluice_convert_report *report,
                                             struct sluice_error *err);

enum sluice_distribution {
    SLUICE_DIST_UNIFORM,
    SLUICE_DIST_ZIPF,          /* low indices are frequent */
    SLUICE_DIST_ZIPF_SHUFFLED, /* the same with permuted indices */
    SLUICE_DIST_BEST, /* a full box: the fewest rows that this number of nonzeros touches */
    SLUICE_DIST_WORST /* no index of any mode occurs twice */
};

struct sluice_generate_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    enum sluice_distribution distribution;
    uint32_t rank;        /* > 0: values of a planted model of this rank; 0: integers 1 to 9 */
    double zipf_exponent; /* 0: 1 */
    double noise; /* standard deviation relative to the root mean square of the model's values */
    uint64_t seed;
    uint64_t
        best_ttm; /* with SLUICE_DIST_BEST: best for a TTM in mode best_ttm - 1; 0: for MTTKRP */
};

/*
 * Writes a random tensor of `order` modes of sizes `dims` with `nnz` nonzeros: a store if `output`
 * ends in ".slc", otherwise FROSTT text. The result is a function of options, shape and seed.
 * Errors: SLUICE_ERR_USAGE for a shape that cannot hold nnz nonzeros.
 */
SLUICE_API enum sluice_status sluice_generate(const char *output,
                                              uint32_t order,
                                              const uint64_t *dims,
                                              uint64_t nnz,
                                              const struct sluice_generate_options *options,
                                              struct sluice_error *err);

/* The format that a tensor is written in. */
enum sluice_export_form {
    SLUICE_EXPORT_AUTO,       /* by the ending of the output: .bin, .npz, .mat; otherwise text */
    SLUICE_EXPORT_TNS,        /* FROSTT text */
    SLUICE_EXPORT_SPLATT_BIN, /* SPLATT's .bin */
    SLUICE_EXPORT_NPZ,        /* pydata/sparse's .npz, with ascending rows */
    SLUICE_EXPORT_SCIPY,      /* scipy.sparse's COO in an .npz, for two modes */
    SLUICE_EXPORT_MATLAB      /* .mat of version 5: a struct `tensor` of subs, vals, size */
};

struct sluice_export_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    enum sluice_export_form form;
    enum sluice_index_base index_base; /* of text */
    uint64_t overwrite;                /* nonzero: replace an existing file */
};

/*
 * Writes the store at `path` in another format, as `sluice export` does. FROSTT text has the fewest
 * digits that read back to the same bits, and may go to "-", standard output; other formats need a
 * file. Stores the number of nonzeros in *ret_nnz, which may be NULL.
 * Errors: SLUICE_ERR_UNSUPPORTED if the format cannot hold the tensor. Cost: one pass over the
 * store; for SLUICE_EXPORT_NPZ as many as the memory budget requires.
 */
SLUICE_API enum sluice_status sluice_export(const char *path,
                                            const char *output,
                                            const struct sluice_export_options *options,
                                            uint64_t *ret_nnz,
                                            struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
