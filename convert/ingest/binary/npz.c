/* Reads sparse tensors in .npz files, which are .zip files of .npy arrays:
 *
 *   pydata/sparse (COO): coords (N, nnz), data, shape, fill_value (must be 0). scipy.sparse:
 *   format, shape, data, and row and col (coo), or indices and indptr (csr, csc).
 *
 * The headers of all members are read first and must be consistent; only then are arrays copied.
 * Compressed members can only be read sequentially, so each member is decompressed once, to the
 * spool. csr and csc store only the first nonzero of each row or column; the row or column of each
 * nonzero is then also written to the spool.
 *
 * Cost: the decompressed size is written to the disk once. */
#include "convert/ingest/binary/npy_array.h"

#include "base/memory/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct npz {
    struct slc_zip *zip;
    const char *name; /* name of the file, for messages */
    struct slc_spool *spool;
    uint8_t *buffer;
    size_t buffer_bytes;
};

static enum slc_status reject_member(const struct npz *npz,
                                     enum slc_status status,
                                     const char *reason,
                                     struct slc_error *err)
{
    return slc_fail_file(err, status, npz->name, "%s", reason);
}

/* Opens member NAME.npy and parses its header. The next read of the member returns items. */
static enum slc_status open_array(const struct npz *npz,
                                  const char *name,
                                  struct slc_npy_array *array,
                                  struct slc_error *err)
{
    unsigned char head[SLC_NPY_HEAD_BYTES];
    char member[32], where[600];
    uint64_t bytes;
    size_t got;

    (void)snprintf(member, sizeof member, "%s.npy", name);
    (void)snprintf(where, sizeof where, "%s(%s)", npz->name, member);
    if (!slc_zip_find(npz->zip, member, &bytes)) {
        return slc_fail_file(err, SLC_ERR_INPUT, npz->name, "the .npz file has no valid member %s",
                             member);
    }
    SLC_TRY(slc_zip_open_member(npz->zip, member, err));
    SLC_TRY(slc_zip_next(npz->zip, head, sizeof head, &got, err));
    SLC_TRY(slc_npy_array_parse(head, got, bytes, where, array, err));
    /* Open the member again and skip only the header, because the buffer may also hold items. */
    SLC_TRY(slc_zip_open_member(npz->zip, member, err));
    return slc_zip_next(npz->zip, head, (size_t)array->header_bytes, &got, err);
}

static bool has_member(const struct npz *npz, const char *member)
{
    uint64_t bytes;

    return slc_zip_find(npz->zip, member, &bytes);
}

/* Reads all items of a small array. An array of more than `bytes` bytes is an error. */
static enum slc_status read_small(const struct npz *npz,
                                  const char *name,
                                  struct slc_npy_array *array,
                                  uint8_t *items,
                                  size_t bytes,
                                  struct slc_error *err)
{
    size_t got;

    SLC_TRY(open_array(npz, name, array, err));
    if (slc_npy_items(array) * array->header.item_bytes > bytes) {
        SLC_TRY(reject_member(
            npz, SLC_ERR_UNSUPPORTED,
            "the array has too many items to describe a tensor of at most 16 modes", err));
    }
    return slc_zip_next(npz->zip, items, bytes, &got, err);
}

/* Returns integer `i` of a small array as u64. Negative integers become larger than any mode
 * size. */
static uint64_t small_integer(const struct slc_npy_array *array, const uint8_t *items, uint64_t i)
{
    unsigned bytes = array->header.item_bytes;
    uint64_t number = 0;

    for (unsigned b = 0; b < bytes; b++) {
        unsigned from = array->header.big_endian ? b : bytes - 1 - b;

        number = number << 8 | items[i * bytes + from];
    }
    if (array->header.kind == 'i' &&
        items[i * bytes + (array->header.big_endian ? 0 : bytes - 1)] >> 7) {
        return UINT64_MAX;
    }
    return number;
}

static enum slc_status
read_shape(const struct npz *npz, struct slc_binary *binary, struct slc_error *err)
{
    struct slc_npy_array array;
    uint8_t items[8 * SLC_MAX_ORDER];

    SLC_TRY(read_small(npz, "shape", &array, items, sizeof items, err));
    SLC_TRY(slc_npy_check_use(&array, SLC_NPY_COORDS, npz->name, err));
    if (slc_npy_items(&array) < 1 || slc_npy_items(&array) > SLC_MAX_ORDER) {
        return reject_member(npz, SLC_ERR_UNSUPPORTED, "1 to 16 modes are supported", err);
    }
    binary->order = (unsigned)slc_npy_items(&array);
    binary->has_dims = true;
    for (unsigned m = 0; m < binary->order; m++) {
        binary->dims[m] = small_integer(&array, items, m);
        if (binary->dims[m] < 1 || binary->dims[m] > SLC_MAX_MODE_LENGTH) {
            return slc_fail_file(err, SLC_ERR_INPUT, npz->name,
                                 "the shape declares mode %u with size %" PRId64
                                 ": must be 1 to %" PRIu64,
                                 m + 1, (int64_t)binary->dims[m], SLC_MAX_MODE_LENGTH);
        }
    }
    return SLC_OK;
}

/* Checks that fill_value, the value of elements that are not stored, is 0. */
static enum slc_status check_fill(const struct npz *npz, struct slc_error *err)
{
    struct slc_npy_array array;
    uint8_t items[8] = {0};
    bool zero = true;
    enum slc_status status = SLC_OK;

    if (has_member(npz, "fill_value.npy")) {
        status = read_small(npz, "fill_value", &array, items, sizeof items, err);
        for (unsigned b = 0; status == SLC_OK && b < sizeof items; b++) {
            unsigned sign = array.header.big_endian ? 0 : array.header.item_bytes - 1U;

            zero = zero &&
                   (b == sign && array.header.kind == 'f' ? (items[b] & 0x7f) == 0 : items[b] == 0);
        }
    }
    return status == SLC_OK && !zero ? reject_member(npz, SLC_ERR_UNSUPPORTED,
                                                     "fill_value is not 0: only tensors whose "
                                                     "missing elements are 0 can be converted",
                                                     err)
                                     : status;
}

/* Appends the items of an array to the spool and sets array->data to this copy. */
static enum slc_status copy_array(const struct npz *npz,
                                  const struct slc_bytes_view *file,
                                  const char *name,
                                  struct slc_npy_array *array,
                                  struct slc_error *err)
{
    enum slc_status status = open_array(npz, name, array, err);
    uint64_t needed, done = 0;
    size_t got = 1;

    SLC_TRY(status);
    needed = slc_npy_items(array) * array->header.item_bytes;
    array->data = (struct slc_bytes_view){.files = file->files,
                                          .fd = slc_spool_fd(npz->spool),
                                          .name = file->name,
                                          .begin = slc_spool_bytes(npz->spool),
                                          .bytes = needed};
    while (status == SLC_OK && got > 0) {
        status = slc_zip_next(npz->zip, npz->buffer, npz->buffer_bytes, &got, err);
        done += got;
        if (status == SLC_OK && done > needed) {
            status = reject_member(npz, SLC_ERR_INPUT,
                                   "a member is longer than its header declares", err);
        }
        if (status == SLC_OK && got > 0) {
            status = slc_spool_append(npz->spool, npz->buffer, got, err);
        }
    }
    SLC_TRY(status);
    if (done != needed) {
        SLC_TRY(
            reject_member(npz, SLC_ERR_INPUT, "a member is shorter than its header declares", err));
    }
    return SLC_OK;
}

/* Checks that an array is a vector of `nnz` numbers. The first vector that is checked sets
 * `nnz`. */
static enum slc_status check_vector(const struct npz *npz,
                                    const char *name,
                                    enum slc_npy_use use,
                                    bool first,
                                    uint64_t *nnz,
                                    struct slc_error *err)
{
    struct slc_npy_array array;
    enum slc_status status = open_array(npz, name, &array, err);

    SLC_THEN(status, slc_npy_check_use(&array, use, npz->name, err));
    if (status == SLC_OK &&
        (array.header.dimensions != 1 || (!first && array.header.shape[0] != *nnz))) {
        return slc_fail_file(err, SLC_ERR_INPUT, npz->name,
                             "member %s.npy has %u dimensions and %" PRIu64
                             " numbers; expected %" PRIu64 " in one dimension",
                             name, array.header.dimensions, slc_npy_items(&array),
                             first ? slc_npy_items(&array) : *nnz);
    }
    *nnz = status == SLC_OK ? array.header.shape[0] : 0;
    return status;
}

/* Reads a tensor of pydata/sparse from the members coords, data, shape and fill_value. */
static enum slc_status read_sparse(const struct npz *npz,
                                   const struct slc_bytes_view *file,
                                   struct slc_binary *binary,
                                   struct slc_error *err)
{
    struct slc_npy_array coords = {.header_bytes = 0}, values;

    SLC_TRY(check_fill(npz, err));
    SLC_TRY(check_vector(npz, "data", SLC_NPY_VALUES, true, &binary->nnz, err));
    SLC_TRY(open_array(npz, "coords", &coords, err));
    SLC_TRY(slc_npy_check_use(&coords, SLC_NPY_COORDS, npz->name, err));
    if (coords.header.dimensions != 2 || coords.header.shape[0] != binary->order ||
        coords.header.shape[1] != binary->nnz) {
        return slc_fail_file(err, SLC_ERR_INPUT, npz->name,
                             "coords has the shape (%" PRIu64 ", %" PRIu64
                             "), expected (%u, %" PRIu64 ") for modes and nonzeros",
                             coords.header.shape[0], coords.header.shape[1], binary->order,
                             binary->nnz);
    }
    SLC_TRY(copy_array(npz, file, "coords", &coords, err));
    SLC_TRY(copy_array(npz, file, "data", &values, err));
    slc_npy_lay_out_coords(binary, &coords, false);
    slc_npy_lay_out_vector(binary, binary->order, &values);
    return SLC_OK;
}

/* Collects 8-byte numbers for the spool in the second half of `buffer`. */
struct numbers {
    const struct npz *npz;
    uint8_t *bytes;
    size_t filled, capacity;
};

static enum slc_status flush_numbers(struct numbers *numbers, struct slc_error *err)
{
    size_t filled = numbers->filled;

    numbers->filled = 0;
    return slc_spool_append(numbers->npz->spool, numbers->bytes, filled, err);
}

/* Appends a number `count` times. */
static enum slc_status
append_number(struct numbers *numbers, uint64_t number, uint64_t count, struct slc_error *err)
{
    for (; count > 0; count--) {
        slc_store_u64(numbers->bytes + numbers->filled, number);
        numbers->filled += 8;
        if (numbers->filled == numbers->capacity) {
            SLC_TRY(flush_numbers(numbers, err));
        }
    }
    return SLC_OK;
}

/* Writes the array `lines` with the row (csr) or column (csc) of each nonzero to the spool. indptr
 * holds the first nonzero of each of the `length` rows or columns, followed by the number of
 * nonzeros. */
static enum slc_status expand_lines(const struct npz *npz,
                                    const struct slc_bytes_view *file,
                                    uint64_t length,
                                    uint64_t nnz,
                                    struct slc_npy_array *lines,
                                    struct slc_error *err)
{
    struct numbers numbers = {.npz = npz,
                              .bytes = npz->buffer + npz->buffer_bytes / 2,
                              .capacity = npz->buffer_bytes / 16 * 8};
    struct slc_npy_array starts;
    uint64_t line = 0, before = 0;
    size_t got = 1;
    enum slc_status status = open_array(npz, "indptr", &starts, err);

    *lines = (struct slc_npy_array){
        .header = {.kind = 'u', .item_bytes = 8, .dimensions = 1, .shape = {nnz, 1}},
        .data = {.files = file->files,
                 .fd = slc_spool_fd(npz->spool),
                 .name = file->name,
                 .begin = slc_spool_bytes(npz->spool),
                 .bytes = 8 * nnz}};
    while (status == SLC_OK && got > 0) {
        status = slc_zip_next(npz->zip, npz->buffer, npz->buffer_bytes / 2, &got, err);
        for (uint64_t i = 0; status == SLC_OK && i < got / starts.header.item_bytes; i++, line++) {
            uint64_t start = small_integer(&starts, npz->buffer, i);

            if (start < before || start > nnz || line > length || (line == 0 && start != 0)) {
                return reject_member(npz, SLC_ERR_INPUT,
                                     "the numbers in indptr do not start at 0 and ascend", err);
            }
            if (line > 0) {
                status = append_number(&numbers, line - 1, start - before, err);
            }
            before = start;
        }
    }
    if (status == SLC_OK && (line != length + 1 || before != nnz)) {
        status = reject_member(npz, SLC_ERR_INPUT,
                               "indptr does not end with the number of nonzeros", err);
    }
    return status == SLC_OK ? flush_numbers(&numbers, err) : status;
}

/* Reads a csr or csc matrix from indices, indptr and data. `mode` is the mode of indptr: 0 for csr,
 * 1 for csc. */
static enum slc_status read_compressed(const struct npz *npz,
                                       const struct slc_bytes_view *file,
                                       unsigned mode,
                                       struct slc_binary *binary,
                                       struct slc_error *err)
{
    struct slc_npy_array lines, others, values;
    uint64_t starts = binary->dims[mode] + 1;

    SLC_TRY(check_vector(npz, "data", SLC_NPY_VALUES, true, &binary->nnz, err));
    SLC_TRY(check_vector(npz, "indices", SLC_NPY_COORDS, false, &binary->nnz, err));
    SLC_TRY(check_vector(npz, "indptr", SLC_NPY_COORDS, false, &starts, err));
    SLC_TRY(expand_lines(npz, file, binary->dims[mode], binary->nnz, &lines, err));
    SLC_TRY(copy_array(npz, file, "indices", &others, err));
    SLC_TRY(copy_array(npz, file, "data", &values, err));
    slc_npy_lay_out_vector(binary, mode, &lines);
    slc_npy_lay_out_vector(binary, 1 - mode, &others);
    slc_npy_lay_out_vector(binary, 2, &values);
    return SLC_OK;
}

static enum slc_status read_coo(const struct npz *npz,
                                const struct slc_bytes_view *file,
                                struct slc_binary *binary,
                                struct slc_error *err)
{
    static const char *const names[] = {"row", "col", "data"};
    struct slc_npy_array arrays[3];

    SLC_TRY(check_vector(npz, "data", SLC_NPY_VALUES, true, &binary->nnz, err));
    for (unsigned i = 0; i < 2; i++) {
        SLC_TRY(check_vector(npz, names[i], SLC_NPY_COORDS, false, &binary->nnz, err));
    }
    for (unsigned i = 0; i < 3; i++) {
        SLC_TRY(copy_array(npz, file, names[i], &arrays[i], err));
        slc_npy_lay_out_vector(binary, i, &arrays[i]);
    }
    return SLC_OK;
}

/* Reads a matrix of scipy.sparse in the format that its member `format` states. */
static enum slc_status read_scipy(const struct npz *npz,
                                  const struct slc_bytes_view *file,
                                  struct slc_binary *binary,
                                  struct slc_error *err)
{
    struct slc_npy_array array;
    uint8_t format[9] = {0};

    SLC_TRY(read_small(npz, "format", &array, format, sizeof format - 1, err));
    if (array.header.kind != 'S' || binary->order != 2) {
        return reject_member(npz, SLC_ERR_INPUT, "not a scipy.sparse matrix", err);
    }
    if (memcmp(format, "coo", 4) == 0) {
        return read_coo(npz, file, binary, err);
    }
    if (memcmp(format, "csr", 4) == 0 || memcmp(format, "csc", 4) == 0) {
        return read_compressed(npz, file, format[2] == 'r' ? 0 : 1, binary, err);
    }
    return reject_member(
        npz, SLC_ERR_UNSUPPORTED,
        format[0] == 'b'   ? "a scipy.sparse matrix in the format bsr: save its tocoo()"
        : format[0] == 'd' ? "a scipy.sparse matrix in the format dia: save its tocoo()"
                           : "a scipy.sparse matrix in a format other than coo, csr and csc: save "
                             "its tocoo()",
        err);
}

/* Returns a description of a .npz file that has no sparse tensor in a known form. */
static const char *describe_other(const struct npz *npz)
{
    return has_member(npz, "compressed_axes.npy")
               ? "a GCXS array of pydata/sparse: save its tocoo()"
           : has_member(npz, "arr_0.npy")
               ? "arrays of numpy.savez: save a dense array alone with numpy.save, and coordinates "
                 "and values as two .npy files"
               : "the .npz file has neither the members of a pydata/sparse tensor (coords, data, "
                 "shape) nor of a scipy.sparse matrix (format, data, shape)";
}

enum slc_status slc_npz_read(const struct slc_bytes_view *file,
                             struct slc_spool *spool,
                             void *buffer,
                             size_t buffer_bytes,
                             struct slc_binary *binary,
                             struct slc_error *err)
{
    struct npz npz = {
        .name = file->name, .spool = spool, .buffer = buffer, .buffer_bytes = buffer_bytes};
    enum slc_status status = slc_zip_open(file, &npz.zip, err);

    *binary = (struct slc_binary){.dialect = binary->dialect};
    SLC_TRY(status);
    if (has_member(&npz, "compressed_axes.npy") || !has_member(&npz, "shape.npy") ||
        !has_member(&npz, "data.npy") ||
        (!has_member(&npz, "coords.npy") && !has_member(&npz, "format.npy"))) {
        status = reject_member(&npz, SLC_ERR_UNSUPPORTED, describe_other(&npz), err);
    }
    SLC_THEN(status, read_shape(&npz, binary, err));
    SLC_THEN(status, has_member(&npz, "coords.npy") ? read_sparse(&npz, file, binary, err)
                                                    : read_scipy(&npz, file, binary, err));
    slc_zip_close(npz.zip);
    return status;
}
