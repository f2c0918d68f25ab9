/* Forged block files: every field of header, index, closing page and block is overwritten, sealed
 * with valid checksums, and must be rejected with the documented status, file and offset; so must
 * files of any other length. */
#include "forge_file.h"
#include "make_store.h"
#include "slc_test.h"

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "storage/block/file_layout.h"
#include "storage/block/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char path[256];

/* A new path for a block file. */
static const char *new_path(void)
{
    snprintf(path, sizeof path, "%s/x.blk", slc_test_folder());
    return path;
}

/* A tensor of 3 modes in several blocks, written to `path`. */
static void write_sample(struct slc_made_tensor *tensor)
{
    const uint64_t dims[3] = {UINT64_C(1) << 35, 70, 1000};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;

    slc_made_tensor_create(tensor, 3, dims, 2000, SLC_MADE_DOUBLES, 7);
    SLC_ASSERT_OK(
        slc_made_blocks_write(tensor, NULL, new_path(), SLC_CODEC_PACKED, 8192, &summary, &err),
        &err);
    CU_ASSERT_FATAL(summary.block_count >= 4);
}

/* An overwritten field, and the expected error of the reader. */
struct forgery {
    const char *what;
    uint32_t at;
    uint32_t bytes;
    uint64_t value;
    enum slc_status want;
};

static void put(uint8_t *at, const struct forgery *forgery)
{
    for (uint32_t i = 0; i < forgery->bytes; i++) {
        at[i] = (uint8_t)(forgery->value >> (8 * i));
    }
}

static void check_forgery(const struct slc_forged *forged, const struct forgery *forgery)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_reader *reader = NULL;
    enum slc_status status;

    slc_forged_save(forged, path);
    status = slc_reader_open(NULL, path, &reader, &err);
    if (status != forgery->want || err.status != status || err.offset == SLC_NOWHERE ||
        strcmp(err.file, path) != 0) {
        printf("# %s: status %d (%s)\n", forgery->what, status, err.message);
        CU_FAIL("a forged file is not refused as documented");
    }
    if (status == SLC_OK) {
        slc_reader_close(reader);
    }
}

static void forged_headers(void)
{
    static const struct forgery forgeries[] = {
        {"magic", 0, 1, 0x88, SLC_ERR_FORMAT},
        {"magic", 7, 1, 0, SLC_ERR_FORMAT},
        {"major version", 8, 2, 2, SLC_ERR_UNSUPPORTED},
        {"major version", 8, 2, 0, SLC_ERR_UNSUPPORTED},
        {"header bytes", 12, 4, 8192, SLC_ERR_FORMAT},
        {"reserved bits", 16, 8, 1 << 18, SLC_ERR_UNSUPPORTED},
        {"run of the content sum", 16, 8, 1 << 16, SLC_ERR_FORMAT},
        {"run of the content sum", 114, 1, 1, SLC_ERR_FORMAT},
        {"whole fibers", 32, 1, 3, SLC_ERR_FORMAT},
        {"relabelled mode", 16, 8, 1 << 15, SLC_ERR_FORMAT},
        {"layout", 32, 1, 0, SLC_ERR_UNSUPPORTED},
        {"layout", 32, 1, 4, SLC_ERR_UNSUPPORTED},
        {"layout mode", 33, 1, 1, SLC_ERR_FORMAT},
        {"value type", 34, 1, 0, SLC_ERR_FORMAT},
        {"value type", 34, 1, 3, SLC_ERR_FORMAT},
        {"order", 35, 1, 0, SLC_ERR_UNSUPPORTED},
        {"order", 35, 1, 17, SLC_ERR_UNSUPPORTED},
        {"order", 35, 1, 255, SLC_ERR_UNSUPPORTED},
        {"codec", 36, 4, 0, SLC_ERR_UNSUPPORTED},
        {"codec", 36, 4, 4, SLC_ERR_UNSUPPORTED},
        {"nnz", 40, 8, 601, SLC_ERR_DAMAGED},
        {"nnz", 40, 8, 1, SLC_ERR_DAMAGED},
        {"nnz", 40, 8, UINT64_MAX, SLC_ERR_DAMAGED},
        {"sum of squares", 48, 8, 0, SLC_ERR_DAMAGED},
        {"block count", 56, 8, 0, SLC_ERR_DAMAGED},
        {"block count", 56, 8, UINT64_C(1) << 60, SLC_ERR_DAMAGED},
        {"block count", 56, 8, UINT64_MAX, SLC_ERR_DAMAGED},
        {"tile count", 64, 8, 0, SLC_ERR_DAMAGED},
        {"tile count", 64, 8, 599, SLC_ERR_DAMAGED},
        {"tile count", 64, 8, UINT64_MAX, SLC_ERR_DAMAGED},
        {"index offset", 72, 8, 0, SLC_ERR_DAMAGED},
        {"index offset", 72, 8, 4097, SLC_ERR_DAMAGED},
        {"index offset", 72, 8, UINT64_MAX - 4095, SLC_ERR_DAMAGED},
        {"index bytes", 80, 8, 0, SLC_ERR_DAMAGED},
        {"index bytes", 80, 8, UINT64_MAX - 4095, SLC_ERR_DAMAGED},
        {"index hash", 88, 8, 1, SLC_ERR_DAMAGED},
        {"file bytes", 96, 8, 8192, SLC_ERR_DAMAGED},
        {"file bytes", 96, 8, UINT64_MAX, SLC_ERR_DAMAGED},
        {"content sum", 104, 8, 1, SLC_ERR_DAMAGED},
        {"fiber mode", 112, 1, 1, SLC_ERR_FORMAT},
        {"fiber mode", 112, 1, 255, SLC_ERR_FORMAT},
        {"fiber bits", 113, 1, 25, SLC_ERR_FORMAT},
        {"fiber bits", 113, 1, 255, SLC_ERR_FORMAT},
        {"zeros", 114, 1, 1, SLC_ERR_FORMAT},
        {"zeros", 127, 1, 128, SLC_ERR_FORMAT},
        {"dims", 128, 8, 0, SLC_ERR_FORMAT},
        {"dims", 128, 8, (UINT64_C(1) << 62) + 1, SLC_ERR_FORMAT},
        {"dims", 152, 8, 1, SLC_ERR_FORMAT},
        {"dims", 248, 8, 1, SLC_ERR_FORMAT},
        {"zeros", 256, 1, 1, SLC_ERR_FORMAT},
        {"zeros", 4087, 1, 1, SLC_ERR_FORMAT},
    };
    struct slc_made_tensor tensor;
    struct slc_forged forged;

    for (size_t i = 0; i < SLC_COUNT(forgeries); i++) {
        write_sample(&tensor);
        slc_forged_load(&forged, path);
        put(forged.bytes + forgeries[i].at, &forgeries[i]);
        slc_forged_seal_frame(&forged);
        check_forgery(&forged, &forgeries[i]);
        slc_forged_release(&forged);
        slc_made_tensor_destroy(&tensor);
    }
}

/* A reader must accept a newer minor version and unknown optional bits. */
static void tolerated_headers(void)
{
    static const struct forgery forgeries[] = {
        {"minor version", 10, 2, 7, SLC_OK},
        {"optional bits", 24, 8, UINT64_MAX, SLC_OK},
    };
    struct slc_made_tensor tensor;
    struct slc_forged forged;

    for (size_t i = 0; i < SLC_COUNT(forgeries); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_reader *reader;

        write_sample(&tensor);
        slc_forged_load(&forged, path);
        put(forged.bytes + forgeries[i].at, &forgeries[i]);
        slc_forged_seal_frame(&forged);
        slc_forged_save(&forged, path);
        SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
        slc_reader_close(reader);
        slc_forged_release(&forged);
        slc_made_tensor_destroy(&tensor);
    }
}

static void forged_index(void)
{
    /* Offsets are within index entry 1 of a file of 3 modes. */
    static const struct forgery forgeries[] = {
        {"offset", 0, 8, 4096, SLC_ERR_DAMAGED},
        {"offset", 0, 8, UINT64_MAX - 4095, SLC_ERR_DAMAGED},
        {"bytes", 8, 8, 0, SLC_ERR_DAMAGED},
        {"bytes", 8, 8, UINT64_MAX, SLC_ERR_DAMAGED},
        {"bytes", 8, 8, UINT64_C(1) << 40, SLC_ERR_DAMAGED},
        {"bytes", 8, 8, 8193, SLC_ERR_DAMAGED},
        {"nnz", 16, 8, 0, SLC_ERR_DAMAGED},
        {"nnz", 16, 8, UINT64_MAX, SLC_ERR_DAMAGED},
        {"first tile", 32, 8, 0, SLC_ERR_DAMAGED},
        {"tile count", 40, 4, 0, SLC_ERR_DAMAGED},
        {"tile count", 40, 4, UINT32_MAX, SLC_ERR_DAMAGED},
        {"codec", 44, 4, 0, SLC_ERR_DAMAGED},
        {"codec", 44, 4, 9, SLC_ERR_DAMAGED},
        {"first key", 48, 8, 0, SLC_ERR_DAMAGED},
        {"first key", 56, 8, 1, SLC_ERR_DAMAGED},
        {"sum of squares", 64, 8, UINT64_C(0x7ff8000000000000), SLC_ERR_DAMAGED},
        {"sum of squares", 64, 8, UINT64_C(0xbff0000000000000), SLC_ERR_DAMAGED},
        {"sum of squares", 64, 8, 0, SLC_ERR_DAMAGED},
        {"content sum", 72, 8, 0, SLC_ERR_DAMAGED},
        {"partition", 80, 4, 1, SLC_ERR_DAMAGED},
        {"partition flags", 84, 4, 1, SLC_ERR_DAMAGED},
        {"partition flags", 84, 4, UINT32_C(1) << 31, SLC_ERR_DAMAGED},
        {"smallest", 96, 8, 70, SLC_ERR_DAMAGED},
        {"largest", 88 + 24 + 8, 8, 70, SLC_ERR_DAMAGED},
        {"largest", 88 + 24 + 16, 8, UINT64_MAX, SLC_ERR_DAMAGED},
    };
    struct slc_made_tensor tensor;
    struct slc_forged forged;

    for (size_t i = 0; i < SLC_COUNT(forgeries); i++) {
        write_sample(&tensor);
        slc_forged_load(&forged, path);
        put(forged.bytes + slc_forged_entry(&forged, 1) + forgeries[i].at, &forgeries[i]);
        slc_forged_seal(&forged);
        check_forgery(&forged, &forgeries[i]);
        slc_forged_release(&forged);
        slc_made_tensor_destroy(&tensor);
    }
    /* A byte in the padding of the index. */
    write_sample(&tensor);
    slc_forged_load(&forged, path);
    forged.bytes[forged.size - SLC_CLOSING_BYTES - 1] = 1;
    slc_forged_seal(&forged);
    check_forgery(&forged, &(struct forgery){"padding", 0, 0, 0, SLC_ERR_DAMAGED});
    slc_forged_release(&forged);
    slc_made_tensor_destroy(&tensor);
}

static void forged_closing_page(void)
{
    static const uint32_t places[] = {0, 8, 16, 24, 32, 40, 48, 4087, 4088};
    struct slc_made_tensor tensor;
    struct slc_forged forged;

    for (size_t i = 0; i < SLC_COUNT(places); i++) {
        uint8_t *closing;

        write_sample(&tensor);
        slc_forged_load(&forged, path);
        closing = forged.bytes + forged.size - SLC_CLOSING_BYTES;
        closing[places[i]] ^= 0x10;
        if (places[i] != SLC_CLOSING_HASH) {
            slc_store_u64(closing + SLC_CLOSING_HASH, slc_hash64(closing, SLC_CLOSING_HASH));
        }
        check_forgery(&forged, &(struct forgery){"closing page", 0, 0, 0, SLC_ERR_DAMAGED});
        slc_forged_release(&forged);
        slc_made_tensor_destroy(&tensor);
    }
}

/* Opens block 1 of a forged file, which must open as a file. */
static void check_forged_block(const struct slc_forged *forged, const char *what)
{
    const uint8_t *data = forged->bytes + slc_forged_block(forged, 1);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_reader *reader = NULL;
    struct slc_block_view view;

    slc_forged_save(forged, path);
    SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
    if (reader == NULL) {
        return;
    }
    if (slc_block_open(reader, 1, data, false, &view, &err) != SLC_ERR_DAMAGED || err.block != 1 ||
        err.offset < view.entry.offset ||
        err.offset >= view.entry.offset + view.entry.padded_bytes) {
        printf("# %s: %s\n", what, err.message);
        CU_FAIL("a forged block is not refused as documented");
    }
    slc_reader_close(reader);
}

static void forged_blocks(void)
{
    /* Offsets within the block; the directory begins at 64, entries have 104 bytes. */
    static const struct forgery forgeries[] = {
        {"magic", 0, 4, 0, SLC_ERR_DAMAGED},
        {"codec", 4, 2, 2, SLC_ERR_DAMAGED},
        {"reserved", 6, 2, 1, SLC_ERR_DAMAGED},
        {"ordinal", 8, 8, 0, SLC_ERR_DAMAGED},
        {"nnz", 16, 8, 1, SLC_ERR_DAMAGED},
        {"tile count", 24, 4, 1, SLC_ERR_DAMAGED},
        {"entry bytes", 28, 4, 96, SLC_ERR_DAMAGED},
        {"first tile", 32, 8, 0, SLC_ERR_DAMAGED},
        {"zeros", 40, 1, 1, SLC_ERR_DAMAGED},
        {"zeros", 63, 1, 1, SLC_ERR_DAMAGED},
        {"data offset", 64, 8, 64, SLC_ERR_DAMAGED},
        {"data offset", 64, 8, UINT64_MAX - 7, SLC_ERR_DAMAGED},
        {"data bytes", 72, 4, 0, SLC_ERR_DAMAGED},
        {"data bytes", 72, 4, UINT32_MAX - 7, SLC_ERR_DAMAGED},
        {"nnz", 76, 4, 0, SLC_ERR_DAMAGED},
        {"nnz", 76, 4, 65537, SLC_ERR_DAMAGED},
        {"nnz", 76, 4, UINT32_MAX, SLC_ERR_DAMAGED},
        {"first key", 80, 8, 0, SLC_ERR_DAMAGED},
        {"first key", 88, 8, 1, SLC_ERR_DAMAGED},
        {"last key", 96, 8, 0, SLC_ERR_DAMAGED},
        {"last key", 104, 8, UINT64_MAX, SLC_ERR_DAMAGED},
        {"sum of squares", 112, 8, 0, SLC_ERR_DAMAGED},
        {"content sum", 120, 8, 0, SLC_ERR_DAMAGED},
        {"corner", 136, 8, 71, SLC_ERR_DAMAGED},
        {"corner", 128, 8, UINT64_MAX, SLC_ERR_DAMAGED},
        {"extent", 152, 4, UINT32_MAX, SLC_ERR_DAMAGED},
        {"extent", 156, 4, 70, SLC_ERR_DAMAGED},
        {"entry padding", 164, 4, 1, SLC_ERR_DAMAGED},
    };
    struct slc_made_tensor tensor;
    struct slc_forged forged;

    for (size_t i = 0; i < SLC_COUNT(forgeries); i++) {
        write_sample(&tensor);
        slc_forged_load(&forged, path);
        put(forged.bytes + slc_forged_block(&forged, 1) + forgeries[i].at, &forgeries[i]);
        slc_forged_seal(&forged);
        check_forged_block(&forged, forgeries[i].what);
        slc_forged_release(&forged);
        slc_made_tensor_destroy(&tensor);
    }
    /* The last bytes of the slack and of the padding. */
    for (unsigned i = 0; i < 2; i++) {
        uint64_t bytes;

        write_sample(&tensor);
        slc_forged_load(&forged, path);
        bytes = slc_load_u64(forged.bytes + slc_forged_entry(&forged, 1) + SLC_INDEX_BYTES);
        bytes = i == 0 ? bytes : (bytes + 4095) / 4096 * 4096;
        forged.bytes[slc_forged_block(&forged, 1) + bytes - 1] = 1;
        slc_forged_seal(&forged);
        check_forged_block(&forged, "slack or padding");
        slc_forged_release(&forged);
        slc_made_tensor_destroy(&tensor);
    }
    /* An unsealed change is detected by the checksum, unless the caller declares the block as
     * verified. */
    write_sample(&tensor);
    slc_forged_load(&forged, path);
    forged.bytes[slc_forged_block(&forged, 1) + 5000] ^= 1;
    check_forged_block(&forged, "checksum");
    slc_forged_release(&forged);
    slc_made_tensor_destroy(&tensor);
}

/* A file of any other length is rejected, and so is a foreign file. */
static void wrong_lengths(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_reader *reader = NULL;
    struct slc_made_tensor tensor;
    struct slc_forged forged;
    uint64_t whole;

    write_sample(&tensor);
    slc_forged_load(&forged, path);
    whole = forged.size;
    forged.bytes = realloc(forged.bytes, whole + 8192);
    CU_ASSERT_FATAL(forged.bytes != NULL);
    memset(forged.bytes + whole, 0, 8192);
    for (uint64_t size = 0; size <= whole + 8192; size += size < 64 ? 1 : 997) {
        enum slc_status status;

        if (size == whole) {
            continue;
        }
        forged.size = size;
        slc_forged_save(&forged, path);
        slc_error_clear(&err);
        status = slc_reader_open(NULL, path, &reader, &err);
        CU_ASSERT_EQUAL(status, size < 8 ? SLC_ERR_FORMAT : SLC_ERR_DAMAGED);
    }
    for (unsigned page = 1; page < 3; page++) {
        forged.size = whole - page * SLC_PAGE_BYTES;
        slc_forged_save(&forged, path);
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_reader_open(NULL, path, &reader, &err), SLC_ERR_DAMAGED, &err,
                         "truncated");
    }
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_reader_open(NULL, slc_test_folder(), &reader, &err), SLC_ERR_FORMAT, &err,
                     "plain file");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_reader_open(NULL, "/nonexistent/x", &reader, &err), SLC_ERR_IO, &err,
                     "opening");
    slc_forged_release(&forged);
    slc_made_tensor_destroy(&tensor);
}

/* A verified block is not hashed again, but its structure is still checked. */
static void verified_blocks(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_reader *reader = NULL;
    struct slc_made_tensor tensor;
    struct slc_block_view view;
    struct slc_forged forged;
    uint8_t *data;

    write_sample(&tensor);
    slc_forged_load(&forged, path);
    data = forged.bytes + slc_forged_block(&forged, 1);
    SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
    data[5000] ^= 1; /* a byte in the data of a tile */
    SLC_ASSERT_OK(slc_block_open(reader, 1, data, true, &view, &err), &err);
    SLC_ASSERT_FAILS(slc_block_open(reader, 1, data, false, &view, &err), SLC_ERR_DAMAGED, &err,
                     "checksum");
    slc_error_clear(&err);
    data[0] ^= 1;
    SLC_ASSERT_FAILS(slc_block_open(reader, 1, data, true, &view, &err), SLC_ERR_DAMAGED, &err,
                     "magic");
    slc_reader_close(reader);
    slc_forged_release(&forged);
    slc_made_tensor_destroy(&tensor);
}

/* A header that is consistent with a sparse file: the index that it claims needs memory, which a
 * budget rejects before reading it; and reading it ends with the first piece, in which no block has
 * a valid position. */
static void huge_index(void)
{
    const uint64_t blocks = 100000, entry_bytes = slc_index_entry_bytes(3);
    const uint64_t index_bytes =
        (blocks * entry_bytes + SLC_PAGE_BYTES - 1) / SLC_PAGE_BYTES * SLC_PAGE_BYTES;
    const uint64_t index_offset = (1 + blocks) * SLC_PAGE_BYTES;
    struct slc_forged frame = {.size = SLC_HEADER_BYTES + SLC_CLOSING_BYTES};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_reader *reader = NULL;
    struct slc_forged whole;
    FILE *file;

    write_sample(&tensor);
    slc_made_tensor_destroy(&tensor);
    slc_forged_load(&whole, path);
    frame.bytes = malloc(frame.size);
    memcpy(frame.bytes, whole.bytes, SLC_HEADER_BYTES);
    memcpy(frame.bytes + SLC_HEADER_BYTES, whole.bytes + whole.size - SLC_CLOSING_BYTES,
           SLC_CLOSING_BYTES);
    slc_forged_release(&whole);
    slc_store_u64(frame.bytes + SLC_HEADER_NNZ, blocks);
    slc_store_u64(frame.bytes + SLC_HEADER_TILE_COUNT, blocks);
    slc_store_u64(frame.bytes + SLC_HEADER_BLOCK_COUNT, blocks);
    slc_store_u64(frame.bytes + SLC_HEADER_INDEX_OFFSET, index_offset);
    slc_store_u64(frame.bytes + SLC_HEADER_INDEX_BYTES, index_bytes);
    slc_store_u64(frame.bytes + SLC_HEADER_FILE_BYTES,
                  index_offset + index_bytes + SLC_CLOSING_BYTES);
    slc_forged_seal_frame(&frame);
    slc_forged_save(&frame, path);
    slc_forged_resize(path, SLC_HEADER_BYTES);
    slc_forged_resize(path, index_offset + index_bytes + SLC_CLOSING_BYTES);
    file = fopen(path, "r+b");
    CU_ASSERT_FATAL(file != NULL);
    CU_ASSERT(fseek(file, (long)(index_offset + index_bytes), SEEK_SET) == 0);
    CU_ASSERT(fwrite(frame.bytes + SLC_HEADER_BYTES, SLC_CLOSING_BYTES, 1, file) == 1);
    CU_ASSERT(fclose(file) == 0);
    SLC_ASSERT_FAILS(slc_reader_open_within(NULL, path, UINT64_C(1) << 20, &reader, &err),
                     SLC_ERR_BUDGET, &err, "the index of 100000 blocks needs 13 MiB of memory");
    CU_ASSERT_STRING_EQUAL(err.file, path);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_reader_open_within(NULL, path, UINT64_C(16) << 20, &reader, &err),
                     SLC_ERR_DAMAGED, &err, "the index has the block at offset 0 instead of 4096");
    CU_ASSERT_EQUAL(err.offset, index_offset);
    slc_forged_release(&frame);
}

static const struct slc_test tests[] = {
    {"forged headers get the documented status", forged_headers},
    {"newer minor versions and optional bits are accepted", tolerated_headers},
    {"forged index entries are refused", forged_index},
    {"a wrong closing page is refused", forged_closing_page},
    {"an index beyond the budget is refused unread", huge_index},
    {"forged blocks are refused", forged_blocks},
    {"verified blocks are not hashed again", verified_blocks},
    {"a cut, extended or foreign file is refused", wrong_lengths},
};

SLC_SUITE(block_forged)
{
    return slc_test_main("forged block file", tests, SLC_COUNT(tests), argc, argv);
}
