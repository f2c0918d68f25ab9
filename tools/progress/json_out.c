#include "tools/progress/json_out.h"

#include "storage/manifest/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits that preserve the bits of a number. */
enum { DIGITS = 17 };

enum slc_status json_out_complete(struct slc_error *err)
{
    return slc_json_failures() > 0
               ? slc_fail(err, SLC_ERR_MEMORY, "out of memory for a JSON record")
               : SLC_OK;
}

enum slc_status json_out_text(json_t *object, bool one_line, char **text, struct slc_error *err)
{
    const size_t form = one_line ? JSON_COMPACT : JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS);

    *text = json_dumps(object, form | JSON_PRESERVE_ORDER);
    json_decref(object);
    if (json_out_complete(err) != SLC_OK) {
        free(*text);
        *text = NULL;
        return SLC_ERR_MEMORY;
    }
    if (*text == NULL) {
        return slc_fail(
            err, SLC_ERR_INPUT,
            "a path or a text in the store is not valid UTF-8 and cannot be written as JSON");
    }
    return SLC_OK;
}

enum slc_status json_out_print(json_t *object, struct slc_error *err)
{
    char *text;
    enum slc_status status = json_out_text(object, false, &text, err);

    if (status == SLC_OK) {
        printf("%s\n", text);
    }
    free(text);
    return status;
}

enum slc_status json_out_value(json_t *value, struct slc_error *err)
{
    char *text = NULL;
    const enum slc_status status = json_out_text(value, true, &text, err);

    if (status == SLC_OK) {
        printf("%s", text);
    }
    free(text);
    return status;
}

enum slc_status json_out_open(json_t *object, const char *list, struct slc_error *err)
{
    char *text = NULL;
    const enum slc_status status = json_out_text(object, true, &text, err);

    if (status == SLC_OK) {
        printf("%.*s,\"%s\":[", (int)strlen(text) - 1, text, list);
    }
    free(text);
    return status;
}
