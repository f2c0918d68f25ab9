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
    {                                                                                              \
        .name = "memory", .kind = OPTION_SIZE, .value = "SIZE", .fallback = "80%",                 \
        .help = "budget for everything the process holds: 512MiB, 4G, 50% of RAM or cgroup limit", \
        .offset = offsetof(struct type, field)                                                     \
    }

#define OPTION_ROW_THREADS(type, field)                                                            \
    {                                                                                              \
        .name = "threads", .letter = 't', .kind = OPTION_U64, .value = "N", .fallback = "0",       \
        .maximum = SLC_MAX_THREADS, .help = "threads; 0: one per processor this process may use",  \
        .offset = offsetof(struct type, field)                                                     \
    }

#define OPTION_ROW_OVERWRITE(type, field)                                                          \
    {                                                                                              \
        .name = "overwrite", .alias = "force", .letter = 'f', .kind = OPTION_FLAG,                 \
        .help = "replace the output if it exists", .offset = offsetof(struct type, field)          \
    }

#define OPTION_ROW_PROGRESS(type, field)                                                           \
    {                                                                                              \
        .name = "progress", .kind = OPTION_CHOICE, .value = "WHEN", .fallback = "auto",            \
        .choices = progress_choices, .help = "progress on standard error: auto, always or never",  \
        .offset = offsetof(struct type, field)                                                     \
    }

#define OPTION_ROW_LOG_JSON(type, field)                                                           \
    {                                                                                              \
        .name = "log-json", .kind = OPTION_STRING, .value = "FILE",                                \
        .help = "one JSON object per line for each event", .offset = offsetof(struct type, field)  \
    }

#define OPTION_ROW_QUIET(type, field)                                                              \
    {                                                                                              \
        .name = "quiet", .letter = 'q', .kind = OPTION_FLAG, .help = "say nothing but errors",     \
        .offset = offsetof(struct type, field)                                                     \
    }

#endif
