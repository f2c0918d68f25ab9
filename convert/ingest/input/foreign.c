#include "convert/ingest/input/foreign.h"

#include <string.h>

#define AS_TABLE "; save it as CSV, or pass the table from Python"
#define AS_FRAME "; save it as CSV, or pass it to python3 -m sluice convert or append"
#define AS_UTF8  "; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"

/* The first format whose magic bytes the input has is reported. Magic bytes that are letters, as in
 * the header of a table with a column ORCID, count only if a byte 0 follows within the first bytes
 * of the input. */
static const struct {
    const char *magic;
    unsigned bytes;
    bool letters;
    const char *what;
} formats[] = {
    {"PAR1", 4, true, "a Parquet file" AS_FRAME},
    {"ARROW1", 6, true, "an Arrow file (Feather)" AS_FRAME},
    {"FEA1", 4, true, "a Feather file" AS_TABLE},
    {"\xff\xff\xff\xff", 4, false, "an Arrow stream" AS_TABLE},
    {"ORC", 3, true, "an ORC file" AS_FRAME},
    {"Obj\x01", 4, false, "an Avro file" AS_TABLE},
    {"SQLite format 3", 16, true, "an SQLite database" AS_TABLE},
    {"\x89HDF\r\n\x1a\n", 8, false,
     "an HDF5 file; save its coordinates and values as .npy files, or as text"},
    {"MATLAB ", 7, true,
     "a MAT-file; export the tensor from MATLAB as text (export_data of the Tensor Toolbox)"},
    {"\x93NUMPY", 6, false, "a NumPy file, not text"},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8, false, "a file of Microsoft Office" AS_TABLE},
    {"\x80\x04", 2, false, "a Python pickle; save its arrays as .npy or .npz files"},
    {"\x80\x05", 2, false, "a Python pickle; save its arrays as .npy or .npz files"},
    {"\x80\x02", 2, false, "a Python pickle; save its arrays as .npy or .npz files"},
    {"\x80\x03", 2, false, "a Python pickle; save its arrays as .npy or .npz files"},
    {"\xff\xfe\0\0", 4, false, "a UTF-32 text; convert it to UTF-8 (iconv -f UTF-32 -t UTF-8)"},
    {"\xff\xfe", 2, true, "a UTF-16 text" AS_UTF8},
    {"\xfe\xff", 2, true, "a UTF-16 text" AS_UTF8},
};

static bool has(const unsigned char *head, size_t bytes, const char *text)
{
    return memmem(head, bytes, text, strlen(text)) != NULL;
}

/* Returns the first byte from `at` on that is not in `blanks`; the byte 0 at the end. */
static unsigned char
skip_to(const unsigned char *head, size_t bytes, const char *blanks, size_t *at)
{
    while (*at < bytes && strchr(blanks, (char)head[*at]) != NULL) {
        (*at)++;
    }
    return *at < bytes ? head[(*at)++] : 0;
}

/* Returns true for text that begins like a JSON object with a member, or like an array of such
 * objects or of arrays. A table may begin with a single bracket. */
static bool is_json(const unsigned char *head, size_t bytes)
{
    static const char blanks[] = " \r\n\t", no_tab[] = " \r\n";
    size_t at = slc_byte_order_mark_bytes((const char *)head, bytes);
    unsigned char first = skip_to(head, bytes, blanks, &at);

    if (first == '[') {
        first = skip_to(head, bytes, no_tab, &at);
        if (first == '[') {
            const unsigned char item = skip_to(head, bytes, no_tab, &at);

            return item == '"' || item == '-' || (item >= '0' && item <= '9');
        }
    }
    if (first != '{' || skip_to(head, bytes, blanks, &at) != '"') {
        return false;
    }
    while (at < bytes && head[at] != '"') {
        at += head[at] == '\\' ? 2 : 1;
    }
    at++;
    return skip_to(head, bytes, blanks, &at) == ':';
}

/* Returns true if the input begins with ASCII characters of two bytes each, of which byte `zero` (0
 * or 1) is 0, as in UTF-16 without a byte order mark. */
static bool is_wide_text(const unsigned char *head, size_t bytes, unsigned zero)
{
    enum { CHARACTERS = 4 };

    for (size_t i = 0; i < CHARACTERS && 2 * i + 1 < bytes; i++) {
        const unsigned char character = head[2 * i + 1 - zero];

        if (head[2 * i + zero] != 0 ||
            (character < ' ' && strchr("\r\n\t", (char)character) == NULL) || character > '~' ||
            character == 0) {
            return false;
        }
    }
    return bytes >= 2 * CHARACTERS;
}

static const char *foreign_format(const unsigned char *head, size_t bytes, bool json)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (bytes >= formats[i].bytes && memcmp(head, formats[i].magic, formats[i].bytes) == 0 &&
            (!formats[i].letters || memchr(head, 0, bytes) != NULL)) {
            return formats[i].what;
        }
    }
    if (bytes >= 4 && (memcmp(head, "PK\x03\x04", 4) == 0 || memcmp(head, "PK\x05\x06", 4) == 0)) {
        return has(head, bytes, "[Content_Types].xml") || has(head, bytes, "xl/")
                   ? "an Excel file (.xlsx)" AS_TABLE
                   : "a ZIP archive; unpack it first (unzip)";
    }
    if (is_wide_text(head, bytes, 1)) {
        return "a UTF-16 text without a byte order mark; convert it to UTF-8 (iconv -f UTF-16LE -t "
               "UTF-8)";
    }
    if (is_wide_text(head, bytes, 0)) {
        return "a UTF-16 text without a byte order mark; convert it to UTF-8 (iconv -f UTF-16BE -t "
               "UTF-8)";
    }
    return json && is_json(head, bytes) ? "a JSON file" AS_TABLE : NULL;
}

enum slc_status slc_input_check_text(struct slc_input *input, bool json, struct slc_error *err)
{
    struct slc_input_info info;
    size_t bytes;
    const unsigned char *head = slc_input_peek(input, &bytes);
    const char *what = foreign_format(head, bytes, json);

    if (what == NULL) {
        return SLC_OK;
    }
    slc_input_info(input, &info);
    return slc_fail_file(err, SLC_ERR_INPUT, info.name, "this is %s", what);
}
