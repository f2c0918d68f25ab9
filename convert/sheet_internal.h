/* What a table came to, shared by sheet.c (reading it) and sheet_attach.c (names). */
#ifndef SLC_CONVERT_SHEET_INTERNAL_H
#define SLC_CONVERT_SHEET_INTERNAL_H

#include "convert/sheet.h"
#include "convert/sheet_names.h"

struct slc_sheet {
    const struct slc_sheet_spec *spec;
    const struct slc_files *files;
    const struct slc_stop *stop;
    struct slc_dictionary *dictionaries[SLC_MAX_ORDER];
    uint64_t dims[SLC_MAX_ORDER];
    int64_t lowest[SLC_MAX_ORDER]; /* of consecutive bins */
};

#endif
