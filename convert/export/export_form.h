/*
 * The forms in which tensors and models are written, by the names that users call them by: the
 * binary ones of list_form.h, FROSTT's text, and those of storage/model/model.h.
 */
#ifndef SLC_CONVERT_EXPORT_FORM_H
#define SLC_CONVERT_EXPORT_FORM_H

#include "base/error/error.h"
#include "convert/export/list_form.h"
#include "storage/model/model.h"

#include <stdbool.h>

enum slc_export_kind { SLC_EXPORT_TENSOR, SLC_EXPORT_MODEL };

struct slc_export_form {
    const char *name;
    const char *ending; /* of an output that is meant without saying so; NULL: none is */
    bool of_tensor, of_model;
    enum slc_model_form model;
    bool text;                /* of a tensor */
    enum slc_list_form lists; /* of one that is not */
};

/*
 * The form that has that name; of NULL, the one that the ending of the output means: a tensor is
 * text by any other. Static. Errors: SLC_ERR_USAGE where there is none, or none of that kind.
 */
enum slc_status slc_export_form_choose(enum slc_export_kind kind,
                                       const char *name,
                                       const char *output,
                                       const struct slc_export_form **form,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
