/*
 * Making stores from files, arrays, other stores and random numbers; writing stores in other
 * formats.
 *
 * Common errors, to which function comments refer: SLUICE_ERR_USAGE for options out of range,
 * SLUICE_ERR_UNSUPPORTED for options of a newer version, SLUICE_ERR_BUDGET stating the smallest
 * sufficient budget, SLUICE_ERR_IO, SLUICE_ERR_NOSPACE, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM,
 * SLUICE_ERR_INTERRUPTED, and those of sluice_store_open for a store that is read.
 *
 * Unless a comment states otherwise, a function leaves either the complete result or nothing on
 * disk. Data that exceeds the memory budget is written to a temporary file once.
 */
#ifndef SLUICE_CONVERT_H
#define SLUICE_CONVERT_H

#include "sluice/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How nonzeros with the same indices are combined. */
enum sluice_duplicates {
    SLUICE_DUPLICATES_SUM,
    SLUICE_DUPLICATES_ERROR,
    SLUICE_DUPLICATES_KEEP_FIRST,
    SLUICE_DUPLICATES_KEEP_LAST
};

/* Type of stored values. */
enum sluice_value {
    SLUICE_VALUE_AUTO, /* f32 if it represents every value exactly, otherwise f64 */
    SLUICE_VALUE_F32,  /* values are rounded */
    SLUICE_VALUE_F64
};

/* How table rows with an empty field in a used column are handled. */
enum sluice_missing {
    SLUICE_MISSING_ERROR,
    SLUICE_MISSING_SKIP,
    SLUICE_MISSING_NAME /* the empty string is a name */
};

/* How entries become nonzeros. Options have this struct as the member `entries`. */
struct sluice_entry_options {
    enum sluice_index_base index_base; /* for a builder, SLUICE_BASE_AUTO is zero */
    enum sluice_duplicates duplicates;
    enum sluice_value value;
    /* number of sizes in `dims`: the order; 0: `dims` is not set */
    uint32_t dims_order;
    uint64_t dims[SLUICE_MAX_ORDER]; /* mode sizes; if not set, the mode sizes of the input */
};

/* How a CSV or TSV file becomes a tensor. Options have this struct as the member `table`. The other
 * members apply only if `columns` is set. */
struct sluice_table_options {
    /* One item per mode, in the syntax of sluice-convert(1): "hour(when),origin,int(user)". NULL:
     * the input is a tensor, not a table. */
    const char *columns;
    const char *value_column; /* NULL: count rows */
    char delimiter;           /* 0: a tab for .tsv and .tab files, else a comma */
    /* not 0: there is no header row, and the columns are called 1, 2, .. */
    uint32_t no_header;
    enum sluice_missing missing; /* empty fields */
};

struct sluice_convert_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    struct sluice_entry_options entries; /* for a table, only `duplicates` and `value` apply */
    enum sluice_dialect dialect;         /* applies to tensors only */
    /* Not 0: discard the state of an interrupted conversion of the same file instead of
     * continuing it. */
    uint32_t restart;
    double commit_seconds; /* seconds of work between commits; 0 means 30, or more if commits are
                              slow */
    struct sluice_table_options table;
    /* Names of indices of a tensor: folders with mode-1-TITLE.map, .., or "K=FILE" for mode K,
     * counted from 1. */
    const char *const *labels;
    uint64_t label_count;
    const char *values;    /* file with the values for coordinates in a .npy file; NULL: none */
    const char *transform; /* steps applied to values in order: "abs,log1p"; NULL: none */
};

/* The result of a conversion. */
struct sluice_convert_report {
    uint64_t struct_bytes;
    enum sluice_dialect dialect;
    uint32_t order;
    uint64_t dims[SLUICE_MAX_ORDER];
    uint32_t index_base;       /* 0 or 1 */
    uint32_t relabelled_modes; /* bit n: the store numbers mode n by frequency */
    /* rows read; for a slice or permutation, nonzeros of the source store */
    uint64_t entries;
    uint64_t skipped;        /* rows of a table with empty fields */
    uint64_t duplicates;     /* entries merged into an earlier entry */
    uint64_t explicit_zeros; /* entries of value zero, which are not stored */
    uint64_t nnz;            /* nonzeros stored */
    uint64_t text_bytes;     /* bytes of text read, after decompression */
    uint64_t store_bytes;    /* size of the block file */
    double seconds;
};

/*
 * Converts the tensor or table `input` to the store `output`. The input is text or binary, plain or
 * compressed; "-" is standard input. `output` must not exist unless output.overwrite is set.
 * `report` may be NULL.
 * Order: the store depends only on the entries and their order, not on threads or memory.
 * Errors: the common errors; SLUICE_ERR_INPUT with file, line and column. On error, `report` is
 * unchanged, `output` does not exist or is the old store, and the saved state of a long conversion
 * of a file stays on disk: the same call continues from it.
 * Cost: one pass over the input, a sort, and one pass that writes the store.
 */
SLUICE_API enum sluice_status sluice_convert(const char *input,
                                             const char *output,
                                             const struct sluice_convert_options *options,
                                             struct sluice_convert_report *report,
                                             struct sluice_error *err);

/* An unfinished store to which the caller adds entries. */
struct sluice_builder;

struct sluice_builder_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    struct sluice_entry_options entries;
    /* Returns the name of `index` of `mode`. For each mode in `named_modes`, sluice_builder_finish
     * calls this function from one thread with the indices 0, 1, .., until the mode ends or the
     * function returns NULL. The name is copied. */
    const char *(*name)(void *context, uint32_t mode, uint64_t index);
    uint64_t named_modes;                 /* bit n: indices of mode n have names */
    const char *titles[SLUICE_MAX_ORDER]; /* names of modes, up to 255 bytes, copied; NULL: none */
};

/*
 * Starts a store `output` with `order` modes. The caller then pushes the entries.
 * Ownership: the caller ends *ret_builder with sluice_builder_finish or sluice_builder_abandon.
 * The stop flag, callbacks and their context must live as long as the builder.
 * Errors: the common errors. On error, *ret_builder is unchanged and nothing is left on disk.
 * Cost: allocates all memory that the builder uses; the caller's arrays also count against
 * run.memory_bytes.
 */
SLUICE_API enum sluice_status sluice_builder_create(const char *output,
                                                    uint32_t order,
                                                    const struct sluice_builder_options *options,
                                                    struct sluice_builder **ret_builder,
                                                    struct sluice_error *err);

/*
 * Adds `count` entries to a builder. The entries of the first call determine how all entries are
 * divided for sorting: push all entries at once, or start with a random sample.
 * Shapes: coords[n] has `count` indices of mode n, one for each of the `order` modes; `values` has
 * `count` numbers.
 * Ownership: the arrays are the caller's and are copied.
 * Order: the store depends only on the entries and their order, not on their division among calls.
 * Errors: the common errors; SLUICE_ERR_INPUT naming entry and mode for an index out of range or a
 * value that is not finite. On error, the builder accepts no more entries and must be ended.
 * Cost: proportional to `count`; may write to a temporary file.
 */
SLUICE_API enum sluice_status sluice_builder_push(struct sluice_builder *builder,
                                                  uint64_t count,
                                                  const uint64_t *const *coords,
                                                  const double *values,
                                                  struct sluice_error *err);

/*
 * Sorts the entries, writes and publishes the store, and destroys the builder. `report` may be
 * NULL.
 * Ownership: destroys the builder in every case.
 * Errors: the common errors; SLUICE_ERR_INPUT if there are neither entries nor mode sizes. On
 * error, `report` is unchanged, and `output` does not exist or is the old store.
 * Cost: a sort, and one pass that writes the store.
 */
SLUICE_API enum sluice_status sluice_builder_finish(struct sluice_builder *builder,
                                                    struct sluice_convert_report *report,
                                                    struct sluice_error *err);

/* Destroys a builder and removes its files. Accepts NULL. Ownership: frees the builder. Cost:
 * removes the temporary files. */
SLUICE_API void sluice_builder_abandon(struct sluice_builder *builder);

struct sluice_append_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output; /* codec, relabel and overwrite must be 0 */
    enum sluice_dialect dialect;
    enum sluice_index_base index_base; /* SLUICE_BASE_AUTO: detected, or as in the first input */
    enum sluice_duplicates duplicates;
    uint32_t fixed_modes;  /* bit n: an index beyond the size of mode n is an error */
    uint32_t again;        /* not 0: append the input even if the store already contains it */
    uint32_t drop_layouts; /* not 0: drop layouts other than blco instead of rebuilding them */
    /* Names of indices, as in sluice_convert_options: one name for every index of the grown mode.
     * Names that the store already has do not change. */
    const char *const *labels;
    uint32_t label_count;
    /* Not 0: `input` is a table with the columns that the store was made from. Files that end in
     * .csv, .tsv or .tab need no flag. */
    uint32_t table;
    const char *values; /* file with the values for coordinates in a .npy file; NULL: none */
};

struct sluice_append_report {
    uint64_t struct_bytes;
    uint32_t order;
    uint32_t layouts_dropped; /* layouts other than blco that were not rebuilt */
    uint64_t dims[SLUICE_MAX_ORDER];
    uint64_t known;      /* not 0: the store already contained the input and did not change */
    uint64_t entries;    /* of the input */
    uint64_t nnz_before; /* nonzeros of the old store */
    uint64_t nnz;        /* nonzeros of the new store */
};

/*
 * Adds the nonzeros of the tensor or table `input` to the store at `path`. The result equals a
 * store converted from both inputs, one after the other. Modes grow as needed; codec and numbering
 * stay the same; other layouts are rebuilt if they fit into memory. The store records checksums of
 * its inputs and skips an input that it already contains, unless options->again is set. `report`
 * may be NULL. Open handles keep reading the old store.
 * Errors: those of sluice_convert; SLUICE_ERR_INPUT for an index beyond a fixed mode. On error,
 * also after a crash, `report` is unchanged and the store is either the old or the new one.
 * Cost: one pass over the store and one over the input, a merge, and one pass that writes the new
 * store; the disk needs space for both stores.
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
    const char *transform; /* steps applied to values in order: "abs,log1p"; NULL: none */
    uint64_t keep_indices; /* not 0: a slice keeps indices and mode sizes */
};

/* Indices `first` to `last` of a mode, from 0; `last` may be UINT64_MAX for the end of the mode. */
struct sluice_range {
    uint32_t mode;
    uint64_t first;
    uint64_t last;
};

/*
 * Makes the store `output` from the nonzeros of the store at `path` that lie in the given ranges. A
 * nonzero is selected if, in every mode that has ranges, the nonzero's index is in one of the
 * mode's ranges. Remaining indices are renumbered in ascending order, unless options->keep_indices
 * is set. `report` may be NULL.
 * Shapes: `ranges` has `count` ranges, in any order.
 * Ownership: `ranges` is the caller's and is copied.
 * Errors: the common errors; SLUICE_ERR_USAGE for a mode or index that does not exist, and for more
 * than 256 ranges of a mode; SLUICE_ERR_INPUT naming a value whose transform is not finite. On
 * error, `report` is unchanged, and `output` does not exist or is the old store.
 * Cost: one pass over the source, a sort, and one pass that writes the result.
 */
SLUICE_API enum sluice_status sluice_slice(const char *path,
                                           const char *output,
                                           uint32_t count,
                                           const struct sluice_range *ranges,
                                           const struct sluice_reshape_options *options,
                                           struct sluice_convert_report *report,
                                           struct sluice_error *err);

/*
 * Makes the store `output` from the store at `path` with its modes in another order. Mode k of the
 * result is mode modes[k] of the source. `report` may be NULL.
 * Shapes: `modes` has `count` numbers, one for each mode of the store.
 * Ownership: `modes` is the caller's and is copied.
 * Errors: those of sluice_slice. On error, `report` is unchanged, and `output` does not exist or is
 * the old store.
 * Cost: one pass over the source, a sort, and one pass that writes the result.
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
    SLUICE_DIST_ZIPF_SHUFFLED, /* as SLUICE_DIST_ZIPF, with permuted indices */
    SLUICE_DIST_BEST,          /* a full box: the nonzeros touch as few rows as possible */
    SLUICE_DIST_WORST          /* no index of any mode occurs twice */
};

struct sluice_generate_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    enum sluice_distribution distribution;
    uint32_t rank;        /* > 0: values of a planted model of this rank; 0: integers 1 to 9 */
    double zipf_exponent; /* 0 means 1 */
    double noise; /* standard deviation relative to the root mean square of the model's values */
    uint64_t seed;
    /* With SLUICE_DIST_BEST: the tensor is best for a TTM in mode best_ttm - 1; 0: for MTTKRP. */
    uint64_t best_ttm;
};

/*
 * Writes a random tensor: a store if `output` ends in ".slc", otherwise FROSTT text. The result is
 * a function of options, shape and seed.
 * Shapes: `dims` has `order` mode sizes; the tensor has `nnz` nonzeros.
 * Ownership: `dims` is the caller's and is copied.
 * Errors: the common errors; SLUICE_ERR_USAGE for a shape that cannot hold `nnz` nonzeros. On
 * error, nothing is left on disk.
 * Cost: generating, sorting and writing the nonzeros.
 */
SLUICE_API enum sluice_status sluice_generate(const char *output,
                                              uint32_t order,
                                              const uint64_t *dims,
                                              uint64_t nnz,
                                              const struct sluice_generate_options *options,
                                              struct sluice_error *err);

/* The format of an exported tensor. */
enum sluice_export_form {
    SLUICE_EXPORT_AUTO,       /* by the suffix of the output: .bin, .npz, .mat; otherwise text */
    SLUICE_EXPORT_TNS,        /* FROSTT text */
    SLUICE_EXPORT_SPLATT_BIN, /* SPLATT binary, .bin */
    SLUICE_EXPORT_NPZ,        /* pydata/sparse .npz, with ascending coordinates */
    SLUICE_EXPORT_SCIPY,      /* scipy.sparse COO .npz, for two modes */
    SLUICE_EXPORT_MATLAB      /* .mat version 5: a struct `tensor` with subs, vals and size */
};

struct sluice_export_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    enum sluice_export_form form;
    enum sluice_index_base index_base; /* of text */
    uint64_t overwrite;                /* not 0: replace an existing file */
};

/*
 * Writes the store at `path` in another format, as `sluice export` does. FROSTT text has the fewest
 * digits that read back to the same bits. With the `output` "-", FROSTT text is written to standard
 * output; other formats need a file. Stores the number of nonzeros in *ret_nnz, which may be NULL.
 * Errors: the common errors; SLUICE_ERR_UNSUPPORTED if the format cannot hold the tensor. On error,
 * *ret_nnz is unchanged and no file is left.
 * Cost: one pass over the store; for SLUICE_EXPORT_NPZ, as many passes as the memory budget
 * requires.
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
