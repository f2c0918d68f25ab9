/* Arbitrary bytes as the file of a binary tensor, plain or compressed (through a temporary file),
 * with a detected or forced format; as two .npy files; or as members of a .npz file that libzip
 * writes with checksums. All nonzeros are read and decoded twice, in batches of two sizes, with
 * identical results; in SPLATT's format with short indices each nonzero is also compared with its
 * bytes.
 *
 * Input: u8 form, u16 bytes of the first of two files, then bytes; members are u8 name, u16 bytes,
 * bytes. */
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "base/memory/bytes.h"
#include "convert/ingest/binary/binary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { HEAD_BYTES = 3, MEMBER_HEAD_BYTES = 3, ROWS = 64, SPLATT_START = 20 };

/* Result of reading a whole file. */
struct outcome {
    uint64_t rows;
    uint64_t hash; /* hash of all coordinates and values, in order */
    uint64_t smallest[SLC_MAX_ORDER];
    uint64_t largest[SLC_MAX_ORDER];
    struct slc_text_header header;
    struct slc_error err;
};

static void require(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz_binary: %s\n", what);
        abort();
    }
}

static void mix(struct outcome *out, uint64_t number)
{
    out->hash = (out->hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    out->hash ^= out->hash >> 29;
}

/* Parses a piece in batches of `capacity`; returns false on a fault. */
static bool parse_piece(const struct slc_row_source *source,
                        const struct slc_piece *piece,
                        uint32_t capacity,
                        struct outcome *out)
{
    static uint64_t coords[SLC_MAX_ORDER][ROWS];
    static double values[ROWS];
    struct slc_text_rows rows = {.capacity = capacity, .values = values};
    size_t position = piece->position;
    enum slc_status status = SLC_OK;

    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        rows.coords[m] = coords[m];
    }
    while (status == SLC_OK && position < piece->bytes) {
        slc_text_rows_clear(&rows);
        status = slc_row_source_parse(source, piece, &position, &rows, &out->err);
        require(status != SLC_OK || rows.count > 0, "no row was parsed");
        for (uint32_t i = 0; i < rows.count; i++) {
            for (unsigned m = 0; m < out->header.order; m++) {
                mix(out, coords[m][i]);
                require(coords[m][i] >= rows.smallest[m] && coords[m][i] <= rows.largest[m],
                        "an index out of its range");
            }
            mix(out, slc_load_u64(&values[i]));
            require(values[i] - values[i] == 0, "a value that is not finite");
        }
        out->rows += rows.count;
    }
    return status == SLC_OK;
}

/* Reads the whole file. */
static void read_all(const char *path,
                     const char *values_path,
                     enum slc_dialect dialect,
                     uint32_t capacity,
                     struct outcome *out)
{
    struct slc_input *values = NULL;
    const struct slc_spool_options spool = {.output = path, .max_bytes = 1 << 24};
    static struct slc_piece piece; /* a piece as in a conversion; static because it is large */
    struct slc_row_source *source = NULL;
    struct slc_input *input = NULL;
    uint64_t spooled;
    enum slc_status status = SLC_OK;

    piece.bytes = 1;
    if (!piece.buffer.data) {
        status = slc_buffer_create(&piece.buffer, SLC_PIECE_BYTES, SLC_PAGES_SMALL, &out->err);
    }
    if (status == SLC_OK) {
        status = slc_input_open(NULL, path, &input, &out->err);
    }
    if (status == SLC_OK && values_path) {
        status = slc_input_open(NULL, values_path, &values, &out->err);
    }
    if (status == SLC_OK) {
        size_t head_bytes;
        const unsigned char *head = slc_input_peek(input, &head_bytes);
        const struct slc_binary_request request = {
            .input = input,
            .values = values,
            .dialect = dialect == SLC_DIALECT_AUTO ? slc_binary_detect(head, head_bytes) : dialect,
            .spool = &spool,
            .buffer = piece.buffer.data,
            .buffer_bytes = SLC_PIECE_BYTES};

        status = slc_dialect_is_binary(request.dialect)
                     ? slc_binary_open(&request, &out->header, &source, &spooled, &out->err)
                     : slc_fail(&out->err, SLC_ERR_INPUT, "no binary format");
    }
    while (status == SLC_OK && piece.bytes > 0) {
        status = slc_row_source_next(source, &piece, &out->err);
        require(piece.bytes <= SLC_PIECE_BYTES, "more than a piece holds");
        if (status == SLC_OK && !parse_piece(source, &piece, capacity, out)) {
            status = out->err.status;
        }
    }
    require(status == out->err.status, "status and record differ");
    require(status != SLC_OK || out->rows == out->header.nnz, "another number of nonzeros");
    slc_row_source_close(source);
    slc_input_close(values);
    slc_input_close(input);
}

/* The hash of a tensor of SPLATT with indices of 4 and values of 8 bytes, computed directly from
 * its bytes. */
static uint64_t naive_hash(const uint8_t *data, const struct outcome *of)
{
    const uint8_t *at = data + SPLATT_START + 4 * (size_t)(of->header.order + 2);
    struct outcome out = {.rows = 0};

    for (uint64_t i = 0; i < of->rows; i++) {
        for (unsigned m = 0; m < of->header.order; m++) {
            mix(&out, slc_load_u32(at + 4 * (m * of->header.nnz + i)));
        }
        mix(&out, slc_load_u64(at + 4 * of->header.order * of->header.nnz + 8 * i));
    }
    return out.hash;
}

/* Writes a .npz file with the members of the input, deflated or stored. */
static void write_members(const char *path, const uint8_t *data, size_t bytes)
{
    static const char *const names[] = {"coords", "data",   "shape",   "fill_value", "row",
                                        "col",    "format", "indices", "indptr",     "more"};
    zip_t *archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);

    require(archive != NULL, "cannot write a .npz file");
    while (bytes >= MEMBER_HEAD_BYTES) {
        size_t size = slc_load_u16(data + 1);
        char name[16];
        zip_source_t *source;
        zip_int64_t at;

        (void)snprintf(name, sizeof name, "%s.npy", names[data[0] / 2 % 10]);
        size = size < bytes - MEMBER_HEAD_BYTES ? size : bytes - MEMBER_HEAD_BYTES;
        source = zip_source_buffer(archive, data + MEMBER_HEAD_BYTES, size, 0);
        at = zip_file_add(archive, name, source, ZIP_FL_OVERWRITE);
        require(at >= 0 &&
                    zip_set_file_compression(archive, (zip_uint64_t)at,
                                             data[0] % 2 ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 1) == 0,
                "cannot write a member");
        data += MEMBER_HEAD_BYTES + size;
        bytes -= MEMBER_HEAD_BYTES + size;
    }
    require(zip_close(archive) == 0, "cannot end a .npz file");
}

/* Writes the file or the two files of the input; returns the path of the second, or NULL. */
static const char *
write_files(const char *path, enum slc_dialect dialect, const uint8_t *data, size_t bytes)
{
    static char second[512];
    size_t first = slc_load_u16(data + 1);

    data += HEAD_BYTES;
    bytes -= HEAD_BYTES;
    if (dialect == SLC_DIALECT_NPZ) {
        write_members(path, data, bytes);
        return NULL;
    }
    if (dialect < SLC_DIALECT_NPY || dialect == SLC_DIALECT_NPY_DENSE) {
        fuzz_write(path, data, bytes);
        return NULL;
    }
    first = first < bytes ? first : bytes;
    fuzz_write(path, data, first);
    (void)snprintf(second, sizeof second, "%s", fuzz_path("values"));
    fuzz_write(second, data + first, bytes - first);
    return second;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const enum slc_dialect dialects[] = {
        SLC_DIALECT_AUTO,     SLC_DIALECT_SPLATT_BIN,  SLC_DIALECT_GENTEN_BIN,
        SLC_DIALECT_ALTO_BIN, SLC_DIALECT_NPZ,         SLC_DIALECT_NPY,
        SLC_DIALECT_NPY_ROWS, SLC_DIALECT_NPY_COLUMNS, SLC_DIALECT_NPY_DENSE};
    static struct outcome one, many;
    const uint8_t *file = data + HEAD_BYTES;
    char path[512];
    const char *values;
    enum slc_dialect dialect;

    if (bytes < HEAD_BYTES) {
        return 0;
    }
    dialect = dialects[data[0] % (sizeof dialects / sizeof dialects[0])];
    memset(&one, 0, sizeof one);
    memset(&many, 0, sizeof many);
    slc_error_clear(&one.err);
    slc_error_clear(&many.err);
    (void)snprintf(path, sizeof path, "%s", fuzz_path("binary"));
    values = write_files(path, dialect, data, bytes);
    read_all(path, values, dialect, 1, &one);
    read_all(path, values, dialect, ROWS, &many);
    require(one.rows == many.rows && one.hash == many.hash,
            "other rows in batches of another size");
    require(one.err.status == many.err.status && strcmp(one.err.message, many.err.message) == 0,
            "another fault in batches of another size");
    if (many.err.status == SLC_OK && many.header.dialect == SLC_DIALECT_SPLATT_BIN &&
        file[4] == 4 && file[12] == 8 && slc_load_u32(file) == 0) {
        require(naive_hash(file, &many) == many.hash, "other numbers than in the file");
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    return fuzz_mutate_behind(data, bytes, room, seed, HEAD_BYTES);
}
