/* Formats numbers with units, for messages. Each function writes to a buffer of the caller and
 * returns the text, so that a call can be an argument of printf. Amounts of data and rates have
 * decimal units (MB, GB), as on drives; memory has binary units (MiB, GiB), as in budgets. */
#ifndef SLC_BASE_FORMAT_H
#define SLC_BASE_FORMAT_H

#include <stdint.h>

enum {
    SLC_FORMAT_BYTES = 32,
    SLC_FORMAT_DIMS_BYTES = 16 * 24,
    SLC_FORMAT_MODES_BYTES = 32 * 3 + 1
};

struct slc_format_text {
    char text[SLC_FORMAT_BYTES];
};

/* Returns part / whole, or 0 if whole is not positive. */
static inline double slc_ratio(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* "1.23 GB" */
const char *slc_format_data(struct slc_format_text *out, double bytes);
/* "1.23 GiB" */
const char *slc_format_memory(struct slc_format_text *out, uint64_t bytes);
/* "2,607,931" */
const char *slc_format_count(struct slc_format_text *out, uint64_t number);
/* "1.90 G", "720 M"; the caller appends a unit, such as that of a rate */
const char *slc_format_scaled(struct slc_format_text *out, double number);
/* "4.2s", "3m 05s", "2h 07m" */
const char *slc_format_seconds(struct slc_format_text *out, double seconds);
/* "182 x 24 x 229"; `text` has SLC_FORMAT_DIMS_BYTES */
const char *slc_format_dims(char *text, unsigned order, const uint64_t *dims);
/* "1,3,4" for a set with bits 0, 2 and 3 in `modes`; `text` has SLC_FORMAT_MODES_BYTES */
const char *slc_format_modes(char *text, uint32_t modes);

#endif
