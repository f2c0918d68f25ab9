/* How the command spells what the library's errors are about. */
#ifndef SLC_TOOLS_FIELDS_H
#define SLC_TOOLS_FIELDS_H

#include "base/error/error.h"

/* A fault that is no error of the command, as one text: "MESSAGE (OPTION)". Returns it. */
struct fault_text {
    char text[sizeof(struct slc_error) + 128];
};
const char *fault_text(struct fault_text *text, const struct slc_error *fault);

#endif
