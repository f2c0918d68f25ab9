/* Short names of the number formats in base/text/format.h. */
#ifndef SLC_TOOLS_FORMAT_H
#define SLC_TOOLS_FORMAT_H

#include "base/text/format.h"

enum { FORMAT_DIMS_BYTES = SLC_FORMAT_DIMS_BYTES, FORMAT_MODES_BYTES = SLC_FORMAT_MODES_BYTES };

#define format_text                  slc_format_text
#define format_data                  slc_format_data
#define format_memory                slc_format_memory
#define format_count                 slc_format_count
#define format_scaled                slc_format_scaled
#define format_seconds(out, seconds) slc_format_seconds(out, seconds)
#define format_dims                  slc_format_dims
#define format_modes                 slc_format_modes

/* Returns the plural suffix of a noun that follows the number `count`. */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
