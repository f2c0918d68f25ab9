/* Parses and encodes the header of a .npy file: NumPy's "NEP 1" format, versions 1.0 to 3.0. */
#ifndef SLC_STORAGE_NPY_HEADER_H
#define SLC_STORAGE_NPY_HEADER_H

#include "base/error/error.h"
#include "base/memory/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLC_NPY_MAGIC "\x93NUMPY"

enum {
    SLC_NPY_MAGIC_BYTES = 6,
    SLC_NPY_START_BYTES = 12, /* magic number, version, and header length in its longer form */
    /* Longest header text that is read. A two-dimensional array needs about 100 bytes. */
    SLC_NPY_MAX_HEADER = 65536,
    /* Bytes of a stored header for any shape, so that it can be written before the shape is known.
     * NumPy aligns data to multiples of 64 bytes for mapping. */
    SLC_NPY_STORED_BYTES = 128
};

struct slc_npy_header {
    char kind;          /* 'f' or 'i'; with slc_npy_header_parse_any also 'u', 'b' and 'S' */
    uint8_t item_bytes; /* 4 or 8; slc_npy_header_parse_any: 1 or more */
    bool big_endian;
    bool fortran_order;
    unsigned dimensions;           /* 1 or 2; slc_npy_header_parse_any: 0 to SLC_MAX_ORDER */
    uint64_t shape[SLC_MAX_ORDER]; /* sizes of the dimensions; 1 for a missing dimension */
};

/* Finds the offset and length of the header's text from the first `have` bytes of a file (at most
 * SLC_NPY_START_BYTES are used). Errors: SLC_ERR_INPUT. */
enum slc_status slc_npy_start_parse(const uint8_t *bytes,
                                    uint64_t have,
                                    uint32_t *text_offset,
                                    uint32_t *text_bytes,
                                    struct slc_error *err) SLC_NODISCARD;

/* Parses the header's text, a Python dictionary with the members descr, fortran_order and shape in
 * any order. Errors: SLC_ERR_INPUT with the expected text and its position; SLC_ERR_UNSUPPORTED for
 * other types and more than two dimensions. */
enum slc_status slc_npy_header_parse(const char *text,
                                     size_t text_bytes,
                                     struct slc_npy_header *header,
                                     struct slc_error *err) SLC_NODISCARD;

/* Like slc_npy_header_parse, but for all types in which a sparse tensor may store numbers, truth
 * values or bytes: f2, f4, f8, i1 to i8, u1 to u8, b1 and S1 to S9, of up to 16 dimensions. */
enum slc_status slc_npy_header_parse_any(const char *text,
                                         size_t text_bytes,
                                         struct slc_npy_header *header,
                                         struct slc_error *err) SLC_NODISCARD;

/* Encodes `header` in format 1.0. With one dimension, shape[1] is omitted. */
void slc_npy_header_store(const struct slc_npy_header *header, uint8_t *bytes);

#endif
