/* Arbitrary bytes as a text input file: unchanged, to exercise every decompressor, or compressed
 * first, so that decompression yields text, then truncated or with a changed byte. Reading the file
 * in pieces must yield the whole text or a fault; the format recognized in the first piece is
 * parsed. */
#include "fuzz_mutate.h"
#include "fuzz_store.h"

#include "base/memory/bytes.h"
#include "convert/ingest/input/input.h"
#include "convert/ingest/input/input_source.h"
#include "convert/ingest/text/text.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAD_BYTES = 4, /* form, position of the change (u16), kind of change */
    FORMS = 6,
    COMPRESSED_BYTES_MAX = 1 << 17,
    PIECE_BYTES = 2 * SLC_LINE_BYTES_MAX,
    ROWS = 64
};

static void require(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "fuzz_input: %s\n", what);
        abort();
    }
}

/* Compresses the bytes with one of libarchive's methods; returns the size, or 0 if it lacks the
 * method. */
static size_t compress(unsigned form, const uint8_t *text, size_t bytes, uint8_t *packed)
{
    static int (*const add[FORMS])(struct archive *) = {NULL,
                                                        archive_write_add_filter_gzip,
                                                        archive_write_add_filter_bzip2,
                                                        archive_write_add_filter_xz,
                                                        archive_write_add_filter_zstd,
                                                        archive_write_add_filter_lz4};
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    size_t used = 0;

    require(archive != NULL && entry != NULL, "no memory");
    archive_entry_set_filetype(entry, AE_IFREG);
    if (add[form](archive) != ARCHIVE_OK || archive_write_set_format_raw(archive) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(archive, 1) != ARCHIVE_OK ||
        archive_write_open_memory(archive, packed, COMPRESSED_BYTES_MAX, &used) != ARCHIVE_OK ||
        archive_write_header(archive, entry) != ARCHIVE_OK ||
        archive_write_data(archive, text, bytes) != (la_ssize_t)bytes ||
        archive_write_close(archive) != ARCHIVE_OK) {
        used = 0;
    }
    archive_entry_free(entry);
    (void)archive_write_free(archive);
    return used;
}

/* Parses the recognized format of a piece, up to the first fault. */
static void parse(const char *text, size_t bytes, bool complete)
{
    static uint64_t coords[SLC_MAX_ORDER][ROWS];
    static double values[ROWS];
    struct slc_text_rows rows = {.capacity = ROWS, .values = values};
    struct slc_text_header header;
    struct slc_error err = SLC_ERROR_INIT;
    size_t position;

    if (slc_text_sniff(text, bytes, complete, SLC_DIALECT_AUTO, &header, &err) != SLC_OK) {
        return;
    }
    position = (size_t)header.header_bytes;
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        rows.coords[m] = coords[m];
    }
    while (header.order > 0 && position < bytes) {
        slc_text_rows_clear(&rows);
        if (slc_text_parse_rows(&header, text, bytes, &position, &rows, &err) != SLC_OK) {
            break;
        }
    }
}

/* Reads the whole file. `want`: the expected contents; NULL: anything, or a fault. */
static void read_all(const uint8_t *want, size_t want_bytes)
{
    struct slc_input *input = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    char *piece = malloc(PIECE_BYTES);
    enum slc_status status = slc_input_open(NULL, fuzz_path("input"), &input, &err);
    uint64_t all = 0;
    size_t bytes = 1;

    require(piece != NULL, "no memory");
    while (status == SLC_OK && bytes > 0) {
        status = slc_input_next(input, piece, PIECE_BYTES, &bytes, &err);
        require(bytes <= PIECE_BYTES, "more than a piece holds");
        if (status == SLC_OK && bytes > 0) {
            require(want == NULL ||
                        (all + bytes <= want_bytes && memcmp(piece, want + all, bytes) == 0),
                    "another text than was compressed");
            parse(piece, bytes, slc_input_at_end(input));
            all += bytes;
        }
    }
    require(status == err.status, "status and record differ");
    /* Lines may exceed the longest possible row. */
    require(want == NULL || all == want_bytes || strstr(err.message, "line of more") != NULL,
            status == SLC_OK ? "text is lost" : err.message);
    slc_input_close(input);
    free(piece);
}

/* Doubly compressed input is rejected. Some streams only libarchive recognizes: legacy lz4
 * frames and skippable frames. */
static bool looks_like_stream(const uint8_t *text, size_t bytes)
{
    const uint32_t magic = bytes >= 4 ? slc_load_u32(text) : 0;

    return slc_compression_detect(text, bytes) != SLC_COMPRESSION_NONE || magic == 0x184c2102 ||
           (magic & 0xfffffff0) == 0x184d2a50;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static uint8_t packed[COMPRESSED_BYTES_MAX];
    const uint8_t *text = data + HEAD_BYTES;
    const unsigned form = bytes > 0 ? data[0] % FORMS : 0;
    size_t size = 0;

    if (bytes < HEAD_BYTES) {
        return 0;
    }
    /* libarchive's lz4 aborts on empty input. */
    if (form > 0 && bytes > HEAD_BYTES) {
        size = compress(form, text, bytes - HEAD_BYTES, packed);
    }
    if (size == 0) {
        fuzz_write(fuzz_path("input"), text, bytes - HEAD_BYTES);
        read_all(NULL, 0);
        return 0;
    }
    fuzz_write(fuzz_path("input"), packed, size);
    read_all(looks_like_stream(text, bytes - HEAD_BYTES) ? NULL : text, bytes - HEAD_BYTES);
    if (data[3] % 4 != 0) {
        const size_t at = (size_t)(data[1] | data[2] << 8) % size;

        packed[at] = (uint8_t)(packed[at] ^ data[3] >> 2);
        fuzz_write(fuzz_path("input"), packed, data[3] % 4 == 1 ? at : size);
        read_all(NULL, 0);
    }
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
    return fuzz_mutate_behind(data, bytes, room, seed, HEAD_BYTES);
}
