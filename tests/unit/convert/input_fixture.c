/* Input files, plain or compressed, and code that reads them in pieces. */
#include "input_fixture.h"

#include "base/random.h"
#include "slc_test.h"

#include <archive_entry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char input_path[256];
static char piece[INPUT_PIECE];

void input_write(const void *data, size_t bytes)
{
    FILE *file;

    /* One folder serves the whole program, because some cases write thousands of files. */
    if (input_path[0] == '\0') {
        snprintf(input_path, sizeof input_path, "%s/input", slc_test_folder());
    }
    file = fopen(input_path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(data, 1, bytes, file), bytes);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

/* Lines of random lengths and digits, so that a lost or moved byte is detected. */
char *input_text(size_t bytes, bool final_newline, uint64_t seed)
{
    char *text = malloc(bytes + 1);
    uint64_t draw = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (size_t i = 0; i < bytes; i++, draw >>= 16) {
        draw = i % 4 == 0 ? slc_random_u64(seed, 3, i) : draw;
        text[i] = (draw & 0xff) < 11 ? '\n' : (char)('0' + (draw >> 8 & 0xff) % 10);
    }
    if (bytes > 0) {
        text[bytes - 1] = final_newline ? '\n' : '7';
    }
    text[bytes] = '\0';
    return text;
}

/* Reads the whole of `input_path` in pieces of `capacity`; checks that pieces end at line ends. */
enum slc_status input_read_all(const struct slc_files *files,
                               size_t capacity,
                               char *text,
                               size_t text_bytes,
                               size_t *total,
                               struct slc_error *err)
{
    struct slc_input *input = NULL;
    enum slc_status status;
    size_t bytes;

    *total = 0;
    slc_error_clear(err);
    status = slc_input_open(files, input_path, &input, err);
    while (status == SLC_OK) {
        uint64_t lines = slc_input_lines(input);

        status = slc_input_next(input, piece, capacity, &bytes, err);
        if (status != SLC_OK || bytes == 0) {
            break;
        }
        CU_ASSERT_FATAL(bytes <= capacity && *total + bytes <= text_bytes);
        CU_ASSERT(*total == 0 || text[*total - 1] == '\n');
        memcpy(text + *total, piece, bytes);
        *total += bytes;
        for (size_t i = 0; i < bytes; i++) {
            lines += piece[i] == '\n';
        }
        CU_ASSERT_EQUAL(lines, slc_input_lines(input));
    }
    if (status == SLC_OK) {
        CU_ASSERT_TRUE(slc_input_at_end(input));
        SLC_ASSERT_OK(slc_input_next(input, piece, capacity, &bytes, err), err);
        CU_ASSERT_EQUAL(bytes, 0);
    }
    slc_input_close(input);
    return status;
}

const struct input_filter input_filters[INPUT_FILTERS] = {
    {"gzip", archive_write_add_filter_gzip}, {"bzip2", archive_write_add_filter_bzip2},
    {"xz", archive_write_add_filter_xz},     {"zstd", archive_write_add_filter_zstd},
    {"lz4", archive_write_add_filter_lz4},
};

/* Compresses `text`; returns the compressed size. */
size_t
input_compress(size_t filter, const char *text, size_t bytes, unsigned char *out, size_t out_bytes)
{
    struct archive *archive = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    size_t used = 0;

    CU_ASSERT_EQUAL_FATAL(input_filters[filter].add(archive), ARCHIVE_OK);
    CU_ASSERT_EQUAL_FATAL(archive_write_set_format_raw(archive), ARCHIVE_OK);
    archive_write_set_bytes_in_last_block(archive, 1);
    CU_ASSERT_EQUAL_FATAL(archive_write_open_memory(archive, out, out_bytes, &used), ARCHIVE_OK);
    archive_entry_set_filetype(entry, AE_IFREG);
    CU_ASSERT_EQUAL_FATAL(archive_write_header(archive, entry), ARCHIVE_OK);
    CU_ASSERT_EQUAL((size_t)archive_write_data(archive, text, bytes), bytes);
    CU_ASSERT_EQUAL(archive_write_close(archive), ARCHIVE_OK);
    archive_entry_free(entry);
    archive_write_free(archive);
    return used;
}
