/* Formats errors of the library with the option names of the command. */
#ifndef SLC_TOOLS_FIELDS_H
#define SLC_TOOLS_FIELDS_H

#include "base/error/error.h"

/* Formats an error as "MESSAGE (OPTION)", for notes about errors that do not end the command.
 * Returns the text. */
struct fault_text {
    char text[sizeof(struct slc_error) + 128];
};
const char *fault_text(struct fault_text *text, const struct slc_error *fault);

#endif
