/* The header of a .npy file: NumPy's "NEP 1" format, versions 1.0, 2.0 and 3.0. */
#ifndef SLC_STORAGE_NPY_HEADER_H
#define SLC_STORAGE_NPY_HEADER_H

#include "base/error/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLC_NPY_MAGIC "\x93NUMPY"

enum {
    SLC_NPY_MAGIC_BYTES = 6,
    SLC_NPY_START_BYTES = 12, /* magic, version and the longer form of the header's length */
    /* Longest header text read. One of a two-dimensional array takes about 100 bytes. */
    SLC_NPY_MAX_HEADER = 65536,
    /* Of a stored header, whatever its shape, so that it can be written before that is known. A
     * multiple of 64, to which NumPy aligns the data for mapping it. */
    SLC_NPY_STORED_BYTES = 128
};

struct slc_npy_header {
    char kind;          /* 'f' or 'i'; of any array also 'u', 'b' and 'S' */
    uint8_t item_bytes; /* 4 or 8; of any array from 1 on */
    bool big_endian;
    bool fortran_order;
    unsigned dimensions; /* 1 or 2; of any array also 0 */
    uint64_t shape[2];   /* 1 for dimensions that are not there */
};

/*
 * Reads the first bytes of a file (`have` of them, at most SLC_NPY_START_BYTES used): where the
 * header's text begins and how long it is. Errors: SLC_ERR_INPUT.
 */
enum slc_status slc_npy_start_parse(const uint8_t *bytes,
                                    uint64_t have,
                                    uint32_t *text_offset,
                                    uint32_t *text_bytes,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Parses the header's text, a Python dictionary with the members descr, fortran_order and shape in
 * any order. Errors: SLC_ERR_INPUT naming what is not understood; SLC_ERR_UNSUPPORTED for other
 * types and more than two dimensions.
 */
enum slc_status slc_npy_header_parse(const char *text,
                                     size_t text_bytes,
                                     struct slc_npy_header *header,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * The same of any array of numbers, truth values or bytes that a sparse tensor may be kept in: f2,
 * f4, f8, i1 to i8, u1 to u8, b1 and S1 to S9, of up to two dimensions.
 */
enum slc_status slc_npy_header_parse_any(const char *text,
                                         size_t text_bytes,
                                         struct slc_npy_header *header,
                                         struct slc_error *err) SLC_NODISCARD;

/* Writes the header of format 1.0 that says the same, a shape of one dimension without `shape[1]`.
 */
void slc_npy_header_store(const struct slc_npy_header *header, uint8_t *bytes);

#endif
