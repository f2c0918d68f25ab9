/* Streams over real block files: every tile arrives once for any I/O method, schedule, number of
 * workers, slots and cached blocks; a pass can be stopped. */
#include "stream_fixture.h"

#include "slc_test.h"

#include "make_store.h"
#include "one_layout.h"

#include <stdio.h>

/* Three passes over one shape, and their expected statistics. */
static void check_shape(const struct fixture *fixture, const struct shape *shape)
{
    struct slc_plan plan = make_plan(fixture, shape);
    struct slc_stream *stream = open_stream(fixture, shape, NULL);
    struct slc_stream_stats stats;
    uint64_t held = 0;

    if (stream == NULL) {
        return;
    }
    for (unsigned pass = 0; pass < 3; pass++) {
        check_pass(stream, fixture, shape,
                   shape->schedule == SLC_SCHEDULE_FILE && pass > 0 && !shape->every_worker);
        slc_stream_stats(stream, &stats);
        CU_ASSERT_EQUAL(stats.passes, pass + 1);
        CU_ASSERT_EQUAL(stats.blocks, (pass + 1) * fixture->info->block_count);
        if (pass == 0) {
            CU_ASSERT_EQUAL(stats.bytes_read, fixture->stored_bytes);
            CU_ASSERT_EQUAL(stats.bytes_cached, 0);
        } else if (pass == 1) {
            held = stats.bytes_cached;
            CU_ASSERT_EQUAL(held, plan.layouts[0].cache_bytes);
        }
        CU_ASSERT_EQUAL(stats.bytes_read, (pass + 1) * fixture->stored_bytes - pass * held);
        CU_ASSERT_EQUAL(stats.bytes_cached, pass * held);
        CU_ASSERT_EQUAL(stats.cache_blocks, shape->cached);
        CU_ASSERT(stats.io == shape->io);
    }
    CU_ASSERT(stats.decode_seconds > 0 && stats.compute_seconds > 0 && stats.pass_seconds > 0);
    slc_stream_close(stream);
}

static void test_shapes(void)
{
    static const unsigned threads[] = {1, 2, 8};
    static const unsigned slots[] = {2, 3, 8};

    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        for (size_t s = 0; s < SLC_COUNT(schedules); s++) {
            for (size_t t = 0; t < SLC_COUNT(threads); t++) {
                const struct fixture *fixture = (k + s + t) % 2 ? &small_blocks : &large_blocks;
                const uint64_t blocks = fixture->info->block_count;
                const uint64_t cached[] = {0, blocks / 2, blocks};

                for (size_t c = 0; c < SLC_COUNT(cached) * 2; c++) {
                    if (slc_test_quick() && (k + s + c / 2) % 3 != 0) {
                        continue; /* each combination is tested with some cache */
                    }
                    struct shape shape = {kinds[k],      schedules[s],
                                          threads[t],    slots[(t + c) % 3],
                                          cached[c / 2], c / 2 == 1 ? SLC_F32 : SLC_F64,
                                          c % 2 == 1};

                    check_shape(fixture, &shape);
                }
            }
        }
    }
}

static void test_stop(void)
{
    make_fixtures();
    for (size_t s = 0; s < SLC_COUNT(schedules) * 2; s++) {
        const enum slc_schedule schedule = schedules[s / 2];
        struct shape shape = {SLC_IO_PREAD, schedule, 3, 4, 0, SLC_F64, s % 2 == 1};
        struct slc_stream *stream = open_stream(&small_blocks, &shape, NULL);
        struct slc_error err = SLC_ERROR_INIT;
        struct consumer consumer;

        consumer_init(&consumer, &shape);
        consumer.ordered = schedule == SLC_SCHEDULE_FILE && !shape.every_worker;
        consumer.stop_at = 3;
        SLC_ASSERT_FAILS(run_pass(stream, &consumer, &err), SLC_ERR_INTERRUPTED, &err, "stopped");
        CU_ASSERT_EQUAL(atomic_load(&consumer.aborts), 1);
        check_pass(stream, &small_blocks, &shape, false);
        slc_stream_close(stream);
    }
}

static void test_empty_layout(void)
{
    static const uint64_t dims[ORDER] = {4, 5, 6};
    struct fixture empty = {.nnz = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;
    struct slc_made_tensor tensor;
    struct slc_stream *stream;

    (void)snprintf(empty.path, sizeof empty.path, "%s/empty.blk", slc_test_folder());
    slc_made_tensor_create(&tensor, ORDER, dims, 0, SLC_MADE_ONES, 1);
    SLC_ASSERT_OK(
        slc_made_blocks_write(&tensor, NULL, empty.path, SLC_CODEC_PACKED, 0, &summary, &err),
        &err);
    slc_made_tensor_destroy(&tensor);
    SLC_ASSERT_OK(slc_reader_open(NULL, empty.path, &empty.reader, &err), &err);
    empty.info = slc_reader_info(empty.reader);
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct shape shape = {kinds[k], schedules[k % 2], 2, 2, 0, SLC_F64, k == 1};
        struct slc_plan plan = make_plan(&empty, &shape);
        enum slc_status status;

        plan.slot_bytes = SLC_PAGE_BYTES;
        status = stream_one(NULL, empty.reader, &plan, &stream, &err);
        if (status == SLC_ERR_UNSUPPORTED) {
            slc_error_clear(&err);
            continue;
        }
        SLC_ASSERT_OK(status, &err);
        check_pass(stream, &empty, &shape, false);
        slc_stream_close(stream);
    }
    slc_reader_close(empty.reader);
}

static void test_bad_plans(void)
{
    struct shape shape = {SLC_IO_PREAD, SLC_SCHEDULE_FILE, 1, 2, 2, SLC_F64, false};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_stream *stream;
    struct slc_plan plan;

    make_fixtures();
    plan = make_plan(&large_blocks, &shape);
    plan.slot_bytes -= SLC_PAGE_BYTES;
    SLC_ASSERT_FAILS(stream_one(NULL, large_blocks.reader, &plan, &stream, &err), SLC_ERR_USAGE,
                     &err, "slots");
    plan = make_plan(&large_blocks, &shape);
    plan.layouts[0].cache_bytes -= 1;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(stream_one(NULL, large_blocks.reader, &plan, &stream, &err), SLC_ERR_USAGE,
                     &err, "in a cache of");
    slc_stream_close(NULL);
}

/* If the read rate is limited, every tile still arrives, and a stop or a fault does not wait for
 * delayed reads. */
static void test_read_limit(void)
{
    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct shape shape = {kinds[k], schedules[k % 2], 2, 3, 1, SLC_F64, false};
        struct slc_plan plan = make_plan(&small_blocks, &shape);
        struct slc_error err = SLC_ERROR_INIT;
        struct consumer consumer;
        struct slc_stream *stream;
        enum slc_status status;

        plan.request.read_limit = UINT64_C(1) << 34;
        status = stream_one(NULL, small_blocks.reader, &plan, &stream, &err);
        if (status == SLC_ERR_UNSUPPORTED) {
            continue;
        }
        SLC_ASSERT_OK(status, &err);
        check_pass(stream, &small_blocks, &shape, false);
        slc_stream_close(stream);

        plan.request.read_limit = 1; /* a rate at which a block takes hours */
        SLC_ASSERT_OK(stream_one(NULL, small_blocks.reader, &plan, &stream, &err), &err);
        consumer_init(&consumer, &shape);
        consumer.stop = 1;
        SLC_ASSERT_FAILS(run_pass(stream, &consumer, &err), SLC_ERR_INTERRUPTED, &err, "");
        CU_ASSERT_EQUAL(atomic_load(&consumer.begun), 0);
        slc_stream_close(stream);
    }
}

static const struct slc_test tests[] = {
    {"every tile once, or to every worker: methods, schedules, slots, caches", test_shapes},
    {"stopping between tiles", test_stop},
    {"a limit on reading", test_read_limit},
    {"a layout without nonzeros", test_empty_layout},
    {"plans that do not fit", test_bad_plans},
};

SLC_SUITE(stream)
{
    int failed = slc_test_main("stream", tests, SLC_COUNT(tests), argc, argv);

    close_fixtures();
    return failed;
}
