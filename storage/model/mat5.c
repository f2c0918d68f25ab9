/* Encodes .mat elements: a tag (type and size), and the bytes, padded to a multiple of 8. */
#include "storage/model/mat5.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"

#include <assert.h>
#include <string.h>

enum {
    TYPE_INT8 = 1,
    TYPE_INT32 = 5,
    TYPE_UINT32 = 6,
    TYPE_F32 = 7,
    TYPE_F64 = 9,
    TYPE_MATRIX = 14,
    TAG_BYTES = 8,
    NAME_BYTES = 32 /* bytes of a field name, including its terminating 0 */
};

static uint32_t padded_bytes(size_t bytes)
{
    return (uint32_t)(bytes + 7) & ~7U;
}

static unsigned field_count(const char *fields)
{
    unsigned count = fields != NULL;

    for (; fields != NULL && *fields != '\0'; fields++) {
        count += *fields == ' ';
    }
    return count;
}

/* Returns the number of bytes from the start of an array element, which is its tag, to its numbers
 * or nested arrays. */
static uint32_t head_bytes(const struct slc_mat5_array *array)
{
    uint32_t bytes = TAG_BYTES;

    bytes += TAG_BYTES + 8; /* flags */
    bytes += TAG_BYTES + 8; /* dimensions */
    bytes += TAG_BYTES + padded_bytes(strlen(array->name));
    if (array->kind == SLC_MAT5_STRUCT) {
        bytes += TAG_BYTES; /* length of field names, which fits into the tag itself */
        bytes += TAG_BYTES + NAME_BYTES * field_count(array->fields);
    } else if (array->kind != SLC_MAT5_CELL) {
        bytes += TAG_BYTES; /* tag of the numbers */
    }
    return bytes;
}

static uint32_t item_bytes(const struct slc_mat5_array *array)
{
    return array->kind == SLC_MAT5_F32 ? 4 : 8;
}

uint64_t slc_mat5_bytes(const struct slc_mat5_array *array)
{
    uint64_t bytes = array->part_bytes;

    if (array->kind == SLC_MAT5_F32 || array->kind == SLC_MAT5_F64) {
        if (array->rows > INT32_MAX || array->cols > INT32_MAX ||
            !slc_mul_u64(array->rows, array->cols, &bytes) ||
            !slc_mul_u64(bytes, item_bytes(array), &bytes) || bytes > UINT64_MAX / 2) {
            return UINT64_MAX;
        }
        bytes = (bytes + 7) & ~UINT64_C(7);
    }
    return slc_add_u64(bytes, head_bytes(array), &bytes) ? bytes : UINT64_MAX;
}

void slc_mat5_header(uint8_t bytes[SLC_MAT5_HEADER_BYTES])
{
    static const char text[] = "MATLAB 5.0 MAT-file, written by sluice " SLC_VERSION;

    memset(bytes, ' ', 116);
    memcpy(bytes, text, sizeof text - 1);
    memset(bytes + 116, 0, 8); /* no subsystem data */
    slc_store_u16(bytes + 124, 0x0100);
    memcpy(bytes + 126, "IM", 2); /* "MI" when read as a 16-bit number: little-endian */
}

static uint8_t *encode_tag(uint8_t *at, uint32_t type, uint32_t bytes)
{
    slc_store_u32(at, type);
    slc_store_u32(at + 4, bytes);
    return at + TAG_BYTES;
}

static uint8_t *encode_fields(uint8_t *at, const char *fields)
{
    const uint32_t bytes = NAME_BYTES * field_count(fields);
    uint32_t name = 0;
    uint32_t letter = 0;

    slc_store_u32(at, TYPE_INT32 | 4U << 16);
    slc_store_u32(at + 4, NAME_BYTES);
    at = encode_tag(at + TAG_BYTES, TYPE_INT8, bytes);
    memset(at, 0, bytes);
    for (; *fields != '\0'; fields++) {
        if (*fields == ' ') {
            name++;
            letter = 0;
        } else {
            assert(letter < NAME_BYTES - 1);
            at[name * NAME_BYTES + letter++] = (uint8_t)*fields;
        }
    }
    return at + bytes;
}

uint32_t slc_mat5_begin(const struct slc_mat5_array *array, uint8_t bytes[SLC_MAT5_ARRAY_MAX])
{
    const uint64_t whole = slc_mat5_bytes(array);
    const uint32_t name = (uint32_t)strlen(array->name);
    uint8_t *at = bytes;

    assert(head_bytes(array) <= SLC_MAT5_ARRAY_MAX && whole - TAG_BYTES <= SLC_MAT5_VARIABLE_MAX &&
           name < NAME_BYTES);
    at = encode_tag(at, TYPE_MATRIX, (uint32_t)whole - TAG_BYTES);
    at = encode_tag(at, TYPE_UINT32, 8);
    slc_store_u32(at, array->kind);
    slc_store_u32(at + 4, 0);
    at = encode_tag(at + 8, TYPE_INT32, 8);
    slc_store_u32(at, (uint32_t)array->rows);
    slc_store_u32(at + 4, (uint32_t)array->cols);
    at = encode_tag(at + 8, TYPE_INT8, name);
    memset(at, 0, padded_bytes(name));
    memcpy(at, array->name, name);
    at += padded_bytes(name);
    if (array->kind == SLC_MAT5_STRUCT) {
        at = encode_fields(at, array->fields);
    } else if (array->kind != SLC_MAT5_CELL) {
        const uint64_t numbers = array->rows * array->cols * item_bytes(array);

        at = encode_tag(at, array->kind == SLC_MAT5_F32 ? TYPE_F32 : TYPE_F64, (uint32_t)numbers);
    }
    assert((size_t)(at - bytes) == head_bytes(array));
    return (uint32_t)(at - bytes);
}
