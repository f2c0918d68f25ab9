/* Implements `sluice convert` and `sluice append`: converts a tensor to a store. The input is a
 * text dialect, a binary format or a CSV table, plain or compressed. An entry is a row of the
 * input: a coordinate and a value, before duplicates are combined. */
#ifndef SLC_CONVERT_CONVERT_H
#define SLC_CONVERT_CONVERT_H

#include "base/error/error.h"
#include "convert/build/build_types.h"
#include "convert/ingest/csv/csv_spec.h"
#include "convert/ingest/input/dialect.h"
#include "convert/ingest/names/name_maps.h"
#include "storage/file/files.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_arrow;

struct slc_convert_options {
    const struct slc_files *files; /* NULL means the files of the operating system */
    const char *input;             /* path, or "-" for standard input; with `arrow`, its name */
    /* Arrow stream of a table that is the input; NULL if the input is a file. Needs `csv`, or
     * `table` for an append. */
    struct slc_arrow *arrow;
    const char *values;           /* path of the values of .npy coordinates, or NULL */
    const char *output;           /* OUT.slc */
    enum slc_dialect dialect;     /* SLC_DIALECT_AUTO unless the user chooses */
    int index_base;               /* 0 or 1; -1 means automatic */
    unsigned dims_order;          /* number of `dims`; 0: sizes come from header or data */
    uint64_t dims[SLC_MAX_ORDER]; /* --dims: mode sizes; a larger coordinate is an error */
    enum slc_duplicates duplicates;
    bool keep_zeros;                  /* store values of 0; an append does what the store does */
    struct slc_transforms transforms; /* applied to values after duplicates are combined */
    enum slc_codec codec;
    enum slc_value_choice value;
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    enum slc_relabel relabel;
    uint64_t block_bytes;
    uint64_t memory_bytes; /* budget of the whole process */
    /* Specification for reading a table. NULL means that the input is a tensor or, for append, a
     * table as described at `table`. */
    const struct slc_csv_spec *csv;
    const struct slc_name_maps *names; /* names of indices; NULL means no names */
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    /* For append: true if the input is a table with the columns from which the store was made. A
     * table is also assumed if the store was made from a table and the name of the input ends with
     * .csv, .tsv or .tab. */
    bool table;
    /* append to the store at `output`, with the codec and permutations of that store */
    bool append;
    /* do not rebuild the additional layouts of the store at `output` */
    bool drop_layouts;
    bool again; /* append even if the store records that this input was appended before */
    /* true for modes of the store at `output` that must not grow; a larger index is an error */
    bool fixed_modes[SLC_MAX_ORDER];
    bool restart; /* true: ignore and remove the state of an interrupted run */
    /* seconds between commits; 0 means chosen by cost, without commits in short conversions */
    double commit_seconds;
    const struct slc_stop *stop; /* request to stop with SLC_ERR_INTERRUPTED; may be NULL */
    /* Called periodically by one thread with the bytes of input that were processed and the input
     * size (0 means unknown). */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /* Called once, when the store is complete and about to be renamed to its final name. After this
     * call, a cleanup must not remove the files of the store. NULL means no callback. */
    void (*publishing)(void);
};

struct slc_convert_report {
    enum slc_dialect dialect;
    const char *compression; /* "none", "gzip", .. */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    /* true if mode sizes come from the header or an option, not from the data */
    bool dims_declared;
    unsigned index_base;
    /* True if the input does not determine the index base, which then follows the convention of the
     * dialect. */
    bool base_assumed;
    char base_reason[128]; /* reason for the index base, such as "stated by the header" */
    uint64_t smallest[SLC_MAX_ORDER]; /* smallest index per mode, as written in the file */
    uint64_t input_bytes;             /* size as stored, compressed or not */
    uint64_t text_bytes;              /* decompressed size of the input */
    uint64_t lines;
    uint64_t skipped; /* number of rows of a table that were skipped because of missing fields */
    unsigned workers; /* number of parser threads; below the requested number if memory is short */
    /* Times of several threads are summed. The times cover the processing of the bytes counted
     * above. */
    double read_seconds;  /* time of the reading thread, including decompression */
    double parse_seconds; /* time of the parser threads */
    /* time of the parser threads in the builder, including writing to the spill file */
    double scatter_seconds;
    double text_seconds; /* wall-clock time until all text is parsed and in buckets */
    double total_seconds;
    uint64_t old_nnz; /* for append: nonzeros of the old store */
    uint64_t old_dims[SLC_MAX_ORDER];
    /* true if the store already contains these nonzeros, so that nothing was done */
    bool appended_before;
    uint64_t entries; /* entries appended by this run or, if appended_before, by an earlier run */
    /* Number of additional layouts that the old store has and the new store does not have. */
    unsigned layouts_dropped;
    bool keeps_zeros; /* the store keeps values of 0 */
    struct slc_builder_report build;
};

/* Converts the input to a store. Errors: SLC_ERR_INPUT with file, line and column for malformed
 * input; SLC_ERR_INPUT with a message that asks for --index-base if the input does not determine
 * the index base. After these errors no files are left on disk.
 *
 * Resume: a conversion that was interrupted (the process ended, or a transient error occurred)
 * resumes from its last commit if slc_convert is called again with options that produce the same
 * store. The input must be a regular file, and temp_folder must not be set. State of an earlier run
 * that does not match is removed, and a log message states this.
 *
 * Memory: memory_bytes limits the memory of the whole process. SLC_ERR_BUDGET is reported before
 * the input is read, and its message states a sufficient budget. If the strings of a table turn out
 * to need more memory, it is reported later. */
enum slc_status slc_convert(const struct slc_convert_options *options,
                            struct slc_convert_report *report,
                            struct slc_error *err) SLC_NODISCARD;

/* Estimated cost of a conversion, from a sample and short trials of the processor. */
struct slc_convert_forecast {
    bool brief; /* the `brief` argument of slc_convert_forecast */
    enum slc_dialect dialect;
    const char *compression;
    unsigned order;
    /* Declared mode sizes; if none are declared, the mode sizes of the sample. For tables, expected
     * mode sizes. */
    uint64_t dims[SLC_MAX_ORDER];
    /* True if the input is a table. Counts below that depend on its columns are then estimates with
     * bounds. */
    bool table;
    uint64_t dims_least[SLC_MAX_ORDER], dims_most[SLC_MAX_ORDER];
    bool dims_declared;
    uint64_t input_bytes;  /* size as stored; 0 means unknown */
    uint64_t sample_bytes; /* part of input_bytes that is read twice */
    uint64_t text_bytes;   /* decompressed size; 0 means unknown */
    /* 0 means unknown; values that depend on the number of entries are then unknown, too */
    uint64_t entries;
    unsigned workers;
    /* Memory of the process while text is read (push) and while the store is written (sort). */
    uint64_t push_bytes, sort_bytes;
    uint64_t parse_bytes; /* part of push_bytes outside the builder */
    uint64_t spill_bytes; /* size of the spill file */
    /* Expected size of the store, and its size if the number of nonzeros reaches its upper
     * bound. */
    uint64_t store_bytes, store_most_bytes;
    /* For tables: memory while the table is read, size of the temporary files of rows and strings,
     * and size of the names (included in store_bytes). Each number has an expected value, and a
     * value (most) for the largest possible number of strings. */
    uint64_t table_bytes, table_most_bytes;
    uint64_t spool_bytes, spool_most_bytes, spool_read_bytes;
    uint64_t names_bytes, names_most_bytes;
    uint64_t labels_bytes; /* memory for the labels of strings that were sorted */
    uint64_t enough_bytes; /* budget that suffices for the largest possible number of strings */
    /* tight: the budget may be too small for all strings; too_small: the budget is expected to be
     * too small for them */
    bool tight;
    bool too_small;
    /* For append: nonzeros and bytes that are read from the old store, and the size of its
     * additional layouts, which are rebuilt (included in store_bytes). */
    uint64_t old_nnz, old_bytes;
    unsigned layouts;
    /* Wall-clock seconds of each kind of work, divided among the threads that do the work. */
    double always_seconds; /* work that does not depend on the input */
    double old_seconds;    /* decoding the old store */
    double table_seconds;  /* reading a table */
    double parse_seconds, unpack_seconds, scatter_seconds, sort_seconds, encode_seconds;
};

/* Estimates the cost of slc_convert. Writes nothing, but consumes the bytes read from a pipe. If
 * `brief` is true, the forecast lasts at most about 2 % of the time of the run. Errors: those of
 * slc_convert that concern the beginning of the input; the message of SLC_ERR_BUDGET states the
 * smallest sufficient budget. */
enum slc_status slc_convert_forecast(const struct slc_convert_options *options,
                                     bool brief,
                                     struct slc_convert_forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

/* Reads, parses and checks the whole input as slc_convert does, with the same threads, and discards
 * the result. Its duration is a lower bound of the duration of a conversion. Ignores `output` and
 * options that concern only the store. Errors: those of slc_convert that occur before the sort. */
enum slc_status slc_convert_scan(const struct slc_convert_options *options,
                                 struct slc_convert_report *report,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
