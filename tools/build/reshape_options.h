/* What slice and permute share: a store becomes another one (convert/reshape/reshape.h). */
#ifndef SLC_TOOLS_RESHAPE_OPTIONS_H
#define SLC_TOOLS_RESHAPE_OPTIONS_H

#include "convert/reshape/reshape.h"
#include "tools/build/build_options.h"
#include "tools/forecast/forecast.h"

/* The row of an option table for the chain of transforms at `field` of struct `type`. */
#define OPTION_ROW_TRANSFORM(type, field)                                                          \
    OPTION_ROW("transform", OPTION_MORE_STRINGS, type, field, .value = "F",                        \
               .help = "log1p, binarize, abs or scale=FACTOR of each value, duplicates combined; " \
                       "several are made in turn")

extern const char *const reshape_codec_choices[];
extern const char *const reshape_relabel_choices[];

/* The rows of build_options.h, but for what is as in the store that is reshaped. */
#define RESHAPE_OPTION_ROWS(type)                                                                  \
    OPTION_ROW("codec", OPTION_CHOICE, type, build.codec, .value = "NAME", .fallback = "keep",     \
               .choices = reshape_codec_choices,                                                   \
               .help = "how blocks are stored: keep (as in X), packed, lz4 or blco"),              \
        OPTION_ROW("relabel", OPTION_CHOICE, type, build.relabel, .value = "HOW",                  \
                   .fallback = "keep", .choices = reshape_relabel_choices,                         \
                   .help = "number indices within the store by frequency where that makes it "     \
                           "smaller: keep (where X does), none or frequency"),                     \
        BUILD_OPTION_ROW_FIBERS_AGAIN(type), BUILD_WORK_OPTION_ROWS(type)

/* The transforms that were given. Errors: SLC_ERR_USAGE. */
enum slc_status reshape_transforms(const struct option_strings *given,
                                   struct slc_transforms *transforms,
                                   struct slc_error *err) SLC_NODISCARD;

/* Fills what the shared options say, reshapes and reports, or tells what that would take. Returns
 * the exit code. */
int reshape_run(const struct build_options *build,
                const struct option_strings *transforms,
                const struct forecast_options *forecast,
                struct slc_reshape_options *reshape);

#endif
