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

/* Rejects a name with the ending of a format in which no tensor can be written: text under such a
 * name would be misleading. */
static enum slc_status check_ending(const char *output, struct slc_error *err)
{
    static const char *const packed[] = {".gz", ".bz2", ".xz", ".zst", ".lz4"};
    static const char *const others[] = {".csv",   ".tsv", ".npy",  ".parquet", ".feather",
                                         ".arrow", ".h5",  ".hdf5", ".xlsx",    ".orc",
                                         ".avro",  ".pkl", ".zip"};

    for (size_t i = 0; i < sizeof packed / sizeof packed[0]; i++) {
        if (ends_with(output, packed[i])) {
            return slc_fail_field(
                err, SLC_ERR_USAGE, SLC_FIELD_FORM,
                "the suffix of %s means compressed text, which cannot be written: "
                "pipe the text through a compressor (sluice export X.slc - | gzip "
                "> X.tns.gz), or choose the form tns for plain text",
                output);
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (ends_with(output, others[i])) {
            return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_FORM,
                                  "the suffix of %s means a format in which a tensor cannot be "
                                  "written: use .tns, .bin, .npz or .mat, or choose a form",
                                  output);
        }
    }
    return SLC_OK;
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
        SLC_TRY(check_ending(output, err));
        *form = &forms[0];
        return SLC_OK;
    }
    return name != NULL
               ? slc_fail(err, SLC_ERR_USAGE, "there is no form %s", name)
               : slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_FORM,
                                "the name %s does not select a form for the factors: choose "
                                "matlab, ktensor, splatt or csv",
                                output);
}
