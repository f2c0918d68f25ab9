/* Formats numbers as text, independently of the locale. The functions write no terminating zero
 * byte and return the length of the text. */
#ifndef SLC_CONVERT_FORMAT_H
#define SLC_CONVERT_FORMAT_H

#include "base/memory/limits.h"

#include <stdint.h>

enum {
    SLC_FORMAT_U64_BYTES = 20,
    SLC_FORMAT_F64_BYTES = 32,
    /* Bytes of the longest .tns row: indices and a value, each followed by a separator. */
    SLC_FORMAT_ROW_BYTES = SLC_MAX_ORDER * (SLC_FORMAT_U64_BYTES + 1) + SLC_FORMAT_F64_BYTES + 1
};

unsigned slc_format_u64(char *text, uint64_t value);

/* Writes `value` to `text` (at least 32 bytes) with the fewest digits from which strtod restores
 * the same bits. */
unsigned slc_format_f64(char *text, double value);

#endif
