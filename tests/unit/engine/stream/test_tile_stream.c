/* Streams of tiles for operations without their own stream: every tile passes through its steps
 * once with any I/O method, with turns in file order, and within the stated memory. */
#include "stream_fixture.h"

#include "slc_test.h"

#include "base/error/fault.h"
#include "base/memory/limits.h"
#include "engine/stream/tile_stream.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

/* How the callbacks of the tile stream behave, and what they have observed. */
struct watch {
    uint64_t fail_at; /* ordinal of the tile that fails */
    uint64_t end_at;  /* number of the turn that ends the run; 0: no turn ends it */
    atomic_uint decoded[MAX_TILES];
    atomic_uint_fast64_t nnz;
    uint64_t tile[MAX_WORKERS];
    uint64_t turns; /* turns so far */
    bool disordered;
    atomic_uint delivered;
};

static enum slc_status
decode(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct watch *watch = context;
    struct slc_chunk_view chunk = {.nnz = 1};
    enum slc_status status = SLC_OK;

    if (tile->ordinal == watch->fail_at) {
        return slc_fail(err, SLC_ERR_NUMERIC, "tile %u is bad", (unsigned)tile->ordinal);
    }
    CU_ASSERT_EQUAL(tile->value_type, SLC_F64);
    while (chunk.nnz > 0 && status == SLC_OK) {
        status = tile->next(tile, 1024, &chunk, err);
        atomic_fetch_add(&watch->nnz, status == SLC_OK ? chunk.nnz : 0);
    }
    watch->tile[worker] = tile->ordinal;
    atomic_fetch_add(&watch->decoded[tile->ordinal], 1);
    return status;
}

static bool in_turn(void *context, unsigned worker)
{
    struct watch *watch = context;

    watch->disordered = watch->disordered || watch->tile[worker] != watch->turns;
    return ++watch->turns != watch->end_at;
}

static void deliver(void *context, unsigned worker)
{
    (void)worker;
    atomic_fetch_add(&((struct watch *)context)->delivered, 1);
}

/* A run with one shape; SLC_ERR_UNSUPPORTED if io_uring is unavailable. `spare`: memory beyond
 * the least. */
static enum slc_status run_stream(struct slc_tile_stream *tiles,
                                  const struct fixture *fixture,
                                  unsigned workers,
                                  uint64_t spare,
                                  bool turns,
                                  struct watch *watch,
                                  struct slc_error *err)
{
    const struct slc_tile_steps steps = {watch, decode, turns ? in_turn : NULL, deliver};
    const uint64_t least = slc_tile_stream_memory_bytes(tiles, fixture->reader, workers, true);

    return slc_tile_stream_run(tiles, fixture->reader, workers, least + spare, &steps, err);
}

static void check_run(struct slc_tile_stream *tiles, unsigned workers, bool turns, bool plenty)
{
    const struct slc_layout_info *info = large_blocks.info;
    struct slc_error err = SLC_ERROR_INIT;
    struct watch watch = {.fail_at = UINT64_MAX};
    const enum slc_status status = run_stream(tiles, &large_blocks, workers,
                                              plenty ? UINT64_C(1) << 30 : 0, turns, &watch, &err);

    if (status == SLC_ERR_UNSUPPORTED && tiles->io == SLC_IO_URING) {
        return;
    }
    SLC_ASSERT_OK(status, &err);
    for (uint64_t t = 0; t < info->tile_count; t++) {
        CU_ASSERT_EQUAL(atomic_load(&watch.decoded[t]), 1);
    }
    CU_ASSERT_EQUAL(atomic_load(&watch.nnz), info->nnz);
    CU_ASSERT_EQUAL(atomic_load(&watch.delivered), info->tile_count);
    CU_ASSERT_EQUAL(watch.turns, turns ? info->tile_count : 0);
    CU_ASSERT_FALSE(watch.disordered);
    CU_ASSERT_EQUAL(tiles->stats.bytes_read, large_blocks.stored_bytes);
    CU_ASSERT_EQUAL(tiles->stats.io, tiles->io);
    CU_ASSERT_EQUAL(tiles->used_schedule, turns ? SLC_SCHEDULE_FILE : tiles->schedule);
    CU_ASSERT_EQUAL(tiles->slot_bytes, info->max_block_bytes);
    CU_ASSERT(plenty ? tiles->slot_count == info->block_count : tiles->slot_count == 2);
}

static void test_every_tile(void)
{
    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        for (size_t s = 0; s < SLC_COUNT(schedules); s++) {
            struct slc_tile_stream tiles = {.io = kinds[k], .schedule = schedules[s]};

            check_run(&tiles, 1 + (unsigned)(2 * k), false, s == 0);
            check_run(&tiles, 5 - (unsigned)(2 * k), true, s != 0);
        }
    }
}

/* The automatic choice of a schedule: these blocks differ in size, small blocks hardly do. */
static void test_schedule(void)
{
    struct slc_tile_stream tiles = {.io = SLC_IO_PREAD};
    struct slc_error err = SLC_ERROR_INIT;
    struct watch watch = {.fail_at = UINT64_MAX};

    make_fixtures();
    SLC_ASSERT_OK(run_stream(&tiles, &small_blocks, 2, 0, false, &watch, &err), &err);
    CU_ASSERT_EQUAL(tiles.used_schedule, SLC_SCHEDULE_FILE);
}

/* A step may end the run early, without an error. */
static void test_early_end(void)
{
    make_fixtures();
    for (unsigned workers = 1; workers <= 4; workers++) {
        for (uint64_t end = 1; end <= small_blocks.info->tile_count; end++) {
            struct slc_tile_stream tiles = {.io = SLC_IO_PREAD};
            struct slc_error err = SLC_ERROR_INIT;
            struct watch watch = {.fail_at = UINT64_MAX, .end_at = end};

            SLC_ASSERT_OK(run_stream(&tiles, &small_blocks, workers, 0, true, &watch, &err), &err);
            CU_ASSERT_EQUAL(err.status, SLC_OK);
            CU_ASSERT_EQUAL(watch.turns, end);
            CU_ASSERT_EQUAL(atomic_load(&watch.delivered), watch.turns);
            CU_ASSERT_FALSE(watch.disordered);
        }
    }
}

static void test_stop(void)
{
    const volatile int stop = 1;
    struct slc_tile_stream tiles = {.io = SLC_IO_PREAD, .stop = &stop};
    struct slc_error err = SLC_ERROR_INIT;
    struct watch watch = {.fail_at = UINT64_MAX};

    make_fixtures();
    SLC_ASSERT_FAILS(run_stream(&tiles, &small_blocks, 2, 0, true, &watch, &err),
                     SLC_ERR_INTERRUPTED, &err, "");
    CU_ASSERT_EQUAL(atomic_load(&watch.delivered), 0);
}

static void test_failing_steps(void)
{
    make_fixtures();
    for (uint64_t t = 0; t < large_blocks.info->tile_count; t++) {
        struct slc_tile_stream tiles = {.io = kinds[1 + t % 2]};
        struct slc_error err = SLC_ERROR_INIT;
        struct watch watch = {.fail_at = t};

        SLC_ASSERT_FAILS(run_stream(&tiles, &large_blocks, 3, 0, t % 3 != 0, &watch, &err),
                         SLC_ERR_NUMERIC, &err, "is bad");
        CU_ASSERT_FALSE(watch.disordered);
    }
}

static void test_failing_reads(void)
{
    struct slc_tile_stream tiles = {.io = SLC_IO_PREAD};
    struct slc_faulty faulty;

    make_fixtures();
    slc_faulty_init(&faulty);
    tiles.files = &faulty.table;
    for (uint64_t read = 1; read <= large_blocks.info->block_count; read++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct watch watch = {.fail_at = UINT64_MAX};

        slc_faulty_fail(&faulty, SLC_FAULTY_READ, read, EIO);
        SLC_ASSERT_FAILS(run_stream(&tiles, &large_blocks, 3, 0, true, &watch, &err), SLC_ERR_IO,
                         &err, "reading");
        CU_ASSERT_STRING_EQUAL(err.file, large_blocks.path);
        CU_ASSERT(err.block < large_blocks.info->block_count);
    }
    CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
}

/* Every allocation, and every thread, fails once. */
static void test_no_resources(void)
{
    make_fixtures();
    for (enum slc_fault_kind kind = 0; kind < SLC_FAULT_KINDS; kind++) {
        for (uint64_t fault = 1;; fault++) {
            struct slc_tile_stream tiles = {.io = SLC_IO_PREAD};
            struct slc_error err = SLC_ERROR_INIT;
            struct watch watch = {.fail_at = UINT64_MAX};
            enum slc_status status;
            bool hit;

            slc_fault_arm(kind, fault);
            status = run_stream(&tiles, &large_blocks, 2, 0, true, &watch, &err);
            hit = slc_fault_seen(kind) >= fault;
            slc_fault_arm(kind, 0);
            if (!hit) {
                SLC_ASSERT_OK(status, &err);
                break;
            }
            SLC_ASSERT_FAILS(status, kind == SLC_FAULT_ALLOCATION ? SLC_ERR_MEMORY : SLC_ERR_SYSTEM,
                             &err, NULL);
        }
    }
}

static const struct slc_test tests[] = {
    {"every tile once, by every I/O method and schedule", test_every_tile},
    {"the schedule that is chosen", test_schedule},
    {"a step that ends the run", test_early_end},
    {"a caller that stops the run", test_stop},
    {"a step fails at every tile", test_failing_steps},
    {"failing reads name file and block", test_failing_reads},
    {"no memory and no threads", test_no_resources},
};

SLC_SUITE(tile_stream)
{
    int failed = slc_test_main("tile stream", tests, SLC_COUNT(tests), argc, argv);

    close_fixtures();
    return failed;
}
