/* Passes in parts: every tile arrives once, in order if the schedule guarantees it, for any split
 * of the pass; a part reads only its own blocks; a part that is stopped or fails leaves the stream
 * usable. */
#include "stream_fixture.h"

#include "base/random.h"
#include "slc_test.h"

#include <string.h>

enum { PARTS_MAX = 64 };

/* Splits `blocks` blocks: everywhere (way 0), once (1), or at random places. Returns the number
 * of parts. */
static unsigned make_cuts(uint64_t blocks, unsigned way, uint64_t ends[PARTS_MAX])
{
    unsigned parts = 0;

    CU_ASSERT_FATAL(blocks <= PARTS_MAX);
    for (uint64_t b = 1; b < blocks; b++) {
        const bool cut = way == 0   ? true
                         : way == 1 ? b == blocks / 2
                                    : slc_random_u64(slc_test_seed(), way, b) % 3 == 0;

        if (cut) {
            ends[parts++] = b;
        }
    }
    ends[parts++] = blocks;
    return parts;
}

/* Three passes over one shape, each split differently, and their statistics. */
static void check_shape(const struct fixture *fixture, const struct shape *shape, unsigned first)
{
    const struct slc_plan plan = make_plan(fixture, shape);
    struct slc_stream *stream = open_stream(fixture, shape, NULL);
    const bool ordered = shape->schedule == SLC_SCHEDULE_FILE && !shape->every_worker;

    for (unsigned pass = 0; stream != NULL && pass < 3; pass++) {
        const uint64_t held = plan.layouts[0].cache_bytes;
        struct slc_stream_stats stats;
        uint64_t ends[PARTS_MAX];
        const unsigned parts = make_cuts(fixture->info->block_count, first + pass, ends);

        check_parts(stream, fixture, shape, ordered, ends, parts);
        slc_stream_stats(stream, &stats);
        CU_ASSERT_EQUAL(stats.passes, pass + 1);
        CU_ASSERT_EQUAL(stats.blocks, (pass + 1) * fixture->info->block_count);
        CU_ASSERT_EQUAL(stats.bytes_read, (pass + 1) * fixture->stored_bytes - pass * held);
        CU_ASSERT_EQUAL(stats.bytes_cached, pass * held);
        CU_ASSERT_EQUAL(stats.cache_blocks, shape->cached);
    }
    slc_stream_close(stream);
}

static void every_tile_once(void)
{
    static const unsigned threads[] = {1, 2, 3, 8};
    unsigned number = 0;

    make_fixtures();
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t s = 0; s < SCHEDULES; s++) {
            for (size_t t = 0; t < SLC_COUNT(threads); t++) {
                const struct fixture *fixture = (k + s + t) % 2 ? &small_blocks : &large_blocks;
                const uint64_t blocks = fixture->info->block_count;

                for (unsigned way = 0; way < 6; way++, number++) {
                    const struct shape shape = {
                        kinds[k],       schedules[s],         threads[t],
                        2 + number % 3, way / 2 * blocks / 2, way == 2 ? SLC_F32 : SLC_F64,
                        way % 2 == 1};

                    if (slc_test_threads_only() ? number % 11 == 0
                        : slc_test_quick()      ? number % 5 == 0
                                                : number % 2 == 0) {
                        check_shape(fixture, &shape, number % 4);
                    }
                }
            }
        }
    }
}

/* A part reads its own blocks and no other, and no cached block of another part. */
static void parts_leave_others_alone(void)
{
    const struct shape shape = {SLC_IO_PREAD, SLC_SCHEDULE_LARGEST, 2, 3, 3, SLC_F64, false};
    struct slc_stream *stream;
    const uint64_t *order;

    make_fixtures();
    stream = open_stream(&small_blocks, &shape, NULL);
    order = slc_stream_order(stream, 0);
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint64_t b = 0; b < small_blocks.info->block_count; b++) {
            struct slc_stream_stats before, after;
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_block_entry entry;
            struct consumer consumer;

            consumer_init(&consumer, &shape);
            consumer.part = (struct slc_pass_part){b, b + 1};
            slc_reader_entry(small_blocks.reader, order[b], &entry);
            slc_stream_stats(stream, &before);
            SLC_ASSERT_OK(run_pass(stream, &consumer, &err), &err);
            slc_stream_stats(stream, &after);
            CU_ASSERT_EQUAL(after.bytes_read + after.bytes_cached - before.bytes_read -
                                before.bytes_cached,
                            entry.padded_bytes);
            CU_ASSERT_EQUAL(after.blocks - before.blocks, 1);
            CU_ASSERT_EQUAL(atomic_load(&consumer.seen[entry.first_tile]), 1);
            CU_ASSERT_EQUAL(after.passes - before.passes,
                            b + 1 == small_blocks.info->block_count ? 1 : 0);
        }
    }
    slc_stream_close(stream);
}

/* A stop or a fault in a later part ends only that part; later passes are not affected. */
static void stops_and_faults(void)
{
    make_fixtures();
    for (unsigned s = 0; s < 2 * SCHEDULES; s++) {
        const struct shape shape = {SLC_IO_PREAD, schedules[s / 2], 3,    4,
                                    s % 2 * 4,    SLC_F64,          false};
        struct slc_stream *stream = open_stream(&small_blocks, &shape, NULL);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_stream_stats stats;
        struct slc_block_entry entry;
        struct consumer consumer;

        consumer_init(&consumer, &shape);
        consumer.part = (struct slc_pass_part){3, 8};
        consumer.stop_at = 2;
        SLC_ASSERT_FAILS(run_pass(stream, &consumer, &err), SLC_ERR_INTERRUPTED, &err, "stopped");
        slc_error_clear(&err);

        consumer_init(&consumer, &shape);
        consumer.part = (struct slc_pass_part){3, 8};
        slc_reader_entry(small_blocks.reader, slc_stream_order(stream, 0)[6], &entry);
        consumer.fail_at = entry.first_tile;
        SLC_ASSERT_FAILS(run_pass(stream, &consumer, &err), SLC_ERR_NUMERIC, &err, "is bad");
        CU_ASSERT_EQUAL(atomic_load(&consumer.aborts), 1);
        slc_stream_stats(stream, &stats);
        CU_ASSERT_EQUAL(stats.passes, 0);
        check_pass(stream, &small_blocks, &shape, false);
        slc_stream_close(stream);
    }
}

static void parts_that_are_none(void)
{
    static const struct slc_pass_part none[] = {{1, 0}, {3, 3}, {4, 2}, {0, 1000}, {1000, 1001}};
    const struct shape shape = {SLC_IO_PREAD, SLC_SCHEDULE_FILE, 1, 2, 0, SLC_F64, false};
    struct slc_stream *stream;

    make_fixtures();
    stream = open_stream(&small_blocks, &shape, NULL);
    for (size_t i = 0; i < SLC_COUNT(none); i++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct consumer consumer;

        consumer_init(&consumer, &shape);
        consumer.part = none[i];
        SLC_ASSERT_FAILS(run_pass(stream, &consumer, &err), SLC_ERR_USAGE, &err,
                         "are not part of a pass");
    }
    slc_stream_close(stream);
}

static const struct slc_test tests[] = {
    {"every tile once, however a pass is cut", every_tile_once},
    {"a part leaves the blocks of others alone", parts_leave_others_alone},
    {"stops and faults in a part", stops_and_faults},
    {"parts that are none", parts_that_are_none},
};

SLC_SUITE(stream_parts)
{
    const int failed = slc_test_main("stream parts", tests, SLC_COUNT(tests), argc, argv);

    close_fixtures();
    return failed;
}
