/* Options for reading a tensor or a list of coordinates from a file, shared by convert, append and
 * predict. */
#ifndef SLC_TOOLS_INPUT_OPTIONS_H
#define SLC_TOOLS_INPUT_OPTIONS_H

#include "convert/ingest/convert.h"
#include "tools/options/options.h"

struct input_options {
    const char *format;
    const char *index_base;
    const char *duplicates; /* NULL if the command has no option --duplicates */
};

/* All formats. */
extern const char *const input_format_choices[];
/* Text formats only. */
extern const char *const input_text_choices[];
extern const char *const input_base_choices[];
extern const char *const input_duplicates_choices[];

/* Rows of an option table, for the member `input` of struct `type`. */
#define INPUT_OPTION_ROW_FORMAT(type, names, text)                                                 \
    OPTION_ROW("format", OPTION_CHOICE, type, input.format, .alias = "dialect", .value = "NAME",   \
               .fallback = "auto", .choices = (names), .help = (text))

#define INPUT_OPTION_ROW_BASE(type, text)                                                          \
    OPTION_ROW("index-base", OPTION_CHOICE, type, input.index_base, .value = "B",                  \
               .fallback = "auto", .choices = input_base_choices, .help = (text))

#define INPUT_OPTION_ROW_DUPLICATES(type, text)                                                    \
    OPTION_ROW("duplicates", OPTION_CHOICE, type, input.duplicates, .value = "POLICY",             \
               .fallback = "sum", .choices = input_duplicates_choices, .help = (text))

/* Converts the options to values of the library. *base is -1 if the base is to be detected. If the
 * command has no option --duplicates, *duplicates is unchanged, and `duplicates` may be NULL.
 * Errors: SLC_ERR_USAGE. */
enum slc_status input_parse(const struct input_options *options,
                            enum slc_dialect *dialect,
                            int *base,
                            enum slc_duplicates *duplicates,
                            struct slc_error *err) SLC_NODISCARD;

#endif
