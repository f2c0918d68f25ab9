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
    {                                                                                              \
        .name = "format", .alias = "dialect", .kind = OPTION_CHOICE, .value = "NAME",              \
        .fallback = "auto", .choices = (names), .help = (text),                                    \
        .offset = offsetof(struct type, input.format)                                              \
    }

#define INPUT_OPTION_ROW_BASE(type, text)                                                          \
    {                                                                                              \
        .name = "index-base", .kind = OPTION_CHOICE, .value = "B", .fallback = "auto",             \
        .choices = input_base_choices, .help = (text),                                             \
        .offset = offsetof(struct type, input.index_base)                                          \
    }

#define INPUT_OPTION_ROW_DUPLICATES(type, text)                                                    \
    {                                                                                              \
        .name = "duplicates", .kind = OPTION_CHOICE, .value = "POLICY", .fallback = "sum",         \
        .choices = input_duplicates_choices, .help = (text),                                       \
        .offset = offsetof(struct type, input.duplicates)                                          \
    }

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
