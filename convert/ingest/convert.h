/*
 * `sluice convert`: from a tensor in any text dialect or binary format, plain or compressed, to a
 * store.
 */
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
    const char *values;            /* path of the values of .npy coordinates; else NULL */
    const char *output;            /* OUT.slc */
    enum slc_dialect dialect;      /* AUTO unless the user says */
    int index_base;                /* -1 auto, 0 or 1 */
    unsigned dims_order;           /* 0: dims from the header or the data */
    uint64_t dims[SLC_MAX_ORDER];  /* --dims: lengths to use; a coordinate beyond is an error */
    enum slc_duplicates duplicates;
    struct slc_transforms transforms; /* of values, when duplicates are combined */
    enum slc_codec codec;
    enum slc_value_choice value;
    enum slc_fibers fibers;
    struct slc_fiber_run run;
    enum slc_relabel relabel;
    uint64_t block_bytes;
    uint64_t memory_bytes;          /* whole budget of the process */
    const struct slc_csv_spec *csv; /* the input is a table; NULL: it is a tensor, or see table */
    const struct slc_name_maps *names; /* NULL: indices get no names */
    const char *temp_folder;
    uint64_t max_temp;
    unsigned threads;
    bool overwrite;
    bool table;        /* of append: the input is one, with the columns that the store was made of;
                          so it is by a table's name (.csv, .tsv, .tab) where the store was */
    bool append;       /* to the store at `output`, whose codec and numbering it keeps */
    bool drop_layouts; /* the further layouts of that store; else they are built again */
    bool again;        /* even what it remembers to have been appended before */
    bool fixed_modes[SLC_MAX_ORDER]; /* of that store: an index beyond their length is an error */
    bool restart;                    /* begin anew, whatever an interrupted run left */
    double commit_seconds; /* between commits; 0: as cost allows, and none in short conversions */
    const struct slc_stop *stop; /* ends it with SLC_ERR_INTERRUPTED; may be NULL */
    /* Called now and then from one thread: bytes of input consumed, and its size (0: unknown). */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /* Called once, when the store is complete and is about to get its name; NULL: nobody is. What
     * is unfinished is not to be removed from then on. */
    void (*publishing)(void);
};

struct slc_convert_report {
    enum slc_dialect dialect;
    const char *compression; /* "none", "gzip", .. */
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    bool dims_declared; /* by header or option rather than found in the data */
    unsigned index_base;
    bool base_assumed;     /* by the convention of the dialect: nothing in the input tells */
    char base_reason[128]; /* one clause: "stated by the header", "index 0 occurs in mode 2", .. */
    uint64_t smallest[SLC_MAX_ORDER]; /* smallest index per mode as written in the file */
    uint64_t input_bytes;             /* as stored */
    uint64_t text_bytes;              /* decompressed */
    uint64_t lines;
    uint64_t skipped; /* rows of a table that lack something */
    unsigned workers; /* parser threads: fewer than asked where the memory allows fewer */
    /* Seconds of threads are added up over them; what was moved meanwhile is in the byte counts. */
    double read_seconds;    /* of the reading thread, decompression included */
    double parse_seconds;   /* of the parser threads */
    double scatter_seconds; /* of the parser threads, in the builder: spilling included */
    double text_seconds;    /* from the start until all text is parsed and scattered */
    double total_seconds;
    uint64_t old_nnz; /* of the store that was appended to .. */
    uint64_t old_dims[SLC_MAX_ORDER];
    bool appended_before;     /* the store has these entries: nothing was done */
    uint64_t entries;         /* that were appended, or had been */
    unsigned layouts_dropped; /* its further layouts, which the new one does not have */
    struct slc_builder_report build;
};

/*
 * Converts. Bad input: SLC_ERR_INPUT with file, line and column; nothing is left on disk.
 * From a regular file, and without a temp_folder, a conversion that is interrupted (by the end of
 * the process, or by a fault that need not come again) goes on from its last commit when it is
 * called again with options that give the same store; what no longer fits is removed, which is
 * logged. An ambiguous index base: SLC_ERR_INPUT asking for --index-base. Memory: memory_bytes
 * bounds everything; SLC_ERR_BUDGET names the smallest that works.
 */
enum slc_status slc_convert(const struct slc_convert_options *options,
                            struct slc_convert_report *report,
                            struct slc_error *err) SLC_NODISCARD;

/* What a conversion would take, judged by a sample and short trials of the processor. */
struct slc_convert_forecast {
    bool brief; /* as asked for */
    enum slc_dialect dialect;
    const char *compression;
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER]; /* declared, or as far as the sample goes, or of a table: */
    bool table;                   /* what follows from columns is expected, with bounds */
    uint64_t dims_least[SLC_MAX_ORDER], dims_most[SLC_MAX_ORDER];
    bool dims_declared;
    uint64_t input_bytes;  /* as stored; 0: not known */
    uint64_t sample_bytes; /* of them read twice */
    uint64_t text_bytes;   /* decompressed; 0: not known */
    uint64_t entries;      /* 0: not known, nor is what follows from it */
    unsigned workers;
    /* Memory, the process included: while text is read, and while the store is written. */
    uint64_t push_bytes, sort_bytes;
    uint64_t parse_bytes;                   /* of the first, all that is no builder's */
    uint64_t spill_bytes;                   /* of the temporary file */
    uint64_t store_bytes, store_most_bytes; /* as expected, and of the most nonzeros */
    /* Of a table: while it is read, with and without as many strings as there may be; temporary
     * files of rows and strings, and names, which are among store_bytes. */
    uint64_t table_bytes, table_most_bytes;
    uint64_t spool_bytes, spool_most_bytes, spool_read_bytes;
    uint64_t names_bytes, names_most_bytes;
    uint64_t names_memory_bytes; /* set aside for writing names */
    uint64_t enough_bytes;       /* of the budget, for as many strings as there may be */
    bool tight;                  /* it may be too small for them; too_small: it is expected to be */
    bool too_small;
    /* Of options->append: what the store has, and what it is read as; further layouts, which are
     * built again and are among store_bytes. */
    uint64_t old_nnz, old_bytes;
    unsigned layouts;
    /* Seconds of all threads together, divided by their number where they share the work. */
    double always_seconds; /* whatever the input is */
    double old_seconds;    /* decoding the old store */
    double table_seconds;  /* reading a table */
    double parse_seconds, unpack_seconds, scatter_seconds, sort_seconds, encode_seconds;
};

/*
 * Judges, `brief`: at about the cost of 2 % of the run; nothing is written, and of a pipe what is
 * read is gone. Errors: as slc_convert, of the beginning: SLC_ERR_BUDGET names the smallest budget.
 */
enum slc_status slc_convert_forecast(const struct slc_convert_options *options,
                                     bool brief,
                                     struct slc_convert_forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Reads, parses and checks all of the input as slc_convert does, with the same threads, and keeps
 * nothing: the time below which no conversion can be. `output` and whatever concerns only the store
 * are not looked at. Errors: as slc_convert, before the sort.
 */
enum slc_status slc_convert_scan(const struct slc_convert_options *options,
                                 struct slc_convert_report *report,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
