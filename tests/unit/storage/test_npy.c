/* .npy files: every shape and type is read back, headers of other writers are accepted, hostile
 * ones are rejected before memory is allocated, faults keep the old file or leave none. */
#include "faulty_files.h"
#include "forge_file.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/bytes.h"
#include "base/random.h"
#include "storage/model/npy.h"
#include "storage/model/npy_header.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[256];

static const char *new_path(void)
{
    snprintf(path, sizeof path, "%s/a.npy", slc_test_folder());
    return path;
}

static void fill(struct slc_matrix *matrix, uint64_t seed)
{
    for (uint64_t row = 0; row < matrix->rows; row++) {
        for (uint32_t col = 0; col < matrix->cols; col++) {
            slc_matrix_set(matrix, row, col, slc_random_normal(seed, 1, row * matrix->cols + col));
        }
    }
}

static uint64_t differing(const struct slc_matrix *a, const struct slc_matrix *b)
{
    uint64_t wrong = a->rows != b->rows || a->cols != b->cols;

    for (uint64_t row = 0; row < a->rows && wrong == 0; row++) {
        for (uint32_t col = 0; col < a->cols; col++) {
            wrong += slc_bits_f64(slc_matrix_get(a, row, col)) !=
                     slc_bits_f64(slc_matrix_get(b, row, col));
        }
    }
    return wrong;
}

static void round_trip(void)
{
    static const struct {
        uint64_t rows;
        uint32_t cols;
    } shapes[] = {{0, 1}, {0, 7}, {1, 1}, {3, 2}, {5, 16}, {1000, 33}, {70000, 1}, {2, 40000}};

    for (size_t i = 0; i < SLC_COUNT(shapes); i++) {
        for (unsigned type = SLC_F32; type <= SLC_F64; type++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_matrix written;
            struct slc_matrix read;
            struct slc_forged bytes;
            uint64_t header, rows;
            uint32_t cols;

            SLC_ASSERT_OK(slc_matrix_create(&written, (enum slc_value_type)type, shapes[i].rows,
                                            shapes[i].cols, &err),
                          &err);
            fill(&written, slc_test_seed());
            SLC_ASSERT_OK(slc_npy_write(slc_quick_files(), new_path(), &written, &err), &err);
            SLC_ASSERT_OK(slc_npy_read(NULL, path, (enum slc_value_type)type, shapes[i].rows,
                                       shapes[i].cols, &read, &err),
                          &err);
            CU_ASSERT_EQUAL(differing(&written, &read), 0);
            slc_matrix_destroy(&read);
            SLC_ASSERT_OK(slc_npy_shape(NULL, path, 0, &rows, &cols, &err), &err);
            CU_ASSERT(rows == shapes[i].rows && cols == shapes[i].cols);
            SLC_ASSERT_FAILS(slc_npy_shape(NULL, path, rows + 1, &rows, &cols, &err), SLC_ERR_INPUT,
                             &err, "is needed");
            /* NumPy's requirements on the header: aligned, ends with a newline. */
            slc_forged_load(&bytes, path);
            header = 10 + (uint64_t)slc_load_u16(bytes.bytes + 8);
            CU_ASSERT_EQUAL(header % 64, 0);
            CU_ASSERT_EQUAL(bytes.bytes[header - 1], '\n');
            CU_ASSERT_EQUAL(bytes.size,
                            header + shapes[i].rows * shapes[i].cols * (type == SLC_F32 ? 4 : 8));
            slc_forged_release(&bytes);
            slc_matrix_destroy(&written);
        }
    }
}

static void vectors(void)
{
    const double values[4] = {1.5, -0.0, 5e-324, 1.7976931348623157e308};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix read;

    SLC_ASSERT_OK(slc_npy_write_vector(slc_quick_files(), new_path(), values, 4, &err), &err);
    SLC_ASSERT_OK(slc_npy_read(NULL, path, SLC_F64, 4, 1, &read, &err), &err);
    for (uint64_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(slc_bits_f64(slc_matrix_get(&read, i, 0)), slc_bits_f64(values[i]));
    }
    slc_matrix_destroy(&read);
    SLC_ASSERT_OK(slc_npy_write_vector(slc_quick_files(), new_path(), values, 0, &err), &err);
    SLC_ASSERT_OK(slc_npy_read(NULL, path, SLC_F64, 0, 1, &read, &err), &err);
    CU_ASSERT_EQUAL(read.rows, 0);
    slc_matrix_destroy(&read);
}

/* Puts together a .npy file of `major`.0 with the header `text` and `data`. */
static void write_raw(unsigned major, const char *text, const void *data, size_t data_bytes)
{
    size_t length = strlen(text);
    size_t start = major == 1 ? 10 : 12;
    struct slc_forged raw = {malloc(start + length + data_bytes), start + length + data_bytes};

    CU_ASSERT_PTR_NOT_NULL_FATAL(raw.bytes);
    memcpy(raw.bytes, "\x93NUMPY", 6);
    raw.bytes[6] = (uint8_t)major;
    raw.bytes[7] = 0;
    if (major == 1) {
        slc_store_u16(raw.bytes + 8, (uint16_t)length);
    } else {
        slc_store_u32(raw.bytes + 8, (uint32_t)length);
    }
    memcpy(raw.bytes + start, text, length);
    if (data_bytes > 0) {
        memcpy(raw.bytes + start + length, data, data_bytes);
    }
    slc_forged_save(&raw, new_path());
    slc_forged_release(&raw);
}

/* A matrix 2 x 3 with the elements 1 to 6, as f8, f4, i8 or i4, of either byte order. */
static void other_writers(void)
{
    static const char *const types[] = {"<f8", ">f8", "<f4", ">f4", "<i8", ">i8", "<i4", ">i4"};

    for (size_t i = 0; i < SLC_COUNT(types); i++) {
        for (unsigned variant = 0; variant < 6; variant++) {
            bool fortran = variant % 2 == 1;
            unsigned bytes = (unsigned)(types[i][2] - '0');
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_matrix read;
            uint8_t data[48];
            char text[200];

            for (unsigned e = 0; e < 6; e++) {
                unsigned row = fortran ? e % 2 : e / 3;
                unsigned col = fortran ? e / 2 : e % 3;
                int value = (int)(row * 3 + col + 1) * (types[i][1] == 'i' ? -1 : 1);
                uint8_t item[8];

                if (types[i][1] == 'i') {
                    slc_store_u64(item, (uint64_t)(int64_t)value);
                } else if (bytes == 8) {
                    slc_store_f64(item, value);
                } else {
                    slc_store_f32(item, (float)value);
                }
                for (unsigned b = 0; b < bytes; b++) {
                    data[e * bytes + b] = item[types[i][0] == '<' ? b : bytes - 1 - b];
                }
            }
            if (variant < 4) {
                snprintf(text, sizeof text,
                         "{'descr': '%s', 'fortran_order': %s, 'shape': (2, 3), }   \n", types[i],
                         fortran ? "True" : "False");
            } else {
                snprintf(text, sizeof text,
                         "{\"shape\":(2L,3L,),\"descr\":\"%s\",\t\"fortran_order\":%s}", types[i],
                         fortran ? "True" : "False");
            }
            write_raw(1 + variant / 2, text, data, 6 * (size_t)bytes);
            SLC_ASSERT_OK(
                slc_npy_read(NULL, path, variant % 3 == 0 ? SLC_F32 : SLC_F64, 2, 3, &read, &err),
                &err);
            if (err.status == SLC_OK) {
                for (unsigned e = 0; e < 6; e++) {
                    CU_ASSERT_EQUAL(fabs(slc_matrix_get(&read, e / 3, e % 3)), e + 1.0);
                    CU_ASSERT_EQUAL(slc_matrix_get(&read, e / 3, e % 3) < 0, types[i][1] == 'i');
                }
                slc_matrix_destroy(&read);
            }
        }
    }
}

#define GOOD "{'descr': '<f8', 'fortran_order': False, 'shape': "

static void bad_headers(void)
{
    static const struct {
        const char *text;
        enum slc_status want;
    } cases[] = {
        {GOOD "(6,), }", SLC_OK},
        {GOOD "(6, 1)}", SLC_OK},
        {GOOD "(5,), }", SLC_ERR_INPUT},
        {GOOD "(7,), }", SLC_ERR_INPUT},
        {GOOD "(6), }", SLC_ERR_INPUT},
        {GOOD "(), }", SLC_ERR_UNSUPPORTED},
        {GOOD "(1,2,3), }", SLC_ERR_UNSUPPORTED},
        {GOOD "(0,0), }", SLC_ERR_INPUT},
        {GOOD "(-6,), }", SLC_ERR_INPUT},
        {GOOD "(6", SLC_ERR_INPUT},
        {GOOD "(6 6), }", SLC_ERR_INPUT},
        {GOOD "(,), }", SLC_ERR_INPUT},
        {GOOD "(18446744073709551616,), }", SLC_ERR_INPUT},
        {GOOD "(99999999999999999999999999,), }", SLC_ERR_INPUT},
        {GOOD "(18446744073709551615,), }", SLC_ERR_INPUT},
        {GOOD "(2305843009213693953, 1), }", SLC_ERR_INPUT}, /* 8 times this is 8 modulo 2^64 */
        {GOOD "(4294967296, 4294967296), }", SLC_ERR_INPUT},
        {GOOD "(0, 2147483648), }", SLC_ERR_INPUT},
        {GOOD "(6,), } x", SLC_ERR_INPUT},
        {GOOD "(6,), 'descr': '<f8'}", SLC_ERR_INPUT},
        {GOOD "(6,), 'more': 1}", SLC_ERR_INPUT},
        {"{'descr': '<f8', 'shape': (6,)}", SLC_ERR_INPUT},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (6,)}", SLC_ERR_UNSUPPORTED},
        {"{'descr': '|O8', 'fortran_order': False, 'shape': (6,)}", SLC_ERR_UNSUPPORTED},
        {"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (6,)}", SLC_ERR_INPUT},
        {"{'descr': '<f8', 'fortran_order': 0, 'shape': (6,)}", SLC_ERR_INPUT},
        {"{'descr': '<f8' 'fortran_order': False, 'shape': (6,)}", SLC_ERR_INPUT},
        {"{'descr' '<f8', 'fortran_order': False, 'shape': (6,)}", SLC_ERR_INPUT},
        {"{'descr': '<f8\", 'fortran_order': False, 'shape': (6,)}", SLC_ERR_UNSUPPORTED},
        {"{'descr': '0123456789012345678901234567890123456789', 'shape': (6,)}", SLC_ERR_INPUT},
        {"", SLC_ERR_INPUT},
        {"{", SLC_ERR_INPUT},
        {"{}", SLC_ERR_INPUT},
        {"{'", SLC_ERR_INPUT},
    };
    const double data[6] = {1, 2, 3, 4, 5, 6};

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_matrix read;
        enum slc_status status;

        write_raw(1, cases[i].text, data, sizeof data);
        status = slc_npy_read(NULL, path, SLC_F64, 0, 0, &read, &err);
        if (status != cases[i].want || (status != SLC_OK && strcmp(err.file, path) != 0)) {
            printf("# %s: status %d (%s)\n", cases[i].text, status, err.message);
            CU_FAIL("a header does not get the documented status");
        }
        slc_matrix_destroy(&read);
    }
}

/* Shapes are compared with the caller's, and the message has both. */
static void wrong_shapes(void)
{
    const double data[6] = {1, 2, 3, 4, 5, 6};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix read;

    write_raw(1, GOOD "(2, 3)}", data, sizeof data);
    SLC_ASSERT_FAILS(slc_npy_read(NULL, path, SLC_F64, 3, 3, &read, &err), SLC_ERR_INPUT, &err,
                     "2 x 3, but 3 x 3");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_npy_read(NULL, path, SLC_F64, 0, 2, &read, &err), SLC_ERR_INPUT, &err,
                     "any x 2");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_npy_read(NULL, "/nonexistent.npy", SLC_F64, 0, 0, &read, &err), SLC_ERR_IO,
                     &err, "");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_npy_read(NULL, slc_test_folder(), SLC_F64, 0, 0, &read, &err),
                     SLC_ERR_INPUT, &err, "plain file");
}

/* A number that is not finite, or would not be in the requested type, is reported with its
 * position. */
static void numbers_that_are_not_finite(void)
{
    static const struct {
        const char *head;
        uint64_t number; /* number in the file */
        double value;
        enum slc_value_type type;
        uint32_t cols;
        const char *part;
    } cases[] = {
        {GOOD "(2, 3)}", 4, NAN, SLC_F64, 3, "row 2, column 2, counting from 1, is"},
        {GOOD "(2, 3)}", 0, -INFINITY, SLC_F32, 3, "row 1, column 1, counting from 1, is -inf;"},
        {GOOD "(2, 3)}", 5, 1e300, SLC_F32, 3,
         "row 2, column 3, counting from 1, is 1e+300, beyond"},
        {GOOD "(2, 3)}", 5, 1e300, SLC_F64, 3, NULL},
        {GOOD "(6,)}", 5, INFINITY, SLC_F64, 1, "number 6 of the vector"},
    };

    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        double data[6] = {1, 2, 3, 4, 5, 6};
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_matrix read;
        enum slc_status status;

        data[cases[i].number] = cases[i].value;
        write_raw(1, cases[i].head, data, sizeof data);
        status = slc_npy_read(NULL, path, cases[i].type, 0, cases[i].cols, &read, &err);
        if (cases[i].part == NULL) {
            SLC_ASSERT_OK(status, &err);
        } else {
            SLC_ASSERT_FAILS(status, SLC_ERR_INPUT, &err, cases[i].part);
            CU_ASSERT_STRING_EQUAL(err.file, path);
            CU_ASSERT_PTR_NULL(read.buffer.data);
        }
        slc_matrix_destroy(&read);
    }
}

/* Every truncation of a file and every changed byte of its header: an error or a valid matrix. */
static void damaged_files(void)
{
    const double data[6] = {1, 2, 3, 4, 5, 6};
    struct slc_forged bytes;
    struct slc_matrix read;
    uint64_t header;

    write_raw(1, GOOD "(2, 3)}", data, sizeof data);
    slc_forged_load(&bytes, path);
    header = bytes.size - sizeof data;
    for (uint64_t at = 0; at < header; at++) {
        for (unsigned byte = 0; byte < 256; byte += 3) {
            slc_forged_poke(path, at, (uint8_t)byte);
            (void)!slc_npy_read(NULL, path, SLC_F64, 0, 0, &read, NULL);
            slc_matrix_destroy(&read);
        }
        slc_forged_poke(path, at, bytes.bytes[at]);
    }
    for (uint64_t size = bytes.size + 5; size-- > 0;) {
        slc_forged_resize(path, size);
        CU_ASSERT_EQUAL(slc_npy_read(NULL, path, SLC_F64, 0, 0, &read, NULL) == SLC_OK,
                        size == bytes.size);
        slc_matrix_destroy(&read);
    }
    slc_forged_release(&bytes);
}

static void other_starts(void)
{
    struct slc_npy_header header;
    uint32_t text_offset;
    uint32_t text_bytes;
    const uint8_t version4[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 4, 0};
    const uint8_t minor1[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 1};
    const uint8_t huge[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 1, 0, 1, 0};

    CU_ASSERT_EQUAL(slc_npy_start_parse(version4, 12, &text_offset, &text_bytes, NULL),
                    SLC_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(slc_npy_start_parse(minor1, 12, &text_offset, &text_bytes, NULL),
                    SLC_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(slc_npy_start_parse(huge, 12, &text_offset, &text_bytes, NULL), SLC_ERR_INPUT);
    CU_ASSERT_EQUAL(slc_npy_start_parse(huge, 11, &text_offset, &text_bytes, NULL), SLC_ERR_INPUT);
    /* The parser reads nothing after the given length. */
    CU_ASSERT_EQUAL(slc_npy_header_parse(GOOD "(6,)}", 10, &header, NULL), SLC_ERR_INPUT);
}

/* Arrays that only slc_npy_header_parse_any accepts. */
static void arrays_of_any_type(void)
{
    static const struct {
        const char *type;
        char kind;
        uint8_t bytes;
        bool big_endian;
    } types[] = {{"|b1", 'b', 1, false}, {"|i1", 'i', 1, false}, {"|u1", 'u', 1, false},
                 {"<i2", 'i', 2, false}, {">u2", 'u', 2, true},  {"<f2", 'f', 2, false},
                 {">f2", 'f', 2, true},  {"<u4", 'u', 4, false}, {">u8", 'u', 8, true},
                 {"|S3", 'S', 3, false}, {">f8", 'f', 8, true}};
    static const char *const others[] = {"<c8", "<c16", "|O",  "<U3", "<f16", "|S12",
                                         "<i3", "<f1",  "|b2", "<M8", "i4",   "|V8"};
    struct slc_npy_header header;
    char text[128];
    int length;

    for (unsigned i = 0; i < SLC_COUNT(types); i++) {
        length = snprintf(text, sizeof text,
                          "{'descr': '%s', 'fortran_order': True, 'shape': (7, 9)}", types[i].type);
        SLC_ASSERT_OK(slc_npy_header_parse_any(text, (size_t)length, &header, NULL), NULL);
        CU_ASSERT(header.kind == types[i].kind && header.item_bytes == types[i].bytes);
        CU_ASSERT(header.big_endian == types[i].big_endian && header.fortran_order);
        CU_ASSERT(header.dimensions == 2 && header.shape[0] == 7 && header.shape[1] == 9);
        /* The parser for matrices supports fewer types. */
        CU_ASSERT_EQUAL(slc_npy_header_parse(text, (size_t)length, &header, NULL),
                        i == SLC_COUNT(types) - 1 ? SLC_OK : SLC_ERR_UNSUPPORTED);
    }
    for (unsigned i = 0; i < SLC_COUNT(others); i++) {
        length = snprintf(text, sizeof text,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (7,)}", others[i]);
        CU_ASSERT_EQUAL(slc_npy_header_parse_any(text, (size_t)length, &header, NULL),
                        SLC_ERR_UNSUPPORTED);
    }
    SLC_ASSERT_OK(slc_npy_header_parse_any(GOOD "()}", sizeof GOOD "()}" - 1, &header, NULL), NULL);
    CU_ASSERT(header.dimensions == 0 && header.shape[0] == 1 && header.shape[1] == 1);
    SLC_ASSERT_OK(
        slc_npy_header_parse_any(GOOD "(4, 5, 6)}", sizeof GOOD "(4, 5, 6)}" - 1, &header, NULL),
        NULL);
    CU_ASSERT(header.dimensions == 3 && header.shape[0] == 4 && header.shape[2] == 6);
    CU_ASSERT_EQUAL(
        slc_npy_header_parse(GOOD "(4, 5, 6)}", sizeof GOOD "(4, 5, 6)}" - 1, &header, NULL),
        SLC_ERR_UNSUPPORTED);
    static const char many[] = GOOD "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}";
    CU_ASSERT_EQUAL(slc_npy_header_parse_any(many, sizeof many - 1, &header, NULL),
                    SLC_ERR_UNSUPPORTED);
}

/* A matrix that needs several writes, and the file that tests write it to. */
static void make_long(struct slc_matrix *matrix)
{
    SLC_ASSERT_OK(slc_matrix_create(matrix, SLC_F64, 30000, 3, NULL), NULL);
    fill(matrix, 1);
    new_path();
}

/* A failing write keeps the existing file; only after a failed sync may it be the new one. */
static void write_faults(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN, SLC_FAULTY_WRITE, SLC_FAULTY_SYNC,
                                                 SLC_FAULTY_CLOSE, SLC_FAULTY_RENAME};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix written;
    struct slc_matrix old;
    struct slc_matrix read;
    struct slc_faulty faulty;
    char temporary[300];

    slc_faulty_init(&faulty);
    make_long(&written);
    SLC_ASSERT_OK(slc_matrix_create(&old, SLC_F64, 1, 1, &err), &err);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            enum slc_status status;

            slc_error_clear(&err);
            SLC_ASSERT_OK(slc_npy_write(slc_quick_files(), path, &old, &err), &err);
            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            status = slc_npy_write(&faulty.table, path, &written, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            CU_ASSERT_NOT_EQUAL(access(temporary, F_OK), 0);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            /* The second close is of the descriptor used only for the lock. */
            CU_ASSERT_EQUAL(status, kinds[i] == SLC_FAULTY_CLOSE && k == 2 ? SLC_OK : SLC_ERR_IO);
            CU_ASSERT_EQUAL(slc_npy_read(NULL, path, SLC_F64, 0, 0, &read, NULL), SLC_OK);
            CU_ASSERT((read.rows == 1) != (status == SLC_OK) || kinds[i] == SLC_FAULTY_SYNC);
            slc_matrix_destroy(&read);
        }
    }
    slc_faulty_limit_room(&faulty, 100000);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_npy_write(&faulty.table, path, &written, &err), SLC_ERR_NOSPACE, &err, "");
    slc_matrix_destroy(&old);
    slc_matrix_destroy(&written);
}

static void read_faults(void)
{
    struct slc_matrix written;
    struct slc_matrix read;
    struct slc_faulty faulty;

    slc_faulty_init(&faulty);
    make_long(&written);
    SLC_ASSERT_OK(slc_npy_write(slc_quick_files(), path, &written, NULL), NULL);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, k, EIO);
        status = slc_npy_read(&faulty.table, path, SLC_F64, 0, 0, &read, &err);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        slc_matrix_destroy(&read);
        if (!slc_faulty_fired(&faulty)) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        CU_ASSERT(status == SLC_ERR_IO || status == SLC_OK); /* OK if only the last close failed */
    }
    slc_matrix_destroy(&written);
}

static void memory_faults(void)
{
    struct slc_matrix written;
    struct slc_matrix read;

    make_long(&written);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_npy_write(slc_quick_files(), path, &written, &err);
        if (status == SLC_OK) {
            status = slc_npy_read(NULL, path, SLC_F64, 0, 0, &read, &err);
            slc_matrix_destroy(&read);
        }
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT(k > 4);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    slc_matrix_destroy(&written);
}

static void short_transfers(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix written;
    struct slc_matrix read;
    struct slc_faulty faulty;

    slc_faulty_init(&faulty);
    make_long(&written);
    slc_faulty_shorten(&faulty, SLC_FAULTY_WRITE, 1, 999);
    SLC_ASSERT_OK(slc_npy_write(&faulty.table, path, &written, &err), &err);
    slc_faulty_shorten(&faulty, SLC_FAULTY_READ, 1, 7777);
    SLC_ASSERT_OK(slc_npy_read(&faulty.table, path, SLC_F64, 0, 0, &read, &err), &err);
    CU_ASSERT_EQUAL(differing(&written, &read), 0);
    slc_matrix_destroy(&read);
    slc_matrix_destroy(&written);
}

static const struct slc_test tests[] = {
    {"matrices come back bit for bit", round_trip},
    {"vectors come back bit for bit", vectors},
    {"types, byte orders, orders and versions of other writers", other_writers},
    {"bad headers get the documented status", bad_headers},
    {"wrong shapes are named", wrong_shapes},
    {"numbers that are not finite", numbers_that_are_not_finite},
    {"every cut and altered byte of a file", damaged_files},
    {"unknown versions, huge headers", other_starts},
    {"arrays of any type", arrays_of_any_type},
    {"every failing operation of writing, a full disk", write_faults},
    {"every failing operation of reading", read_faults},
    {"every failing allocation", memory_faults},
    {"short reads and writes", short_transfers},
};

SLC_SUITE(npy)
{
    return slc_test_main("npy", tests, SLC_COUNT(tests), argc, argv);
}
