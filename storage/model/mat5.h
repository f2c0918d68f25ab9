/* MATLAB's .mat files, version 5 ("MAT-File Format", The MathWorks): a header of 128 bytes and one
 * element per variable; elements nest. Every element starts with its type and its 32-bit length, so
 * all sizes must be known before a file is written, and a variable has at most 2 GiB, MATLAB's
 * limit. Nothing is compressed. */
#ifndef SLC_STORAGE_MAT5_H
#define SLC_STORAGE_MAT5_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "storage/file/output.h"

#include <stdint.h>

enum { SLC_MAT5_HEADER_BYTES = 128, SLC_MAT5_ARRAY_MAX = 256 };

/* Largest body of a variable: MATLAB reads the length as a signed 32-bit number. */
#define SLC_MAT5_VARIABLE_MAX INT32_MAX

enum slc_mat5_class { SLC_MAT5_CELL = 1, SLC_MAT5_STRUCT = 2, SLC_MAT5_F64 = 6, SLC_MAT5_F32 = 7 };

/* Description of an array, without its contents. */
struct slc_mat5_array {
    enum slc_mat5_class kind;
    uint64_t rows, cols;
    /* name of a variable, up to 31 letters; "" for an array inside another array */
    const char *name;
    const char *fields; /* for a struct: space-separated field names of up to 31 letters */
    /* For a cell or struct: bytes of all elements in it, including their tags. */
    uint64_t part_bytes;
};

/* Returns the bytes of the whole element including its tag; UINT64_MAX on overflow. */
uint64_t slc_mat5_bytes(const struct slc_mat5_array *array);

/* Encodes the first bytes of a file, up to its first variable. */
void slc_mat5_header(uint8_t bytes[SLC_MAT5_HEADER_BYTES]);

/* Encodes the beginning of an element, up to its numbers or its first part, into `bytes`. Returns
 * the size of the beginning. The caller pads the numbers with zeros to a multiple of 8 bytes. */
uint32_t slc_mat5_begin(const struct slc_mat5_array *array, uint8_t bytes[SLC_MAT5_ARRAY_MAX]);

#endif
