/* Inputs: every compression, every possible split of text, reads that are short or fail. */
#include "base/random.h"
#include "convert/ingest/input/input.h"
#include "convert/ingest/text/text.h"
#include "input_fixture.h"
#include "slc_test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    /* size of a text that compresses to more than 256 KiB, the bytes that are read at a time */
    UNLIKE_BYTES = 800000
};

static char piece[INPUT_PIECE];

/* A table of file operations that transfers little at a time and fails at a chosen read. */

static uint64_t read_at_most;
static uint64_t fail_after_reads;
static uint64_t reads;

static int64_t short_read_at(void *self, int fd, void *data, uint64_t bytes, uint64_t offset)
{
    (void)self;
    reads++;
    if (fail_after_reads && reads > fail_after_reads) {
        return -EIO;
    }
    if (read_at_most && bytes > read_at_most) {
        bytes = 1 + slc_random_below(1, 2, reads, read_at_most);
    }
    if (reads % 7 == 3) {
        return -EINTR;
    }
    return slc_files_system()->read_at(slc_files_system()->self, fd, data, bytes, offset);
}

static const struct slc_files *short_files(void)
{
    static struct slc_files files;

    files = *slc_files_system();
    files.read_at = short_read_at;
    reads = 0;
    fail_after_reads = 0;
    read_at_most = 0;
    return &files;
}

static void check_reads_back(const struct slc_files *files, const char *text, size_t bytes)
{
    char *copy = malloc(bytes + 1);
    size_t total;
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    SLC_ASSERT_OK(input_read_all(files, INPUT_PIECE, copy, bytes, &total, &err), &err);
    CU_ASSERT_EQUAL(total, bytes);
    CU_ASSERT_EQUAL(memcmp(copy, text, total), 0);
    free(copy);
}

static void plain_files(void)
{
    static const size_t sizes[] = {0,
                                   1,
                                   2,
                                   63,
                                   64,
                                   65,
                                   1000,
                                   INPUT_PIECE - 1,
                                   INPUT_PIECE,
                                   INPUT_PIECE + 1,
                                   2 * INPUT_PIECE,
                                   3 * INPUT_PIECE + 12345};

    for (size_t i = 0; i < SLC_COUNT(sizes); i++) {
        for (int newline = 0; newline < 2; newline++) {
            char *text = input_text(sizes[i], newline, slc_test_seed() + i);

            input_write(text, sizes[i]);
            check_reads_back(NULL, text, sizes[i]);
            free(text);
        }
    }
}

static void short_reads(void)
{
    size_t bytes = INPUT_PIECE + 4321;
    char *text = input_text(bytes, false, slc_test_seed());
    const struct slc_files *files = short_files();

    input_write(text, bytes);
    read_at_most = 100000;
    check_reads_back(files, text, bytes);
    free(text);
}

/* Pieces end at every position around a line end, also within CR LF. */
static void every_boundary(void)
{
    size_t bytes = INPUT_PIECE + 64;
    char *text = malloc(bytes);

    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    for (size_t shift = 0; shift < 14; shift++) {
        for (size_t i = 0; i < bytes; i++) {
            text[i] = "1 2 3.5\r\n44\n7"[(i + shift) % 13];
        }
        input_write(text, bytes);
        check_reads_back(NULL, text, bytes);
    }
    free(text);
}

static void long_lines(void)
{
    size_t bytes = (size_t)12 << 20;
    char *text = malloc(bytes);
    char *copy = malloc(bytes);
    size_t total;
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_FATAL(text && copy);
    memset(text, '1', bytes);
    memcpy(text, "1 1\n2 2\n", 8);
    text[bytes - 1] = '\n';
    input_write(text, bytes);
    SLC_ASSERT_FAILS(input_read_all(NULL, INPUT_PIECE, copy, bytes, &total, &err), SLC_ERR_INPUT,
                     &err, "line of more than 1048576 bytes");
    /* The text before the long line is delivered, so that its faults are reported first. */
    CU_ASSERT_EQUAL(total, 8);
    CU_ASSERT_EQUAL(err.line, 3);
    CU_ASSERT_EQUAL(err.column, (uint64_t)SLC_LINE_BYTES_MAX + 1);
    CU_ASSERT_STRING_EQUAL(err.file, input_path);
    /* The longest line that may be incomplete. */
    text[8 + SLC_LINE_BYTES_MAX - 1] = '\n';
    input_write(text, 8 + SLC_LINE_BYTES_MAX);
    check_reads_back(NULL, text, 8 + SLC_LINE_BYTES_MAX);
    free(copy);
    free(text);
}

static void compressed_files(void)
{
    static const size_t sizes[] = {1, 100, 70000, INPUT_PIECE + 4321};

    for (size_t f = 0; f < INPUT_FILTERS; f++) {
        for (size_t s = 0; s < SLC_COUNT(sizes); s++) {
            size_t bytes = sizes[s];
            char *text = input_text(bytes, s % 2, slc_test_seed());
            unsigned char *packed = malloc(2 * bytes + 65536);
            size_t packed_bytes;
            struct slc_input *input;
            struct slc_input_info info;
            struct slc_error err = SLC_ERROR_INIT;
            const struct slc_files *files = short_files();

            CU_ASSERT_PTR_NOT_NULL_FATAL(packed);
            /* The text repeats its first UNLIKE_BYTES bytes, so that xz, the slowest compressor,
             * compresses it faster. */
            for (size_t i = UNLIKE_BYTES; i + 1 < bytes; i++) {
                text[i] = text[i - UNLIKE_BYTES];
            }
            packed_bytes = input_compress(f, text, bytes, packed, 2 * bytes + 65536);
            input_write(packed, packed_bytes);
            check_reads_back(NULL, text, bytes);
            read_at_most = 1000;
            check_reads_back(files, text, bytes);

            SLC_ASSERT_OK(slc_input_open(NULL, input_path, &input, &err), &err);
            slc_input_info(input, &info);
            CU_ASSERT_STRING_EQUAL(info.compression, input_filters[f].name);
            CU_ASSERT_FALSE(info.seekable);
            CU_ASSERT_EQUAL(info.stored_bytes, packed_bytes);
            CU_ASSERT(info.memory_bytes > SLC_LINE_BYTES_MAX && info.memory_bytes < (100 << 20));
            slc_input_close(input);

            /* Two concatenated streams are one text. */
            if (bytes < 100000) {
                char *twice = malloc(2 * bytes);

                CU_ASSERT_PTR_NOT_NULL_FATAL(twice);
                memcpy(packed + packed_bytes, packed, packed_bytes);
                memcpy(twice, text, bytes);
                memcpy(twice + bytes, text, bytes);
                input_write(packed, 2 * packed_bytes);
                check_reads_back(NULL, twice, 2 * bytes);
                free(twice);
            }
            free(packed);
            free(text);
        }
    }
}

/* The estimated text size after reading 600 KiB. */
static uint64_t length_after_some(void)
{
    struct slc_input *input;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t length;
    size_t got;

    SLC_ASSERT_OK(slc_input_open(NULL, input_path, &input, &err), &err);
    SLC_ASSERT_OK(slc_input_read(input, piece, 600 << 10, &got, &err), &err);
    length = slc_input_text_bytes(input);
    slc_input_close(input);
    return length;
}

/* The text size of a compressed file is stored in it, or estimated from the part already read. */
static void text_lengths(void)
{
    const size_t room = 1200 << 10;
    char *text = malloc(room + 64);
    unsigned char *packed = malloc(2 * room);
    size_t bytes = 0;

    for (unsigned i = 0; bytes < room; i++) {
        bytes += (size_t)sprintf(text + bytes, "%u %u %u 1\n", i / 9, i % 977, i * 7 % 13);
    }
    input_write(text, bytes);
    CU_ASSERT_EQUAL(length_after_some(), bytes);
    for (size_t f = 0; f < INPUT_FILTERS; f++) {
        const bool xz = strcmp(input_filters[f].name, "xz") == 0;
        /* With lz4 a whole buffer, which may hold all of this text, may be unread. */
        const double least = strcmp(input_filters[f].name, "lz4") == 0 ? 0.45 : 0.7;
        const size_t size = input_compress(f, text, bytes, packed, room);
        double times;

        input_write(packed, size);
        times = (double)length_after_some() / (double)bytes;
        CU_ASSERT(xz ? times == 1 : times > least && times < 1.4);
        /* In a file of two streams, the size in the last stream is not the total. */
        memcpy(packed + size, packed, size);
        input_write(packed, 2 * size);
        times = (double)length_after_some() / (double)bytes;
        CU_ASSERT(xz ? times == 2 : times > 2 * least && times < 2.8);
        /* A trailer without a size, or with a wrong one: the size is still estimated from a
         * piece. */
        memset(packed + size - 4, 0x5a, 4);
        input_write(packed, size);
        times = (double)length_after_some() / (double)bytes;
        CU_ASSERT(times > least && times < 1.4);
    }
    free(packed);
    free(text);
}

/* An empty file compressed by gzip, bzip2, xz, zstd and lz4. */
static const struct {
    const char *name;
    size_t bytes;
    const char *data;
} nothing[] = {
    {"gzip", 20, "\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0"},
    {"bzip2", 14, "BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0"},
    {"xz", 32,
     "\xfd"
     "7zXZ\0\0\x04\xe6\xd6\xb4\x46\0\0\0\0\x1c\xdf\x44\x21\x1f\xb6\xf3\x7d\x01\0\0\0\0\x04YZ"},
    {"zstd", 13, "\x28\xb5\x2f\xfd\x24\0\x01\0\0\x99\xe9\xd8\x51"},
    {"lz4", 15, "\x04\x22\x4d\x18\x64\x40\xa7\0\0\0\0\x05\x5d\xcc\x02"},
};

static void compressed_nothing(void)
{
    static char copy[64];

    for (size_t f = 0; f < SLC_COUNT(nothing); f++) {
        struct slc_error err = SLC_ERROR_INIT;
        size_t total;

        input_write(nothing[f].data, nothing[f].bytes);
        SLC_ASSERT_OK(input_read_all(NULL, INPUT_PIECE, copy, sizeof copy, &total, &err), &err);
        CU_ASSERT_EQUAL(total, 0);
    }
}

static void samples(void)
{
    size_t bytes = 100000;
    char *text = input_text(bytes, true, slc_test_seed());
    struct slc_input *input;
    struct slc_input_info info;
    struct slc_error err = SLC_ERROR_INIT;
    size_t got;

    input_write(text, bytes);
    SLC_ASSERT_OK(slc_input_open(NULL, input_path, &input, &err), &err);
    slc_input_info(input, &info);
    CU_ASSERT_TRUE(info.seekable);
    CU_ASSERT_EQUAL(info.stored_bytes, bytes);
    CU_ASSERT_STRING_EQUAL(info.compression, "none");
    for (uint64_t i = 0; i < 300; i++) {
        uint64_t offset = i == 0 ? 0 : slc_random_below(slc_test_seed(), 9, i, bytes + 100);
        const char *found;

        SLC_ASSERT_OK(slc_input_sample(input, offset, piece, 4096, &got, &err), &err);
        piece[got] = '\0';
        if (got == 0) {
            continue;
        }
        CU_ASSERT_EQUAL(piece[got - 1], '\n');
        found = strstr(text + offset, piece);
        CU_ASSERT_PTR_NOT_NULL_FATAL(found);
        CU_ASSERT(found == text || found[-1] == '\n');
    }
    /* Reading in sequence is not affected. */
    SLC_ASSERT_OK(slc_input_next(input, piece, INPUT_PIECE, &got, &err), &err);
    CU_ASSERT_EQUAL(got, bytes);
    CU_ASSERT_EQUAL(memcmp(piece, text, bytes), 0);
    CU_ASSERT_EQUAL(slc_input_consumed(input), bytes);
    slc_input_close(input);
    free(text);
}

/* Seeks to the end of the second piece in a file of these bytes; the text continues there. */
static void check_go_to(const void *bytes, size_t byte_count, const char *text, size_t text_bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t identity, again, lines, offset = 0;
    struct slc_input *input;
    size_t got;
    bool there;

    input_write(bytes, byte_count);
    SLC_ASSERT_OK(slc_input_open(NULL, input_path, &input, &err), &err);
    SLC_ASSERT_OK(slc_input_identity(input, &identity, &err), &err);
    for (unsigned i = 0; i < 2; i++) {
        SLC_ASSERT_OK(slc_input_next(input, piece, INPUT_PIECE, &got, &err), &err);
        offset += got;
    }
    lines = slc_input_lines(input);
    slc_input_close(input);

    SLC_ASSERT_OK(slc_input_open(NULL, input_path, &input, &err), &err);
    SLC_ASSERT_OK(slc_input_identity(input, &again, &err), &err);
    CU_ASSERT(identity != 0 && again == identity);
    SLC_ASSERT_OK(slc_input_next(input, piece, INPUT_PIECE, &got, &err), &err);
    SLC_ASSERT_OK(slc_input_go_to(input, offset, lines, piece, INPUT_PIECE, &there, &err), &err);
    CU_ASSERT(there && slc_input_lines(input) == lines);
    SLC_ASSERT_OK(slc_input_next(input, piece, INPUT_PIECE, &got, &err), &err);
    CU_ASSERT(offset + got <= text_bytes && memcmp(piece, text + offset, got) == 0);
    slc_input_close(input);
}

/* Continuing after a piece, for plain and compressed text; another file is detected. */
static void continues_after_a_piece(void)
{
    const size_t bytes = 3 * INPUT_PIECE;
    char *text = input_text(bytes, true, slc_test_seed());
    unsigned char *packed = malloc(2 * bytes + 65536);
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t identity, other;
    struct slc_input *input;
    size_t got;
    bool there;

    CU_ASSERT_PTR_NOT_NULL_FATAL(packed);
    check_go_to(text, bytes, text, bytes);
    SLC_ASSERT_OK(slc_input_open(NULL, input_path, &input, &err), &err);
    SLC_ASSERT_OK(slc_input_identity(input, &identity, &err), &err);
    slc_input_close(input);
    text[0] ^= 1;
    input_write(text, bytes);
    SLC_ASSERT_OK(slc_input_open(NULL, input_path, &input, &err), &err);
    SLC_ASSERT_OK(slc_input_identity(input, &other, &err), &err);
    CU_ASSERT_NOT_EQUAL(other, identity);
    slc_input_close(input);
    /* The text repeats its first UNLIKE_BYTES bytes, so that it is compressed faster. */
    for (size_t i = UNLIKE_BYTES; i + 1 < bytes; i++) {
        text[i] = text[i - UNLIKE_BYTES];
    }
    got = input_compress(0, text, bytes, packed, 2 * bytes + 65536);
    check_go_to(packed, got, text, bytes);
    /* No piece of the compressed text ends at this position. */
    SLC_ASSERT_OK(slc_input_open(NULL, input_path, &input, &err), &err);
    SLC_ASSERT_OK(slc_input_go_to(input, 5, 0, piece, INPUT_PIECE, &there, &err), &err);
    CU_ASSERT_FALSE(there);
    slc_input_close(input);
    free(packed);
    free(text);
}

static void standard_input(void)
{
    int saved = dup(0);
    int ends[2];
    struct slc_input *input;
    struct slc_input_info info;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t identity = 1;
    size_t bytes;

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    CU_ASSERT_EQUAL(write(ends[1], "1 2\n3", 5), 5);
    close(ends[1]);
    dup2(ends[0], 0);
    close(ends[0]);
    SLC_ASSERT_OK(slc_input_open(NULL, "-", &input, &err), &err);
    slc_input_info(input, &info);
    CU_ASSERT_FALSE(info.seekable);
    SLC_ASSERT_OK(slc_input_identity(input, &identity, &err), &err);
    CU_ASSERT_EQUAL(identity, 0);
    CU_ASSERT_EQUAL(info.stored_bytes, 0);
    CU_ASSERT_STRING_EQUAL(info.name, "standard input");
    SLC_ASSERT_OK(slc_input_next(input, piece, INPUT_PIECE, &bytes, &err), &err);
    CU_ASSERT_EQUAL(bytes, 5);
    CU_ASSERT_EQUAL(memcmp(piece, "1 2\n3", 5), 0);
    slc_input_close(input);
    dup2(saved, 0);
    close(saved);
}

static void faults(void)
{
    struct slc_input *input;
    struct slc_error err = SLC_ERROR_INIT;
    const struct slc_files *files = short_files();
    size_t bytes = INPUT_PIECE;
    char *text = input_text(bytes, true, slc_test_seed());
    char *copy = malloc(bytes);
    unsigned char *packed = malloc(bytes);
    size_t total;

    CU_ASSERT_FATAL(copy && packed);
    SLC_ASSERT_FAILS(slc_input_open(NULL, "/nonexistent/x.tns", &input, &err), SLC_ERR_IO, &err,
                     "cannot open");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_input_open(NULL, "/", &input, &err), SLC_ERR_INPUT, &err, "a folder");
    for (int compressed = 0; compressed < 2; compressed++) {
        if (compressed) {
            input_write(packed, input_compress(0, text, bytes, packed, bytes));
        } else {
            input_write(text, bytes);
        }
        read_at_most = 64 << 10;
        for (uint64_t k = 1; k < 12; k++) {
            reads = 0;
            fail_after_reads = k;
            SLC_ASSERT_FAILS(input_read_all(files, INPUT_PIECE, copy, bytes, &total, &err),
                             SLC_ERR_IO, &err, "cannot read at byte");
            CU_ASSERT_EQUAL(err.system_errno, EIO);
            CU_ASSERT_EQUAL(memcmp(copy, text, total), 0);
        }
        fail_after_reads = 0;
    }
    free(packed);
    free(copy);
    free(text);
}

static const struct slc_test tests[] = {
    {"plain files of every size", plain_files},
    {"reads that come back short", short_reads},
    {"a piece boundary at every place", every_boundary},
    {"lines too long", long_lines},
    {"every compression", compressed_files},
    {"compressed nothing", compressed_nothing},
    {"lengths of compressed texts", text_lengths},
    {"samples", samples},
    {"continuing after a piece", continues_after_a_piece},
    {"standard input", standard_input},
    {"faults of files", faults},
};

SLC_SUITE(input)
{
    return slc_test_main("input", tests, SLC_COUNT(tests), argc, argv);
}
