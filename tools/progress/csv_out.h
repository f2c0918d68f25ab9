/* Prints CSV on standard output. */
#ifndef SLC_TOOLS_CSV_OUT_H
#define SLC_TOOLS_CSV_OUT_H

#include "base/error/error.h"
#include "storage/manifest/names.h"

#include <stdint.h>

/* Prints a text of at most SLC_NAME_BYTES_MAX bytes in double quotes, and a comma. */
void csv_out_text(const char *text, size_t bytes);

/* Prints the name of an index in double quotes, and a comma. An index without a name, or a mode
 * without names (`names` is NULL), becomes an empty text. Errors: those of slc_names_get. */
enum slc_status
csv_out_name(struct slc_names *names, uint64_t index, struct slc_error *err) SLC_NODISCARD;

#endif
