/* Formats numbers with units. */
#include "base/text/format.h"

#include <stdio.h>

static const char *
scale(struct slc_format_text *out, double number, double step, const char *const *units, int last)
{
    int unit = 0;

    /* A number just below `step`, such as 999.5, would be rounded to `step`. The next unit is
     * therefore used from 0.9995 * step on. */
    while (number >= step * 0.9995 && unit < last) {
        number /= step;
        unit++;
    }
    int decimals = unit == 0 ? 0 : (number < 9.995 ? 2 : (number < 99.95 ? 1 : 0));

    (void)snprintf(out->text, sizeof out->text, "%.*f %s", decimals, number, units[unit]);
    return out->text;
}

const char *slc_format_data(struct slc_format_text *out, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};

    return scale(out, bytes, 1e3, units, 5);
}

const char *slc_format_memory(struct slc_format_text *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};

    return scale(out, (double)bytes, 1024, units, 5);
}

const char *slc_format_scaled(struct slc_format_text *out, double number)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P"};

    return scale(out, number, 1e3, units, 5);
}

const char *slc_format_count(struct slc_format_text *out, uint64_t number)
{
    char digits[24];
    int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    char *at = out->text;

    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) {
            *at++ = ',';
        }
        *at++ = digits[i];
    }
    *at = '\0';
    return out->text;
}

const char *slc_format_seconds(struct slc_format_text *out, double seconds)
{
    if (seconds < 59.95) {
        (void)snprintf(out->text, sizeof out->text, seconds < 1 ? "%.3fs" : "%.1fs", seconds);
    } else if (seconds < 3570) {
        unsigned whole = (unsigned)(seconds + 0.5);

        (void)snprintf(out->text, sizeof out->text, "%um %02us", whole / 60, whole % 60);
    } else {
        uint64_t minutes = seconds < 1e15 ? (uint64_t)(seconds / 60 + 0.5) : UINT64_MAX / 60;

        (void)snprintf(out->text, sizeof out->text, "%lluh %02um",
                       (unsigned long long)(minutes / 60), (unsigned)(minutes % 60));
    }
    return out->text;
}

const char *slc_format_dims(char *text, unsigned order, const uint64_t *dims)
{
    int used = 0;

    for (unsigned n = 0; n < order; n++) {
        used += snprintf(text + used, (size_t)(SLC_FORMAT_DIMS_BYTES - used), "%s%llu",
                         n == 0 ? "" : " x ", (unsigned long long)dims[n]);
    }
    return text;
}

const char *slc_format_modes(char *text, uint32_t modes)
{
    int used = 0;

    text[0] = '\0';
    for (unsigned n = 0; n < 32; n++) {
        if ((modes >> n & 1) != 0) {
            used += snprintf(text + used, (size_t)(SLC_FORMAT_MODES_BYTES - used), "%s%u",
                             used == 0 ? "" : ",", n + 1);
        }
    }
    return text;
}
