/* Memory of decoders: the requirements in the first bytes of an input are planned; a later part
 * that needs more is rejected, and so is doubly compressed input. */
#include "base/memory/bytes.h"
#include "convert/ingest/input/input.h"
#include "convert/ingest/text/text.h"
#include "slc_test.h"

#include <lzma.h>
#include <stdio.h>
#include <string.h>

enum {
    PIECE = 2 * SLC_LINE_BYTES_MAX,
    TEXT_BYTES = 600,
    /* After the header of an xz stream comes its block header: its length in units of 4 minus
     * one, flags, LZMA2 (0x21), 1, the dictionary size, .., and a checksum. */
    XZ_BLOCK = 12,
    XZ_LZMA2 = 0x21,
    XZ_256_KIB = 12,
    XZ_512_MIB = 34
};

static const uint64_t zstd_least_bytes = UINT64_C(8) << 20;

static char piece[PIECE];
static char text[TEXT_BYTES];
static unsigned char packed[16384];

static const char *make_text(void)
{
    for (size_t i = 0; i < TEXT_BYTES; i += 6) {
        memcpy(text + i, "1 2 3\n", 6);
    }
    return text;
}

/* Opens the bytes and reads everything; returns the size of the text. */
static enum slc_status
read_back(size_t bytes, size_t *total, uint64_t *memory, struct slc_error *err)
{
    struct slc_input_info info;
    struct slc_input *input;
    enum slc_status status;
    char path[512];
    size_t got = 1;
    FILE *file;

    *total = 0;
    *memory = 0;
    (void)snprintf(path, sizeof path, "%s/input", slc_test_folder());
    file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(packed, 1, bytes, file), bytes);
    CU_ASSERT_EQUAL(fclose(file), 0);
    status = slc_input_open(NULL, path, &input, err);
    if (status != SLC_OK) {
        return status;
    }
    slc_input_info(input, &info);
    *memory = info.memory_bytes - SLC_LINE_BYTES_MAX;
    while (status == SLC_OK && got > 0) {
        status = slc_input_next(input, piece, PIECE, &got, err);
        *total += status == SLC_OK ? got : 0;
    }
    slc_input_close(input);
    return status;
}

/* Appends an xz stream of the text whose block claims this dictionary; returns the total size. */
static size_t put_xz(size_t at, unsigned char dictionary)
{
    unsigned char *block = packed + at + XZ_BLOCK;
    size_t header;

    CU_ASSERT_EQUAL_FATAL(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL,
                                                  (const uint8_t *)make_text(), TEXT_BYTES, packed,
                                                  &at, sizeof packed),
                          LZMA_OK);
    /* One-shot encoding also stores both sizes, of at least a byte each. */
    for (header = 2; block[header] != XZ_LZMA2 || block[header + 1] != 1; header++) {
    }
    block[header + 2] = dictionary;
    header = 4 * (size_t)block[0];
    slc_store_u32(block + header, lzma_crc32(block, header, 0));
    return at;
}

static void xz_windows(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    size_t total;
    uint64_t memory;
    size_t bytes = put_xz(0, XZ_256_KIB);

    bytes = put_xz(bytes, XZ_256_KIB);
    SLC_ASSERT_OK(read_back(bytes, &total, &memory, &err), &err);
    CU_ASSERT_EQUAL(total, 2 * TEXT_BYTES);
    CU_ASSERT(memory < UINT64_C(2) << 20);
    bytes = put_xz(bytes, XZ_512_MIB);
    SLC_ASSERT_FAILS(read_back(bytes, &total, &memory, &err), SLC_ERR_INPUT, &err,
                     "use an external decompressor (xz -dc");
    CU_ASSERT_EQUAL(total, 2 * TEXT_BYTES);
    slc_error_clear(&err);
    /* The requirement of the first block is planned. */
    bytes = put_xz(0, XZ_512_MIB);
    SLC_ASSERT_OK(read_back(bytes, &total, &memory, &err), &err);
    CU_ASSERT_EQUAL(total, TEXT_BYTES);
    CU_ASSERT(memory > UINT64_C(512) << 20);
}

/* Appends a frame of one raw block with a window of this many KiB, a power of two. */
static size_t put_zstd(size_t at, unsigned log_kib)
{
    const unsigned char head[] = {0x28,
                                  0xb5,
                                  0x2f,
                                  0xfd,
                                  0,
                                  (unsigned char)(log_kib << 3),
                                  (TEXT_BYTES << 3 & 0xff) | 1,
                                  TEXT_BYTES >> 5,
                                  0};

    memcpy(packed + at, head, sizeof head);
    memcpy(packed + at + sizeof head, make_text(), TEXT_BYTES);
    return at + sizeof head + TEXT_BYTES;
}

static void zstd_windows(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    size_t total;
    uint64_t memory;
    size_t bytes = put_zstd(put_zstd(0, 10), 13);

    SLC_ASSERT_OK(read_back(bytes, &total, &memory, &err), &err);
    CU_ASSERT_EQUAL(total, 2 * TEXT_BYTES);
    CU_ASSERT(memory < 2 * zstd_least_bytes);
    SLC_ASSERT_FAILS(read_back(put_zstd(bytes, 14), &total, &memory, &err), SLC_ERR_INPUT, &err,
                     "use an external decompressor (zstd -dc");
    CU_ASSERT_EQUAL(total, 2 * TEXT_BYTES);
    slc_error_clear(&err);
    bytes = put_zstd(put_zstd(0, 17), 14);
    SLC_ASSERT_OK(read_back(bytes, &total, &memory, &err), &err);
    CU_ASSERT(memory > 16 * zstd_least_bytes);
}

static void in_turn(void)
{
    static unsigned char inner[sizeof packed];
    const size_t inner_bytes = put_zstd(0, 10);
    struct slc_error err = SLC_ERROR_INIT;
    size_t total, bytes = 0;
    uint64_t memory;

    memcpy(inner, packed, inner_bytes);
    CU_ASSERT_EQUAL_FATAL(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, inner, inner_bytes,
                                                  packed, &bytes, sizeof packed),
                          LZMA_OK);
    SLC_ASSERT_FAILS(read_back(bytes, &total, &memory, &err), SLC_ERR_INPUT, &err,
                     "with xz and inside it with zstd");
    CU_ASSERT_EQUAL(total, 0);
}

static const struct slc_test tests[] = {
    {"windows of later xz streams", xz_windows},
    {"windows of later zstd frames", zstd_windows},
    {"compressed in turn", in_turn},
};

SLC_SUITE(input_memory)
{
    return slc_test_main("input_memory", tests, SLC_COUNT(tests), argc, argv);
}
