/* Input formats and their names. */
#ifndef SLC_CONVERT_DIALECT_H
#define SLC_CONVERT_DIALECT_H

#include <stdbool.h>

/* Text dialects (docs/FORMATS-TEXT.md) and binary formats (docs/FORMATS-BINARY.md).
 * SLC_DIALECT_AUTO means that the format is detected from the first bytes and lines. */
enum slc_dialect {
    SLC_DIALECT_AUTO,
    SLC_DIALECT_TNS,        /* FROSTT and SPLATT: rows without a header */
    SLC_DIALECT_PARTI,      /* ParTI, HiParTI, MM-CSF: N, dims, then 1-based rows */
    SLC_DIALECT_FROSTT_EXT, /* "# extended FROSTT format", N nnz, dims, 1-based rows */
    /* [sptensor [indices-start-at-..]], N, dims, nnz; 0-based by default */
    SLC_DIALECT_GENTEN,
    SLC_DIALECT_TENSORTOOLBOX, /* sptensor, N, dims, nnz; 1-based */
    SLC_DIALECT_TACO,          /* %%MatrixMarket tensor coordinate .. */
    SLC_DIALECT_MATRIXMARKET,  /* %%MatrixMarket matrix coordinate .. */
    SLC_DIALECT_SPLATT_BIN,    /* the binary formats are from here to NPY_DENSE */
    SLC_DIALECT_GENTEN_BIN,
    SLC_DIALECT_ALTO_BIN, /* never detected, because the file starts with ordinary numbers */
    SLC_DIALECT_NPZ,      /* archive written by pydata/sparse or scipy.sparse */
    SLC_DIALECT_NPY,      /* coordinates; another file has the values */
    /* Coordinates with one row (NPY_ROWS) or one column (NPY_COLUMNS) per nonzero. */
    SLC_DIALECT_NPY_ROWS,
    SLC_DIALECT_NPY_COLUMNS,
    SLC_DIALECT_NPY_DENSE, /* every element of an array */
    SLC_DIALECT_TENSOR,    /* text with every element: tensor, N, dims, values */
    SLC_DIALECT_CSV,       /* a table; never detected, because the user must specify its columns */
    SLC_DIALECT_LAST = SLC_DIALECT_CSV
};
const char *slc_dialect_name(enum slc_dialect dialect);
bool slc_dialect_parse(const char *name, enum slc_dialect *dialect);
/* Returns true if the dialect is a binary format. */
bool slc_dialect_is_binary(enum slc_dialect dialect);

/* Returns the index base to assume if neither the header nor the indices determine it: 0 for GenTen
 * and binary formats, otherwise 1. */
unsigned slc_dialect_base(enum slc_dialect dialect);

#endif
