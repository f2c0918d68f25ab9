/*
 * The frame of all benchmarks. It parses options, creates the record, measures, prints the record
 * or its tables, and closes. A benchmark supplies the steps that are specific to it.
 *
 * The record of a benchmark is one JSON object with schema, options, versions and machine, to which
 * the benchmark adds its figures. `--json` prints only the record; otherwise tables are printed
 * from it, so that the text and `--json` cannot disagree. Names of members end in their unit.
 */
#ifndef SLC_TOOLS_BENCH_RUN_H
#define SLC_TOOLS_BENCH_RUN_H

#include "base/error/error.h"
#include "report/json_parts.h"
#include "storage/manifest/store.h"
#include "tools/bench/measure/timing.h"
#include "tools/options/options.h"
#include "tools/session/session.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Options for repetition and output: field `bench` of a benchmark's arguments. */
struct bench_options {
    uint64_t repeats;
    uint64_t warm_up;
    bool json;
};

/* Option row for the argument of bench_memory_set_bytes (ceiling.h). */
#define BENCH_OPTION_ROW_MEMORY_SET(type, field)                                                   \
    OPTION_ROW(                                                                                    \
        "memory-set", OPTION_SIZE, type, field, .value = "SIZE",                                   \
        .help = "bytes read to measure the bandwidth of memory, at least 1MiB; without it, four "  \
                "times the last-level cache, at least 256MiB")

/* Option rows for ranks, one or all modes, and numbers of threads. */
#define BENCH_OPTION_ROW_RANKS(type, field, text)                                                  \
    OPTION_ROW("rank", OPTION_COUNTS, type, field, .letter = 'r', .required = true,                \
               .value = "R[,R..]", .minimum = 1, .maximum = SLC_MAX_RANK, .help = (text))
#define BENCH_OPTION_ROW_MODE(type, field)                                                         \
    OPTION_ROW("mode", OPTION_U64, type, field, .value = "K", .fallback = "0",                     \
               .maximum = SLC_MAX_ORDER, .help = "only mode K; 0: all")
#define BENCH_OPTION_ROW_THREADS(type, field)                                                      \
    OPTION_ROW(                                                                                    \
        "threads", OPTION_COUNTS, type, field, .letter = 't', .value = "T[,T..]", .fallback = "0", \
        .maximum = SLC_MAX_THREADS,                                                                \
        .help = "threads; 0: one per processor this process may use; several values make a sweep")

/* Option rows for the field `bench` of struct `type`. */
#define BENCH_OPTION_ROWS(type, repeats_default)                                                   \
    OPTION_ROW("repeat", OPTION_U64, type, bench.repeats, .letter = 'n', .value = "N",             \
               .fallback = (repeats_default), .minimum = 1, .maximum = BENCH_REPEATS_MAX,          \
               .help = "measurements of each quantity; the median is reported"),                   \
        OPTION_ROW("warm-up", OPTION_U64, type, bench.warm_up, .value = "N", .fallback = "1",      \
                   .maximum = BENCH_REPEATS_MAX, .help = "runs before the measured ones"),         \
        OPTION_ROW("json", OPTION_FLAG, type, bench.json,                                          \
                   .help = "print one JSON object instead of tables")

/* Appends a new object, a row, to a list. */
json_t *bench_add_row(json_t *rows);

/* Sets a member like slc_json_set_real. A number that is not finite becomes null, because JSON has
 * no infinity. */
void bench_set_real(json_t *object, const char *name, double number);

/* Returns an object with path, dims, nnz, value type and bytes of a store. Owns: release with
 * json_decref. */
json_t *bench_tensor_to_json(const struct slc_store *store);

/* Opens a store and checks `mode`, the value of --mode. Errors: SLC_ERR_USAGE for another mode. */
enum slc_status bench_open_store(struct slc_session *session,
                                 const char *path,
                                 uint64_t memory_bytes,
                                 uint64_t mode,
                                 struct slc_error *err) SLC_NODISCARD;

/* Sets "tensor" of a record to bench_tensor_to_json, for benchmarks of one store. */
void bench_set_tensor(json_t *record, const struct slc_store *store);

struct slc_device_info;

/* Sets "device" of the record to a description of a GPU. */
void bench_set_device(json_t *record, const struct slc_device_info *info);

/* A column; an array of them ends with a NULL key. */
struct bench_column {
    const char *key;   /* member of each row */
    const char *title; /* with the unit, e.g. "GB/s" */
    double scale;      /* factor by which a real number is multiplied before printing; 0: none */
    int decimals;      /* decimals of real numbers */
};

/* A table that prints the rows of the record's member `key`. */
struct bench_table {
    const char *key;
    const struct bench_column *columns;
    bool optional;
};

/*
 * Prints `rows`, an array of objects, to standard output. Columns with texts are aligned left,
 * numbers right; whole numbers have thousands separators; null and missing members are printed as
 * "-". A column is left out if no row has its member.
 */
void bench_table_print(const json_t *rows, const struct bench_column *columns);

/* The steps of a benchmark. `state` is passed to `measure` and `close`. */
struct bench_steps {
    void *values;                       /* values of the command's options, initially all-zero */
    const struct bench_options *common; /* within `values` */
    void *state;
    struct operands *operands; /* receives all operands; NULL: at most one operand */
    /* Adds the figures to the record. `operand`: the first operand, or NULL. */
    enum slc_status (*measure)(void *state,
                               const char *operand,
                               json_t *record,
                               struct slc_error *err);
    /* Tables printed from the record, separated by blank lines. A NULL key ends the list. A table
     * with `optional` is left out if it is empty. */
    const struct bench_table *tables;
    void (*print)(const json_t *record); /* prints more after the tables; NULL: nothing */
    /* Releases the state of `measure`, also after an error; NULL: nothing to release. */
    void (*close)(void *state);
};

/* Runs the benchmark and returns the exit code of the command. */
int bench_run(const struct command *command,
              int argc,
              char **argv,
              const struct bench_steps *steps);

/*
 * Creates an empty folder for a benchmark's temporary files in `parent`; NULL: in $TMPDIR, or /tmp.
 * Starts the signal thread, which removes the folder if a signal ends the program. Needs: called
 * once per program, before any other thread is created. Owns: release *path with
 * bench_temp_folder_remove. Errors: SLC_ERR_IO, SLC_ERR_MEMORY, SLC_ERR_SYSTEM; *path is unchanged.
 */
enum slc_status
bench_temp_folder(const char *parent, char **path, struct slc_error *err) SLC_NODISCARD;

/* Removes the folder and its contents, or prints a note if that fails. Frees `path`. Accepts
 * NULL. */
void bench_temp_folder_remove(char *path);

#endif
