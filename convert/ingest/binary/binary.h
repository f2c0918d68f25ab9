/* Tensors in binary files: the layout of indices and values, and the row source that reads them.
 * The formats differ only in their headers (binary_headers.c). After the header, each file consists
 * of *bands*: arrays of records of equal length, one record per nonzero. A record holds one field
 * (a band with all indices of a mode) or several fields (a band with the indices, or the indices
 * and the value, of each nonzero).
 *
 * Safety: a band is read only after a check that it lies within the file. */
#ifndef SLC_CONVERT_BINARY_H
#define SLC_CONVERT_BINARY_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "convert/ingest/input/row_source.h"
#include "convert/ingest/input/spool.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes readable at any offset: an uncompressed file, or a copy in a temporary file (spool.h). */
struct slc_bytes_view {
    const struct slc_files *files;
    int fd;
    const char *name; /* name of the input, for messages */
    uint64_t begin;   /* offset of these bytes in the file */
    uint64_t bytes;
};

/* Reads exactly `bytes` bytes at `offset`, which must be inside the view. Errors: SLC_ERR_IO;
 * SLC_ERR_INPUT if the file has become shorter. */
enum slc_status slc_bytes_read(const struct slc_bytes_view *view,
                               void *data,
                               uint64_t bytes,
                               uint64_t offset,
                               struct slc_error *err) SLC_NODISCARD;

enum slc_field_kind { SLC_FIELD_UNSIGNED, SLC_FIELD_SIGNED, SLC_FIELD_FLOAT };

/* A field of the records of a band: the indices of one mode, or the values. The number is at byte
 * `offset` of each record. */
struct slc_field {
    enum slc_field_kind kind;
    uint8_t bytes; /* 1, 2, 4 or 8 for an integer; 2, 4 or 8 for a float */
    bool big_endian;
    uint8_t band;
    uint32_t offset;
    uint64_t origin;        /* number that is subtracted from every index, modulo 2^64 */
    const uint32_t *labels; /* borrowed; replace the indices; NULL: indices are as in the file */
};

struct slc_band {
    struct slc_bytes_view view; /* view of nnz * record_bytes bytes */
    uint32_t record_bytes;
};

enum { SLC_BANDS_MAX = SLC_MAX_ORDER + 1 };

struct slc_binary {
    enum slc_dialect dialect;
    unsigned order;
    bool has_dims;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    /* the field of each mode, then the field of the values */
    struct slc_field fields[SLC_BANDS_MAX];
    unsigned band_count;
    struct slc_band bands[SLC_BANDS_MAX];
    const char *values_name; /* name of the file of the values; NULL if it is the only file */
    /* True if the records are all elements of an array, in the order of their indices: the last
     * mode, or in Fortran order the first, changes fastest. There are then no fields of indices,
     * and elements equal to 0 are omitted unless `keep_zeros`. */
    bool dense, fortran_order, keep_zeros;
};

/* Returns the number of bytes per nonzero, summed over all bands. */
uint32_t slc_binary_row_bytes(const struct slc_binary *binary);

/* Decodes `count` nonzeros of a piece of `piece_count` nonzeros, starting at nonzero `first` of the
 * piece, and appends them to `rows`. `ordinal` is the number of the piece's first nonzero in the
 * file, from 1. Errors: SLC_ERR_INPUT for the first nonzero with a negative index or with a value
 * that is not finite or not representable as a double. `rows` then ends before this nonzero, and
 * the message states its number. */
enum slc_status slc_binary_decode(const struct slc_binary *binary,
                                  const uint8_t *piece,
                                  uint64_t piece_count,
                                  uint64_t first,
                                  uint32_t count,
                                  uint64_t ordinal,
                                  struct slc_text_rows *rows,
                                  struct slc_error *err) SLC_NODISCARD;

/* Decodes elements of a dense array from a piece of `piece_count` elements, starting at element
 * *next of the piece, and appends those that are not omitted to `rows` until the piece ends or
 * `rows` is full. Advances *next past the decoded elements. `ordinal` is the number of the piece's
 * first element in the array, from 1. Errors: those of slc_binary_decode for values. */
enum slc_status slc_binary_decode_dense(const struct slc_binary *binary,
                                        const uint8_t *piece,
                                        uint64_t piece_count,
                                        uint64_t *next,
                                        uint64_t ordinal,
                                        struct slc_text_rows *rows,
                                        struct slc_error *err) SLC_NODISCARD;

/* Reads the header of a tensor of dialect binary->dialect (SLC_DIALECT_SPLATT_BIN, _GENTEN_BIN or
 * _ALTO_BIN) from its first bytes, `head`, and fills in the other members of `binary`. `view` is
 * the whole file, or NULL if the length of the file is not known yet; then only the header is
 * checked. Errors: SLC_ERR_INPUT for a faulty header, or if the file does not have the length that
 * its header implies; SLC_ERR_UNSUPPORTED. */
enum slc_status slc_binary_header(const unsigned char *head,
                                  size_t head_bytes,
                                  const struct slc_bytes_view *view,
                                  struct slc_binary *binary,
                                  struct slc_error *err) SLC_NODISCARD;

/* Returns the binary format whose magic bytes are at the start of `head`; SLC_DIALECT_AUTO if no
 * format matches. */
enum slc_dialect slc_binary_detect(const unsigned char *head, size_t bytes);

/* Returns true if the input starts with a small 8-byte number. ALTO files have no magic bytes but
 * start with such a number; text never starts with one. */
bool slc_binary_unmarked(const unsigned char *head, size_t bytes);

/* Arguments of slc_binary_open. */
struct slc_binary_request {
    struct slc_input *input;
    struct slc_input *values; /* a second input with the values, or NULL */
    enum slc_dialect dialect;
    bool keep_zeros; /* keep elements of a dense array that are 0 */
    /* options of the temporary file for inputs without random access */
    const struct slc_spool_options *spool;
    void *buffer; /* copy buffer for the spool */
    size_t buffer_bytes;
};

/* Opens a binary input of the requested dialect as a row source and fills in the header. Borrows
 * the input and the header. *spooled_bytes is the size of the temporary file, or 0 without such a
 * file. Ownership: release with slc_row_source_close. Errors: those of slc_binary_header,
 * slc_spool_create and slc_spool_append. */
enum slc_status slc_binary_open(const struct slc_binary_request *request,
                                struct slc_text_header *header,
                                struct slc_row_source **source,
                                uint64_t *spooled_bytes,
                                struct slc_error *err) SLC_NODISCARD;

/* Creates a row source that reads the nonzeros of `binary`, which is copied. The function owns
 * `spool` (may be NULL) from now on, even after an error. `stored_bytes` is the size of the input;
 * for progress, its bytes outside the rows count as already read. */
enum slc_status slc_binary_source_open(const struct slc_binary *binary,
                                       struct slc_spool *spool,
                                       const char *name,
                                       uint64_t stored_bytes,
                                       const struct slc_text_header *header,
                                       struct slc_row_source **source,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
