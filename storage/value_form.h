/* How the values of a tile are stored: the numbers of docs/FORMAT.md, section 7.1. */
#ifndef SLC_STORAGE_VALUE_FORM_H
#define SLC_STORAGE_VALUE_FORM_H

enum slc_value_form {
    SLC_FORM_CONSTANT = 0,
    SLC_FORM_INTEGER = 1,
    SLC_FORM_DICTIONARY = 2,
    SLC_FORM_F32 = 3,
    SLC_FORM_F64 = 4,
    SLC_FORM_F32_LZ4 = 5,
    SLC_FORM_F64_LZ4 = 6
};

#endif
