/* How a tensor, or a list of coordinates, is read from a file: what convert, append and predict
 * share. */
#ifndef SLC_TOOLS_INPUT_OPTIONS_H
#define SLC_TOOLS_INPUT_OPTIONS_H

#include "convert/ingest/convert.h"
#include "tools/options/options.h"

struct input_options {
    const char *format;
    const char *index_base;
    const char *duplicates; /* NULL where the command combines nothing */
};

/* Every format that can be named .. */
extern const char *const input_format_choices[];
/* .. and those of texts. */
extern const char *const input_text_choices[];
extern const char *const input_base_choices[];
extern const char *const input_duplicates_choices[];

/* Rows of an option table for the field `input` of struct `type`. */
#define INPUT_OPTION_ROW_FORMAT(type, names, text)                                                 \
    OPTION_ROW("format", OPTION_CHOICE, type, input.format, .alias = "dialect", .value = "NAME",   \
               .fallback = "auto", .choices = (names), .help = (text))

#define INPUT_OPTION_ROW_BASE(type, text)                                                          \
    OPTION_ROW("index-base", OPTION_CHOICE, type, input.index_base, .value = "B",                  \
               .fallback = "auto", .choices = input_base_choices, .help = (text))

#define INPUT_OPTION_ROW_DUPLICATES(type, text)                                                    \
    OPTION_ROW("duplicates", OPTION_CHOICE, type, input.duplicates, .value = "POLICY",             \
               .fallback = "sum", .choices = input_duplicates_choices, .help = (text))

/*
 * What was asked for as the library takes it: *base is -1 where the file is to tell, and
 * *duplicates, which may be NULL, stays without the option. Errors: SLC_ERR_USAGE.
 */
enum slc_status input_parse(const struct input_options *options,
                            enum slc_dialect *dialect,
                            int *base,
                            enum slc_duplicates *duplicates,
                            struct slc_error *err) SLC_NODISCARD;

#endif
