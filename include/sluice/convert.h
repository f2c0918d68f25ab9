/* Functions that make stores from files, arrays, other stores and random numbers, and functions
 * that write stores in other formats.
 *
 * Common errors, to which function comments refer: SLUICE_ERR_USAGE for options out of range,
 * SLUICE_ERR_UNSUPPORTED for options of a newer version, SLUICE_ERR_BUDGET stating the smallest
 * sufficient budget, SLUICE_ERR_IO, SLUICE_ERR_NOSPACE, SLUICE_ERR_MEMORY, SLUICE_ERR_SYSTEM,
 * SLUICE_ERR_INTERRUPTED, and those of sluice_store_open for a store that is read.
 *
 * Unless a comment states otherwise, a function leaves either the complete result or nothing on
 * disk. Data that exceeds the memory budget is written to a temporary file once. */
#ifndef SLUICE_CONVERT_H
#define SLUICE_CONVERT_H

#include "sluice/arrow.h"
#include "sluice/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rule by which nonzeros with the same indices are combined. */
enum sluice_duplicates {
    SLUICE_DUPLICATES_SUM,
    SLUICE_DUPLICATES_ERROR,
    SLUICE_DUPLICATES_KEEP_FIRST,
    SLUICE_DUPLICATES_KEEP_LAST,
    SLUICE_DUPLICATES_MEAN, /* the sum divided by the number of entries; see sluice_append */
    SLUICE_DUPLICATES_MIN,
    SLUICE_DUPLICATES_MAX
};

/* Type of stored values. */
enum sluice_value {
    SLUICE_VALUE_AUTO, /* f32 if f32 represents every value exactly, otherwise f64 */
    SLUICE_VALUE_F32,  /* values are rounded */
    SLUICE_VALUE_F64
};

/* Handling of table rows that have an empty field in a used column. */
enum sluice_missing {
    SLUICE_MISSING_ERROR,
    SLUICE_MISSING_SKIP,
    SLUICE_MISSING_NAME /* an empty field is an index whose name is the empty string */
};

/* Options for converting entries to nonzeros. Option structs have this struct as the member
 * `entries`. */
struct sluice_entry_options {
    enum sluice_index_base index_base; /* SLUICE_BASE_AUTO means zero for a builder */
    enum sluice_duplicates duplicates;
    enum sluice_value value;
    /* number of sizes in `dims`, which is the order; 0 means that `dims` is not set */
    uint32_t dims_order;
    uint64_t dims[SLUICE_MAX_ORDER]; /* mode sizes; if not set, the mode sizes of the input */
};

/* Options for converting a CSV or TSV file to a tensor. Option structs have this struct as the
 * member `table`. The other members of this struct apply only if `columns` is set. */
struct sluice_table_options {
    /* One item per mode, in the syntax of sluice-convert(1): "hour(when),origin,int(user)". NULL
     * means that the input is a tensor, not a table. */
    const char *columns;
    /* column of the values; NULL means that the value of each nonzero is its number of rows */
    const char *value_column;
    char delimiter; /* 0 means a tab for .tsv and .tab files, a comma for other files */
    /* if not 0, the table has no header row, and its columns are called 1, 2, .. */
    uint32_t no_header;
    enum sluice_missing missing; /* handling of empty fields */
    /* Words that are read as empty fields, separated by commas: "NULL,NA". NULL means none. */
    const char *null;
};

struct sluice_convert_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    struct sluice_entry_options entries; /* only `duplicates` and `value` apply to a table */
    enum sluice_dialect dialect;         /* applies to tensors only */
    /* If not 0, the saved state of an interrupted conversion of the same file is discarded;
     * otherwise the conversion continues from this state. */
    uint32_t restart;
    /* seconds between commits (saved states); 0 means 30, or more if commits would take over 2 % of
     * the time */
    double commit_seconds;
    struct sluice_table_options table;
    /* Names of indices of a tensor: each item is a folder with files mode-1-TITLE.map,
     * mode-2-TITLE.map, .., or is "K=FILE" for mode K, counted from 1. */
    const char *const *labels;
    uint64_t label_count;
    /* file with the values if the input is a .npy file of coordinates; else NULL */
    const char *values;
    const char *transform; /* steps applied to values in order: "abs,log1p"; NULL means none */
    /* Only for Arrow tables: name of the table in sluice_store_info.source and in messages, such as
     * the path of its file. NULL means "the Arrow table". */
    const char *source_name;
    /* If not 0, values of zero are stored as listed zeros, also if they are sums of duplicates.
     * All cells of a dense input are stored. Appending, slicing and permuting keep listed zeros. */
    uint64_t keep_zeros;
};

/* The result of a conversion. */
struct sluice_convert_report {
    uint64_t struct_bytes;
    enum sluice_dialect dialect;
    uint32_t order;
    uint64_t dims[SLUICE_MAX_ORDER];
    uint32_t index_base;       /* 0 or 1 */
    uint32_t relabelled_modes; /* bit n is set if the store numbers mode n by frequency */
    /* rows read; for a slice or permutation, nonzeros of the source store */
    uint64_t entries;
    uint64_t skipped;        /* rows of a table that were skipped because of empty fields */
    uint64_t duplicates;     /* entries merged into an earlier entry */
    uint64_t explicit_zeros; /* entries of value zero, which are not stored */
    uint64_t nnz;            /* nonzeros stored, including listed zeros */
    uint64_t text_bytes;     /* bytes of text read, after decompression */
    uint64_t store_bytes;    /* size of the block file */
    double seconds;
    uint64_t listed_zeros; /* stored nonzeros whose value is zero; see keep_zeros */
};

/* Converts the tensor or table `input` to the store `output`. The input is text or binary, plain or
 * compressed; "-" is standard input. `output` may exist only if output.overwrite is set.
 * `report` may be NULL.
 * Order: the contents of the store depend only on the entries and their order, not on threads or
 * memory.
 * Errors: the common errors; SLUICE_ERR_INPUT with file, line and column. On error, `report` is
 * unchanged, and `output` does not exist or is the old store. The saved state of a long conversion
 * of a file stays on disk, and the same call continues from this state.
 * Cost: one pass over the input, a sort, and one pass that writes the store. */
SLUICE_API enum sluice_status sluice_convert(const char *input,
                                             const char *output,
                                             const struct sluice_convert_options *options,
                                             struct sluice_convert_report *report,
                                             struct sluice_error *err);

/* Converts the table in an Arrow stream to the store `output`, batch by batch. The result has the
 * same nonzeros and names as that of sluice_convert for a CSV of the table: a null is an empty
 * field, integers are decimal, floating-point numbers have the fewest digits that restore them
 * (1.0, 1e-05), and times are written as 2023-04-01 13:45:30.25. A timestamp with a zone is local
 * time. `options` are those of a table. If table.columns is NULL, all columns except
 * table.value_column are modes. The members dialect, values, labels, restart, commit_seconds,
 * table.delimiter and table.no_header must be 0. `report` may be NULL.
 * Types: null, bool, integers and floating-point numbers of all widths, decimals, dates, times,
 * timestamps, strings and binary (with offsets, as views, of fixed size), and dictionaries of
 * these. Columns that are not used may have any type.
 * Threads: get_next is called from one thread at a time, but not always from the same one; arrays
 * are released from any thread.
 * Ownership: the stream is released in every case.
 * Errors: those of sluice_convert; SLUICE_ERR_INPUT for a wrong field (`line` is its row, from 1),
 * a malformed batch, or an error of the producer, with its message. On error, `report` is
 * unchanged, and `output` does not exist or is the old store; there is no saved state.
 * Cost: as sluice_convert. Memory: run.memory_bytes plus the batches of the producer. At most one
 * batch more than the number of threads is held at a time. */
SLUICE_API enum sluice_status sluice_convert_arrow(struct ArrowArrayStream *stream,
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
     * calls this function from one thread with the indices 0, 1, .., up to the last index of the
     * mode or until the function returns NULL. The name is copied. */
    const char *(*name)(void *context, uint32_t mode, uint64_t index);
    uint64_t named_modes; /* bit n is set if the indices of mode n have names */
    /* titles of modes, up to 255 bytes each, copied; NULL means no title */
    const char *titles[SLUICE_MAX_ORDER];
    uint64_t keep_zeros; /* see sluice_convert_options.keep_zeros */
};

/* Starts a store `output` with `order` modes. The caller then pushes the entries.
 * Ownership: the caller ends *ret_builder with sluice_builder_finish or sluice_builder_abandon.
 * The stop flag, callbacks and their context must live as long as the builder.
 * Errors: the common errors. On error, *ret_builder is unchanged and nothing is left on disk.
 * Cost: allocates all memory that the builder uses. The limit run.memory_bytes includes the
 * caller's arrays. */
SLUICE_API enum sluice_status sluice_builder_create(const char *output,
                                                    uint32_t order,
                                                    const struct sluice_builder_options *options,
                                                    struct sluice_builder **ret_builder,
                                                    struct sluice_error *err);

/* Adds `count` entries to a builder. The first call chooses the key ranges of the sort from the
 * entries that it adds: push all entries at once, or a random sample first.
 * Shapes: coords[n] has `count` indices of mode n, one for each of the `order` modes; `values` has
 * `count` numbers.
 * Ownership: the arrays are the caller's and are copied.
 * Order: the store depends only on the entries and their order, not on their division among calls.
 * Errors: the common errors; SLUICE_ERR_INPUT for an index out of range or a value that is not
 * finite, with the entry in the message. On error, the builder accepts no more entries; call
 * sluice_builder_abandon.
 * Cost: proportional to `count`; may write to a temporary file. */
SLUICE_API enum sluice_status sluice_builder_push(struct sluice_builder *builder,
                                                  uint64_t count,
                                                  const uint64_t *const *coords,
                                                  const double *values,
                                                  struct sluice_error *err);

/* Sorts the entries, writes and publishes the store, and destroys the builder. `report` may be
 * NULL.
 * Ownership: destroys the builder in every case.
 * Errors: the common errors; SLUICE_ERR_INPUT if there are neither entries nor mode sizes. On
 * error, `report` is unchanged, and `output` does not exist or is the old store.
 * Cost: a sort, and one pass that writes the store. */
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
    /* SLUICE_BASE_AUTO: the base that the header of the input states; otherwise 0 if an index is 0,
     * and 1 if an index equals a mode size that the header states. If none of this applies, the
     * base of the first input of the store, if that input had the same format. */
    enum sluice_index_base index_base;
    enum sluice_duplicates duplicates;
    uint32_t fixed_modes; /* bit n is set if mode n may not grow: larger indices are errors */
    /* if not 0, the input is appended even if the store already contains the input */
    uint32_t again;
    /* if not 0, layouts other than blco are dropped; 0 rebuilds these layouts */
    uint32_t drop_layouts;
    /* Names of indices, in the format of sluice_convert_options.labels, with one name for every
     * index of the mode, including the new indices. Names that the store already has do not
     * change. */
    const char *const *labels;
    uint32_t label_count;
    /* If not 0, `input` is a table, as are all files that end in .csv, .tsv or .tab. A table must
     * have the columns that the store was made from. */
    uint32_t table;
    /* file with the values if the input is a .npy file of coordinates; else NULL */
    const char *values;
    const char *source_name; /* see sluice_convert_options.source_name */
};

struct sluice_append_report {
    uint64_t struct_bytes;
    uint32_t order;
    uint32_t layouts_dropped; /* layouts other than blco that were not rebuilt */
    uint64_t dims[SLUICE_MAX_ORDER];
    uint64_t known;      /* not 0 if the store already contained the input and did not change */
    uint64_t entries;    /* entries of the input */
    uint64_t nnz_before; /* nonzeros of the old store */
    uint64_t nnz;        /* nonzeros of the new store */
    uint64_t skipped;    /* rows of a table that were skipped because of empty fields */
};

/* Adds the nonzeros of the tensor or table `input` to the store at `path`. The result equals a
 * store converted from both inputs, one after the other. Modes grow as needed. The codec and the
 * numbering of indices do not change. A layout other than blco is rebuilt if it fits into memory,
 * otherwise dropped. The store records checksums of its inputs and skips an input that the store
 * already contains, unless options->again is set. `report` may be NULL. Open handles keep reading
 * the old store.
 * Errors: those of sluice_convert; SLUICE_ERR_INPUT for an index beyond the size of a fixed mode,
 * and for SLUICE_DUPLICATES_MEAN if nonzeros of the store may combine several entries. On error,
 * also after a crash, `report` is unchanged and the store is either the old or the new one.
 * Cost: one pass over the store, one pass over the input, a merge, and one pass that writes the new
 * store. The disk needs space for the old and the new store. */
SLUICE_API enum sluice_status sluice_append(const char *path,
                                            const char *input,
                                            const struct sluice_append_options *options,
                                            struct sluice_append_report *report,
                                            struct sluice_error *err);

/* Adds the rows of the table in an Arrow stream to the store at `path`. The table must have
 * the columns that the store was made from. The members dialect, index_base, labels and values of
 * `options` must be 0. `report` may be NULL.
 * Ownership: the stream is released in every case.
 * Errors: those of sluice_append and sluice_convert_arrow. On error, `report` is unchanged and the
 * store is either the old or the new one.
 * Cost: as sluice_append. */
SLUICE_API enum sluice_status sluice_append_arrow(const char *path,
                                                  struct ArrowArrayStream *stream,
                                                  const struct sluice_append_options *options,
                                                  struct sluice_append_report *report,
                                                  struct sluice_error *err);

/* Options of sluice_slice and sluice_permute. */
struct sluice_reshape_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    const char *transform; /* steps applied to values in order: "abs,log1p"; NULL means none */
    uint64_t keep_indices; /* if not 0, a slice keeps indices and mode sizes of the source */
};

/* The indices `first` to `last` of a mode, both included. Indices start at 0; UINT64_MAX as `last`
 * means the last index of the mode. */
struct sluice_range {
    uint32_t mode;
    uint64_t first;
    uint64_t last;
};

/* Makes the store `output` from the nonzeros of the store at `path` that lie in the given ranges. A
 * nonzero is selected if, in every mode that has ranges, the nonzero's index is in one of the
 * mode's ranges. The selected indices of each mode are renumbered in ascending order, unless
 * options->keep_indices is set. `report` may be NULL. Shapes: `ranges` has `count` ranges, in any
 * order. Ownership: `ranges` is the caller's and is copied. Errors: the common errors;
 * SLUICE_ERR_USAGE for a mode or index that does not exist, and for more than 256 ranges of a mode;
 * SLUICE_ERR_INPUT, with the value in the message, if the transform of a value is not finite. On
 * error, `report` is unchanged, and `output` does not exist or is the old store. Cost: one pass
 * over the source, a sort, and one pass that writes the result. */
SLUICE_API enum sluice_status sluice_slice(const char *path,
                                           const char *output,
                                           uint32_t count,
                                           const struct sluice_range *ranges,
                                           const struct sluice_reshape_options *options,
                                           struct sluice_convert_report *report,
                                           struct sluice_error *err);

/* Makes the store `output` from the store at `path` with its modes in another order. Mode k of the
 * result is mode modes[k] of the source. `report` may be NULL.
 * Shapes: `modes` has `count` numbers, one for each mode of the store.
 * Ownership: `modes` is the caller's and is copied.
 * Errors: those of sluice_slice. On error, `report` is unchanged, and `output` does not exist or is
 * the old store.
 * Cost: one pass over the source, a sort, and one pass that writes the result. */
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
    SLUICE_DIST_ZIPF_SHUFFLED, /* the frequencies of SLUICE_DIST_ZIPF, with permuted indices */
    SLUICE_DIST_BEST,          /* a full box: the nonzeros touch as few rows as possible */
    SLUICE_DIST_WORST,         /* no index of any mode occurs twice */
    /* scattered fibers or slices of a mode, which are full, or whose numbers of nonzeros differ by
     * at most one */
    SLUICE_DIST_DENSE_FIBERS,
    SLUICE_DIST_DENSE_SLICES,
    SLUICE_DIST_FIBERS /* scattered fibers of a mode, with nonzeros at random indices */
};

struct sluice_generate_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    struct sluice_output_options output;
    enum sluice_distribution distribution;
    /* rank of the planted model that determines the values; 0 means integers 1 to 9 */
    uint32_t rank;
    double zipf_exponent; /* 0 means 1 */
    /* standard deviation of the noise, relative to the root mean square of the model's values */
    double noise;
    uint64_t seed;
    /* Operation in which the nonzeros of SLUICE_DIST_BEST touch the fewest rows: 0 means MTTKRP, a
     * larger number k means a TTM in mode k - 1. */
    uint64_t best_ttm;
    /* mode of the fibers or slices of SLUICE_DIST_DENSE_FIBERS, _DENSE_SLICES and _FIBERS */
    uint64_t mode;
    uint64_t fiber_count; /* number of fibers of SLUICE_DIST_FIBERS */
    /* Name of a tensor of a paper, as in sluice-generate(1), section STAND-INS: order, mode sizes,
     * number of nonzeros and distribution are those of its stand-in. NULL: none. */
    const char *like;
    double scale; /* factor of the number of nonzeros with `like`, up to 1; 0 means 1 */
};

/* Writes a random tensor: a store if `output` ends in ".slc", otherwise FROSTT text. The result is
 * a function of options, shape and seed.
 * Shapes: `dims` has `order` mode sizes; the tensor has `nnz` nonzeros. With options->like, `order`
 * and `nnz` must be 0, and `dims` may be NULL.
 * Ownership: `dims` is the caller's and is copied.
 * Errors: the common errors; SLUICE_ERR_USAGE for a shape that cannot hold `nnz` nonzeros. On
 * error, nothing is left on disk.
 * Cost: generates, sorts and writes the nonzeros. */
SLUICE_API enum sluice_status sluice_generate(const char *output,
                                              uint32_t order,
                                              const uint64_t *dims,
                                              uint64_t nnz,
                                              const struct sluice_generate_options *options,
                                              struct sluice_error *err);

/* The format of an exported tensor. */
enum sluice_export_form {
    SLUICE_EXPORT_AUTO, /* chosen by the suffix of the output: .bin, .npz, .mat; otherwise text */
    SLUICE_EXPORT_TNS,  /* FROSTT text */
    SLUICE_EXPORT_SPLATT_BIN, /* SPLATT binary, .bin */
    SLUICE_EXPORT_NPZ,        /* pydata/sparse .npz, with ascending coordinates */
    SLUICE_EXPORT_SCIPY,      /* scipy.sparse COO .npz, for two modes */
    SLUICE_EXPORT_MATLAB      /* .mat version 5: a struct `tensor` with subs, vals and size */
};

struct sluice_export_options {
    uint64_t struct_bytes;
    struct sluice_run_options run;
    enum sluice_export_form form;
    enum sluice_index_base index_base; /* first index in FROSTT text */
    uint64_t overwrite;                /* if not 0, an existing file is replaced */
    /* If not 0, the text starts with a header that states the index base and the mode sizes: the
     * header of extended FROSTT or, for SLUICE_BASE_ZERO, the header of GenTen. */
    uint64_t header;
};

/* Writes the store at `path` in another format, as `sluice export` does. FROSTT text has, for each
 * value, the fewest digits from which the same bits are read back. With the `output` "-", FROSTT
 * text is written to standard output; other formats need a file. Text without a header does not
 * show a mode size that exceeds the largest index of the mode. It also does not show that indices
 * start at 0 if no index is 0. In these cases a note (sluice_log_to) names what must be specified
 * to read the text back. Stores the number of nonzeros in *ret_nnz, which may be NULL.
 * Errors: the common errors; SLUICE_ERR_UNSUPPORTED if the format cannot hold the tensor. On error,
 * *ret_nnz is unchanged and no file is left.
 * Cost: one pass over the store; for SLUICE_EXPORT_NPZ, as many passes as the memory budget
 * requires. */
SLUICE_API enum sluice_status sluice_export(const char *path,
                                            const char *output,
                                            const struct sluice_export_options *options,
                                            uint64_t *ret_nnz,
                                            struct sluice_error *err);

#ifdef __cplusplus
}
#endif
#endif
