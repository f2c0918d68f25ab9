/* Forecasts for --dry-run of commands that build or read whole files: memory per buffer, disk space
 * (temporary, final and free), bytes, passes, time and bottleneck. Iterative commands are estimated
 * by a trial run (estimate.h). */
#ifndef SLC_TOOLS_FORECAST_H
#define SLC_TOOLS_FORECAST_H

#include "base/error/error.h"
#include "base/text/format.h"
#include "storage/manifest/store.h"
#include "tools/session/common_options.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct forecast_options {
    bool dry_run, no_probe, json;
    bool brief; /* estimate at the start of a run: drives are tested only if much data is moved */
};

/* Option rows for commands whose --json prints only a dry run. `field` names a member, so it cannot
 * be in parentheses: NOLINTBEGIN(bugprone-macro-parentheses) */
#define FORECAST_OPTION_ROWS(type, field)                                                          \
    OPTION_ROW("dry-run", OPTION_FLAG, type, field.dry_run,                                        \
               .help = "estimate memory, disk space and time, and write nothing"),                 \
        OPTION_ROW("no-probe", OPTION_FLAG, type, field.no_probe,                                  \
                   .help =                                                                         \
                       "with --dry-run: do not test the drives, and do not estimate the time"),    \
        OPTION_ROW("json", OPTION_FLAG, type, field.json,                                          \
                   .help = "with --dry-run: print one JSON object")
/* NOLINTEND(bugprone-macro-parentheses) */

enum { FORECAST_BUFFERS = 8, FORECAST_PHASES = 6, FORECAST_PARTS = 4 };

/* One of the concurrent activities of a phase. The slowest determines the time of the phase. */
struct forecast_part {
    const char *what; /* such as "parsing" */
    double seconds;
};

struct forecast {
    const char *command;
    bool brief;
    uint64_t budget_bytes;
    uint64_t memory_bytes;      /* expected peak of the memory */
    uint64_t memory_most_bytes; /* upper bound; 0 if memory_bytes is exact. The other *_most_bytes
                                 * have the same meaning */
    unsigned buffers;
    struct {
        const char *name, *what;
        uint64_t bytes;
    } buffer[FORECAST_BUFFERS];
    const char *output;      /* output path; NULL: there is no output, or it is not on a disk */
    const char *temp_folder; /* folder of the temporary file; NULL: folder of the output */
    uint64_t final_bytes, temp_bytes;
    uint64_t final_most_bytes, temp_most_bytes;
    /* free disk space for the output and for the temporary file; UINT64_MAX: unknown */
    uint64_t free_bytes, temp_free_bytes;
    uint64_t read_bytes, written_bytes;
    const char *passes;
    double read_rate, write_rate; /* measured bytes per second of the drives; 0: not measured */
    unsigned phases;
    struct {
        const char *name;
        unsigned parts;
        struct forecast_part part[FORECAST_PARTS];
    } phase[FORECAST_PHASES];
};

void forecast_add_buffer(struct forecast *forecast,
                         const char *name,
                         uint64_t bytes,
                         const char *what);
/* Time to start a process and open its files. */
#define FORECAST_START_SECONDS 0.015

/* forecast_add_phase adds a phase; forecast_add_part adds an activity to the last phase, unless its
 * time is 0. */
void forecast_add_phase(struct forecast *forecast, const char *name);
void forecast_add_part(struct forecast *forecast, const char *what, double seconds);

/* Measures how fast `input` is read and how fast files in the folder of the output are written.
 * Each test ends after a few tens of megabytes or a fifth of a second, whichever comes first. The
 * written file is unnamed and disappears when it is closed; writing is not measured on file systems
 * without unnamed files. If `input` is NULL, reading is not measured. */
void forecast_try_drives(struct forecast *forecast, const char *input);

/* Measures the bytes per second for reading `most` bytes from the start of a block file, which is
 * opened with `files`, bypassing the page cache if possible. Only the first stripe is read, because
 * several stripes may be on one drive. The rate is 0 if nothing is read. Errors: those of opening
 * and reading. */
enum slc_status forecast_try_reading(const struct slc_files *files,
                                     const char *path,
                                     uint64_t most,
                                     double *rate,
                                     struct slc_error *err) SLC_NODISCARD;

/* Checks that the disk has space for the output. Errors: SLC_ERR_BUDGET, with the free and the
 * required bytes. */
enum slc_status forecast_check_space(struct forecast *forecast,
                                     struct slc_error *err) SLC_NODISCARD;

/* Returns the total seconds, and sets *bottleneck to the name of the activity that takes most of
 * the time. Without phases, returns a number below 0 and sets *bottleneck to NULL. */
double forecast_seconds(const struct forecast *forecast, const char **bottleneck);

/* Prints only the lines "time" and "bottleneck". */
void forecast_print_time(const struct forecast *forecast);

/* Prints the report of a dry run: the heading `format`, unless `json`, and the forecast. Errors:
 * those of forecast_check_space, which fails before anything is printed; SLC_ERR_MEMORY. */
enum slc_status forecast_dry_run(struct forecast *forecast,
                                 bool json,
                                 struct slc_error *err,
                                 const char *format,
                                 ...) SLC_NODISCARD SLC_PRINTF(4, 5);

/* Prints the forecast as lines or as one JSON object. Errors: SLC_ERR_MEMORY. */
enum slc_status
forecast_report(const struct forecast *forecast, bool json, struct slc_error *err) SLC_NODISCARD;

/* A product with vectors or a matrix, for the time forecast of its dry run. */
struct forecast_product {
    /* reader of the layout; NULL: the reader of the layout of `store` that `layout` and `mode`
     * name */
    const struct slc_reader *reader;
    const char *store;
    enum slc_layout_kind layout;
    unsigned mode;      /* mode of the layout; not used for blco */
    const char *output; /* NULL: the result is a number */
    uint64_t memory_bytes;
    bool brief; /* as in struct forecast */
    unsigned threads;
    /* upper bound of the bytes written; 0: unknown, and the disk space is not checked */
    uint64_t written_bytes;
    double decodings; /* cost of all steps of a nonzero on one thread, as a multiple of the
                       * cost of decoding it */
};

/* Makes the forecast at the start of a run: sets command, output, written bytes and time. Adds no
 * phases if nothing can be measured. Errors: those of the store. */
enum slc_status forecast_product_estimate(const struct forecast_product *product,
                                          struct forecast *forecast,
                                          struct slc_error *err) SLC_NODISCARD;

/* Measures the drives and some tiles of the layout, and prints "time" and "bottleneck". Prints
 * nothing if nothing can be measured. Errors: SLC_ERR_BUDGET if the disk has not enough space;
 * those of the store. */
enum slc_status forecast_product(const struct forecast_product *product,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
