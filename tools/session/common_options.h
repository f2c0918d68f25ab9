/* Option rows that several commands share, so that an option has the same meaning and help in all
 * of them. `field` is a member of struct `type`. */
#ifndef SLC_TOOLS_COMMON_OPTIONS_H
#define SLC_TOOLS_COMMON_OPTIONS_H

#include "base/memory/limits.h"
#include "tools/options/options.h"
#include "tools/progress/progress.h"

#define OPTION_ROW_MEMORY(type, field)                                                             \
    OPTION_ROW("memory", OPTION_SIZE, type, field, .value = "SIZE", .fallback = "80%",             \
               .help =                                                                             \
                   "memory budget of the whole process: 512MiB, 4G, or 50% (of the RAM or the "    \
                   "cgroup limit)")

#define OPTION_ROW_THREADS(type, field)                                                            \
    OPTION_ROW("threads", OPTION_U64, type, field, .letter = 't', .value = "N", .fallback = "0",   \
               .maximum = SLC_MAX_THREADS,                                                         \
               .help = "number of threads; 0 means one per available processor")

#define OPTION_ROW_OVERWRITE(type, field)                                                          \
    OPTION_ROW("overwrite", OPTION_FLAG, type, field, .alias = "force", .letter = 'f',             \
               .help = "replace an existing output")

#define OPTION_ROW_PROGRESS(type, field)                                                           \
    OPTION_ROW("progress", OPTION_CHOICE, type, field, .value = "WHEN", .fallback = "auto",        \
               .choices = progress_choices,                                                        \
               .help = "show progress on standard error: auto, always or never")

#define OPTION_ROW_LOG_JSON(type, field)                                                           \
    OPTION_ROW("log-json", OPTION_STRING, type, field, .value = "FILE",                            \
               .help = "write events to FILE, one JSON object per line")

#define OPTION_ROW_QUIET(type, field)                                                              \
    OPTION_ROW("quiet", OPTION_FLAG, type, field, .letter = 'q', .help = "print errors only")

#define OPTION_ROW_NAMES(type, field)                                                              \
    OPTION_ROW("store", OPTION_STRING, type, field, .value = "DIR",                                \
               .help = "store with the names of indices; the default is the store of the run, if " \
                       "it still exists")

#endif
