/* `sluice convert` and `sluice append`: convert a tensor in any text dialect or binary format,
 * plain or compressed, or a CSV table, to a store. */
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

struct slc_convert_options {
    const struct slc_files *files; /* NULL: the operating system */
    const char *input;             /* path, or "-" for standard input */
    const char *values;            /* values of .npy coordinates: path, or NULL */
    const char *output;            /* OUT.slc */
    enum slc_dialect dialect;      /* SLC_DIALECT_AUTO unless the user chooses */
    int index_base;                /* -1 auto, 0 or 1 */
    unsigned dims_order;           /* 0: mode sizes come from the header or the data */
    uint64_t dims[SLC_MAX_ORDER];  /* --dims: mode sizes; a larger coordinate is an error */
    enum slc_duplicates duplicates;
    struct slc_transforms transforms; /* applied to values after duplicates are combined */
    enum slc_codec codec;
    enum slc_value_choice value;
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    enum slc_relabel relabel;
    uint64_t block_bytes;
    uint64_t memory_bytes; /* budget of the whole process */
    /* How to read a table; NULL: the input is a tensor unless `table` applies. */
    const struct slc_csv_spec *csv;
    const struct slc_name_maps *names; /* NULL: indices get no names */
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    /* Append only: the input is a table with the columns from which the store was made. Implied
     * if the store was made from a table and the input has the file name of a table (.csv, .tsv,
     * .tab). */
    bool table;
    bool append; /* append to the store at `output`; keeps its codec and numbering */
    /* drop the additional layouts of the store at `output`; default: rebuild them */
    bool drop_layouts;
    bool again; /* append even if the store already records this input */
    /* modes of the store at `output` that must not grow: a larger index is an error */
    bool fixed_modes[SLC_MAX_ORDER];
    bool restart;                /* ignore and remove the state of an interrupted run */
    double commit_seconds;       /* between commits; 0: chosen by cost, none in short conversions */
    const struct slc_stop *stop; /* stops with SLC_ERR_INTERRUPTED; may be NULL */
    /* Called periodically from one thread with the bytes of input consumed and the input size (0:
     * unknown). */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /* Called once, when the store is complete and about to be renamed to its final name. After this
     * call, a cleanup must not remove its files. NULL: no callback. */
    void (*publishing)(void);
};

struct slc_convert_report {
    enum slc_dialect dialect;
    const char *compression; /* "none", "gzip", .. */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    bool dims_declared; /* mode sizes come from the header or an option, not from the data */
    unsigned index_base;
    /* The input does not determine the index base; it follows the convention of the dialect. */
    bool base_assumed;
    char base_reason[128]; /* one clause: "stated by the header", "index 0 occurs in mode 2", .. */
    uint64_t smallest[SLC_MAX_ORDER]; /* smallest index per mode, as written in the file */
    uint64_t input_bytes;             /* as stored */
    uint64_t text_bytes;              /* decompressed */
    uint64_t lines;
    uint64_t skipped; /* rows of a table with missing fields */
    unsigned workers; /* parser threads: fewer than requested if memory is short */
    /* Seconds of several threads are summed. They cover the processing of the bytes counted above.
     */
    double read_seconds;    /* of the reading thread, including decompression */
    double parse_seconds;   /* of the parser threads */
    double scatter_seconds; /* of the parser threads in the builder, including spilling */
    double text_seconds;    /* wall-clock time until all text is parsed and scattered */
    double total_seconds;
    uint64_t old_nnz; /* append: nonzeros of the old store */
    uint64_t old_dims[SLC_MAX_ORDER];
    bool appended_before; /* the store already contains these nonzeros, so nothing was done */
    uint64_t entries;     /* entries appended by this or the earlier run */
    /* Number of additional layouts that the old store has and the new store lacks. */
    unsigned layouts_dropped;
    struct slc_builder_report build;
};

/*
 * Converts the input to a store. Bad input fails with SLC_ERR_INPUT with file, line and column and
 * leaves nothing on disk. If the input does not determine the index base, fails with SLC_ERR_INPUT
 * and a message that asks for --index-base.
 *
 * Resume: if the input is a regular file and temp_folder is not set, an interrupted conversion (the
 * process ended, or a transient fault) resumes from its last commit when called again with options
 * that produce the same store. State that no longer matches is removed and logged.
 *
 * Memory: memory_bytes is the limit for the whole process; SLC_ERR_BUDGET names the smallest budget
 * that works.
 */
enum slc_status slc_convert(const struct slc_convert_options *options,
                            struct slc_convert_report *report,
                            struct slc_error *err) SLC_NODISCARD;

/* Estimated cost of a conversion, from a sample and short trials of the processor. */
struct slc_convert_forecast {
    bool brief; /* the `brief` argument of slc_convert_forecast */
    enum slc_dialect dialect;
    const char *compression;
    unsigned order;
    /* Declared mode sizes, otherwise the mode sizes of the sample; for tables, expected mode sizes.
     */
    uint64_t dims[SLC_MAX_ORDER];
    /* The input is a table: counts below that depend on its columns are estimates with bounds. */
    bool table;
    uint64_t dims_least[SLC_MAX_ORDER], dims_most[SLC_MAX_ORDER];
    bool dims_declared;
    uint64_t input_bytes;  /* as stored; 0: unknown */
    uint64_t sample_bytes; /* part of input_bytes that is read twice */
    uint64_t text_bytes;   /* decompressed; 0: unknown */
    uint64_t entries;      /* 0: unknown; values derived from it are then unknown, too */
    unsigned workers;
    /* Memory, including the process: while text is read, and while the store is written. */
    uint64_t push_bytes, sort_bytes;
    uint64_t parse_bytes; /* part of push_bytes outside the builder */
    uint64_t spill_bytes; /* of the temporary file */
    /* Expected size, and size for the upper bound of nonzeros. */
    uint64_t store_bytes, store_most_bytes;
    /* Tables only: memory while the table is read, size of the temporary files of rows and strings,
     * and size of the names (included in store_bytes). Each is given as expected value and for the
     * largest possible number of strings. */
    uint64_t table_bytes, table_most_bytes;
    uint64_t spool_bytes, spool_most_bytes, spool_read_bytes;
    uint64_t names_bytes, names_most_bytes;
    uint64_t names_memory_bytes; /* reserved for writing names */
    uint64_t enough_bytes; /* budget that suffices for the largest possible number of strings */
    /* tight: the budget may be too small for all strings; too_small: it is expected to be too
     * small */
    bool tight;
    bool too_small;
    /* options->append only: nonzeros and bytes that are read from the old store, and size of its
     * additional layouts, which are rebuilt (included in store_bytes). */
    uint64_t old_nnz, old_bytes;
    unsigned layouts;
    /* Seconds of work summed over all threads, to be divided by the number of threads that share
     * it. */
    double always_seconds; /* independent of the input */
    double old_seconds;    /* decoding the old store */
    double table_seconds;  /* reading a table */
    double parse_seconds, unpack_seconds, scatter_seconds, sort_seconds, encode_seconds;
};

/*
 * Estimates the cost of slc_convert. Writes nothing, but consumes the bytes read from a pipe.
 * `brief`: spends only about 2 % of the cost of the run. Errors: as slc_convert for the beginning
 * of the input; SLC_ERR_BUDGET names the smallest budget.
 */
enum slc_status slc_convert_forecast(const struct slc_convert_options *options,
                                     bool brief,
                                     struct slc_convert_forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Reads, parses and checks the whole input as slc_convert does, with the same threads, and discards
 * the result. The time that this takes is a lower bound of the time of a conversion. Ignores
 * `output` and options that concern only the store. Errors: as slc_convert before the sort.
 */
enum slc_status slc_convert_scan(const struct slc_convert_options *options,
                                 struct slc_convert_report *report,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
