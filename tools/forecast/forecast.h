/*
 * What a command that makes or reads whole files would take, for --dry-run: memory per buffer, disk
 * (temporary and final, against what is free), bytes, passes, time and what limits it. Commands
 * that iterate are judged by a beginning instead: estimate.h.
 */
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
    bool brief; /* of a run that begins: drives are tried where much is read or written alone */
};

/* The rows of commands that have no --json of their own. A member is no expression:
 * NOLINTBEGIN(bugprone-macro-parentheses) */
#define FORECAST_OPTION_ROWS(type, field)                                                          \
    OPTION_ROW("dry-run", OPTION_FLAG, type, field.dry_run,                                        \
               .help = "tell what memory, disk and time it would take; write nothing"),            \
        OPTION_ROW("no-probe", OPTION_FLAG, type, field.no_probe,                                  \
                   .help = "of --dry-run: try no drive, and estimate no time"),                    \
        OPTION_ROW("json", OPTION_FLAG, type, field.json, .help = "of --dry-run: one JSON object")
/* NOLINTEND(bugprone-macro-parentheses) */

enum { FORECAST_BUFFERS = 8, FORECAST_PHASES = 6, FORECAST_PARTS = 4 };

/* What goes on at the same time; the longest is the phase's time. */
struct forecast_part {
    const char *what; /* "parsing" */
    double seconds;
};

struct forecast {
    const char *command;
    bool brief;
    uint64_t budget_bytes;
    uint64_t memory_bytes;      /* peak that is expected */
    uint64_t memory_most_bytes; /* that it may be, where that is not certain; else 0, as below */
    unsigned buffers;
    struct {
        const char *name, *what;
        uint64_t bytes;
    } buffer[FORECAST_BUFFERS];
    const char *output;      /* what is written; NULL: nothing, or not to a disk */
    const char *temp_folder; /* of the temporary file; NULL: beside the output */
    uint64_t final_bytes, temp_bytes;
    uint64_t final_most_bytes, temp_most_bytes;
    uint64_t free_bytes, temp_free_bytes; /* UINT64_MAX: not known */
    uint64_t read_bytes, written_bytes;
    const char *passes;
    double read_rate, write_rate; /* bytes a second of the drives, as tried; 0: not tried */
    unsigned phases;
    struct {
        const char *name;
        unsigned parts;
        struct forecast_part part[FORECAST_PARTS];
    } phase[FORECAST_PHASES];
};

void forecast_buffer(struct forecast *forecast, const char *name, uint64_t bytes, const char *what);
/* What starting a process and opening its files takes. */
#define FORECAST_START_SECONDS 0.015

/* Begins a phase; and adds to it what it does, unless that takes no time. */
void forecast_phase(struct forecast *forecast, const char *name);
void forecast_part(struct forecast *forecast, const char *what, double seconds);

/*
 * How fast the input is read, and files are written where the output would be: some tens of
 * megabytes, or a fifth of a second. What is written has no name, and is gone when its file is
 * closed; where a file system has no such files it is not tried. `input` NULL: not tried, either.
 */
void forecast_try_drives(struct forecast *forecast, const char *input);

/*
 * Bytes a second of reading a block file from its beginning, `most` of it, past the page cache
 * where that can be; of one in stripes, of the first: more of them may lie on one drive. 0 where
 * nothing is read. Errors: those of opening and reading.
 */
enum slc_status forecast_try_reading(const char *path,
                                     uint64_t most,
                                     double *rate,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Whether the disk has room for what would be written. Errors: SLC_ERR_BUDGET, saying what is free
 * and what is needed.
 */
enum slc_status forecast_check_room(struct forecast *forecast, struct slc_error *err) SLC_NODISCARD;

/* Seconds of everything, and what takes most of them; below 0 and NULL without phases. */
double forecast_seconds(const struct forecast *forecast, const char **bottleneck);

/* The lines "time" and "bottleneck" alone. */
void forecast_print_time(const struct forecast *forecast);

/*
 * What a dry run tells: the heading `format`, unless `json`, and the forecast. Errors: as
 * forecast_check_room, before anything is told; SLC_ERR_MEMORY.
 */
enum slc_status forecast_dry_run(struct forecast *forecast,
                                 bool json,
                                 struct slc_error *err,
                                 const char *format,
                                 ...) SLC_NODISCARD SLC_PRINTF(4, 5);

/* The lines of it, or one JSON object. Errors: SLC_ERR_MEMORY. */
enum slc_status
forecast_report(const struct forecast *forecast, bool json, struct slc_error *err) SLC_NODISCARD;

/* The time that a product with vectors or a matrix is expected to take, for its dry run. */
struct forecast_product {
    const struct slc_reader *reader; /* what would be read; NULL: a layout of the store at .. */
    const char *store;
    enum slc_layout_kind layout;
    unsigned mode;      /* unless it is blco */
    const char *output; /* NULL: a number */
    uint64_t memory_bytes;
    bool brief; /* as struct forecast has it */
    unsigned threads;
    uint64_t written_bytes; /* at most; 0: not known, as is whether the disk has room */
    double decodings;       /* that a nonzero takes a thread as long as, all steps together */
};

/*
 * The same for a run that begins: fills the forecast's command, output, what would be written, and
 * time, but for phases where nothing can be tried. Errors: those of the store.
 */
enum slc_status forecast_product_judge(const struct forecast_product *product,
                                       struct forecast *forecast,
                                       struct slc_error *err) SLC_NODISCARD;

/*
 * Tries some tiles of the layout and the drives, and prints "time" and "bottleneck"; nothing where
 * nothing can be tried. Errors: SLC_ERR_BUDGET where the disk has no room; those of the store.
 */
enum slc_status forecast_product(const struct forecast_product *product,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
