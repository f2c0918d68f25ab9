/* Defines the policies for duplicates and for the type of stored values. */
#ifndef SLC_CONVERT_DUPLICATES_H
#define SLC_CONVERT_DUPLICATES_H

#include <stdbool.h>

enum slc_duplicates {
    SLC_DUPLICATES_SUM,
    SLC_DUPLICATES_ERROR,
    SLC_DUPLICATES_KEEP_FIRST,
    SLC_DUPLICATES_KEEP_LAST,
    SLC_DUPLICATES_MEAN, /* the sum in input order, divided by the number of entries */
    SLC_DUPLICATES_MIN,
    SLC_DUPLICATES_MAX
};
const char *slc_duplicates_name(enum slc_duplicates policy); /* "sum", "error", "keep-first", .. */
bool slc_duplicates_parse(const char *name, enum slc_duplicates *policy);

enum slc_value_choice { SLC_VALUE_AUTO, SLC_VALUE_F32, SLC_VALUE_F64 };

#endif
