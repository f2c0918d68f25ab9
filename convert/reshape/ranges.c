#include "convert/reshape/ranges.h"

#include "base/memory/checked.h"

#include <stdbool.h>
#include <stdlib.h>

/* Parses a 1-based index, sets *index to the 0-based index, and advances *text. Returns false if
 * there is no valid number. */
static bool parse_index(const char **text, uint64_t *index)
{
    uint64_t number = 0;
    const char *at = *text;

    for (; *at >= '0' && *at <= '9'; at++) {
        if (!slc_mul_u64(number, 10, &number) ||
            !slc_add_u64(number, (uint64_t)(*at - '0'), &number)) {
            return false;
        }
    }
    if (at == *text || number == 0) {
        return false;
    }
    *text = at;
    *index = number - 1;
    return true;
}

/* Parses "5", "10..20", "100.." or "..20". */
static bool parse_range(const char **text, struct slc_range *range)
{
    range->first = 0;
    if (**text != '.' && !parse_index(text, &range->first)) {
        return false;
    }
    range->last = range->first;
    if ((*text)[0] != '.' || (*text)[1] != '.') {
        return **text != '.';
    }
    *text += 2;
    range->last = UINT64_MAX;
    return **text == '\0' || **text == ',' ||
           (parse_index(text, &range->last) && range->last >= range->first);
}

static int compare_ranges(const void *a, const void *b)
{
    const struct slc_range *left = a;
    const struct slc_range *right = b;

    return left->first != right->first ? (left->first < right->first ? -1 : 1) : 0;
}

void slc_ranges_unite(struct slc_ranges *ranges)
{
    unsigned kept = 0;

    qsort(ranges->range, ranges->count, sizeof ranges->range[0], compare_ranges);
    for (unsigned i = 1; i < ranges->count; i++) {
        struct slc_range *last = &ranges->range[kept];
        const struct slc_range *next = &ranges->range[i];

        if (last->last == UINT64_MAX || next->first <= last->last + 1) {
            last->last = slc_max_u64(last->last, next->last);
        } else {
            ranges->range[++kept] = *next;
        }
    }
    ranges->count = kept + 1;
}

enum slc_status slc_ranges_parse(const char *text, struct slc_ranges *ranges, struct slc_error *err)
{
    const char *at = text;

    ranges->count = 0;
    do {
        at += ranges->count > 0;
        if (ranges->count == SLC_RANGES_MAX) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "indices '%.40s..': at most %d ranges are supported", text,
                            SLC_RANGES_MAX);
        }
        if (!parse_range(&at, &ranges->range[ranges->count]) || (*at != '\0' && *at != ',')) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "indices '%s': must be ranges separated by commas, such as 100..200, "
                            "7, 50.. or ..9, with indices counted from 1",
                            text);
        }
        ranges->count++;
    } while (*at == ',');
    slc_ranges_unite(ranges);
    return SLC_OK;
}
