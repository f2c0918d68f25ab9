/* Parses the headers of binary tensors of SPLATT, GenTen and ALTO. Numbers are little-endian,
 * because these programs write the byte order of the machine and run on little-endian machines.
 * Indices start at 0.
 *
 *   SPLATT: i32 0; u64 bytes per index; u64 bytes per value; the order, the mode sizes and the
 *           number of nonzeros, each as wide as an index; all indices, mode by mode; all values.
 *   GenTen: "sptn"; u32 order; u32 bits per value; u64 mode sizes; u64 bits per index of each mode;
 *           u64 number of nonzeros; for each nonzero its indices, then its value.
 *   ALTO:   u64 order, mode sizes and number of nonzeros; u64 indices, mode by mode; values. The
 *           file length shows whether values are f64 or f32 (a compile-time choice of ALTO). */
#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "convert/ingest/binary/binary.h"
#include "storage/model/npy_header.h"

#include <inttypes.h>
#include <string.h>

enum { SPLATT_START_BYTES = 20, GENTEN_START_BYTES = 12 };

static const char genten_magic[] = "sptn";
static const char zip_magic[] = "PK\x03\x04";

struct reader {
    const unsigned char *at;
    const unsigned char *end;
    unsigned bytes; /* bytes per number */
    bool cut;       /* true if the header ended inside a number */
};

static uint64_t read_number(struct reader *reader)
{
    if ((size_t)(reader->end - reader->at) < reader->bytes) {
        reader->cut = true;
        return 0;
    }
    uint64_t number = reader->bytes == 4 ? slc_load_u32(reader->at) : slc_load_u64(reader->at);
    reader->at += reader->bytes;
    return number;
}

static bool is_splatt(const unsigned char *head, size_t bytes)
{
    if (bytes < SPLATT_START_BYTES || slc_load_u32(head) != 0) {
        return false;
    }
    uint64_t index = slc_load_u64(head + 4);
    uint64_t value = slc_load_u64(head + 12);
    return (index == 4 || index == 8) && (value == 4 || value == 8);
}

enum slc_dialect slc_binary_detect(const unsigned char *head, size_t bytes)
{
    if (is_splatt(head, bytes)) {
        return SLC_DIALECT_SPLATT_BIN;
    }
    if (bytes >= GENTEN_START_BYTES && memcmp(head, genten_magic, 4) == 0 && head[4] < 0x20) {
        return SLC_DIALECT_GENTEN_BIN;
    }
    if (bytes >= 4 && memcmp(head, zip_magic, 4) == 0) {
        return SLC_DIALECT_NPZ;
    }
    if (bytes >= SLC_NPY_MAGIC_BYTES && memcmp(head, SLC_NPY_MAGIC, SLC_NPY_MAGIC_BYTES) == 0) {
        return SLC_DIALECT_NPY;
    }
    return SLC_DIALECT_AUTO;
}

bool slc_binary_unmarked(const unsigned char *head, size_t bytes)
{
    return bytes >= 8 && slc_load_u64(head) <= SLC_MAX_ORDER;
}

static enum slc_status
read_order(struct reader *reader, uint64_t order, unsigned *result, struct slc_error *err)
{
    if (reader->cut) {
        return slc_fail(err, SLC_ERR_INPUT, "the file ends within its header");
    }
    if (order < 1 || order > SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "%" PRIu64 " modes: 1 to %d are supported", order,
                        (int)SLC_MAX_ORDER);
    }
    *result = (unsigned)order;
    return SLC_OK;
}

static enum slc_status
read_dims(struct reader *reader, struct slc_binary *binary, struct slc_error *err)
{
    binary->has_dims = true;
    for (unsigned m = 0; m < binary->order; m++) {
        binary->dims[m] = read_number(reader);
        if (!reader->cut && (binary->dims[m] < 1 || binary->dims[m] > SLC_MAX_MODE_LENGTH)) {
            return slc_fail(err, SLC_ERR_INPUT,
                            "the header declares mode %u with size %" PRIu64
                            ": must be 1 to %" PRIu64,
                            m + 1, binary->dims[m], SLC_MAX_MODE_LENGTH);
        }
    }
    return SLC_OK;
}

/* Describes bands of indices (`index_bytes` bytes each), one band per mode, then a band of values,
 * without their offsets in the file. */
static void lay_out_columns(struct slc_binary *binary, unsigned index_bytes, unsigned value_bytes)
{
    binary->band_count = binary->order + 1;
    for (unsigned f = 0; f <= binary->order; f++) {
        unsigned bytes = f < binary->order ? index_bytes : value_bytes;

        binary->fields[f] =
            (struct slc_field){.kind = f < binary->order ? SLC_FIELD_UNSIGNED : SLC_FIELD_FLOAT,
                               .bytes = (uint8_t)bytes,
                               .band = (uint8_t)f};
        binary->bands[f].record_bytes = bytes;
    }
}

static enum slc_status
splatt_header(struct reader *reader, struct slc_binary *binary, struct slc_error *err)
{
    const unsigned char *head = reader->at;

    if (!is_splatt(head, (size_t)(reader->end - head))) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "not a binary SPLATT tensor: expected 0 in 4 bytes, then the bytes per "
                        "index and the bytes per value, which are 4 or 8, in 8 bytes each");
    }
    unsigned index_bytes = (unsigned)slc_load_u64(head + 4);
    unsigned value_bytes = (unsigned)slc_load_u64(head + 12);
    reader->at += SPLATT_START_BYTES;
    reader->bytes = index_bytes;
    SLC_TRY(read_order(reader, read_number(reader), &binary->order, err));
    SLC_TRY(read_dims(reader, binary, err));
    binary->nnz = read_number(reader);
    lay_out_columns(binary, index_bytes, value_bytes);
    return SLC_OK;
}

/* Converts a width in bits, of indices or values, to bytes. */
static enum slc_status
read_width(uint64_t bits, uint64_t least, uint8_t *bytes, struct slc_error *err)
{
    if ((bits != 16 && bits != 32 && bits != 64) || bits < least) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "the header declares numbers of %" PRIu64
                        " bits: indices must have 16, 32 or 64 bits, values 32 or 64 bits",
                        bits);
    }
    *bytes = (uint8_t)(bits / 8);
    return SLC_OK;
}

static enum slc_status
genten_header(struct reader *reader, struct slc_binary *binary, struct slc_error *err)
{
    const unsigned char *head = reader->at;
    uint32_t offset = 0;

    if (reader->end - head < GENTEN_START_BYTES || memcmp(head, genten_magic, 4) != 0) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "not a binary GenTen tensor: expected 'sptn' at the beginning");
    }
    reader->at += GENTEN_START_BYTES;
    reader->bytes = 8;
    uint64_t value_bits = slc_load_u32(head + 8);
    enum slc_status status = read_order(reader, slc_load_u32(head + 4), &binary->order, err);
    SLC_THEN(status, read_dims(reader, binary, err));
    binary->band_count = 1;
    for (unsigned m = 0; m < binary->order && status == SLC_OK && !reader->cut; m++) {
        uint64_t bits = read_number(reader);

        if (!reader->cut) {
            status = read_width(bits, 16, &binary->fields[m].bytes, err);
        }
        binary->fields[m].offset = offset;
        offset += binary->fields[m].bytes;
    }
    struct slc_field *value = &binary->fields[binary->order];
    value->kind = SLC_FIELD_FLOAT;
    value->offset = offset;
    SLC_THEN(status, read_width(value_bits, 32, &value->bytes, err));
    binary->bands[0].record_bytes = offset + value->bytes;
    binary->nnz = read_number(reader);
    return status;
}

/* Returns the bytes per value: 4 if the file has exactly the length for values of 4 bytes,
 * otherwise 8. */
static unsigned alto_value_bytes(const struct slc_binary *binary, uint64_t rows_bytes)
{
    uint64_t row = 8 * (uint64_t)binary->order;

    return binary->nnz > 0 && rows_bytes % binary->nnz == 0 && rows_bytes / binary->nnz == row + 4
               ? 4
               : 8;
}

static enum slc_status alto_header(struct reader *reader,
                                   const unsigned char *head,
                                   const struct slc_bytes_view *view,
                                   struct slc_binary *binary,
                                   struct slc_error *err)
{
    reader->bytes = 8;
    enum slc_status status = read_order(reader, read_number(reader), &binary->order, err);
    SLC_THEN(status, read_dims(reader, binary, err));
    if (status == SLC_OK) {
        binary->nnz = read_number(reader);
        uint64_t header_bytes = (uint64_t)(reader->at - head);
        lay_out_columns(binary, 8,
                        view && view->bytes >= header_bytes
                            ? alto_value_bytes(binary, view->bytes - header_bytes)
                            : 8);
    }
    return status;
}

/* Sets the offset of every band. The bands must fill the rest of the file exactly. */
static enum slc_status place_bands(const struct slc_bytes_view *view,
                                   uint64_t header_bytes,
                                   struct slc_binary *binary,
                                   struct slc_error *err)
{
    uint64_t rows_bytes, whole;
    uint64_t at = header_bytes;

    if (!slc_mul_u64(binary->nnz, slc_binary_row_bytes(binary), &rows_bytes) ||
        !slc_add_u64(header_bytes, rows_bytes, &whole) || whole > INT64_MAX) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "the header declares %" PRIu64 " nonzeros of %" PRIu32
                        " bytes each, which is more than a file can hold",
                        binary->nnz, slc_binary_row_bytes(binary));
    }
    if (!view) {
        return SLC_OK;
    }
    if (whole != view->bytes) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "the header requires a file of %" PRIu64 " bytes (the header and %" PRIu64
                        " nonzeros of %" PRIu32 " bytes each); the file has %" PRIu64 " bytes",
                        whole, binary->nnz, slc_binary_row_bytes(binary), view->bytes);
    }
    for (unsigned b = 0; b < binary->band_count; b++) {
        binary->bands[b].view = *view;
        binary->bands[b].view.begin = view->begin + at;
        binary->bands[b].view.bytes = binary->nnz * binary->bands[b].record_bytes;
        at += binary->bands[b].view.bytes;
    }
    return SLC_OK;
}

enum slc_status slc_binary_header(const unsigned char *head,
                                  size_t head_bytes,
                                  const struct slc_bytes_view *view,
                                  struct slc_binary *binary,
                                  struct slc_error *err)
{
    struct reader reader = {.at = head, .end = head + head_bytes, .bytes = 8};
    enum slc_status status;

    *binary = (struct slc_binary){.dialect = binary->dialect};
    if (binary->dialect == SLC_DIALECT_SPLATT_BIN) {
        status = splatt_header(&reader, binary, err);
    } else if (binary->dialect == SLC_DIALECT_GENTEN_BIN) {
        status = genten_header(&reader, binary, err);
    } else {
        status = alto_header(&reader, head, view, binary, err);
    }
    SLC_TRY(status);
    if (reader.cut) {
        return slc_fail(err, SLC_ERR_INPUT, "the file ends within its header");
    }
    return place_bands(view, (uint64_t)(reader.at - head), binary, err);
}
