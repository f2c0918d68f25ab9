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

/* Formats a number like slc_format_f64, but with `bits` significant bits, 11 (half), 24 (float) or
 * 53 (double), with the fewest digits that restore this number in its own precision. The form is
 * that of programs that write CSV: 1.0, 0.0001, 1e-05, 1e+16, nan. */
unsigned slc_format_float(char *text, double value, unsigned bits);

#endif
