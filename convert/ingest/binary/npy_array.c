/* Parses .npy headers, checks arrays of coordinates and values, and combines two .npy files into a
 * tensor. */
#include "convert/ingest/binary/npy_array.h"

#include "base/memory/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

uint64_t slc_npy_items(const struct slc_npy_array *array)
{
    uint64_t items = 1;

    for (unsigned d = 0; d < SLC_MAX_ORDER; d++) {
        items *= array->header.shape[d];
    }
    return items;
}

enum { SHAPE_BYTES = SLC_MAX_ORDER * 22 + 4 };

/* Formats a shape as "(3, 4)", for messages. */
static const char *shape_text(const struct slc_npy_header *header, char text[SHAPE_BYTES])
{
    int used = snprintf(text, SHAPE_BYTES, "(");

    for (unsigned d = 0; d < header->dimensions; d++) {
        used += snprintf(text + used, SHAPE_BYTES - (size_t)used, "%s%" PRIu64 "%s",
                         d > 0 ? ", " : "", header->shape[d], header->dimensions == 1 ? "," : "");
    }
    (void)snprintf(text + used, SHAPE_BYTES - (size_t)used, ")");
    return text;
}

/* Computes the bytes of all items. Returns false if they exceed 64 bits. */
static bool items_bytes(const struct slc_npy_header *header, uint64_t *bytes)
{
    bool fits = true, empty = false;

    *bytes = header->item_bytes;
    for (unsigned d = 0; d < header->dimensions; d++) {
        empty = empty || header->shape[d] == 0;
        fits = fits && slc_mul_u64(*bytes, header->shape[d], bytes);
    }
    *bytes = empty ? 0 : *bytes;
    return fits || empty;
}

enum slc_status slc_npy_array_parse(const unsigned char *head,
                                    size_t head_bytes,
                                    uint64_t file_bytes,
                                    const char *name,
                                    struct slc_npy_array *array,
                                    struct slc_error *err)
{
    uint32_t offset, length;
    uint64_t bytes;
    char shape[SHAPE_BYTES];
    enum slc_status status = slc_npy_start_parse(head, head_bytes, &offset, &length, err);

    if (status == SLC_OK && (uint64_t)offset + length > head_bytes) {
        status =
            slc_fail(err, SLC_ERR_INPUT, "the .npy header is longer than %zu bytes", head_bytes);
    }
    SLC_THEN(status,
             slc_npy_header_parse_any((const char *)head + offset, length, &array->header, err));
    if (status == SLC_OK &&
        (!items_bytes(&array->header, &bytes) ||
         !slc_add_u64(bytes, (uint64_t)offset + length, &bytes) || bytes != file_bytes)) {
        status = slc_fail(err, SLC_ERR_INPUT,
                          "an array of shape %s with %u bytes per item after a header of %" PRIu64
                          " bytes does not match the %" PRIu64 " bytes of the file",
                          shape_text(&array->header, shape), array->header.item_bytes,
                          (uint64_t)offset + length, file_bytes);
    }
    array->header_bytes = (uint64_t)offset + length;
    slc_error_locate_file(err, name);
    return status;
}

enum slc_status slc_npy_check_use(const struct slc_npy_array *array,
                                  enum slc_npy_use use,
                                  const char *name,
                                  struct slc_error *err)
{
    char kind = array->header.kind;
    bool fits =
        kind == 'i' || kind == 'u' || (use == SLC_NPY_VALUES && (kind == 'f' || kind == 'b'));

    if (fits) {
        return SLC_OK;
    }
    return slc_fail_file(err, SLC_ERR_INPUT, name, "the items have type %c%u, expected %s", kind,
                         array->header.item_bytes,
                         use == SLC_NPY_COORDS ? "integers, because they are indices" : "numbers");
}

static struct slc_field field_of(const struct slc_npy_array *array, unsigned band)
{
    char kind = array->header.kind;

    return (struct slc_field){.kind = kind == 'f'   ? SLC_FIELD_FLOAT
                                      : kind == 'i' ? SLC_FIELD_SIGNED
                                                    : SLC_FIELD_UNSIGNED,
                              .bytes = array->header.item_bytes,
                              .big_endian = array->header.big_endian,
                              .band = (uint8_t)band};
}

void slc_npy_lay_out_vector(struct slc_binary *binary,
                            unsigned field,
                            const struct slc_npy_array *array)
{
    unsigned band = binary->band_count++;

    binary->fields[field] = field_of(array, band);
    binary->bands[band].view = array->data;
    binary->bands[band].record_bytes = array->header.item_bytes;
}

void slc_npy_lay_out_coords(struct slc_binary *binary, const struct slc_npy_array *array, bool rows)
{
    uint32_t item = array->header.item_bytes;
    /* In an array of shape (nnz, N), the indices of a nonzero are adjacent unless the array has
     * Fortran order. */
    bool records = rows != array->header.fortran_order;

    for (unsigned m = 0; m < binary->order; m++) {
        unsigned band = records ? 0 : m;

        binary->fields[m] = field_of(array, band);
        binary->fields[m].offset = records ? m * item : 0;
        binary->bands[band].view = array->data;
        binary->bands[band].record_bytes = records ? binary->order * item : item;
        if (!records) {
            binary->bands[band].view.begin += m * binary->nnz * item;
            binary->bands[band].view.bytes = binary->nnz * item;
        }
    }
    binary->band_count = records ? 1 : binary->order;
}

/* Opens an array that is a .npy file. */
static enum slc_status open_array(const struct slc_bytes_view *view,
                                  enum slc_npy_use use,
                                  struct slc_npy_array *array,
                                  struct slc_error *err)
{
    unsigned char head[SLC_NPY_HEAD_BYTES];
    size_t head_bytes = (size_t)slc_min_u64(view->bytes, sizeof head);

    SLC_TRY(slc_bytes_read(view, head, head_bytes, 0, err));
    SLC_TRY(slc_npy_array_parse(head, head_bytes, view->bytes, view->name, array, err));
    SLC_TRY(slc_npy_check_use(array, use, view->name, err));
    array->data = *view;
    array->data.begin += array->header_bytes;
    array->data.bytes -= array->header_bytes;
    return SLC_OK;
}

/* Decides whether nonzeros are the rows or the columns of the array of coordinates. */
static enum slc_status choose_rows(enum slc_dialect dialect,
                                   const struct slc_npy_array *coords,
                                   uint64_t nnz,
                                   const char *name,
                                   bool *rows,
                                   struct slc_error *err)
{
    const uint64_t *shape = coords->header.shape;
    bool can_rows = shape[0] == nnz && dialect != SLC_DIALECT_NPY_COLUMNS;
    bool can_columns = shape[1] == nnz && dialect != SLC_DIALECT_NPY_ROWS;
    char text[SHAPE_BYTES];
    enum slc_status status = SLC_OK;

    if (coords->header.dimensions == 1) {
        can_rows = shape[0] == nnz;
        can_columns = false;
    }
    *rows = can_rows;
    if (can_rows && can_columns && nnz > 1) {
        status = slc_fail_field(
            err, SLC_ERR_INPUT, SLC_FIELD_DIALECT,
            "the coordinates have the shape %s and there are %" PRIu64
            " values: a nonzero may be a row or a column; give the format npy-rows or npy-columns",
            shape_text(&coords->header, text), nnz);
    } else if (!can_rows && !can_columns) {
        status = slc_fail(err, SLC_ERR_INPUT,
                          "the coordinates have the shape %s, but there are %" PRIu64
                          " values: expected %s of coordinates per value",
                          shape_text(&coords->header, text), nnz,
                          dialect == SLC_DIALECT_NPY_COLUMNS ? "a column"
                          : dialect == SLC_DIALECT_NPY_ROWS  ? "a row"
                                                             : "a row or a column");
    }
    slc_error_locate_file(err, name);
    return status;
}

enum slc_status slc_npy_pair(const struct slc_bytes_view *coords,
                             const struct slc_bytes_view *values,
                             struct slc_binary *binary,
                             struct slc_error *err)
{
    struct slc_npy_array places = {.header_bytes = 0}, numbers = {.header_bytes = 0};
    bool rows;
    char text[SHAPE_BYTES];
    enum slc_status status = open_array(coords, SLC_NPY_COORDS, &places, err);

    *binary = (struct slc_binary){.dialect = binary->dialect};
    SLC_TRY(status);
    SLC_TRY(open_array(values, SLC_NPY_VALUES, &numbers, err));
    if (places.header.dimensions == 0 || places.header.dimensions > 2) {
        return slc_fail_file(err, SLC_ERR_INPUT, coords->name,
                             "the array has %u dimensions, but coordinates have two, one row or "
                             "column per value",
                             places.header.dimensions);
    }
    if (numbers.header.dimensions == 0 || numbers.header.dimensions > 2 ||
        (numbers.header.shape[0] != 1 && numbers.header.shape[1] != 1)) {
        return slc_fail_file(err, SLC_ERR_INPUT, values->name,
                             "an array of values must have one dimension, but it has the shape %s",
                             shape_text(&numbers.header, text));
    }
    binary->values_name = values->name;
    binary->nnz = slc_npy_items(&numbers);
    SLC_TRY(choose_rows(binary->dialect, &places, binary->nnz, coords->name, &rows, err));
    uint64_t order = places.header.shape[rows ? 1 : 0];
    if (order < 1 || order > SLC_MAX_ORDER) {
        return slc_fail_file(err, SLC_ERR_UNSUPPORTED, coords->name,
                             "%" PRIu64 " modes: 1 to %d are supported", order, (int)SLC_MAX_ORDER);
    }
    binary->order = (unsigned)order;
    slc_npy_lay_out_coords(binary, &places, rows);
    slc_npy_lay_out_vector(binary, binary->order, &numbers);
    return SLC_OK;
}

enum slc_status slc_npy_dense(const struct slc_bytes_view *elements,
                              struct slc_binary *binary,
                              struct slc_error *err)
{
    struct slc_npy_array array = {.header_bytes = 0};
    const struct slc_npy_header *header = &array.header;
    char text[SHAPE_BYTES];

    SLC_TRY(open_array(elements, SLC_NPY_VALUES, &array, err));
    const bool integers = header->kind == 'i' || header->kind == 'u';
    if (header->dimensions == 0) {
        return slc_fail_file(err, SLC_ERR_INPUT, elements->name,
                             "the file has a single number without a dimension: save an array with "
                             "a dimension for each mode, such as numpy.reshape(x, (1, 1))");
    }
    if (binary->dialect != SLC_DIALECT_NPY_DENSE &&
        (header->dimensions < 2 || (header->dimensions == 2 && integers))) {
        enum slc_status status = slc_fail_fields(
            err, SLC_ERR_INPUT, SLC_FIELD_VALUES_FILE, SLC_FIELD_DIALECT,
            "the shape %s may be that of coordinates or values: name the files of both, or the "
            "format npy-dense for a dense tensor",
            shape_text(header, text));

        slc_error_locate_file(err, elements->name);
        return status;
    }
    *binary = (struct slc_binary){.dialect = SLC_DIALECT_NPY_DENSE,
                                  .order = header->dimensions,
                                  .has_dims = true,
                                  .nnz = slc_npy_items(&array),
                                  .dense = true,
                                  .fortran_order = header->fortran_order};
    memcpy(binary->dims, header->shape, sizeof binary->dims);
    if (binary->nnz == 0) {
        return slc_fail_file(err, SLC_ERR_INPUT, elements->name,
                             "an array of shape %s has no elements", shape_text(header, text));
    }
    slc_npy_lay_out_vector(binary, binary->order, &array);
    return SLC_OK;
}
