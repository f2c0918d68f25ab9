/* Lists the output forms (file formats) of tensors and models with the names that users see: the
 * binary forms of list_form.h, FROSTT text, and the forms of storage/model/model.h. */
#ifndef SLC_CONVERT_EXPORT_FORM_H
#define SLC_CONVERT_EXPORT_FORM_H

#include "base/error/error.h"
#include "convert/export/list_form.h"
#include "storage/model/model.h"

#include <stdbool.h>

enum slc_export_kind { SLC_EXPORT_TENSOR, SLC_EXPORT_MODEL };

struct slc_export_form {
    const char *name;
    const char *ending; /* file ending that selects this form; NULL: no ending does */
    bool of_tensor, of_model;
    enum slc_model_form model;
    bool text;                /* tensors are written as FROSTT text */
    enum slc_list_form lists; /* tensors are written in this binary form */
};

/* Returns the form called `name`, in static memory. If `name` is NULL, the ending of the output
 * selects the form; a tensor with an unknown ending is written as text. Errors: SLC_ERR_USAGE if
 * tensors (or models, as `kind` says) have no such form, or if the ending means a format in which
 * they cannot be written. */
enum slc_status slc_export_form_choose(enum slc_export_kind kind,
                                       const char *name,
                                       const char *output,
                                       const struct slc_export_form **form,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
