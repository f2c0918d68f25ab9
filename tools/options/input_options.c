/* Parses the options of input files that convert, append and predict share. */
#include "tools/options/input_options.h"

#define TEXT_FORMATS                                                                               \
    "auto", "tns", "parti", "frostt-ext", "genten", "tensortoolbox", "taco", "matrixmarket"

const char *const input_text_choices[] = {TEXT_FORMATS, NULL};

const char *const input_format_choices[] = {TEXT_FORMATS, "splatt-bin", "genten-bin", "alto-bin",
                                            "npz",        "npy",        "npy-rows",   "npy-columns",
                                            "npy-dense",  "tensor",     NULL};

const char *const input_base_choices[] = {"auto", "0", "1", NULL};

const char *const input_duplicates_choices[] = {"sum",   "mean",       "min",       "max",
                                                "error", "keep-first", "keep-last", NULL};

enum slc_status input_parse(const struct input_options *options,
                            enum slc_dialect *dialect,
                            int *base,
                            enum slc_duplicates *duplicates,
                            struct slc_error *err)
{
    if (!slc_dialect_parse(options->format, dialect)) {
        return slc_fail(err, SLC_ERR_USAGE, "--format %s is not supported by this library",
                        options->format);
    }
    if (options->duplicates != NULL && !slc_duplicates_parse(options->duplicates, duplicates)) {
        return slc_fail(err, SLC_ERR_USAGE, "--duplicates %s is not supported by this library",
                        options->duplicates);
    }
    *base = options->index_base[0] == 'a' ? -1 : options->index_base[0] - '0';
    return SLC_OK;
}
