/* Block files of layout sorted-n: partitions are read back as written, every nonzero in the
 * partition of its row; forged partitions are rejected; faults of memory and disk leave no
 * files. */
#include "faulty_files.h"
#include "forge_file.h"
#include "make_sorted.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/bytes.h"
#include "base/random.h"
#include "storage/block/file_layout.h"
#include "storage/block/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[256];

static const char *new_path(void)
{
    snprintf(path, sizeof path, "%s/sorted.blk", slc_test_folder());
    return path;
}

/* Decodes block `block` and compares it with the nonzeros from ordinal `at` on. */
static uint64_t compare_block(const struct slc_reader *reader,
                              uint64_t block,
                              const struct slc_forged *file,
                              struct slc_decoder *decoder,
                              const struct slc_made_tensor *tensor,
                              uint64_t at)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_block_entry entry;
    struct slc_block_view view;
    uint64_t wrong = 0;

    slc_reader_entry(reader, block, &entry);
    SLC_ASSERT_OK(slc_block_open(reader, block, file->bytes + entry.offset, false, &view, &err),
                  &err);
    for (uint32_t index = 0; index < entry.tile_count && err.status == SLC_OK; index++) {
        struct slc_tile_view tile;
        struct slc_chunk_view chunk;

        SLC_ASSERT_OK(slc_tile_open(decoder, &view, index, &tile, &err), &err);
        while (err.status == SLC_OK && tile.next(&tile, 1024, &chunk, &err) == SLC_OK &&
               chunk.nnz > 0) {
            for (uint32_t i = 0; i < chunk.nnz; i++, at++) {
                uint64_t coords[SLC_MAX_ORDER];

                slc_key_decode(&tensor->keys, slc_key_join(tensor->key_lo[at], tensor->key_hi[at]),
                               coords);
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

/* Compares the reader's partition `p` with the written one. */
static void compare_partition(const struct slc_reader *reader,
                              const struct slc_made_sorted *sorted,
                              uint64_t p,
                              const struct slc_partition *partition)
{
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    uint64_t bytes = 0;

    for (uint64_t i = sorted->begin[p]; i < sorted->begin[p + 1]; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        slc_key_decode(&sorted->tensor.keys,
                       slc_key_join(sorted->tensor.key_lo[i], sorted->tensor.key_hi[i]), coords);
        low = coords[sorted->mode] < low ? coords[sorted->mode] : low;
        high = coords[sorted->mode] > high ? coords[sorted->mode] : high;
    }
    for (uint64_t block = 0; block < partition->block_count; block++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, partition->first_block + block, &entry);
        CU_ASSERT_EQUAL(entry.partition, p);
        CU_ASSERT_EQUAL(entry.continued, sorted->continued[p]);
        bytes += entry.padded_bytes;
    }
    CU_ASSERT_EQUAL(partition->nnz, sorted->begin[p + 1] - sorted->begin[p]);
    CU_ASSERT_EQUAL(partition->first_row, low);
    CU_ASSERT_EQUAL(partition->last_row, high);
    CU_ASSERT_EQUAL(partition->continued, sorted->continued[p]);
    CU_ASSERT_EQUAL(partition->padded_bytes, bytes);
}

/* Writes a tensor sorted by `mode`, reads it back and compares everything. */
static void round_trip(const struct slc_made_tensor *tensor,
                       unsigned mode,
                       uint64_t target_nnz,
                       enum slc_codec codec,
                       uint64_t block_bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;
    struct slc_reader *reader = NULL;
    struct slc_decoder *decoder = NULL;
    struct slc_made_sorted sorted;
    struct slc_forged file;
    const struct slc_layout_info *info;
    uint64_t at = 0;
    uint64_t block = 0;
    uint64_t most_nnz = 0;
    uint64_t most_bytes = 0;

    slc_made_sorted_create(&sorted, tensor, mode, target_nnz);
    SLC_ASSERT_OK(
        slc_made_sorted_write(&sorted, NULL, new_path(), codec, block_bytes, &summary, &err), &err);
    SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(reader);
    info = slc_reader_info(reader);
    SLC_ASSERT_OK(slc_decoder_create(info, SLC_F64, &decoder, &err), &err);
    slc_forged_load(&file, path);
    CU_ASSERT_EQUAL(info->layout, SLC_LAYOUT_SORTED);
    CU_ASSERT_EQUAL(info->layout_mode, mode);
    CU_ASSERT_EQUAL(info->nnz, tensor->nnz);
    CU_ASSERT_EQUAL(info->partition_count, sorted.partition_count);
    for (uint64_t p = 0; p < info->partition_count; p++) {
        struct slc_partition partition;

        slc_reader_partition(reader, p, &partition);
        CU_ASSERT_EQUAL(partition.first_block, block);
        compare_partition(reader, &sorted, p, &partition);
        for (; block < partition.first_block + partition.block_count; block++) {
            at = compare_block(reader, block, &file, decoder, &sorted.tensor, at);
        }
        CU_ASSERT_EQUAL(at, sorted.begin[p + 1]);
        most_nnz = partition.nnz > most_nnz ? partition.nnz : most_nnz;
        most_bytes = partition.padded_bytes > most_bytes ? partition.padded_bytes : most_bytes;
    }
    CU_ASSERT_EQUAL(block, info->block_count);
    CU_ASSERT_EQUAL(info->max_partition_nnz, most_nnz);
    CU_ASSERT_EQUAL(info->max_partition_bytes, most_bytes);
    slc_forged_release(&file);
    slc_decoder_destroy(decoder);
    slc_reader_close(reader);
    slc_made_sorted_destroy(&sorted);
}

/* Makes a round trip with keys of another run, which do not change the content sum. */
static void round_trip_rekeyed(const struct slc_made_tensor *tensor,
                               struct slc_fiber_run run,
                               unsigned mode,
                               enum slc_codec codec)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary plain, other;
    struct slc_made_tensor rekeyed;
    struct slc_made_sorted sorted;

    slc_made_tensor_rekey(tensor, run, &rekeyed);
    round_trip(&rekeyed, mode, 500, codec, SLC_MIN_BLOCK_BYTES);
    SLC_ASSERT_OK(slc_made_blocks_write(tensor, NULL, new_path(), codec, 0, &plain, &err), &err);
    slc_made_sorted_create(&sorted, &rekeyed, mode, 500);
    SLC_ASSERT_OK(slc_made_sorted_write(&sorted, NULL, new_path(), codec, 0, &other, &err), &err);
    CU_ASSERT_EQUAL(plain.content_sum, other.content_sum);
    slc_made_sorted_destroy(&sorted);
    slc_made_tensor_destroy(&rekeyed);
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
        round_trip(&tensor, (unsigned)slc_random_below(seed, 5, round, order),
                   1 + slc_random_below(seed, 6, round, 700), (enum slc_codec)(1 + round % 3),
                   SLC_MIN_BLOCK_BYTES);
        round_trip_rekeyed(&tensor,
                           (struct slc_fiber_run){
                               (unsigned)slc_random_below(seed, 7, round, order),
                               (unsigned)slc_random_below(seed, 8, round, SLC_FIBER_BITS_MAX + 1)},
                           (unsigned)slc_random_below(seed, 5, round, order),
                           (enum slc_codec)(1 + round % 3));
        slc_made_tensor_destroy(&tensor);
    }
}

/* The header's run of the keys of content sums. */
static void content_runs(void)
{
    /* Three modes of 4, 5 and 6 bits; the file's run has 2 bits of mode 3, the sum's 3 of mode
     * 2. */
    static const struct {
        uint64_t reserved;
        uint8_t mode, bits;
        enum slc_status want;
        const char *text;
    } cases[] = {
        {SLC_CONTENT_RUN_BIT, 1, 3, SLC_OK, ""},
        {SLC_CONTENT_RUN_BIT, 0, 0, SLC_OK, ""}, /* no nonzero shows the difference */
        {SLC_CONTENT_RUN_BIT, 2, 2, SLC_ERR_FORMAT, "the fiber run of the file"},
        {SLC_CONTENT_RUN_BIT, 1, 0, SLC_ERR_FORMAT, "run of 0 bits in mode 2"},
        {SLC_CONTENT_RUN_BIT, 3, 1, SLC_ERR_FORMAT, "run of 1 bits in mode 4 of 3"},
        {SLC_CONTENT_RUN_BIT, 1, 6, SLC_ERR_FORMAT, "at most 5 bits are possible"},
        {0, 1, 3, SLC_ERR_FORMAT, "reserved bit"},
        {0, 0, 1, SLC_ERR_FORMAT, "reserved bit"},
        {0, 0, 0, SLC_OK, ""},
        {SLC_ZEROS_BIT << 1, 0, 0, SLC_ERR_UNSUPPORTED, "features"},
    };
    const uint64_t dims[3] = {16, 32, 64};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_tensor tensor, rekeyed;

    slc_made_tensor_create(&tensor, 3, dims, 0, SLC_MADE_ONES, 1);
    slc_made_tensor_rekey(&tensor, (struct slc_fiber_run){2, 2}, &rekeyed);
    for (size_t i = 0; i < SLC_COUNT(cases); i++) {
        struct slc_writer_summary summary;
        struct slc_reader *reader = NULL;
        struct slc_forged forged;
        enum slc_status status;

        slc_error_clear(&err);
        SLC_ASSERT_OK(
            slc_made_blocks_write(&rekeyed, NULL, new_path(), SLC_CODEC_PACKED, 0, &summary, &err),
            &err);
        slc_forged_load(&forged, path);
        slc_store_u64(forged.bytes + SLC_HEADER_RESERVED_BITS, cases[i].reserved);
        forged.bytes[SLC_HEADER_CONTENT_MODE] = cases[i].mode;
        forged.bytes[SLC_HEADER_CONTENT_BITS] = cases[i].bits;
        slc_forged_seal_frame(&forged);
        slc_forged_save(&forged, path);
        slc_forged_release(&forged);
        status = slc_reader_open(NULL, path, &reader, &err);
        CU_ASSERT_EQUAL(status, cases[i].want);
        CU_ASSERT(status == SLC_OK || strstr(err.message, cases[i].text) != NULL);
        if (status == SLC_OK) {
            const struct slc_layout_info *info = slc_reader_info(reader);

            CU_ASSERT_EQUAL(info->keys.run.mode, 2);
            CU_ASSERT_EQUAL(info->content_keys.run.mode,
                            cases[i].reserved != 0 ? cases[i].mode : 2);
            CU_ASSERT_EQUAL(info->content_keys.run.bits,
                            cases[i].reserved != 0 ? cases[i].bits : 2);
        }
        slc_reader_close(reader);
    }
    slc_made_tensor_destroy(&rekeyed);
    slc_made_tensor_destroy(&tensor);
}

/* Partitions of several blocks and of several tiles, rows in pieces, one partition, none. */
static void shapes(void)
{
    const uint64_t dims[3] = {300, 7, 900};
    const uint64_t targets[] = {20000, 70000, 400000};
    struct slc_made_tensor tensor;

    slc_made_tensor_create(&tensor, 3, dims, 300000, SLC_MADE_COUNTS, slc_test_seed());
    for (size_t i = 0; i < SLC_COUNT(targets); i++) {
        round_trip(&tensor, i % 2, targets[i], SLC_CODEC_PACKED, 100000);
    }
    slc_made_tensor_destroy(&tensor);
    slc_made_tensor_create(&tensor, 3, dims, 0, SLC_MADE_COUNTS, 1);
    round_trip(&tensor, 2, 10, SLC_CODEC_PACKED, 0);
    slc_made_tensor_destroy(&tensor);
}

/* A tensor of 9 rows of about 330 nonzeros each, wide enough that tiles hold 3 to 10 of them and a
 * partition has several blocks. With a target of 200 every row becomes two pieces; with a target of
 * 800 a partition holds two rows. */
static void write_sample(struct slc_made_sorted *sorted, uint64_t target_nnz)
{
    const uint64_t dims[2] = {9, UINT64_C(1) << 38};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;
    struct slc_made_tensor tensor;

    slc_made_tensor_create(&tensor, 2, dims, 3000, SLC_MADE_DOUBLES, 7);
    slc_made_sorted_create(sorted, &tensor, 0, target_nnz);
    slc_made_tensor_destroy(&tensor);
    SLC_ASSERT_OK(
        slc_made_sorted_write(sorted, NULL, new_path(), SLC_CODEC_BLCO, 4096, &summary, &err),
        &err);
    CU_ASSERT_EQUAL_FATAL(sorted->partition_count, target_nnz == 200 ? 18 : 5);
}

/* Index of the first block of partition `p` of the file at `path`, which has more than one. */
static uint64_t first_block(uint64_t p)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_reader *reader = NULL;
    struct slc_partition partition;

    SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(reader);
    slc_reader_partition(reader, p, &partition);
    CU_ASSERT_FATAL(partition.block_count > 1);
    slc_reader_close(reader);
    return partition.first_block;
}

/* Up to three fields of one index entry of 2 modes. */
struct forgery {
    const char *what;
    uint64_t target_nnz;
    uint64_t partition; /* partition of which block number `block` is changed */
    uint64_t block;
    struct {
        uint32_t at;
        uint32_t bytes; /* size of the field; 0: no further field */
        uint64_t value;
    } fields[3];
};

static void check_forgery(const struct forgery *forgery)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_reader *reader = NULL;
    struct slc_made_sorted sorted;
    struct slc_forged forged;
    uint8_t *entry;

    write_sample(&sorted, forgery->target_nnz);
    slc_forged_load(&forged, path);
    entry =
        forged.bytes + slc_forged_entry(&forged, first_block(forgery->partition) + forgery->block);
    for (size_t i = 0; i < SLC_COUNT(forgery->fields); i++) {
        for (uint32_t byte = 0; byte < forgery->fields[i].bytes; byte++) {
            entry[forgery->fields[i].at + byte] = (uint8_t)(forgery->fields[i].value >> (8 * byte));
        }
    }
    slc_forged_seal(&forged);
    slc_forged_save(&forged, path);
    if (slc_reader_open(NULL, path, &reader, &err) != SLC_ERR_DAMAGED ||
        err.offset == SLC_NOWHERE || err.block == SLC_NOWHERE || strcmp(err.file, path) != 0) {
        printf("# %s: status %d (%s)\n", forgery->what, err.status, err.message);
        CU_FAIL("a forged partition is not refused as documented");
    }
    slc_reader_close(reader);
    slc_forged_release(&forged);
    slc_made_sorted_destroy(&sorted);
}

static void forged_partitions(void)
{
    enum { SMALLEST = 88, LARGEST = 88 + 16, KEY = 48, ORDINAL = 80, FLAGS = 84 };
    static const struct forgery forgeries[] = {
        {"first ordinal", 200, 0, 0, {{ORDINAL, 4, 1}}},
        {"first flag", 200, 0, 0, {{FLAGS, 4, 1}}},
        {"ordinal before", 200, 1, 0, {{ORDINAL, 4, 0}}},
        {"ordinal skipped", 200, 1, 0, {{ORDINAL, 4, 2}}},
        {"largest ordinal", 200, 1, 0, {{ORDINAL, 4, UINT32_MAX}}},
        {"ordinal within", 200, 1, 1, {{ORDINAL, 4, 0}}},
        {"unknown flag", 200, 1, 0, {{FLAGS, 4, 3}}},
        {"unknown flag", 800, 1, 0, {{FLAGS, 4, UINT32_C(1) << 31}}},
        {"piece without mark", 200, 1, 0, {{FLAGS, 4, 0}}},
        {"mark lost within", 200, 1, 1, {{FLAGS, 4, 0}}},
        {"mark within", 800, 1, 1, {{FLAGS, 4, 1}}},
        {"mark on another row", 200, 2, 0, {{FLAGS, 4, 1}}},
        {"mark after two rows", 800, 1, 0, {{FLAGS, 4, 1}, {SMALLEST, 8, 1}, {LARGEST, 8, 1}}},
        {"piece with two rows", 200, 1, 0, {{LARGEST, 8, 1}}},
        {"piece of another row", 200, 1, 0, {{SMALLEST, 8, 1}, {LARGEST, 8, 1}}},
        {"row of the one before", 800, 1, 0, {{SMALLEST, 8, 1}}},
        {"row of the one before", 800, 2, 1, {{SMALLEST, 8, 0}}},
        {"row of the one behind", 800, 0, 0, {{LARGEST, 8, 2}}},
        {"keys within", 800, 1, 1, {{KEY, 8, 0}}},
        {"keys over pieces", 200, 1, 0, {{KEY, 8, 0}}},
    };
    for (size_t i = 0; i < SLC_COUNT(forgeries); i++) {
        check_forgery(&forgeries[i]);
    }
}

/* The entry of a block claims that the next block begins before its last key: rejected within a
 * partition and between the pieces of a row. (Otherwise the next partition may begin anywhere.) */
static void forged_next_keys(void)
{
    for (uint64_t within = 0; within < 2; within++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_reader *reader = NULL;
        struct slc_made_sorted sorted;
        struct slc_forged forged;
        struct slc_block_entry entry;
        struct slc_block_view view;
        uint64_t block;

        write_sample(&sorted, 200);
        block = first_block(1) - 1 + within;
        slc_forged_load(&forged, path);
        SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
        slc_reader_entry(reader, block, &entry);
        slc_reader_close(reader);
        slc_store_u64(forged.bytes + slc_forged_entry(&forged, block + 1) + SLC_INDEX_FIRST_KEY,
                      entry.first_key_lo + 1);
        slc_forged_seal(&forged);
        slc_forged_save(&forged, path);
        SLC_ASSERT_OK(slc_reader_open(NULL, path, &reader, &err), &err);
        SLC_ASSERT_FAILS(
            slc_block_open(reader, block, forged.bytes + entry.offset, false, &view, &err),
            SLC_ERR_DAMAGED, &err, "below the first key of the next block");
        slc_reader_close(reader);
        slc_forged_release(&forged);
        slc_made_sorted_destroy(&sorted);
    }
}

/* Every failing write leaves no file, in any call. */
static void writer_faults(void)
{
    struct slc_made_sorted sorted;
    struct slc_faulty faulty;
    uint64_t k = 1;

    write_sample(&sorted, 200);
    slc_faulty_init(&faulty);
    for (;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_writer_summary summary;
        enum slc_status status;

        new_path();
        slc_faulty_fail(&faulty, SLC_FAULTY_WRITE, k, ENOSPC);
        status = slc_made_sorted_write(&sorted, &faulty.table, path, SLC_CODEC_PACKED, 4096,
                                       &summary, &err);
        if (!slc_faulty_fired(&faulty)) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_NOSPACE);
        CU_ASSERT_STRING_EQUAL(err.file, path);
        CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    }
    CU_ASSERT(k > sorted.partition_count);
    slc_made_sorted_destroy(&sorted);
}

/* After a failure every further call repeats the status. */
static void failed_writer(void)
{
    const uint64_t dims[2] = {9, UINT64_C(1) << 38};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_made_sorted sorted;
    struct slc_faulty faulty;
    struct slc_writer *writer = NULL;

    write_sample(&sorted, 200);
    slc_faulty_init(&faulty);
    new_path();
    SLC_ASSERT_OK(slc_writer_open(&(struct slc_writer_options){.files = &faulty.table,
                                                               .path = path,
                                                               .layout = SLC_LAYOUT_SORTED,
                                                               .order = 2,
                                                               .dims = dims,
                                                               .codec = SLC_CODEC_PACKED},
                                  &writer, &err),
                  &err);
    SLC_ASSERT_OK(slc_made_partitions_append(&sorted, 0, 1, SLC_CODEC_PACKED, writer, &err), &err);
    slc_faulty_fail(&faulty, SLC_FAULTY_WRITE, 1, EIO);
    SLC_ASSERT_FAILS(slc_writer_next_partition(writer, true, &err), SLC_ERR_IO, &err, "writing");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(slc_writer_next_partition(writer, true, &err), SLC_ERR_IO, &err, "earlier");
    slc_writer_abandon(writer);
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    slc_made_sorted_destroy(&sorted);
}

static void reader_memory(void)
{
    struct slc_made_sorted sorted;

    write_sample(&sorted, 200);
    for (uint64_t k = 1;; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_reader *reader = NULL;
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = slc_reader_open(NULL, path, &reader, &err);
        if (slc_fault_seen(SLC_FAULT_ALLOCATION) < k) {
            SLC_ASSERT_OK(status, &err);
            CU_ASSERT(slc_reader_memory_bytes(reader) >=
                      slc_reader_info(reader)->block_count * (88 + 32 + 32));
            slc_reader_close(reader);
            break;
        }
        CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
    }
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    slc_made_sorted_destroy(&sorted);
}

static const struct slc_test tests[] = {
    {"the run of the content sum", content_runs},
    {"random tensors come back bit for bit", random_tensors},
    {"partitions of several tiles and blocks, one, none", shapes},
    {"forged partitions", forged_partitions},
    {"forged keys of the next block", forged_next_keys},
    {"every failing write", writer_faults},
    {"a failed writer stays failed", failed_writer},
    {"memory of the reader", reader_memory},
};

SLC_SUITE(sorted)
{
    return slc_test_main("sorted", tests, SLC_COUNT(tests), argc, argv);
}
