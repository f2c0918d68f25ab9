#include "tools/progress/csv_out.h"

#include "base/text/csv_text.h"

#include <stdio.h>

void csv_out_text(const char *text, size_t bytes)
{
    char quoted[2 * SLC_NAME_BYTES_MAX + 2];

    printf("%.*s,", (int)slc_csv_quote(quoted, text, bytes), quoted);
}

enum slc_status csv_out_name(struct slc_names *names, uint64_t index, struct slc_error *err)
{
    const char *name = NULL;
    size_t bytes = 0;

    if (names != NULL) {
        SLC_TRY(slc_names_get(names, index, &name, &bytes, err));
    }
    csv_out_text(name != NULL ? name : "", name != NULL ? bytes : 0);
    return SLC_OK;
}
