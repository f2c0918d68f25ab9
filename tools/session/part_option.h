/* The option --part of the commands that compute products. */
#ifndef SLC_TOOLS_PART_OPTION_H
#define SLC_TOOLS_PART_OPTION_H

#include "base/error/error.h"
#include "engine/stream/part.h"
#include "tools/options/options.h"

/* Row of an option table that sets the text at member `field` of struct `type`. */
#define OPTION_ROW_PART(type, field)                                                               \
    OPTION_ROW("part", OPTION_STRING, type, field, .value = "I/N",                                 \
               .help = "compute part I of N of the result, from the blocks of this part; sluice "  \
                       "join makes one result of all parts")

/* Parses "I/N"; NULL is the whole result. Errors: SLC_ERR_USAGE. */
enum slc_status part_option_parse(const char *text,
                                  struct slc_part_choice *choice,
                                  struct slc_error *err) SLC_NODISCARD;

/* Returns the text "2 of 3: 12 of 36 blocks, 3.4 MB". */
enum { PART_TEXT_BYTES = 160 };
const char *part_text(char text[PART_TEXT_BYTES],
                      struct slc_part_choice choice,
                      uint64_t part_blocks,
                      uint64_t blocks,
                      uint64_t bytes);

#endif
