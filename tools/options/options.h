/*
 * One table of options per subcommand, and everything that is derived from it: parsing, defaults,
 * help text, the record of a run. A default is kept as the text a user would type and is parsed
 * like it, so that the help cannot disagree with what happens.
 *
 * Accepted forms: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, clustered flags (-qv), `--` to end
 * the options. Operands and options mix. A fault is SLC_ERR_USAGE (exit 2) and names the option; an
 * unknown option is answered with the nearest name.
 */
#ifndef SLC_TOOLS_OPTIONS_H
#define SLC_TOOLS_OPTIONS_H

#include "base/error/error.h"
#include "base/memory/limits.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG,         /* bool: true when given */
    OPTION_U64,          /* uint64_t, minimum .. maximum of the table (maximum 0: no limit) */
    OPTION_SIZE,         /* uint64_t bytes: 512MiB, 4G, 50% */
    OPTION_DOUBLE,       /* double, at least 0, finite */
    OPTION_STRING,       /* const char *, not empty */
    OPTION_CHOICE,       /* const char *, one of `choices` */
    OPTION_MODES,        /* struct option_modes: 2,3,1 (stored from 0) */
    OPTION_MORE_MODES,   /* the same; given again, it adds to those before */
    OPTION_MORE_STRINGS, /* struct option_strings: one more each time */
    OPTION_DIMS,         /* struct option_dims: 100x200x300 */
    OPTION_COUNTS        /* struct option_counts: 1,2,4, each minimum .. maximum of the table */
};

struct option_modes {
    unsigned count;
    unsigned mode[SLC_MAX_ORDER]; /* from 0 */
};

struct option_strings {
    unsigned count;
    const char *text[SLC_MAX_ORDER];
};

struct option_dims {
    unsigned order;
    uint64_t length[SLC_MAX_ORDER];
};

/* More than a sweep needs. */
enum { OPTION_COUNTS_MAX = 16 };

struct option_counts {
    unsigned count;
    uint64_t number[OPTION_COUNTS_MAX];
};

struct option {
    const char *name; /* without the dashes */
    enum option_kind kind;
    size_t offset;     /* of the field in the command's struct */
    const char *alias; /* second long name, or NULL */
    char letter;       /* 0: none */
    bool required;
    const char *value;    /* what stands for the value in the help, e.g. "N" */
    const char *fallback; /* the default as a user would type it; NULL: unset (zero) */
    const char *help;
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated */
    uint64_t minimum, maximum;  /* OPTION_U64, OPTION_COUNTS */
};

/* A row that several tables have, for a field of struct `type`; the further members are named. */
#define OPTION_ROW(name, kind, type, field, ...)                                                   \
    {                                                                                              \
        name, kind, offsetof(struct type, field), __VA_ARGS__                                      \
    }

/* A subcommand. */
struct command {
    const char *name;
    const char *summary;       /* a lower-case clause */
    const char *example;       /* a whole command line: the help starts with it */
    const char *operands;      /* e.g. "IN OUT.slc" */
    const char *operand_words; /* those that the operand may be, separated by blanks; NULL: paths */
    unsigned operands_min, operands_max;
    const struct option *options; /* ends with a NULL name */
    const char *notes;            /* paragraphs after the options, or NULL */
    /* Those whose names follow this one's, "bench io" of "bench"; NULL-terminated, or NULL. */
    const struct command *const *subcommands;
    bool resumes; /* its JSON log may go on with an earlier run's: run_log.h */
    int (*run)(const struct command *command, int argc, char **argv);
};

/* bench roofline takes the most. */
enum { OPTIONS_MAX_OPERANDS = 8 };

struct operands {
    unsigned count;
    const char *text[OPTIONS_MAX_OPERANDS];
};

/*
 * Parses argv[1..] into the command's struct `values` (all-zero before) and `operands`. `--help`
 * sets *help and stops. Strings point into argv or the table. Errors: SLC_ERR_USAGE.
 */
enum slc_status options_parse(const struct command *command,
                              int argc,
                              char **argv,
                              void *values,
                              struct operands *operands,
                              bool *help,
                              struct slc_error *err) SLC_NODISCARD;

/* Prints the command's help to standard output: an example first. */
void options_print_help(const struct command *command);

/* The values in force as a JSON object, a member per option; for run.json. NULL without memory. */
json_t *options_to_json(const struct command *command, const void *values);

/*
 * The entry of `names` (NULL-terminated) that was meant by `word`: the nearest by edit distance, or
 * one that begins so, or that the word begins with. NULL where none is near enough (more than a
 * third of the letters differ).
 */
const char *options_nearest(const char *word, const char *const *names);

#endif
