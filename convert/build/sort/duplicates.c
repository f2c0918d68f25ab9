#include "convert/build/sort/duplicates.h"

#include <string.h>

static const char *const duplicate_names[] = {
    [SLC_DUPLICATES_SUM] = "sum",
    [SLC_DUPLICATES_ERROR] = "error",
    [SLC_DUPLICATES_KEEP_FIRST] = "keep-first",
    [SLC_DUPLICATES_KEEP_LAST] = "keep-last",
    [SLC_DUPLICATES_MEAN] = "mean",
    [SLC_DUPLICATES_MIN] = "min",
    [SLC_DUPLICATES_MAX] = "max",
};

enum { DUPLICATE_NAMES = sizeof duplicate_names / sizeof duplicate_names[0] };

const char *slc_duplicates_name(enum slc_duplicates policy)
{
    return (unsigned)policy < DUPLICATE_NAMES ? duplicate_names[policy] : "?";
}

bool slc_duplicates_parse(const char *name, enum slc_duplicates *policy)
{
    for (unsigned i = 0; i < DUPLICATE_NAMES; i++) {
        if (strcmp(name, duplicate_names[i]) == 0) {
            *policy = (enum slc_duplicates)i;
            return true;
        }
    }
    return false;
}
