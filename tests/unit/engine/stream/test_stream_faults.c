/* Streams under faults of reads, blocks, consumers, threads and memory. A pass ends with one error
 * that has the position, and the stream can be used again. */
#include "stream_fixture.h"

#include "forge_file.h"
#include "slc_test.h"

#include "base/error/fault.h"
#include "base/hash.h"
#include "base/memory/limits.h"
#include "one_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The table operation that transfers the data of this kind of reader. */
static enum slc_faulty_kind read_operation(enum slc_io_kind kind)
{
    return kind == SLC_IO_PREAD ? SLC_FAULTY_READ : SLC_FAULTY_COMPLETED;
}

static void test_failing_reads(void)
{
    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        for (size_t s = 0; s < SLC_COUNT(schedules); s++) {
            struct shape shape = {kinds[k], schedules[s], 3, 4, 2, SLC_F64, false};
            struct slc_faulty faulty;
            struct slc_stream *stream;

            slc_faulty_init(&faulty);
            stream = open_stream(&small_blocks, &shape, &faulty.table);
            if (stream == NULL) {
                continue;
            }
            for (uint64_t read = 1; read <= small_blocks.info->block_count - 2; read++) {
                struct slc_error err = SLC_ERROR_INIT;
                struct consumer consumer;

                consumer_init(&consumer, &shape);
                consumer.ordered = schedules[s] == SLC_SCHEDULE_FILE;
                slc_faulty_fail(&faulty, read_operation(kinds[k]), read, EIO);
                SLC_ASSERT_FAILS(run_pass(stream, &consumer, &err), SLC_ERR_IO, &err, "reading");
                CU_ASSERT_EQUAL(err.system_errno, EIO);
                CU_ASSERT_STRING_EQUAL(err.file, small_blocks.path);
                CU_ASSERT(err.block < small_blocks.info->block_count);
                CU_ASSERT(err.offset != SLC_NOWHERE);
                CU_ASSERT_EQUAL(atomic_load(&consumer.aborts), 1);
            }
            slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
            check_pass(stream, &small_blocks, &shape, false);
            slc_stream_close(stream);
            CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
        }
    }
}

static void test_short_and_interrupted_reads(void)
{
    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct shape shape = {kinds[k], SLC_SCHEDULE_FILE, 2, 3, 0, SLC_F64, false};
        struct slc_faulty faulty;
        struct slc_stream *stream;

        slc_faulty_init(&faulty);
        stream = open_stream(&large_blocks, &shape, &faulty.table);
        if (stream == NULL) {
            continue;
        }
        slc_faulty_shorten(&faulty, read_operation(kinds[k]), 1, 8192);
        check_pass(stream, &large_blocks, &shape, true);
        CU_ASSERT(slc_faulty_fired(&faulty));
        slc_faulty_fail(&faulty, read_operation(kinds[k]), 2, EINTR);
        check_pass(stream, &large_blocks, &shape, true);
        CU_ASSERT(slc_faulty_fired(&faulty));
        slc_stream_close(stream);
    }
}

/* Changes one byte of the file. */
static void flip_byte(const char *path, uint64_t offset)
{
    int fd = open(path, O_RDWR);
    unsigned char byte = 0;

    CU_ASSERT(pread(fd, &byte, 1, (off_t)offset) == 1);
    byte ^= 0x10;
    CU_ASSERT(pwrite(fd, &byte, 1, (off_t)offset) == 1);
    CU_ASSERT(fsync(fd) == 0);
    CU_ASSERT(close(fd) == 0);
}

static void test_damaged_blocks(void)
{
    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct shape shape = {kinds[k], schedules[k % 2], 3, 3, 1, SLC_F64, false};
        struct slc_stream *stream = open_stream(&large_blocks, &shape, NULL);

        if (stream == NULL) {
            continue;
        }
        for (uint64_t b = 0; b < large_blocks.info->block_count; b++) {
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_block_entry entry;
            struct consumer consumer;
            uint64_t at;

            slc_reader_entry(large_blocks.reader, b, &entry);
            at = entry.offset + slc_mix64(slc_test_seed() + b) % entry.padded_bytes;
            flip_byte(large_blocks.path, at);
            consumer_init(&consumer, &shape);
            SLC_ASSERT_FAILS(run_pass(stream, &consumer, &err), SLC_ERR_DAMAGED, &err, NULL);
            flip_byte(large_blocks.path, at);
            CU_ASSERT_STRING_EQUAL(err.file, large_blocks.path);
            CU_ASSERT_EQUAL(err.block, b);
            CU_ASSERT(err.offset != SLC_NOWHERE);
            for (uint64_t t = entry.first_tile; t < entry.first_tile + entry.tile_count; t++) {
                CU_ASSERT_EQUAL(atomic_load(&consumer.seen[t]), 0);
            }
            check_pass(stream, &large_blocks, &shape, false);
            /* Block 0 is now cached, so damage to it on the disk does not affect this stream. */
        }
        flip_byte(large_blocks.path, SLC_PAGE_BYTES + 100);
        check_pass(stream, &large_blocks, &shape, false);
        flip_byte(large_blocks.path, SLC_PAGE_BYTES + 100);
        slc_stream_close(stream);
    }
}

static void test_failing_consumer(void)
{
    make_fixtures();
    for (unsigned threads = 1; threads <= 4; threads++) {
        for (size_t s = 0; s < SLC_COUNT(schedules); s++) {
            struct shape shape = {kinds[threads % 3], schedules[s], threads, 2, 2, SLC_F64, false};
            struct slc_stream *stream = open_stream(&large_blocks, &shape, NULL);

            if (stream == NULL) {
                continue;
            }
            for (uint64_t t = 0; t < large_blocks.info->tile_count; t++) {
                struct slc_error err = SLC_ERROR_INIT;
                struct consumer consumer;

                consumer_init(&consumer, &shape);
                consumer.ordered = schedules[s] == SLC_SCHEDULE_FILE;
                consumer.fail_at = t;
                SLC_ASSERT_FAILS(run_pass(stream, &consumer, &err), SLC_ERR_NUMERIC, &err,
                                 "is bad");
                CU_ASSERT_EQUAL(atomic_load(&consumer.aborts), 1);
            }
            check_pass(stream, &large_blocks, &shape, false);
            slc_stream_close(stream);
        }
    }
}

/* Every allocation of opening fails once; in a pass only its threads allocate. */
static void test_no_memory(void)
{
    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct shape shape = {kinds[k], SLC_SCHEDULE_LARGEST, 2, 3, 2, SLC_F64, false};
        struct slc_plan plan = make_plan(&large_blocks, &shape);
        struct slc_stream *stream = open_stream(&large_blocks, &shape, NULL);

        if (stream == NULL) {
            continue;
        }
        slc_stream_close(stream);
        for (uint64_t fault = 1;; fault++) {
            struct slc_error err = SLC_ERROR_INIT;
            enum slc_status status;
            bool hit;

            slc_fault_arm(SLC_FAULT_ALLOCATION, fault);
            status = stream_one(NULL, large_blocks.reader, &plan, &stream, &err);
            hit = slc_fault_seen(SLC_FAULT_ALLOCATION) >= fault;
            slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
            if (!hit) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            SLC_ASSERT_FAILS(status, SLC_ERR_MEMORY, &err, NULL);
        }
        slc_stream_close(stream);
    }
}

static void test_no_threads(void)
{
    struct shape shape = {SLC_IO_PREAD, SLC_SCHEDULE_FILE, 3, 3, 2, SLC_F64, false};
    struct slc_stream *stream;

    make_fixtures();
    stream = open_stream(&large_blocks, &shape, NULL);
    for (uint64_t fault = 1;; fault++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct consumer consumer;
        enum slc_status status;
        bool hit;

        consumer_init(&consumer, &shape);
        slc_fault_arm(SLC_FAULT_THREAD, fault);
        status = run_pass(stream, &consumer, &err);
        hit = slc_fault_seen(SLC_FAULT_THREAD) >= fault;
        slc_fault_arm(SLC_FAULT_THREAD, 0);
        if (!hit) {
            SLC_ASSERT_OK(status, &err);
            break;
        }
        SLC_ASSERT_FAILS(status, SLC_ERR_SYSTEM, &err, NULL);
        check_pass(stream, &large_blocks, &shape, true);
    }
    slc_stream_close(stream);
}

/* A consumer that truncates the file when it receives its first tile, and then reads all of it. */
static enum slc_status
cut_and_decode(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct slc_chunk_view chunk = {.nnz = 1};
    enum slc_status status = SLC_OK;

    (void)worker;
    CU_ASSERT_EQUAL(truncate(context, SLC_PAGE_BYTES), 0);
    while (status == SLC_OK && chunk.nnz > 0) {
        status = tile->next(tile, 1024, &chunk, err);
    }
    return status;
}

/* For every I/O method, truncating the file during a pass ends the pass but not the process. */
static void test_cut_file(void)
{
    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        for (unsigned cached = 0; cached < 2; cached++) {
            struct shape shape = {kinds[k], SLC_SCHEDULE_FILE, 2, 2, cached * 2, SLC_F64, false};
            struct slc_error err = SLC_ERROR_INIT;
            struct fixture cut = large_blocks;
            struct slc_pass pass = {
                .tiles = {.consumer = {.tile = cut_and_decode, .context = cut.path}}};
            struct slc_forged bytes;
            struct slc_stream *stream;

            slc_forged_load(&bytes, large_blocks.path);
            (void)snprintf(cut.path, sizeof cut.path, "%s/cut.blk", slc_test_folder());
            slc_forged_save(&bytes, cut.path);
            slc_forged_release(&bytes);
            SLC_ASSERT_OK(slc_reader_open(NULL, cut.path, &cut.reader, &err), &err);
            stream = open_stream(&cut, &shape, NULL);
            if (stream != NULL) {
                SLC_ASSERT_FAILS(slc_stream_pass(stream, &pass, &err), SLC_ERR_DAMAGED, &err, "");
                CU_ASSERT_STRING_EQUAL(err.file, cut.path);
                CU_ASSERT(err.block < cut.info->block_count && err.offset != SLC_NOWHERE);
                slc_stream_close(stream);
            }
            slc_reader_close(cut.reader);
        }
    }
}

static const struct slc_test tests[] = {
    {"failing reads name file, block and offset", test_failing_reads},
    {"short and interrupted reads", test_short_and_interrupted_reads},
    {"damaged blocks never reach the consumer", test_damaged_blocks},
    {"a consumer fails at every tile", test_failing_consumer},
    {"no memory", test_no_memory},
    {"no threads", test_no_threads},
    {"a file cut under a pass", test_cut_file},
};

SLC_SUITE(stream_faults)
{
    int failed = slc_test_main("stream_faults", tests, SLC_COUNT(tests), argc, argv);

    close_fixtures();
    return failed;
}
