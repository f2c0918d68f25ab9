/* Parses and writes .npy headers. The text of a header is a Python literal. The parser only accepts
 * members that NumPy writes for numeric arrays, in any order and spacing. It checks for the end of
 * the text before every character, so it reads nothing after the text. */
#include "storage/model/npy_header.h"

#include "base/memory/bytes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct scanner {
    const char *at;
    const char *end;
    const char *begin;
    bool any; /* accepts the types of slc_npy_header_parse_any */
    struct slc_error *err;
};

static enum slc_status fail_expected(const struct scanner *scanner, const char *what)
{
    return slc_fail(scanner->err, SLC_ERR_INPUT,
                    "the .npy header is not understood: %s expected at byte %zu of its text", what,
                    (size_t)(scanner->at - scanner->begin));
}

static void skip_space(struct scanner *scanner)
{
    while (scanner->at < scanner->end &&
           (*scanner->at == ' ' || *scanner->at == '\n' || *scanner->at == '\t')) {
        scanner->at++;
    }
}

/* Consumes white space and, if it follows, `character`. */
static bool skip_character(struct scanner *scanner, char character)
{
    skip_space(scanner);
    if (scanner->at < scanner->end && *scanner->at == character) {
        scanner->at++;
        return true;
    }
    return false;
}

/* Consumes white space and, if it follows, `word`. */
static bool skip_word(struct scanner *scanner, const char *word)
{
    size_t length = strlen(word);

    skip_space(scanner);
    if ((size_t)(scanner->end - scanner->at) >= length && memcmp(scanner->at, word, length) == 0) {
        scanner->at += length;
        return true;
    }
    return false;
}

/* Parses a string in single or double quotes without escapes, of at most 31 bytes. */
static enum slc_status parse_string(struct scanner *scanner, char text[32])
{
    char quote = skip_character(scanner, '\'') ? '\'' : skip_character(scanner, '"') ? '"' : '\0';
    size_t length = 0;

    if (quote == '\0') {
        return fail_expected(scanner, "a string");
    }
    while (scanner->at < scanner->end && *scanner->at != quote) {
        if (length == 31 || *scanner->at == '\\' || *scanner->at == '\0') {
            return fail_expected(scanner, "a short plain string");
        }
        text[length++] = *scanner->at++;
    }
    text[length] = '\0';
    return skip_character(scanner, quote) ? SLC_OK : fail_expected(scanner, "a closing quote");
}

static enum slc_status parse_number(struct scanner *scanner, uint64_t *number)
{
    skip_space(scanner);
    const char *start = scanner->at;
    *number = 0;
    while (scanner->at < scanner->end && *scanner->at >= '0' && *scanner->at <= '9') {
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*scanner->at - '0'), number)) {
            return fail_expected(scanner, "a number below 2^64");
        }
        scanner->at++;
    }
    if (scanner->at == start) {
        return fail_expected(scanner, "a number");
    }
    skip_character(scanner, 'L'); /* Python 2 wrote long integers with this suffix */
    return SLC_OK;
}

/* True if arrays of a type such as "<f8" (byte order, kind, bytes) are accepted. */
static bool is_type(const struct scanner *scanner, const char text[32])
{
    if (strlen(text) != 3 || strchr("<>=|", text[0]) == NULL) {
        return false;
    }
    if (!scanner->any) {
        return text[0] != '|' && strchr("fi", text[1]) != NULL && strchr("48", text[2]) != NULL;
    }
    switch (text[1]) {
    case 'f':
        return strchr("248", text[2]) != NULL;
    case 'i':
    case 'u':
        return strchr("1248", text[2]) != NULL;
    case 'b':
        return text[2] == '1';
    default:
        return text[1] == 'S' && text[2] >= '1' && text[2] <= '9';
    }
}

/* Parses a type: byte order, kind and bytes. */
static enum slc_status parse_type(struct scanner *scanner, struct slc_npy_header *header)
{
    char text[32] = "";

    SLC_TRY(parse_string(scanner, text));
    if (!is_type(scanner, text)) {
        return slc_fail(scanner->err, SLC_ERR_UNSUPPORTED,
                        "the .npy array has type '%s'; %s can be read", text,
                        scanner->any ? "floats of up to 8 bytes, integers and truth values"
                                     : "f4, f8, i4 and i8");
    }
    /* '=' is the byte order of the machine, which NumPy never writes but accepts. */
    header->big_endian =
        text[0] == '>' || (text[0] == '=' && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__);
    header->kind = text[1];
    header->item_bytes = (uint8_t)(text[2] - '0');
    return SLC_OK;
}

static enum slc_status parse_shape(struct scanner *scanner, struct slc_npy_header *header)
{
    const unsigned most = scanner->any ? SLC_MAX_ORDER : 2;
    bool comma = true;

    if (!skip_character(scanner, '(')) {
        return fail_expected(scanner, "a parenthesis");
    }
    header->dimensions = 0;
    while (!skip_character(scanner, ')')) {
        uint64_t length;

        if (!comma) {
            return fail_expected(scanner, "a comma");
        }
        SLC_TRY(parse_number(scanner, &length));
        if (header->dimensions < most) {
            header->shape[header->dimensions] = length;
        }
        header->dimensions++;
        comma = skip_character(scanner, ',');
    }
    if (header->dimensions < (scanner->any ? 0 : 1) || header->dimensions > most) {
        return slc_fail(scanner->err, SLC_ERR_UNSUPPORTED,
                        "the .npy array has %u dimensions; at most %u can be read",
                        header->dimensions, most);
    }
    /* Python reads "(3)" as a number and only "(3,)" as a tuple. */
    if (header->dimensions == 1 && !comma) {
        return fail_expected(scanner, "a comma in a shape of one dimension");
    }
    for (unsigned d = header->dimensions; d < SLC_MAX_ORDER; d++) {
        header->shape[d] = 1;
    }
    return SLC_OK;
}

/* Parses one member of the dictionary; `seen` collects the members found. */
static enum slc_status
parse_member(struct scanner *scanner, struct slc_npy_header *header, unsigned *seen)
{
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    char name[32];
    unsigned member = 0;

    SLC_TRY(parse_string(scanner, name));
    while (member < 3 && strcmp(name, names[member]) != 0) {
        member++;
    }
    if (member == 3 || (*seen & 1U << member) != 0) {
        return fail_expected(scanner, "one each of descr, fortran_order and shape");
    }
    *seen |= 1U << member;
    if (!skip_character(scanner, ':')) {
        return fail_expected(scanner, "a colon");
    }
    if (member == 0) {
        return parse_type(scanner, header);
    }
    if (member == 2) {
        return parse_shape(scanner, header);
    }
    header->fortran_order = skip_word(scanner, "True");
    return header->fortran_order || skip_word(scanner, "False")
               ? SLC_OK
               : fail_expected(scanner, "True or False");
}

static enum slc_status parse_header(const char *text,
                                    size_t text_bytes,
                                    bool any,
                                    struct slc_npy_header *header,
                                    struct slc_error *err)
{
    struct scanner scanner = {text, text + text_bytes, text, any, err};
    unsigned seen = 0;
    bool comma = true;

    memset(header, 0, sizeof *header);
    if (!skip_character(&scanner, '{')) {
        return fail_expected(&scanner, "a brace");
    }
    while (!skip_character(&scanner, '}')) {
        if (!comma) {
            return fail_expected(&scanner, "a comma");
        }
        SLC_TRY(parse_member(&scanner, header, &seen));
        comma = skip_character(&scanner, ',');
    }
    skip_space(&scanner);
    if (seen != 7 || scanner.at != scanner.end) {
        return fail_expected(&scanner, seen != 7 ? "descr, fortran_order and shape" : "the end");
    }
    return SLC_OK;
}

enum slc_status slc_npy_header_parse(const char *text,
                                     size_t text_bytes,
                                     struct slc_npy_header *header,
                                     struct slc_error *err)
{
    return parse_header(text, text_bytes, false, header, err);
}

enum slc_status slc_npy_header_parse_any(const char *text,
                                         size_t text_bytes,
                                         struct slc_npy_header *header,
                                         struct slc_error *err)
{
    return parse_header(text, text_bytes, true, header, err);
}

enum slc_status slc_npy_start_parse(const uint8_t *bytes,
                                    uint64_t have,
                                    uint32_t *text_offset,
                                    uint32_t *text_bytes,
                                    struct slc_error *err)
{
    if (have < SLC_NPY_START_BYTES || memcmp(bytes, SLC_NPY_MAGIC, SLC_NPY_MAGIC_BYTES) != 0) {
        return slc_fail(err, SLC_ERR_INPUT, "not a .npy file: the magic number is missing");
    }
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        ".npy version %u.%u; 1.0, 2.0 and 3.0 can be read", bytes[6], bytes[7]);
    }
    *text_offset = bytes[6] == 1 ? 10 : 12;
    *text_bytes = bytes[6] == 1 ? slc_load_u16(bytes + 8) : slc_load_u32(bytes + 8);
    if (*text_bytes > SLC_NPY_MAX_HEADER) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "the .npy header has %" PRIu32 " bytes; at most %d are accepted",
                        *text_bytes, SLC_NPY_MAX_HEADER);
    }
    return SLC_OK;
}

void slc_npy_header_store(const struct slc_npy_header *header, uint8_t *bytes)
{
    /* Large enough for the text with two sizes of 20 digits and a newline. */
    char text[SLC_NPY_STORED_BYTES - 10];
    char shape[48];

    if (header->dimensions == 1) {
        (void)snprintf(shape, sizeof shape, "%" PRIu64 ",", header->shape[0]);
    } else {
        (void)snprintf(shape, sizeof shape, "%" PRIu64 ", %" PRIu64, header->shape[0],
                       header->shape[1]);
    }
    int length =
        snprintf(text, sizeof text, "{'descr': '%c%c%u', 'fortran_order': %s, 'shape': (%s), }",
                 header->big_endian ? '>' : '<', header->kind, header->item_bytes,
                 header->fortran_order ? "True" : "False", shape);
    assert(length > 0 && (size_t)length < sizeof text);
    memset(bytes, ' ', SLC_NPY_STORED_BYTES);
    memcpy(bytes, SLC_NPY_MAGIC "\x01\x00", SLC_NPY_MAGIC_BYTES + 2);
    slc_store_u16(bytes + 8, SLC_NPY_STORED_BYTES - 10);
    memcpy(bytes + 10, text, (size_t)length);
    bytes[SLC_NPY_STORED_BYTES - 1] = '\n';
}
