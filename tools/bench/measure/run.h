/*
 * What all benchmarks do alike: parse options, start the record, measure, print the record or
 * tables of it, close. A benchmark brings the steps in between.
 *
 * The record of a benchmark is one JSON object with schema, options, versions and machine, to which
 * the benchmark adds its figures. `--json` prints it and nothing else; otherwise tables are printed
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

/* How often to measure and how to print; field `bench` of a benchmark's arguments. */
struct bench_options {
    uint64_t repeats;
    uint64_t warm_up;
    bool json;
};

/* Row of an option table for a field that bench_memory_set_bytes (ceiling.h) is given. */
#define BENCH_OPTION_ROW_MEMORY_SET(type, field)                                                   \
    OPTION_ROW("memory-set", OPTION_SIZE, type, field, .value = "SIZE",                            \
               .help = "bytes swept for the bandwidth of memory, 1MiB at least; four times the "   \
                       "last cache, 256MiB at least, if not given")

/* Rows of what is measured: several ranks, one mode or all, several numbers of threads. */
#define BENCH_OPTION_ROW_RANKS(type, field, text)                                                  \
    OPTION_ROW("rank", OPTION_COUNTS, type, field, .letter = 'r', .required = true,                \
               .value = "R[,R..]", .minimum = 1, .maximum = SLC_MAX_RANK, .help = (text))
#define BENCH_OPTION_ROW_MODE(type, field)                                                         \
    OPTION_ROW("mode", OPTION_U64, type, field, .value = "K", .fallback = "0",                     \
               .maximum = SLC_MAX_ORDER, .help = "only mode K; 0: all")
#define BENCH_OPTION_ROW_THREADS(type, field)                                                      \
    OPTION_ROW("threads", OPTION_COUNTS, type, field, .letter = 't', .value = "T[,T..]",           \
               .fallback = "0", .maximum = SLC_MAX_THREADS,                                        \
               .help = "threads; 0: one per processor this process may use; several make a sweep")

/* Rows of an option table for the field `bench` of struct `type`. */
#define BENCH_OPTION_ROWS(type, repeats_default)                                                   \
    OPTION_ROW("repeat", OPTION_U64, type, bench.repeats, .letter = 'n', .value = "N",             \
               .fallback = (repeats_default), .minimum = 1, .maximum = BENCH_REPEATS_MAX,          \
               .help = "times each thing is measured; the median is told"),                        \
        OPTION_ROW("warm-up", OPTION_U64, type, bench.warm_up, .value = "N", .fallback = "1",      \
                   .maximum = BENCH_REPEATS_MAX, .help = "runs before those that count"),          \
        OPTION_ROW("json", OPTION_FLAG, type, bench.json,                                          \
                   .help = "one JSON object in place of tables")

/* A new object at the end of a list: a row. */
json_t *bench_add_row(json_t *rows);

/* A member, as slc_json_set_real; null if not finite: JSON has no infinity. */
void bench_set_real(json_t *object, const char *name, double number);

/* Path, dims, nnz, value type and bytes of a store. Owns: as json_object. */
json_t *bench_tensor_to_json(const struct slc_store *store);

/* Opens a store whose --mode is `mode`. Errors: SLC_ERR_USAGE for one it does not have. */
enum slc_status bench_open_store(struct slc_session *session,
                                 const char *path,
                                 uint64_t memory_bytes,
                                 uint64_t mode,
                                 struct slc_error *err) SLC_NODISCARD;

/* The same as "tensor" of the record of a benchmark of one store. */
void bench_set_tensor(json_t *record, const struct slc_store *store);

struct slc_device_info;

/* A GPU as "device" of the record. */
void bench_set_device(json_t *record, const struct slc_device_info *info);

/* A column; an array of them ends with a NULL key. */
struct bench_column {
    const char *key;   /* member of each row */
    const char *title; /* with the unit, e.g. "GB/s" */
    double scale;      /* a real number is printed times this; 0: as it is */
    int decimals;      /* of real numbers */
};

/* A table of the record: printed are the rows of its member `key`. */
struct bench_table {
    const char *key;
    const struct bench_column *columns;
    bool optional;
};

/*
 * Prints `rows`, an array of objects, to standard output: texts to the left, numbers to the right,
 * whole numbers with separators of thousands, "-" for null and for members a row does not have.
 * Columns that no row has a member for are left out.
 */
void bench_table_print(const json_t *rows, const struct bench_column *columns);

/* The steps of a benchmark; `state` is its own and passed to its steps. */
struct bench_steps {
    void *values;                       /* of the command's options, all-zero */
    const struct bench_options *common; /* within `values` */
    void *state;
    struct operands *operands; /* gets all of them; NULL: there is one at most */
    /* Adds the figures to the record. `operand`: the first, or NULL. */
    enum slc_status (*measure)(void *state,
                               const char *operand,
                               json_t *record,
                               struct slc_error *err);
    /* Printed of a record that `measure` filled, with a blank line between two of them; ends with a
       NULL key. Empty ones of the kind `optional` are left out. */
    const struct bench_table *tables;
    void (*print)(const json_t *record); /* what is printed after them; NULL: nothing */
    /* Releases what `measure` left, also after an error; NULL: nothing to release. */
    void (*close)(void *state);
};

/* Runs the benchmark and returns the exit code of the command. */
int bench_run(const struct command *command,
              int argc,
              char **argv,
              const struct bench_steps *steps);

/*
 * Makes an empty folder for what a benchmark writes and removes again, within `parent`; NULL:
 * $TMPDIR, or /tmp. A signal that ends the program removes it, for which the signal thread is
 * started: one folder a program, made before any other thread. Owns: *path,
 * bench_temp_folder_remove. Errors: SLC_ERR_IO, SLC_ERR_MEMORY, SLC_ERR_SYSTEM; *path is unchanged.
 */
enum slc_status
bench_temp_folder(const char *parent, char **path, struct slc_error *err) SLC_NODISCARD;

/* Removes it and all in it, or says that it is left; frees `path`. Takes NULL. */
void bench_temp_folder_remove(char *path);

#endif
