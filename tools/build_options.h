/* Options and report that convert and generate share: both end in the store builder. */
#ifndef SLC_TOOLS_BUILD_OPTIONS_H
#define SLC_TOOLS_BUILD_OPTIONS_H

#include "convert/builder.h"
#include "options.h"
#include "progress.h"

#include <stdbool.h>
#include <stdint.h>

struct build_options {
    const char *codec;
    const char *temp_dir;
    const char *progress;
    uint64_t block_bytes;
    uint64_t memory;
    uint64_t max_temp;
    uint64_t threads;
    bool force;
    bool quiet;
};

extern const char *const build_codec_choices[];

/* Rows of an option table for the field `build` of struct `type`. */
#define BUILD_OPTION_ROWS(type)                                                                    \
    {.name = "codec",                                                                              \
     .kind = OPTION_CHOICE,                                                                        \
     .value = "NAME",                                                                              \
     .fallback = "packed",                                                                         \
     .choices = build_codec_choices,                                                               \
     .help = "how blocks are stored: packed, lz4 or blco",                                         \
     .offset = offsetof(struct type, build.codec)},                                                \
        {.name = "block-bytes",                                                                    \
         .kind = OPTION_SIZE,                                                                      \
         .value = "SIZE",                                                                          \
         .fallback = "4MiB",                                                                       \
         .help = "target size of a block, 4KiB to 1GiB; a block holds at least one tile",          \
         .offset = offsetof(struct type, build.block_bytes)},                                      \
        {.name = "memory",                                                                         \
         .kind = OPTION_SIZE,                                                                      \
         .value = "SIZE",                                                                          \
         .fallback = "80%",                                                                        \
         .help = "budget for everything the process holds: 512MiB, 4G, 50% of RAM or cgroup "      \
                 "limit",                                                                          \
         .offset = offsetof(struct type, build.memory)},                                           \
        {.name = "temp-dir",                                                                       \
         .kind = OPTION_STRING,                                                                    \
         .value = "DIR",                                                                           \
         .help = "folder for what does not fit in memory; beside the output if not given",         \
         .offset = offsetof(struct type, build.temp_dir)},                                         \
        {.name = "max-temp",                                                                       \
         .kind = OPTION_SIZE,                                                                      \
         .value = "SIZE",                                                                          \
         .help = "largest temporary file permitted; no limit if not given",                        \
         .offset = offsetof(struct type, build.max_temp)},                                         \
        {.name = "threads",                                                                        \
         .letter = 't',                                                                            \
         .kind = OPTION_U64,                                                                       \
         .value = "N",                                                                             \
         .fallback = "0",                                                                          \
         .maximum = SLC_MAX_THREADS,                                                               \
         .help = "threads; 0: one per processor this process may use",                             \
         .offset = offsetof(struct type, build.threads)},                                          \
        {.name = "overwrite",                                                                      \
         .alias = "force",                                                                         \
         .letter = 'f',                                                                            \
         .kind = OPTION_FLAG,                                                                      \
         .help = "replace the output if it exists",                                                \
         .offset = offsetof(struct type, build.force)},                                            \
        {.name = "progress",                                                                       \
         .kind = OPTION_CHOICE,                                                                    \
         .value = "WHEN",                                                                          \
         .fallback = "auto",                                                                       \
         .choices = progress_choices,                                                              \
         .help = "progress on standard error: auto, always or never",                              \
         .offset = offsetof(struct type, build.progress)},                                         \
    {                                                                                              \
        .name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "say nothing but errors",     \
        .offset = offsetof(struct type, build.quiet)                                               \
    }

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

#endif
