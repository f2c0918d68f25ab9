/*
 * Rows of option tables that several commands have, so that an option means, and says in its help,
 * the same everywhere. `field` is a member of struct `type`.
 */
#ifndef SLC_TOOLS_COMMON_OPTIONS_H
#define SLC_TOOLS_COMMON_OPTIONS_H

#include "base/memory/limits.h"
#include "tools/options/options.h"
#include "tools/progress/progress.h"

#define OPTION_ROW_MEMORY(type, field)                                                             \
    OPTION_ROW(                                                                                    \
        "memory", OPTION_SIZE, type, field, .value = "SIZE", .fallback = "80%",                    \
        .help = "budget for everything the process holds: 512MiB, 4G, 50% of RAM or cgroup limit")

#define OPTION_ROW_THREADS(type, field)                                                            \
    OPTION_ROW("threads", OPTION_U64, type, field, .letter = 't', .value = "N", .fallback = "0",   \
               .maximum = SLC_MAX_THREADS,                                                         \
               .help = "threads; 0: one per processor this process may use")

#define OPTION_ROW_OVERWRITE(type, field)                                                          \
    OPTION_ROW("overwrite", OPTION_FLAG, type, field, .alias = "force", .letter = 'f',             \
               .help = "replace the output if it exists")

#define OPTION_ROW_PROGRESS(type, field)                                                           \
    OPTION_ROW("progress", OPTION_CHOICE, type, field, .value = "WHEN", .fallback = "auto",        \
               .choices = progress_choices,                                                        \
               .help = "progress on standard error: auto, always or never")

#define OPTION_ROW_LOG_JSON(type, field)                                                           \
    OPTION_ROW("log-json", OPTION_STRING, type, field, .value = "FILE",                            \
               .help = "one JSON object per line for each event")

#define OPTION_ROW_QUIET(type, field)                                                              \
    OPTION_ROW("quiet", OPTION_FLAG, type, field, .letter = 'q', .help = "say nothing but errors")

#define OPTION_ROW_NAMES(type, field)                                                              \
    OPTION_ROW("store", OPTION_STRING, type, field, .value = "DIR",                                \
               .help = "store whose names of indices are told; the one that the run was made of, " \
                       "if it is still there, if not given")

#endif
