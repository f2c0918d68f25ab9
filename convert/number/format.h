/* Formats numbers as text, independently of the locale. Functions write no terminating zero and
 * return the length. */
#ifndef SLC_CONVERT_FORMAT_H
#define SLC_CONVERT_FORMAT_H

#include "base/memory/limits.h"

#include <stdint.h>

enum {
    SLC_FORMAT_U64_BYTES = 20,
    SLC_FORMAT_F64_BYTES = 32,
    /* Longest .tns row: indices and a value, each followed by a separator. */
    SLC_FORMAT_ROW_BYTES = SLC_MAX_ORDER * (SLC_FORMAT_U64_BYTES + 1) + SLC_FORMAT_F64_BYTES + 1
};

unsigned slc_format_u64(char *text, uint64_t value);

/* Writes `value` to `text` (at least 32 bytes) with the fewest digits that strtod reads back to the
 * same bits; returns the length. */
unsigned slc_format_f64(char *text, double value);

#endif
