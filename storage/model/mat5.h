/*
 * MATLAB's .mat files, version 5 ("MAT-File Format", The MathWorks): a header of 128 bytes and one
 * element per variable, elements within elements. All lengths come before what they are of, and are
 * of 32 bits, so that a file is written from front to back once sizes are known, and a variable
 * ends at 2 GiB, which is what MATLAB reads. Nothing is compressed.
 */
#ifndef SLC_STORAGE_MAT5_H
#define SLC_STORAGE_MAT5_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/file/output.h"

#include <stdint.h>

enum { SLC_MAT5_HEADER_BYTES = 128, SLC_MAT5_ARRAY_MAX = 256 };

/* Largest body of a variable: what a signed 32-bit number holds, as MATLAB has it. */
#define SLC_MAT5_VARIABLE_MAX INT32_MAX

enum slc_mat5_class { SLC_MAT5_CELL = 1, SLC_MAT5_STRUCT = 2, SLC_MAT5_F64 = 6, SLC_MAT5_F32 = 7 };

/* An array but for what it holds. */
struct slc_mat5_array {
    enum slc_mat5_class kind;
    uint64_t rows, cols;
    const char *name;    /* of a variable, up to 31 letters; "" for a part of another */
    const char *fields;  /* of a struct: names of up to 31 letters with a space between */
    uint64_t part_bytes; /* of a cell or struct: all elements in it, their tags included */
};

/* Bytes of the whole element, its tag included; UINT64_MAX where it would be more than that. */
uint64_t slc_mat5_bytes(const struct slc_mat5_array *array);

/* The first bytes of a file, up to its first variable. */
void slc_mat5_header(uint8_t bytes[SLC_MAT5_HEADER_BYTES]);

/*
 * Writes into `bytes` what an element begins with, up to its numbers or its first part, and returns
 * how many bytes that is. After numbers come zeros up to a multiple of 8 bytes.
 */
uint32_t slc_mat5_begin(const struct slc_mat5_array *array, uint8_t bytes[SLC_MAT5_ARRAY_MAX]);

#endif
