#include "convert/export/export_form.h"

#include <string.h>

static const struct slc_export_form forms[] = {
    {.name = "tns", .ending = ".tns", .of_tensor = true, .text = true},
    {.name = "splatt-bin", .ending = ".bin", .of_tensor = true, .lists = SLC_LISTS_SPLATT_BIN},
    {.name = "npz", .ending = ".npz", .of_tensor = true, .lists = SLC_LISTS_NPZ},
    {.name = "scipy", .of_tensor = true, .lists = SLC_LISTS_SCIPY},
    {.name = "matlab",
     .ending = ".mat",
     .of_tensor = true,
     .of_model = true,
     .model = SLC_MODEL_MATLAB,
     .lists = SLC_LISTS_MATLAB},
    {.name = "ktensor", .ending = ".ktensor", .of_model = true, .model = SLC_MODEL_KTENSOR},
    {.name = "splatt", .of_model = true, .model = SLC_MODEL_SPLATT},
    {.name = "csv", .of_model = true, .model = SLC_MODEL_CSV},
};

static bool ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text);

    return ending != NULL && length > strlen(ending) &&
           strcmp(text + length - strlen(ending), ending) == 0;
}

enum slc_status slc_export_form_choose(enum slc_export_kind kind,
                                       const char *name,
                                       const char *output,
                                       const struct slc_export_form **form,
                                       struct slc_error *err)
{
    const bool model = kind == SLC_EXPORT_MODEL;

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const bool fits = model ? forms[i].of_model : forms[i].of_tensor;

        if (name != NULL && strcmp(name, forms[i].name) == 0 && !fits) {
            return slc_fail(err, SLC_ERR_USAGE, "there is no form %s of a %s", name,
                            model ? "model's factors" : "tensor");
        }
        if (fits && (name != NULL ? strcmp(name, forms[i].name) == 0
                                  : ends_with(output, forms[i].ending))) {
            *form = &forms[i];
            return SLC_OK;
        }
    }
    if (name == NULL && !model) {
        *form = &forms[0];
        return SLC_OK;
    }
    return name != NULL ? slc_fail(err, SLC_ERR_USAGE, "there is no form %s", name)
                        : slc_fail(err, SLC_ERR_USAGE,
                                   "the name %s does not select a form for the factors: choose "
                                   "matlab, ktensor, splatt or csv",
                                   output);
}
