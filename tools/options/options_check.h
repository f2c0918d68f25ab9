/* Checks that the parsed options and operands of a command are complete and fit together. */
#ifndef SLC_TOOLS_OPTIONS_CHECK_H
#define SLC_TOOLS_OPTIONS_CHECK_H

#include "tools/options/options.h"

/* Checks the number of operands, and that every option is given that must be, and none that another
 * given option replaces. Bit i of `given`: row i of the table is given. Errors: SLC_ERR_USAGE. */
enum slc_status options_check_given(const struct command *command,
                                    uint64_t given,
                                    unsigned operands,
                                    struct slc_error *err) SLC_NODISCARD;

/* Fails with SLC_ERR_USAGE because of the operand `text` beyond the last. */
enum slc_status options_fail_operand(const struct command *command,
                                     const char *text,
                                     struct slc_error *err) SLC_NODISCARD;

#endif
