/* The library's numbers in words (base/text/format.h) under the short names that the command uses.
 */
#ifndef SLC_TOOLS_FORMAT_H
#define SLC_TOOLS_FORMAT_H

#include "base/text/format.h"

enum { FORMAT_DIMS_BYTES = SLC_FORMAT_DIMS_BYTES, FORMAT_MODES_BYTES = SLC_FORMAT_MODES_BYTES };

/* A tag has no other name but a macro's. */
#define format_text slc_format_text

static inline const char *format_data(struct format_text *out, double bytes)
{
    return slc_format_data(out, bytes);
}

static inline const char *format_memory(struct format_text *out, uint64_t bytes)
{
    return slc_format_memory(out, bytes);
}

static inline const char *format_count(struct format_text *out, uint64_t number)
{
    return slc_format_count(out, number);
}

static inline const char *format_scaled(struct format_text *out, double number)
{
    return slc_format_scaled(out, number);
}

static inline const char *format_seconds(struct format_text *out, double seconds)
{
    return slc_format_seconds(out, seconds);
}

static inline const char *format_dims(char *text, unsigned order, const uint64_t *dims)
{
    return slc_format_dims(text, order, dims);
}

static inline const char *format_modes(char *text, uint32_t modes)
{
    return slc_format_modes(text, modes);
}

#endif
