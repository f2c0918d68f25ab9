/* Each subcommand has one table of options, from which parsing, defaults, help text and the record
 * of a run are derived. A default is stored and parsed like text that a user types, so the help
 * always states the actual default.
 *
 * Accepted forms: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, clustered flags (-qv), and `--` to
 * end the options. Operands and options may be mixed. Errors are SLC_ERR_USAGE (exit 2) and name
 * the option; for an unknown option, the message suggests the nearest name. */
#ifndef SLC_TOOLS_OPTIONS_H
#define SLC_TOOLS_OPTIONS_H

#include "base/error/error.h"
#include "base/memory/limits.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
    OPTION_FLAG, /* bool: true if the option is given */
    /* uint64_t from minimum to maximum of the row (maximum 0 means no limit): 2000, 2K, 1.5M, 3G */
    OPTION_U64,
    OPTION_SIZE,         /* uint64_t bytes: 512MiB, 4G, 50% */
    OPTION_DOUBLE,       /* double, at least 0, finite; -1 for auto if `automatic` */
    OPTION_STRING,       /* const char *, not empty */
    OPTION_CHOICE,       /* const char *, one of `choices` */
    OPTION_MODES,        /* struct option_modes: 2,3,1, stored as 1,2,0 */
    OPTION_MORE_MODES,   /* like OPTION_MODES; a repeated option adds its modes */
    OPTION_MORE_STRINGS, /* struct option_strings; a repeated option adds its string */
    OPTION_DIMS,         /* struct option_dims: 100x200x300 */
    /* like OPTION_MODES; without a value, or with "all", all modes. A value must follow "=" */
    OPTION_MODES_OR_ALL,
    /* struct option_mode_numbers: [MODE=]X with a number of 0 or more, and [MODE=]LOW,HIGH; a
     * repeated option sets more modes */
    OPTION_MODE_NUMBERS,
    OPTION_MODE_BOUNDS,
    OPTION_COUNTS /* struct option_counts: 1,2,4, each from minimum to maximum of the row */
};

struct option_modes {
    unsigned count;
    unsigned mode[SLC_MAX_ORDER]; /* counted from 0 */
};

/* One or two numbers per mode. The numbers of a mode without numbers of its own are `all`. */
struct option_mode_numbers {
    bool given; /* true if `all` is set */
    double all[2];
    uint32_t modes; /* bit n: mode n has numbers of its own */
    double mode[SLC_MAX_ORDER][2];
};

struct option_strings {
    unsigned count;
    const char *text[SLC_MAX_ORDER];
};

struct option_dims {
    unsigned order;
    uint64_t length[SLC_MAX_ORDER];
};

/* Maximum number of values of OPTION_COUNTS: enough for every rank from 1 to 64. */
enum { OPTION_COUNTS_MAX = 64 };

struct option_counts {
    unsigned count;
    uint64_t number[OPTION_COUNTS_MAX];
};

struct option {
    const char *name; /* without dashes */
    enum option_kind kind;
    size_t offset;     /* offset of the field in the struct of the command */
    const char *alias; /* second long name, or NULL */
    char letter;       /* letter of the short form; 0: none */
    /* Name of another option that replaces this option: if that is given, this option is not
     * required and must not be given. NULL: none. */
    const char *instead;
    bool required;
    bool automatic;       /* OPTION_DOUBLE: the word auto is a value */
    bool not_stdout;      /* OPTION_STRING: "-", which means standard output, is refused */
    const char *value;    /* placeholder of the value in the help, such as "N" */
    const char *fallback; /* default, as a user would type it; NULL: zero */
    const char *help;
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated */
    uint64_t minimum, maximum;  /* OPTION_U64, OPTION_COUNTS */
    unsigned count_max;         /* OPTION_COUNTS: most values; 0 means OPTION_COUNTS_MAX */
};

/* Defines an option row that several tables share and that sets member `field` of struct `type`.
 * The other members of the row are passed as designated initializers. */
#define OPTION_ROW(name, kind, type, field, ...)                                                   \
    {                                                                                              \
        name, kind, offsetof(struct type, field), __VA_ARGS__                                      \
    }

/* A subcommand. */
struct command {
    const char *name;
    const char *summary;  /* lower-case phrase */
    const char *example;  /* complete command line, printed first in the help */
    const char *operands; /* operands in the usage line, such as "IN OUT.slc" */
    const char
        *operand_words; /* possible values of the operand, separated by blanks; NULL: paths */
    unsigned operands_min, operands_max;
    const char *operands_more;    /* what to do with more than operands_max operands; may be NULL */
    const struct option *options; /* terminated by a NULL name */
    const char *notes;            /* paragraphs printed after the options, or NULL */
    /* Subcommands, such as "bench io" of "bench"; NULL-terminated, or NULL. */
    const struct command *const *subcommands;
    bool resumes; /* true if it can append to the JSON log of an earlier run (log_json.h) */
    int (*run)(const struct command *command, int argc, char **argv);
};

/* Maximum number of operands; bench roofline uses this many. Only join accepts more: 1024 parts and
 * an output. */
enum { OPTIONS_MAX_OPERANDS = 8, OPTIONS_JOIN_OPERANDS = 1025 };

struct operands {
    unsigned count;
    const char *text[OPTIONS_JOIN_OPERANDS];
};

/* Parses argv[1..] into the command's struct `values` (zeroed before) and `operands`. The option
 * --help sets *help and ends the parsing. Strings point into argv or the table. Errors:
 * SLC_ERR_USAGE. */
enum slc_status options_parse(const struct command *command,
                              int argc,
                              char **argv,
                              void *values,
                              struct operands *operands,
                              bool *help,
                              struct slc_error *err) SLC_NODISCARD;

/* Prints the help of the command to standard output. */
void options_print_help(const struct command *command);

/* Returns the values as a JSON object with a member per option, for run.json. NULL if memory is
 * exhausted. */
json_t *options_to_json(const struct command *command, const void *values);

/* Returns the element of `names` (NULL-terminated) closest to `word`: the name with the smallest
 * edit distance, of at most a third of the letters, or else a name that `word` abbreviates or
 * extends. Returns NULL if there is none. */
const char *options_nearest(const char *word, const char *const *names);

#endif
