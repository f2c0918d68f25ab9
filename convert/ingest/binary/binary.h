/*
 * Tensors in binary files: where in them the indices and values of every nonzero stand, and the
 * source of rows that reads them there. Formats differ in their headers alone (binary_headers.c);
 * behind these all are *bands*: runs of records of one length, a record per nonzero, that hold one
 * field (all indices of a mode, one after the other) or several (indices and value of a nonzero).
 *
 * Trust: nothing is read of a band before its size is known to fit into the file.
 */
#ifndef SLC_CONVERT_BINARY_H
#define SLC_CONVERT_BINARY_H

#include "base/error/error.h"
#include "base/memory/limits.h"
#include "convert/ingest/input/row_source.h"
#include "convert/ingest/input/spool.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes that can be read anywhere: a plain file, or what was written to a temporary one. */
struct slc_bytes_view {
    const struct slc_files *files;
    int fd;
    const char *name; /* of the input, for messages */
    uint64_t begin;   /* of these bytes in the file */
    uint64_t bytes;
};

/* Reads exactly `bytes` at `offset`, which the caller knows to be there. Errors: SLC_ERR_IO;
 * SLC_ERR_INPUT where the file has become shorter. */
enum slc_status slc_bytes_read(const struct slc_bytes_view *view,
                               void *data,
                               uint64_t bytes,
                               uint64_t offset,
                               struct slc_error *err) SLC_NODISCARD;

enum slc_field_kind { SLC_FIELD_UNSIGNED, SLC_FIELD_SIGNED, SLC_FIELD_FLOAT };

/* Numbers of one kind, at `offset` in every record of a band. */
struct slc_field {
    enum slc_field_kind kind;
    uint8_t bytes; /* 1, 2, 4 or 8; of a float 2, 4 or 8 */
    bool big_endian;
    uint8_t band;
    uint32_t offset;
    uint64_t origin; /* subtracted from every index, modulo 2^64 */
};

struct slc_band {
    struct slc_bytes_view view; /* nnz * record_bytes */
    uint32_t record_bytes;
};

enum { SLC_BANDS_MAX = SLC_MAX_ORDER + 1 };

struct slc_binary {
    enum slc_dialect dialect;
    unsigned order;
    bool has_dims;
    uint64_t dims[SLC_MAX_ORDER];
    uint64_t nnz;
    struct slc_field fields[SLC_BANDS_MAX]; /* of all modes, then the values' */
    unsigned band_count;
    struct slc_band bands[SLC_BANDS_MAX];
};

/* Bytes of a nonzero, in all bands. */
uint32_t slc_binary_row_bytes(const struct slc_binary *binary);

/*
 * Decodes `count` nonzeros of a piece from nonzero `first` of its `piece_count` on and appends them
 * to `rows`. `ordinal`: of the piece's first nonzero, from 1. Errors: SLC_ERR_INPUT naming the
 * first nonzero with a negative index, or a value that is not finite or that no double holds; rows
 * then end before it.
 */
enum slc_status slc_binary_decode(const struct slc_binary *binary,
                                  const uint8_t *piece,
                                  uint64_t piece_count,
                                  uint64_t first,
                                  uint32_t count,
                                  uint64_t ordinal,
                                  struct slc_text_rows *rows,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Reads the header of a tensor of dialect binary->dialect (SLC_DIALECT_SPLATT_BIN, _GENTEN_BIN or
 * _ALTO_BIN) from its first bytes and fills in the rest. `view`: the whole file; NULL: its length
 * is not known yet, and only the header is looked at. Errors: SLC_ERR_INPUT where the file has not
 * the length that its header asks for, SLC_ERR_UNSUPPORTED.
 */
enum slc_status slc_binary_header(const unsigned char *head,
                                  size_t head_bytes,
                                  const struct slc_bytes_view *view,
                                  struct slc_binary *binary,
                                  struct slc_error *err) SLC_NODISCARD;

/* The binary format whose magic bytes `head` starts with, SLC_DIALECT_AUTO for none. */
enum slc_dialect slc_binary_detect(const unsigned char *head, size_t bytes);

/* Whether it begins with a small number of 8 bytes, as no text does, but ALTO's files, which have
 * no magic bytes. */
bool slc_binary_unmarked(const unsigned char *head, size_t bytes);

/* What is there to open a binary input with. */
struct slc_binary_request {
    struct slc_input *input;
    struct slc_input *values; /* a second one, of values, or NULL */
    enum slc_dialect dialect;
    const struct slc_spool_options *spool; /* where it goes when it cannot be read anywhere */
    void *room;                            /* to copy it by way of */
    size_t room_bytes;
};

/*
 * Opens a binary input of this dialect as a source of rows and fills in what its header says.
 * Borrows the input and the header. Owns: slc_row_source_close. *spooled_bytes: of the temporary
 * file that it took. Errors: as slc_binary_header, slc_spool_create and slc_spool_append.
 */
enum slc_status slc_binary_open(const struct slc_binary_request *request,
                                struct slc_text_header *header,
                                struct slc_row_source **source,
                                uint64_t *spooled_bytes,
                                struct slc_error *err) SLC_NODISCARD;

/*
 * A source of the rows of `binary`, which it copies. Takes over `spool` (may be NULL), even after
 * an error. `stored_bytes`: of the input; what of it are no rows counts as read.
 */
enum slc_status slc_binary_source_open(const struct slc_binary *binary,
                                       struct slc_spool *spool,
                                       const char *name,
                                       uint64_t stored_bytes,
                                       const struct slc_text_header *header,
                                       struct slc_row_source **source,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
