/* Arbitrary bytes as a text tensor. The first byte selects the dialect and whether the text is
 * complete; the rest is recognized and parsed with two batch sizes, which must agree in rows,
 * ranges, lines and the fault at the end. Every number is also compared with the C library's. */
#include "base/memory/bytes.h"
#include "convert/ingest/text/text.h"
#include "convert/number/number.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY = 64, NUMBER_BYTES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Result of reading a whole text. */
struct outcome {
    uint64_t rows;
    uint64_t lines;
    uint64_t hash; /* hash of all coordinates and values, in order */
    uint64_t smallest[SLC_MAX_ORDER];
    uint64_t largest[SLC_MAX_ORDER];
    struct slc_error err;
};

static void require(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz_text: %s\n", what);
        abort();
    }
}

static void parse_all(const struct slc_text_header *header,
                      const char *text,
                      size_t bytes,
                      uint32_t capacity,
                      struct outcome *out)
{
    static uint64_t coords[SLC_MAX_ORDER][CAPACITY];
    static double values[CAPACITY];
    struct slc_text_rows rows = {.capacity = capacity, .values = values};
    size_t position = (size_t)header->header_bytes;
    enum slc_status status = SLC_OK;

    memset(out, 0, sizeof *out);
    memset(out->smallest, 0xff, sizeof out->smallest);
    slc_error_clear(&out->err);
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        rows.coords[m] = coords[m];
    }
    while (status == SLC_OK && position < bytes) {
        size_t before = position;

        slc_text_rows_clear(&rows);
        status = slc_text_parse_rows(header, text, bytes, &position, &rows, &out->err);
        require(status != SLC_OK || position > before, "no progress");
        require(position <= bytes && rows.count <= capacity, "beyond an end");
        for (uint32_t i = 0; i < rows.count; i++) {
            for (unsigned m = 0; m < header->order; m++) {
                out->hash = out->hash * 31 + coords[m][i];
                out->smallest[m] =
                    coords[m][i] < out->smallest[m] ? coords[m][i] : out->smallest[m];
                out->largest[m] = coords[m][i] > out->largest[m] ? coords[m][i] : out->largest[m];
                require(rows.smallest[m] <= coords[m][i] && rows.largest[m] >= coords[m][i],
                        "range of a mode");
            }
            require(values[i] - values[i] == 0, "a value that is not finite");
            out->hash = out->hash * 31 + slc_bits_f64(values[i]);
        }
        out->rows += rows.count;
    }
    out->lines = rows.lines;
    require(status == out->err.status, "status and record differ");
    require(status == SLC_OK || out->err.line == rows.lines + 1, "line of a fault");
    require(status == SLC_OK || out->err.column >= 1, "column of a fault");
}

/* Compares the bytes as one number with strtod, where both have the same grammar. */
static void check_number(const char *text, size_t bytes)
{
    char copy[NUMBER_BYTES + 1];
    double got = 0;
    const char *end;
    char *want_end;
    double want;

    if (bytes > NUMBER_BYTES) {
        bytes = NUMBER_BYTES;
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    end = slc_parse_f64(copy, copy + bytes, &got);
    if (!end) {
        return;
    }
    want = strtod(copy, &want_end);
    /* strtod reads 0x10 as 16; the parser reads a 0, followed by an x. */
    if (end < copy + bytes && (*end == 'x' || *end == 'X')) {
        return;
    }
    require(end == want_end, "end of a number");
    require(slc_bits_f64(got) == slc_bits_f64(want), "value of a number");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct slc_text_header header;
    struct slc_error err = SLC_ERROR_INIT;
    struct outcome one, many;
    enum slc_dialect forced;
    enum slc_status status;
    const char *text;
    char *copy;

    if (bytes == 0) {
        return 0;
    }
    forced = (enum slc_dialect)(data[0] % (SLC_DIALECT_MATRIXMARKET + 1));
    /* A copy of the exact size, so that a read beyond the end is detected. */
    copy = malloc(bytes);
    require(copy != NULL, "no memory");
    memcpy(copy, data + 1, bytes - 1);
    bytes--;
    text = copy;
    check_number(text, bytes);
    status = slc_text_sniff(text, bytes, data[0] < 128, forced, &header, &err);
    require(status == err.status, "status and record differ");
    if (status == SLC_OK && header.order > 0) {
        require(header.order <= SLC_MAX_ORDER && header.header_bytes <= bytes, "header");
        parse_all(&header, text, bytes, 1, &one);
        parse_all(&header, text, bytes, CAPACITY, &many);
        require(one.rows == many.rows && one.lines == many.lines && one.hash == many.hash,
                "rows depend on the batch size");
        require(memcmp(one.smallest, many.smallest, sizeof one.smallest) == 0 &&
                    memcmp(one.largest, many.largest, sizeof one.largest) == 0,
                "ranges depend on the batch size");
        require(one.err.line == many.err.line && one.err.column == many.err.column &&
                    strcmp(one.err.message, many.err.message) == 0,
                "faults depend on the batch size");
    }
    free(copy);
    return 0;
}
