#include "tools/session/part_option.h"

#include "tools/progress/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses digits up to `end`; returns 0 if there is anything else. */
static unsigned parse_number(const char *text, size_t length)
{
    return length > 0 && length <= 4 && strspn(text, "0123456789") >= length
               ? (unsigned)strtoul(text, NULL, 10)
               : 0;
}

enum slc_status
part_option_parse(const char *text, struct slc_part_choice *choice, struct slc_error *err)
{
    *choice = (struct slc_part_choice){.count = 0};
    if (text == NULL) {
        return SLC_OK;
    }
    const size_t length = strcspn(text, "/");
    const unsigned number = parse_number(text, length);
    const unsigned count =
        text[length] == '/' ? parse_number(text + length + 1, strlen(text + length + 1)) : 0;
    if (number == 0 || number > count || count > SLC_PARTS_MAX) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--part %s: use I/N, such as 2/3 for the second of three parts, with N up "
                        "to %d",
                        text, SLC_PARTS_MAX);
    }
    *choice = (struct slc_part_choice){.number = number - 1, .count = count};
    return SLC_OK;
}

const char *part_text(char text[PART_TEXT_BYTES],
                      struct slc_part_choice choice,
                      uint64_t part_blocks,
                      uint64_t blocks,
                      uint64_t bytes)
{
    struct format_text a;

    (void)snprintf(text, PART_TEXT_BYTES, "%u of %u: %" PRIu64 " of %" PRIu64 " block%s, %s",
                   choice.number + 1, choice.count, part_blocks, blocks, plural(blocks),
                   format_data(&a, (double)bytes));
    return text;
}
