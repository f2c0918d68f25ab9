/* The part of the nonzeros that --holdout names. */
#include "tools/cmd/cpd/cpd_run.h"

#include <stdlib.h>

enum slc_status cpd_holdout_parse(const char *text, double *part, struct slc_error *err)
{
    char *end;
    double number;

    if (text == NULL) {
        return SLC_OK;
    }
    number = strtod(text, &end);
    if (end != text && *end == '%') {
        number /= 100.0;
        end++;
    }
    if (end == text || *end != '\0' || !(number > 0.0) || !(number <= 0.5)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--holdout: '%s' is no part of the nonzeros above 0 and up to a half, as "
                        "1%% or 0.01",
                        text);
    }
    *part = number;
    return SLC_OK;
}
