/* Runs any benchmark: parses options, creates the record, measures, prints the record or its
 * tables, and releases the state. Each benchmark supplies the steps that are specific to it.
 *
 * The record of a benchmark is one JSON object with schema, options, versions and machine. The
 * benchmark adds its figures, whose names end in their unit. `--json` prints only the record.
 * Otherwise tables are printed from the record, so that they cannot disagree with `--json`. */
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

/* Options for repetition and output, member `bench` of the arguments of a benchmark. */
struct bench_options {
    uint64_t repeats;
    uint64_t warm_up;
    bool json;
};

/* Option row for the argument of bench_memory_set_bytes (ceiling.h). */
#define BENCH_OPTION_ROW_MEMORY_SET(type, field)                                                   \
    OPTION_ROW("memory-set", OPTION_SIZE, type, field, .value = "SIZE",                            \
               .help = "bytes read to measure the bandwidth of memory, at least "                  \
                       "1MiB; if not given, four times the last-level cache, but at "              \
                       "least 256MiB and at most a quarter of the memory")

/* Option rows for ranks, for one mode or all modes, and for numbers of threads. */
#define BENCH_OPTION_ROW_RANKS(type, field, text)                                                  \
    OPTION_ROW("rank", OPTION_COUNTS, type, field, .letter = 'r', .required = true,                \
               .value = "R[,R..]", .minimum = 1, .maximum = SLC_MAX_RANK, .help = (text))
#define BENCH_OPTION_ROW_MODE(type, field)                                                         \
    OPTION_ROW("mode", OPTION_U64, type, field, .value = "K", .fallback = "0",                     \
               .maximum = SLC_MAX_ORDER, .help = "measure only mode K; 0 means all modes")
#define BENCH_OPTION_ROW_THREADS(type, field)                                                      \
    OPTION_ROW("threads", OPTION_COUNTS, type, field, .letter = 't', .value = "T[,T..]",           \
               .fallback = "0", .maximum = SLC_MAX_THREADS,                                        \
               .help = "threads; 0 means one per processor this process may use; several values "  \
                       "are measured one after the other")

/* Option rows that set member `bench` of struct `type`. */
#define BENCH_OPTION_ROWS(type, repeats_default)                                                   \
    OPTION_ROW("repeat", OPTION_U64, type, bench.repeats, .letter = 'n', .value = "N",             \
               .fallback = (repeats_default), .minimum = 1, .maximum = BENCH_REPEATS_MAX,          \
               .help = "measurements of each quantity; the median is reported"),                   \
        OPTION_ROW("warm-up", OPTION_U64, type, bench.warm_up, .value = "N", .fallback = "1",      \
                   .maximum = BENCH_REPEATS_MAX, .help = "runs before the measured runs"),         \
        OPTION_ROW("json", OPTION_FLAG, type, bench.json,                                          \
                   .help = "print one JSON object instead of tables")

/* Appends a new object, which is a row of a table, to `rows` and returns it. */
json_t *bench_add_row(json_t *rows);

/* Sets a member to a number like slc_json_set_real, or to null if the number is not finite, because
 * JSON has no infinity. */
void bench_set_real(json_t *object, const char *name, double number);

/* Returns an object with path, dims, nnz, value type and bytes of a store. The caller must call
 * json_decref. */
json_t *bench_tensor_to_json(const struct slc_store *store);

/* Opens a store and checks `mode`, the value of --mode. Errors: SLC_ERR_USAGE if the store has
 * fewer modes. */
enum slc_status bench_open_store(struct slc_session *session,
                                 const char *path,
                                 uint64_t memory_bytes,
                                 uint64_t mode,
                                 struct slc_error *err) SLC_NODISCARD;

/* Sets member "tensor" of a record to bench_tensor_to_json, for benchmarks of one store. */
void bench_set_tensor(json_t *record, const struct slc_store *store);

struct slc_device_info;

/* Sets member "device" of the record to a description of a GPU. */
void bench_set_device(json_t *record, const struct slc_device_info *info);

/* A column of a table. An array of columns ends with a NULL key. */
struct bench_column {
    const char *key;   /* member of each row */
    const char *title; /* heading with the unit, such as "GB/s" */
    double scale;      /* factor of real numbers before printing; 0 leaves them as they are */
    int decimals;      /* number of decimals of real numbers */
};

/* A table of the rows in member `key` of the record. */
struct bench_table {
    const char *key;
    const struct bench_column *columns;
    bool optional;
};

/* Prints `rows`, an array of objects, to standard output. Columns with texts are aligned left,
 * columns of numbers right. Whole numbers have thousands separators. Null and missing members are
 * printed as "-". A column is omitted if no row has its member. */
void bench_table_print(const json_t *rows, const struct bench_column *columns);

/* The steps of a benchmark. `state` is passed to `measure` and `close`. */
struct bench_steps {
    void *values;                       /* values of the command's options, initially all-zero */
    const struct bench_options *common; /* within `values` */
    void *state;
    struct operands *operands; /* receives all operands; NULL if the command has at most one */
    /* Measures and adds the figures to the record. `operand` is the first operand, or NULL. */
    enum slc_status (*measure)(void *state,
                               const char *operand,
                               json_t *record,
                               struct slc_error *err);
    /* Tables to print from the record, separated by blank lines. A NULL key ends the list. A table
     * with `optional` is omitted if it is empty. */
    const struct bench_table *tables;
    void (*print)(const json_t *record); /* prints more after the tables; may be NULL */
    /* Releases the state of `measure`, also after an error. NULL if there is nothing to release. */
    void (*close)(void *state);
};

/* Runs the benchmark and returns the exit code of the command. */
int bench_run(const struct command *command,
              int argc,
              char **argv,
              const struct bench_steps *steps);

/* Creates an empty folder for the temporary files of a benchmark in `parent`. If `parent` is NULL,
 * uses $TMPDIR or /tmp. Starts the signal thread, which removes the folder if a signal ends the
 * program. Needs: called once per program, before any other thread is created. The caller must call
 * bench_temp_folder_remove with *path. Errors: SLC_ERR_IO, SLC_ERR_MEMORY, SLC_ERR_SYSTEM; *path is
 * unchanged. */
enum slc_status
bench_temp_folder(const char *parent, char **path, struct slc_error *err) SLC_NODISCARD;

/* Removes the folder and its contents, or prints a note if it cannot be removed. Frees `path`,
 * which may be NULL. */
void bench_temp_folder_remove(char *path);

#endif
