/* Options and reports that the commands which build a store have in common. */
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

/* Option rows for the contents of the store. They set member `build` of struct `type`. */
#define BUILD_STORE_OPTION_ROWS(type)                                                              \
    OPTION_ROW("codec", OPTION_CHOICE, type, build.codec, .value = "NAME", .fallback = "packed",   \
               .choices = build_codec_choices,                                                     \
               .help = "codec of the blocks: packed, lz4 or blco"),                                \
        OPTION_ROW(                                                                                \
            "fibers", OPTION_STRING, type, build.fibers, .value = "MODE", .fallback = "auto",      \
            .help = "mode whose fibers are kept together: auto, none, or MODE[:BITS]; "            \
                    "fibers are split into pieces of 2^BITS indices (BITS from 1 to 24, 12 "       \
                    "if not given)"),                                                              \
        OPTION_ROW("relabel", OPTION_CHOICE, type, build.relabel, .value = "HOW",                  \
                   .fallback = "none", .choices = build_relabel_choices,                           \
                   .help = "renumber indices within the store by frequency if that makes it "      \
                           "smaller: none or frequency")

/* Row of --fibers for commands that make a store from another store. */
#define BUILD_OPTION_ROW_FIBERS_AGAIN(type)                                                        \
    OPTION_ROW("fibers", OPTION_STRING, type, build.fibers, .value = "MODE", .fallback = "auto",   \
               .help = "mode whose fibers are kept together, as for sluice convert")

/* Rows for memory, disk space and threads. By default, the temporary file is next to the output,
 * which `place` names. */
#define BUILD_MEMORY_OPTION_ROWS(type, place)                                                      \
    OPTION_ROW_MEMORY(type, build.memory),                                                         \
        OPTION_ROW("temp-dir", OPTION_STRING, type, build.temp_dir, .value = "DIR",                \
                   .help = "folder of the temporary file of nonzeros that exceed the budget; if "  \
                           "not given, the folder of the unfinished store, next to the " place),   \
        OPTION_ROW("max-temp", OPTION_SIZE, type, build.max_temp, .value = "SIZE",                 \
                   .help = "maximum size of the temporary file; if not given, there is no limit"), \
        OPTION_ROW_THREADS(type, build.threads)
#define BUILD_RESOURCE_OPTION_ROWS(type, place)                                                    \
    OPTION_ROW("block-bytes", OPTION_SIZE, type, build.block_bytes, .value = "SIZE",               \
               .fallback = "4MiB",                                                                 \
               .help = "target size of a block, 4KiB to 1GiB; a block holds at least one tile"),   \
        BUILD_MEMORY_OPTION_ROWS(type, place)
#define BUILD_REPORT_OPTION_ROWS(type)                                                             \
    OPTION_ROW_PROGRESS(type, build.progress), OPTION_ROW_LOG_JSON(type, build.log_json),          \
        OPTION_ROW_QUIET(type, build.quiet)

/* Rows for memory, disk space, threads, output and progress. */
#define BUILD_WORK_OPTION_ROWS(type)                                                               \
    BUILD_RESOURCE_OPTION_ROWS(type, "output"), OPTION_ROW_OVERWRITE(type, build.force),           \
        BUILD_REPORT_OPTION_ROWS(type)

/* All option rows of commands that build a store. */
#define BUILD_OPTION_ROWS(type) BUILD_STORE_OPTION_ROWS(type), BUILD_WORK_OPTION_ROWS(type)

/* Parses --fibers. If it names a mode, also sets *run. Errors: SLC_ERR_USAGE. */
enum slc_status build_fibers(const struct build_options *options,
                             enum slc_fibers *fibers,
                             struct slc_fiber_run *run,
                             struct slc_error *err) SLC_NODISCARD;

/* Parses --codec. Errors: SLC_ERR_USAGE. */
enum slc_status build_codec(const struct build_options *options,
                            enum slc_codec *codec,
                            struct slc_error *err) SLC_NODISCARD;

/* Copies the shared options into the options of any library operation that builds a store. */
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

/* Returns the value of --relabel. */
enum slc_relabel build_relabel(const struct build_options *options);

/* Adds all files of --labels to `names`, which must be zeroed. The caller must call
 * slc_name_maps_destroy, also after an error. Errors: those of slc_name_maps_add. */
enum slc_status build_labels(const struct option_strings *labels,
                             struct slc_name_maps *names,
                             struct slc_error *err) SLC_NODISCARD;

/* Returns the number of threads: the value of the option, or one per processor. */
unsigned build_threads(const struct build_options *options);

/* Starts the console, the progress display and the signal handlers of a command that writes
 * `output` and cannot stop midway: a signal removes unfinished files and ends the process. */
enum slc_status build_start(const struct build_options *options,
                            const char *output,
                            struct slc_error *err) SLC_NODISCARD;
/* As build_start, for a command that writes several stores. */
enum slc_status build_start_all(const struct build_options *options,
                                const struct cleanup_outputs *outputs,
                                struct slc_error *err) SLC_NODISCARD;

/* Prints how many zeros were dropped or, with `kept`, how many nonzeros of the store are 0. */
void build_report_zeros(const struct slc_builder_report *report, bool kept);

/* Prints the nonzeros, the blocks, the bytes per nonzero and the seconds of the build. */
void build_report(const struct slc_builder_report *report, unsigned order, const uint64_t *dims);

/* Prints the peak memory of the process and the budget. */
void build_report_memory(uint64_t budget_bytes);

/* Row of an option table that sets the list of transforms at member `field` of struct `type`. */
#define OPTION_ROW_TRANSFORM(type, field)                                                          \
    OPTION_ROW("transform", OPTION_MORE_STRINGS, type, field, .value = "F",                        \
               .help = "apply a function to each value, after duplicates were combined: log1p, "   \
                       "binarize, abs or scale=FACTOR; repeat the option to apply several "        \
                       "functions")

extern const char *const reshape_codec_choices[];
extern const char *const reshape_relabel_choices[];

/* Rows of commands that reshape a store. By default the output keeps the codec and the renumbering
 * of the input store. */
#define RESHAPE_OPTION_ROWS(type)                                                                  \
    OPTION_ROW("codec", OPTION_CHOICE, type, build.codec, .value = "NAME", .fallback = "keep",     \
               .choices = reshape_codec_choices,                                                   \
               .help = "codec of the blocks: keep (codec of X), packed, lz4 or blco"),             \
        OPTION_ROW("relabel", OPTION_CHOICE, type, build.relabel, .value = "HOW",                  \
                   .fallback = "keep", .choices = reshape_relabel_choices,                         \
                   .help =                                                                         \
                       "renumber indices within the store by frequency if that makes it "          \
                       "smaller: none, frequency, or keep (frequency if X is renumbered, else "    \
                       "none)"),                                                                   \
        BUILD_OPTION_ROW_FIBERS_AGAIN(type), BUILD_WORK_OPTION_ROWS(type)

/* Parses the transforms. Errors: SLC_ERR_USAGE. */
enum slc_status reshape_transforms(const struct option_strings *given,
                                   struct slc_transforms *transforms,
                                   struct slc_error *err) SLC_NODISCARD;

/* Adds the common options to the options of the operation. Then either makes a dry run, or reshapes
 * the store and prints a report. Returns the exit code. */
int reshape_run(const struct build_options *build,
                const struct option_strings *transforms,
                const struct forecast_options *forecast,
                struct slc_reshape_options *reshape);

#endif
