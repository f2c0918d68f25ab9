/* Block files: data is read back bit for bit; the split into blocks follows the rule; forged
 * headers, indexes and directories are rejected with the documented status; faults of memory and
 * disk leave no files. */
#include "faulty_files.h"
#include "make_store.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/bytes.h"
#include "base/random.h"
#include "storage/block/reader.h"
#include "storage/codec/block_layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[256];

/* A new path for a block file. */
static const char *new_path(void)
{
    snprintf(path, sizeof path, "%s/x.blk", slc_test_folder());
    return path;
}

/* Reads block `block` into new memory and opens it. */
static enum slc_status open_block(const struct slc_reader *reader,
                                  uint64_t block,
                                  uint8_t **data,
                                  struct slc_block_view *view,
                                  struct slc_error *err)
{
    struct slc_block_entry entry;
    FILE *file = fopen(slc_reader_path(reader), "rb");

    slc_reader_entry(reader, block, &entry);
    *data = malloc(entry.padded_bytes);
    CU_ASSERT_FATAL(file != NULL && *data != NULL);
    CU_ASSERT_EQUAL_FATAL(fseek(file, (long)entry.offset, SEEK_SET), 0);
    CU_ASSERT_EQUAL_FATAL(fread(*data, 1, entry.padded_bytes, file), entry.padded_bytes);
    (void)fclose(file);
    return slc_block_open(reader, block, *data, false, view, err);
}

/* Compares the nonzeros of an open block with those of the tensor from ordinal `at` on. */
static uint64_t compare_block(const struct slc_made_tensor *tensor,
                              const struct slc_block_view *view,
                              struct slc_decoder *decoder,
                              uint64_t at)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t wrong = 0;

    for (uint32_t index = 0; index < view->entry.tile_count; index++) {
        struct slc_tile_view tile;
        struct slc_chunk_view chunk;

        SLC_ASSERT_OK(slc_tile_open(decoder, view, index, &tile, &err), &err);
        for (;;) {
            SLC_ASSERT_OK(tile.next(&tile, 1024, &chunk, &err), &err);
            if (err.status != SLC_OK || chunk.nnz == 0) {
                break;
            }
            for (uint32_t i = 0; i < chunk.nnz; i++, at++) {
                uint64_t coords[SLC_MAX_ORDER];

                slc_key_decode(&tensor->keys,
                               (slc_u128)tensor->key_hi[at] << 64 | tensor->key_lo[at], coords);
                for (unsigned mode = 0; mode < tensor->order; mode++) {
                    wrong += coords[mode] != tile.corner[mode] + chunk.offset[mode][i];
                }
                wrong += slc_bits_f64(tensor->values[at]) !=
                         slc_bits_f64(((const double *)chunk.values)[i]);
            }
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    return at;
}

/* Writes a tensor, reads it back and compares everything. */
static void
round_trip(const struct slc_made_tensor *tensor, enum slc_codec codec, uint64_t block_bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;
    struct slc_reader *reader;
    struct slc_decoder *decoder;
    const struct slc_layout_info *info;
    uint64_t nnz = 0;
    uint64_t largest = 0;

    SLC_ASSERT_OK(
        slc_made_blocks_write(tensor, NULL, new_path(), codec, block_bytes, &summary, &err), &err);
    SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
    if (err.status != SLC_OK) {
        return;
    }
    info = slc_reader_info(reader);
    SLC_ASSERT_OK(slc_decoder_create(info, SLC_F64, &decoder, &err), &err);
    CU_ASSERT_EQUAL(info->nnz, tensor->nnz);
    CU_ASSERT_EQUAL(info->nnz, summary.nnz);
    CU_ASSERT_EQUAL(info->block_count, summary.block_count);
    CU_ASSERT_EQUAL(info->tile_count, summary.tile_count);
    CU_ASSERT_EQUAL(info->file_bytes, summary.file_bytes);
    CU_ASSERT_EQUAL(info->content_sum, summary.content_sum);
    CU_ASSERT_EQUAL(info->header_hash, summary.header_hash);
    CU_ASSERT_EQUAL(info->value_type, summary.value_type);
    CU_ASSERT_EQUAL(info->order, tensor->order);
    CU_ASSERT_EQUAL(memcmp(info->dims, tensor->dims, sizeof info->dims), 0);
    CU_ASSERT_EQUAL(memcmp(&info->keys, &tensor->keys, sizeof info->keys), 0);
    for (uint64_t block = 0; block < info->block_count; block++) {
        struct slc_block_view view;
        uint8_t *data;

        SLC_ASSERT_OK(open_block(reader, block, &data, &view, &err), &err);
        if (err.status == SLC_OK) {
            nnz = compare_block(tensor, &view, decoder, nnz);
            largest = view.entry.padded_bytes > largest ? view.entry.padded_bytes : largest;
        }
        free(data);
    }
    CU_ASSERT_EQUAL(nnz, tensor->nnz);
    CU_ASSERT_EQUAL(info->max_block_bytes, largest);
    slc_decoder_destroy(decoder);
    slc_reader_close(reader);
}

static void random_tensors(void)
{
    uint64_t seed = slc_test_seed();

    for (uint64_t round = 0; round < 40; round++) {
        unsigned order = 1 + (unsigned)slc_random_below(seed, 1, round, SLC_MAX_ORDER);
        unsigned most_bits = 128 / order < 36 ? 128 / order : 36;
        uint64_t dims[SLC_MAX_ORDER];
        struct slc_made_tensor tensor;

        for (unsigned mode = 0; mode < order; mode++) {
            uint64_t draw = round * SLC_MAX_ORDER + mode;
            unsigned bits = (unsigned)slc_random_below(seed, 2, draw, most_bits + 1);

            dims[mode] = 1 + slc_random_below(seed, 3, draw, UINT64_C(1) << bits);
        }
        slc_made_tensor_create(&tensor, order, dims, 1 + slc_random_below(seed, 4, round, 3000),
                               (enum slc_made_values)(round % SLC_MADE_VALUES), seed + round);
        round_trip(&tensor, (enum slc_codec)(1 + round % 3), SLC_MIN_BLOCK_BYTES);
        slc_made_tensor_destroy(&tensor);
    }
}

static void many_tiles(void)
{
    const uint64_t dims[3] = {3000, 2000, 500};
    const uint64_t sizes[] = {SLC_MIN_BLOCK_BYTES, 300000, 1 << 20, 0};
    struct slc_made_tensor tensor;

    slc_made_tensor_create(&tensor, 3, dims, 400000, SLC_MADE_COUNTS, slc_test_seed());
    for (size_t i = 0; i < SLC_COUNT(sizes); i++) {
        round_trip(&tensor, SLC_CODEC_PACKED, sizes[i]);
    }
    slc_made_tensor_destroy(&tensor);
}

static void edges(void)
{
    const uint64_t ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const uint64_t wide[2] = {UINT64_C(1) << 62, UINT64_C(1) << 62};
    const uint64_t rows[1] = {UINT64_C(5) << 30};
    struct slc_made_tensor tensor;

    slc_made_tensor_create(&tensor, 16, ones, 1, SLC_MADE_ONES, 1);
    round_trip(&tensor, SLC_CODEC_PACKED, 0);
    slc_made_tensor_destroy(&tensor);
    slc_made_tensor_create(&tensor, 1, ones, 0, SLC_MADE_ONES, 1);
    round_trip(&tensor, SLC_CODEC_PACKED, 0);
    slc_made_tensor_destroy(&tensor);
    /* Each nonzero has its own tile, because it is too far from the next. */
    slc_made_tensor_create(&tensor, 2, wide, 200, SLC_MADE_DOUBLES, 1);
    round_trip(&tensor, SLC_CODEC_LZ4, 0);
    slc_made_tensor_destroy(&tensor);
    slc_made_tensor_create(&tensor, 1, rows, 500, SLC_MADE_FLOATS, 1);
    round_trip(&tensor, SLC_CODEC_PACKED, 0);
    slc_made_tensor_destroy(&tensor);
}

/* The file of an empty tensor has two pages. */
static void empty_file(void)
{
    const uint64_t dims[2] = {4, 5};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;
    struct slc_made_tensor tensor;

    slc_made_tensor_create(&tensor, 2, dims, 0, SLC_MADE_ONES, 1);
    SLC_ASSERT_OK(
        slc_made_blocks_write(&tensor, NULL, new_path(), SLC_CODEC_LZ4, 0, &summary, &err), &err);
    CU_ASSERT_EQUAL(summary.file_bytes, 2 * SLC_PAGE_BYTES);
    CU_ASSERT_EQUAL(summary.block_count, 0);
    CU_ASSERT_EQUAL(summary.nnz, 0);
    CU_ASSERT_EQUAL(summary.value_type, SLC_F32);
    slc_made_tensor_destroy(&tensor);
}

/* A block is as large as the target allows, and larger only if it holds one tile. */
static void cutting(void)
{
    const uint64_t dims[2] = {UINT64_C(1) << 40, 3};
    const uint64_t target = 8192;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;
    struct slc_made_tensor tensor;
    struct slc_reader *reader;
    struct slc_block_entry entry;
    uint64_t over = 0;
    uint64_t small = 0;

    slc_made_tensor_create(&tensor, 2, dims, 2000, SLC_MADE_ONES, slc_test_seed());
    SLC_ASSERT_OK(
        slc_made_blocks_write(&tensor, NULL, new_path(), SLC_CODEC_PACKED, target, &summary, &err),
        &err);
    SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
    CU_ASSERT(summary.block_count > 2);
    for (uint64_t block = 0; block < summary.block_count; block++) {
        uint64_t next_tile_bytes;

        slc_reader_entry(reader, block, &entry);
        over += entry.bytes > target && entry.tile_count > 1;
        if (block + 1 < summary.block_count) {
            struct slc_block_view view;
            struct slc_tile_entry tile;
            uint8_t *data;

            SLC_ASSERT_OK(open_block(reader, block + 1, &data, &view, &err), &err);
            slc_tile_entry_load(data + SLC_BLOCK_HEADER_BYTES, 2, &tile);
            next_tile_bytes = tile.data_bytes + slc_tile_entry_bytes(2);
            small += entry.bytes + next_tile_bytes <= target;
            free(data);
        }
    }
    CU_ASSERT_EQUAL(over, 0);
    CU_ASSERT_EQUAL(small, 0);
    slc_reader_close(reader);
    slc_made_tensor_destroy(&tensor);
}

static void bad_options(void)
{
    const uint64_t dims[2] = {4, 5};
    const uint64_t huge[3] = {UINT64_C(1) << 62, UINT64_C(1) << 62, UINT64_C(1) << 62};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_options options = {.path = new_path(),
                                         .layout = SLC_LAYOUT_BLCO,
                                         .order = 2,
                                         .dims = dims,
                                         .codec = SLC_CODEC_PACKED,
                                         .block_bytes = 4095};
    struct slc_writer *writer = NULL;

    SLC_ASSERT_FAILS(slc_writer_open(&options, &writer, &err), SLC_ERR_USAGE, &err, "4095");
    slc_error_clear(&err);
    options.block_bytes = SLC_MAX_BLOCK_BYTES + 1;
    SLC_ASSERT_FAILS(slc_writer_open(&options, &writer, &err), SLC_ERR_USAGE, &err, "1073741825");
    slc_error_clear(&err);
    options.block_bytes = 0;
    options.layout_mode = 1;
    SLC_ASSERT_FAILS(slc_writer_open(&options, &writer, &err), SLC_ERR_USAGE, &err, "mode 2");
    slc_error_clear(&err);
    options.layout_mode = 0;
    options.order = 3;
    options.dims = huge;
    SLC_ASSERT_FAILS(slc_writer_open(&options, &writer, &err), SLC_ERR_UNSUPPORTED, &err, "186");
    slc_error_clear(&err);
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    options.order = 2;
    options.dims = dims;
    SLC_ASSERT_OK(slc_writer_open(&options, &writer, &err), &err);
    /* A second writer must not change the file of the first. */
    {
        struct slc_writer *second = NULL;

        SLC_ASSERT_FAILS(slc_writer_open(&options, &second, &err), SLC_ERR_IO, &err, "creating");
        CU_ASSERT_EQUAL(err.system_errno, EEXIST);
    }
    slc_writer_abandon(writer);
    slc_writer_abandon(NULL);
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
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

/* Every failing file operation of the writer is reported, and the file is removed. */
static void writer_faults(void)
{
    static const struct {
        enum slc_faulty_kind kind;
        int error;
        enum slc_status want;
    } cases[] = {
        {SLC_FAULTY_OPEN, EACCES, SLC_ERR_IO},       {SLC_FAULTY_WRITE, EIO, SLC_ERR_IO},
        {SLC_FAULTY_WRITE, ENOSPC, SLC_ERR_NOSPACE}, {SLC_FAULTY_WRITE, EDQUOT, SLC_ERR_NOSPACE},
        {SLC_FAULTY_SYNC, EIO, SLC_ERR_IO},          {SLC_FAULTY_CLOSE, EIO, SLC_ERR_IO},
    };
    struct slc_made_tensor tensor;
    struct slc_writer_summary summary;
    struct slc_faulty faulty;

    write_sample(&tensor);
    slc_faulty_init(&faulty);
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        uint64_t k = 1;

        for (;; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;

            new_path();
            slc_faulty_fail(&faulty, cases[i].kind, k, cases[i].error);
            status = slc_made_blocks_write(&tensor, &faulty.table, path, SLC_CODEC_LZ4, 4096,
                                           &summary, &err);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            CU_ASSERT_EQUAL(status, cases[i].want);
            CU_ASSERT_EQUAL(err.system_errno, cases[i].error);
            CU_ASSERT_STRING_EQUAL(err.file, path);
            CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        }
        CU_ASSERT(k > 1);
    }
    slc_made_tensor_destroy(&tensor);
}

/* Writes to a disk that fills up, and to a disk that transfers only a few bytes at a time. */
static void writer_disk(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor;
    struct slc_writer_summary summary;
    struct slc_faulty faulty;
    struct slc_reader *reader;

    write_sample(&tensor);
    slc_faulty_init(&faulty);
    for (uint64_t room = 0; room < 40000; room += 3001) {
        slc_error_clear(&err);
        new_path();
        slc_faulty_limit_room(&faulty, room);
        SLC_ASSERT_FAILS(
            slc_made_blocks_write(&tensor, &faulty.table, path, SLC_CODEC_BLCO, 0, &summary, &err),
            SLC_ERR_NOSPACE, &err, "writing");
        CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    }
    slc_error_clear(&err);
    new_path();
    slc_faulty_shorten(&faulty, SLC_FAULTY_WRITE, 1, 1000);
    SLC_ASSERT_OK(
        slc_made_blocks_write(&tensor, &faulty.table, path, SLC_CODEC_PACKED, 0, &summary, &err),
        &err);
    slc_faulty_shorten(&faulty, SLC_FAULTY_READ, 1, 100);
    SLC_ASSERT_OK(slc_reader_open(&faulty.table, path, &reader, &err), &err);
    slc_reader_close(reader);
    slc_made_tensor_destroy(&tensor);
}

static void reader_faults(void)
{
    static const enum slc_faulty_kind kinds[] = {SLC_FAULTY_OPEN, SLC_FAULTY_STAT, SLC_FAULTY_READ};
    struct slc_made_tensor tensor;
    struct slc_faulty faulty;

    write_sample(&tensor);
    slc_faulty_init(&faulty);
    for (size_t i = 0; i < SLC_COUNT(kinds); i++) {
        for (uint64_t k = 1;; k++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_reader *reader = NULL;
            enum slc_status status;

            slc_faulty_fail(&faulty, kinds[i], k, EIO);
            status = slc_reader_open(&faulty.table, path, &reader, &err);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
            if (!slc_faulty_fired(&faulty)) {
                SLC_ASSERT_OK(status, &err);
                CU_ASSERT(k > 1);
                slc_reader_close(reader);
                break;
            }
            CU_ASSERT_EQUAL(status, SLC_ERR_IO);
            CU_ASSERT_STRING_EQUAL(err.file, path);
        }
    }
    /* Bits flipped on the way from the disk are detected. The first read only checks for a list
     * of stripes; its bytes are read again. */
    for (uint64_t k = 2; k <= 4; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_reader *reader = NULL;

        slc_faulty_flip(&faulty, k, 12345 + k);
        CU_ASSERT_EQUAL(slc_reader_open(&faulty.table, path, &reader, &err), SLC_ERR_DAMAGED);
    }
    slc_made_tensor_destroy(&tensor);
}

/* Every allocation of writer and reader fails once. */
static void memory_faults(void)
{
    struct slc_made_tensor tensor;
    struct slc_writer_summary summary;

    write_sample(&tensor);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        enum slc_status status;

        new_path();
        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_made_blocks_write(&tensor, NULL, path, SLC_CODEC_PACKED, 4096, &summary, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT(k > 5);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
        CU_ASSERT_EQUAL(err.status, SLC_ERR_MEMORY);
        CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    }
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_reader *reader = NULL;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_reader_open(NULL, path, &reader, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            slc_reader_close(reader);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    slc_made_tensor_destroy(&tensor);
}

static const struct slc_test tests[] = {
    {"random tensors come back bit for bit", random_tensors},
    {"many tiles in blocks of several sizes", many_tiles},
    {"one nonzero, none, 16 modes, the longest modes", edges},
    {"an empty tensor is two pages", empty_file},
    {"blocks are cut at the target size", cutting},
    {"options out of range, an existing file", bad_options},
    {"every failing operation of the writer", writer_faults},
    {"a full disk, short transfers", writer_disk},
    {"every failing operation of the reader", reader_faults},
    {"every failing allocation", memory_faults},
};

SLC_SUITE(block_file)
{
    return slc_test_main("block file", tests, SLC_COUNT(tests), argc, argv);
}
