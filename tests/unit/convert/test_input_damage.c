/* Inputs that are damaged or truncated: they are rejected after the text before the damage is
 * delivered. */
#include "input_fixture.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* size of a text that compresses to more than 256 KiB, the bytes that are read at a time */
    UNLIKE_BYTES = 800000,
    /* size of a text that every filter compresses to one block, like any text of less than 64
     * KiB */
    SMALL_TEXT = 600
};

static void truncated_streams(void)
{
    size_t bytes = SMALL_TEXT;
    char *text = input_text(bytes, true, slc_test_seed());
    static unsigned char packed[65536];
    static char copy[65536];

    for (size_t f = 0; f < INPUT_FILTERS; f++) {
        size_t packed_bytes = input_compress(f, text, bytes, packed, sizeof packed);
        unsigned accepted = 0;

        /* Cut after the magic number, because shorter files are treated as text. */
        for (size_t cut = 6; cut < packed_bytes; cut++) {
            struct slc_error err = SLC_ERROR_INIT;
            size_t total;
            enum slc_status status;

            input_write(packed, cut);
            status = input_read_all(NULL, INPUT_PIECE, copy, sizeof copy, &total, &err);
            if (status != SLC_ERR_INPUT) {
                printf("# %s cut to %zu of %zu bytes: status %d, %zu bytes of text\n",
                       input_filters[f].name, cut, packed_bytes, (int)status, total);
                accepted++;
            } else {
                CU_ASSERT_PTR_NOT_NULL(strstr(err.message, "damaged"));
                CU_ASSERT_STRING_EQUAL(err.file, input_path);
            }
        }
        CU_ASSERT_EQUAL(accepted, 0);
    }
    free(text);
}

static void damaged_streams(void)
{
    size_t bytes = SMALL_TEXT;
    char *text = input_text(bytes, true, slc_test_seed());
    static unsigned char packed[65536];
    static char copy[65536];

    for (size_t f = 0; f < INPUT_FILTERS; f++) {
        size_t packed_bytes = input_compress(f, text, bytes, packed, sizeof packed - 16);
        unsigned silent = 0;

        for (size_t at = 0; at < packed_bytes; at++) {
            struct slc_error err = SLC_ERROR_INIT;
            size_t total;
            enum slc_status status;

            packed[at] ^= (unsigned char)(1 << at % 8);
            input_write(packed, packed_bytes);
            status = input_read_all(NULL, INPUT_PIECE, copy, sizeof copy, &total, &err);
            packed[at] ^= (unsigned char)(1 << at % 8);
            CU_ASSERT(status == SLC_OK || status == SLC_ERR_INPUT);
            /* A changed header field (a time, a hint) may have no effect. */
            if (status == SLC_OK && at > 10 && (total != bytes || memcmp(copy, text, bytes) != 0)) {
                silent++;
            }
        }
        if (silent > 0) {
            printf("# %s: %u of %zu single-bit errors go unnoticed\n", input_filters[f].name,
                   silent, packed_bytes);
        }
        /* libarchive writes zstd without its optional checksum (zstd itself writes it), so the
         * damage cannot be detected. */
        CU_ASSERT(silent == 0 || strcmp(input_filters[f].name, "zstd") == 0);
        memset(packed + packed_bytes, 'x', 16);
        input_write(packed, packed_bytes + 16);
        {
            struct slc_error err = SLC_ERROR_INIT;
            size_t total;

            SLC_ASSERT_FAILS(input_read_all(NULL, INPUT_PIECE, copy, sizeof copy, &total, &err),
                             SLC_ERR_INPUT, &err, "damaged");
        }
    }
    free(text);
}

/* Bytes of text delivered before the fault of the file; the first `known` must be those of
 * `text`. */
static size_t
before_fault(const void *packed, size_t packed_bytes, const char *text, size_t known, char *copy)
{
    struct slc_error err = SLC_ERROR_INIT;
    size_t total;

    input_write(packed, packed_bytes);
    SLC_ASSERT_FAILS(input_read_all(NULL, INPUT_PIECE, copy, 2 * UNLIKE_BYTES, &total, &err),
                     SLC_ERR_INPUT, &err, "damaged");
    CU_ASSERT_EQUAL(memcmp(copy, text, total < known ? total : known), 0);
    return total;
}

/* Whole lines decoded before a fault are delivered, whichever decoder call detected it, so that
 * their own faults are reported first: all of a stream before the faulty one and, in a stream of
 * several blocks, the text before the damage. */
static void text_before_damage(void)
{
    const size_t bytes = UNLIKE_BYTES / 2;
    char *text = input_text(2 * bytes, true, slc_test_seed());
    char *copy = malloc(2 * UNLIKE_BYTES);
    unsigned char *packed = malloc(4 * bytes + 65536);

    CU_ASSERT_FATAL(packed != NULL && copy != NULL);
    text[bytes - 1] = '\n';
    for (size_t f = 0; f < INPUT_FILTERS; f++) {
        const size_t first = input_compress(f, text, bytes, packed, 2 * bytes);
        const size_t second = input_compress(f, text + bytes, bytes, packed + first, 2 * bytes);
        const size_t both = first + second;
        size_t end;

        memset(packed + both, 'x', 16);
        CU_ASSERT_EQUAL(before_fault(packed, both + 16, text, 2 * bytes, copy), 2 * bytes);
        packed[first + second / 2] ^= 0x55;
        CU_ASSERT(before_fault(packed, both, text, bytes, copy) >= bytes);
        end = input_compress(f, text, 2 * bytes, packed, 4 * bytes);
        if (strcmp(input_filters[f].name, "zstd") != 0 &&
            strcmp(input_filters[f].name, "lz4") != 0) {
            /* Damage the checksum after the text; libarchive's zstd has none, lz4's is below. */
            packed[end - 1] ^= 0x55;
            CU_ASSERT_EQUAL(before_fault(packed, end, text, 2 * bytes, copy), 2 * bytes);
            packed[end - 1] ^= 0x55;
        }
    }
    free(packed);
    free(copy);
    free(text);
}

#define TWO_LINES "1 2 3\n4 5 6\n"

/* A stream of one stored block and a stream without blocks are each decoded in one call. */
static void text_before_no_block(void)
{
    static const struct {
        const char *name;
        const char *data;
        size_t bytes;
    } streams[] = {
        {"gzip", "\x1f\x8b\x08\0\0\0\0\0\0\x03\0\x0c\0\xf3\xff" TWO_LINES "\x07\0\0\0\0", 32},
        {"zstd", "\x28\xb5\x2f\xfd\0\0\x60\0\0" TWO_LINES "\x67\0\0" TWO_LINES, 36},
        {"lz4", "\x04\x22\x4d\x18\x60\x40\x82\x0c\0\0\x80" TWO_LINES "\xff\xff\xff\x7f", 27},
    };
    static char copy[2 * UNLIKE_BYTES];

    for (size_t f = 0; f < SLC_COUNT(streams); f++) {
        const size_t lines = strlen(TWO_LINES);
        const size_t total =
            before_fault(streams[f].data, streams[f].bytes, TWO_LINES, lines, copy);

        if (total != lines) {
            printf("# %s: %zu bytes come before what is no block\n", streams[f].name, total);
        }
        CU_ASSERT_EQUAL(total, lines);
    }
}

static const struct slc_test tests[] = {
    {"truncated streams", truncated_streams},
    {"damaged streams", damaged_streams},
    {"text before the damage", text_before_damage},
    {"text before an invalid block", text_before_no_block},
};

SLC_SUITE(input_damage)
{
    return slc_test_main("input_damage", tests, SLC_COUNT(tests), argc, argv);
}
