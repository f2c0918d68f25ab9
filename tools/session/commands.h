/* The list of subcommands, and the first steps that all subcommands share. */
#ifndef SLC_TOOLS_COMMANDS_H
#define SLC_TOOLS_COMMANDS_H

#include "tools/options/options.h"

extern const struct command command_append;
extern const struct command command_bench;
extern const struct command command_check;
extern const struct command command_compare;
extern const struct command command_completion;
extern const struct command command_convert;
extern const struct command command_cpd;
extern const struct command command_export;
extern const struct command command_generate;
extern const struct command command_info;
extern const struct command command_join;
extern const struct command command_layout;
extern const struct command command_mttkrp;
extern const struct command command_permute;
extern const struct command command_plan;
extern const struct command command_predict;
extern const struct command command_report;
extern const struct command command_residuals;
extern const struct command command_slice;
extern const struct command command_top;
extern const struct command command_ttv;
extern const struct command command_ttm;
extern const struct command command_watch;

/* All subcommands in the order of the help, NULL-terminated. */
extern const struct command *const commands_all[];

/* Prints an error for `word`, which is not in `commands` (only the last word of a name such as
 * "bench io" is compared). The message suggests the nearest name, or refers to `help`. Returns the
 * exit code. */
int commands_unknown(const char *what,
                     const char *word,
                     const struct command *const *commands,
                     const char *help);

/* Parses the arguments into `values` (zeroed). Returns false if there is nothing left to do, after
 * --help or after a usage error that was printed; in that case *exit_code is set. */
bool command_begin(const struct command *command,
                   int argc,
                   char **argv,
                   void *values,
                   struct operands *operands,
                   int *exit_code);

#endif
