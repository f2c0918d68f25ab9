/* Options and report that convert and generate share: both end in the store builder. */
#ifndef SLC_TOOLS_BUILD_OPTIONS_H
#define SLC_TOOLS_BUILD_OPTIONS_H

#include "convert/build/builder.h"
#include "convert/ingest/names/name_maps.h"
#include "convert/reshape/reshape.h"
#include "tools/forecast/forecast.h"
#include "tools/progress/cleanup.h"
#include "tools/progress/progress.h"
#include "tools/session/common_options.h"

#include <stdbool.h>
#include <stdint.h>

struct build_options {
    const char *codec;
    const char *fibers;
    const char *relabel;
    const char *temp_dir;
    const char *progress;
    const char *log_json;
    uint64_t block_bytes;
    uint64_t memory;
    uint64_t max_temp;
    uint64_t threads;
    bool force;
    bool quiet;
};

extern const char *const build_codec_choices[];
extern const char *const build_relabel_choices[];

/* Rows of an option table for the field `build` of struct `type`: what is in the store .. */
#define BUILD_STORE_OPTION_ROWS(type)                                                              \
    OPTION_ROW("codec", OPTION_CHOICE, type, build.codec, .value = "NAME", .fallback = "packed",   \
               .choices = build_codec_choices,                                                     \
               .help = "how blocks are stored: packed, lz4 or blco"),                              \
        OPTION_ROW("fibers", OPTION_STRING, type, build.fibers, .value = "MODE",                   \
                   .fallback = "auto",                                                             \
                   .help = "mode whose fibers are kept together in the store: auto, none, or "     \
                           "MODE[:BITS], pieces of 2^BITS indices (12 if not given, 1 to 24)"),    \
        OPTION_ROW("relabel", OPTION_CHOICE, type, build.relabel, .value = "HOW",                  \
                   .fallback = "none", .choices = build_relabel_choices,                           \
                   .help = "number indices within the store by frequency where that makes it "     \
                           "smaller: none or frequency")

/* .. of commands that make one store from another .. */
#define BUILD_OPTION_ROW_FIBERS_AGAIN(type)                                                        \
    OPTION_ROW("fibers", OPTION_STRING, type, build.fibers, .value = "MODE", .fallback = "auto",   \
               .help = "mode whose fibers are kept together in the store, as of sluice convert")

/* .. with how much room, `place` being where temporary files go .. */
#define BUILD_ROOM_OPTION_ROWS(type, place)                                                        \
    OPTION_ROW("block-bytes", OPTION_SIZE, type, build.block_bytes, .value = "SIZE",               \
               .fallback = "4MiB",                                                                 \
               .help = "target size of a block, 4KiB to 1GiB; a block holds at least one tile"),   \
        OPTION_ROW_MEMORY(type, build.memory),                                                     \
        OPTION_ROW("temp-dir", OPTION_STRING, type, build.temp_dir, .value = "DIR",                \
                   .help = "folder for what does not fit in memory; beside the " place             \
                           " if not given"),                                                       \
        OPTION_ROW("max-temp", OPTION_SIZE, type, build.max_temp, .value = "SIZE",                 \
                   .help = "largest temporary file permitted; no limit if not given"),             \
        OPTION_ROW_THREADS(type, build.threads)
#define BUILD_REPORT_OPTION_ROWS(type)                                                             \
    OPTION_ROW_PROGRESS(type, build.progress), OPTION_ROW_LOG_JSON(type, build.log_json),          \
        OPTION_ROW_QUIET(type, build.quiet)

/* .. and all of how it is made. */
#define BUILD_WORK_OPTION_ROWS(type)                                                               \
    BUILD_ROOM_OPTION_ROWS(type, "output"), OPTION_ROW_OVERWRITE(type, build.force),               \
        BUILD_REPORT_OPTION_ROWS(type)

/* Everything. */
#define BUILD_OPTION_ROWS(type) BUILD_STORE_OPTION_ROWS(type), BUILD_WORK_OPTION_ROWS(type)

/*
 * Which fibers are kept together; *run is set where the user names a mode. Errors: SLC_ERR_USAGE.
 */
enum slc_status build_fibers(const struct build_options *options,
                             enum slc_fibers *fibers,
                             struct slc_fiber_run *run,
                             struct slc_error *err) SLC_NODISCARD;

/* How blocks are stored. Errors: SLC_ERR_USAGE. */
enum slc_status build_codec(const struct build_options *options,
                            enum slc_codec *codec,
                            struct slc_error *err) SLC_NODISCARD;

/* Sets what internal options of any kind say of room, threads and progress. */
#define BUILD_SET(to, options)                                                                     \
    do {                                                                                           \
        (to)->block_bytes = (options)->block_bytes;                                                \
        (to)->memory_bytes = (options)->memory;                                                    \
        (to)->temp_folder = (options)->temp_dir;                                                   \
        (to)->max_temp = (options)->max_temp;                                                      \
        (to)->threads = build_threads(options);                                                    \
        (to)->overwrite = (options)->force;                                                        \
        (to)->progress = progress_phase;                                                           \
        (to)->publishing = cleanup_publishing;                                                     \
    } while (0)

/* How indices are numbered. */
enum slc_relabel build_relabel(const struct build_options *options);

/*
 * What the option --labels names, all of it; `names` is all zero before. Owns:
 * slc_name_maps_destroy, also after an error. Errors: those of slc_name_maps_add.
 */
enum slc_status build_labels(const struct option_strings *labels,
                             struct slc_name_maps *names,
                             struct slc_error *err) SLC_NODISCARD;

/* Threads to use: as asked, or one per processor. */
unsigned build_threads(const struct build_options *options);

/*
 * Starts console, progress and signals for a command that writes `output` and cannot stop half-way:
 * a signal removes what is unfinished and ends the process.
 */
enum slc_status build_start(const struct build_options *options,
                            const char *output,
                            struct slc_error *err) SLC_NODISCARD;

/* What the builder made of the entries: nonzeros, blocks, bytes per nonzero, times. */
void build_report(const struct slc_builder_report *report, unsigned order, const uint64_t *dims);

/* Peak memory against the budget. */
void build_report_memory(uint64_t budget_bytes);

/* The row of an option table for the chain of transforms at `field` of struct `type`. */
#define OPTION_ROW_TRANSFORM(type, field)                                                          \
    OPTION_ROW("transform", OPTION_MORE_STRINGS, type, field, .value = "F",                        \
               .help = "log1p, binarize, abs or scale=FACTOR of each value, duplicates combined; " \
                       "several are made in turn")

extern const char *const reshape_codec_choices[];
extern const char *const reshape_relabel_choices[];

/* The rows of build_options.h, but for what is as in the store that is reshaped. */
#define RESHAPE_OPTION_ROWS(type)                                                                  \
    OPTION_ROW("codec", OPTION_CHOICE, type, build.codec, .value = "NAME", .fallback = "keep",     \
               .choices = reshape_codec_choices,                                                   \
               .help = "how blocks are stored: keep (as in X), packed, lz4 or blco"),              \
        OPTION_ROW("relabel", OPTION_CHOICE, type, build.relabel, .value = "HOW",                  \
                   .fallback = "keep", .choices = reshape_relabel_choices,                         \
                   .help = "number indices within the store by frequency where that makes it "     \
                           "smaller: keep (where X does), none or frequency"),                     \
        BUILD_OPTION_ROW_FIBERS_AGAIN(type), BUILD_WORK_OPTION_ROWS(type)

/* The transforms that were given. Errors: SLC_ERR_USAGE. */
enum slc_status reshape_transforms(const struct option_strings *given,
                                   struct slc_transforms *transforms,
                                   struct slc_error *err) SLC_NODISCARD;

/* Fills what the shared options say, reshapes and reports, or tells what that would take. Returns
 * the exit code. */
int reshape_run(const struct build_options *build,
                const struct option_strings *transforms,
                const struct forecast_options *forecast,
                struct slc_reshape_options *reshape);

#endif
