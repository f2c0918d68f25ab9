/* Passes in two phases: every range of rows is computed twice by one worker, with its turn in
 * between, for any number of slots, any cache contents, and workers that wait for earlier ranges; a
 * fault or a stop in either phase ends the pass, and the stream can be used again. */
#include "sorted_fixture.h"

#include "base/error/fault.h"
#include "base/hash.h"
#include "base/memory/checked.h"
#include "engine/stream/row_ranges.h"
#include "faulty_files.h"
#include "slc_test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MODES = 3, RANGES_MAX = 128 };

/* Steps in which a consumer can fail. */
enum step { IN_FIRST, IN_TURN, IN_SECOND };

/* Observations of a range. Written only by the worker that owns it. */
struct seen {
    unsigned worker;
    uint64_t nnz[2];
    uint64_t mix[2]; /* sum over nonzeros of a mix of coordinates and value */
    uint64_t next_tile[2];
    bool turned;
};

struct watch {
    const struct slc_row_ranges *ranges;
    struct slc_pass_part part;
    bool in_order; /* in the second phase, wait for all ranges before this one */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t finished; /* number of first ranges whose second phase is over */
    bool aborted;
    unsigned aborts;
    atomic_uint faults;
    volatile int stop;
    enum step fail_in;
    uint64_t fail_range; /* range that fails; SLC_NOWHERE: none */
    bool stops;          /* sets `stop` in that range instead of failing */
    struct seen seen[RANGES_MAX];
};

static void watch_init(struct watch *watch, const struct slc_row_ranges *ranges)
{
    memset(watch, 0, sizeof *watch);
    CU_ASSERT_TRUE_FATAL(ranges->count <= RANGES_MAX);
    watch->ranges = ranges;
    watch->fail_range = SLC_NOWHERE;
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->changed, NULL);
}

static void expect(struct watch *watch, bool right)
{
    if (!right) {
        atomic_fetch_add(&watch->faults, 1);
    }
}

/* Fails, or sets the flag that ends the pass, at the chosen step. */
static enum slc_status
maybe_fail(struct watch *watch, enum step step, uint64_t range, struct slc_error *err)
{
    if (watch->fail_range != range || watch->fail_in != step) {
        return SLC_OK;
    }
    if (watch->stops) {
        __atomic_store_n(&watch->stop, 1, __ATOMIC_RELAXED);
        return SLC_OK;
    }
    return slc_fail(err, SLC_ERR_NUMERIC, "range %u is bad", (unsigned)range);
}

/* Decodes a tile of a range and checks its known properties. */
static enum slc_status
take(struct watch *watch, unsigned phase, struct slc_tile_view *tile, struct slc_error *err)
{
    const struct slc_row_range *range = &watch->ranges->ranges[tile->partition];
    struct seen *seen = &watch->seen[tile->partition];
    const unsigned mode = watch->ranges->mode;
    struct slc_chunk_view chunk;

    expect(watch, !tile->continued && tile->ordinal >= seen->next_tile[phase]);
    seen->next_tile[phase] = tile->ordinal + 1;
    for (;;) {
        const enum slc_status status = tile->next(tile, 4096, &chunk, err);

        if (status != SLC_OK || chunk.nnz == 0) {
            return status;
        }
        for (uint32_t i = 0; i < chunk.nnz; i++) {
            const uint64_t row = tile->corner[mode] + chunk.offset[mode][i];
            uint64_t mix = slc_mix64((uint64_t)(((const double *)chunk.values)[i] * 1e9));

            expect(watch, row >= range->first_row && row < range->end_row);
            for (unsigned m = 0; m < MODES; m++) {
                mix = slc_mix64(mix + tile->corner[m] + chunk.offset[m][i]);
            }
            seen->mix[phase] += mix;
        }
        seen->nnz[phase] += chunk.nnz;
    }
}

static enum slc_status
first(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct watch *watch = context;
    struct seen *seen = &watch->seen[tile->partition];

    if (seen->next_tile[0] == 0) {
        seen->worker = worker;
    }
    expect(watch, seen->worker == worker && !seen->turned);
    if (maybe_fail(watch, IN_FIRST, tile->partition, err) != SLC_OK) {
        return SLC_ERR_NUMERIC;
    }
    return take(watch, 0, tile, err);
}

static enum slc_status
range_done(void *context, unsigned worker, uint64_t range, struct slc_error *err)
{
    struct watch *watch = context;

    expect(watch, watch->seen[range].worker == worker && !watch->seen[range].turned);
    watch->seen[range].turned = true;
    return maybe_fail(watch, IN_TURN, range, err);
}

/* Waits for all ranges before this one, as ordered commits do. Returns false if the pass was
 * aborted. */
static bool await_turn(struct watch *watch, uint64_t range)
{
    bool turn_came;

    pthread_mutex_lock(&watch->mutex);
    while (watch->finished < range && !watch->aborted) {
        pthread_cond_wait(&watch->changed, &watch->mutex);
    }
    turn_came = watch->finished >= range;
    pthread_mutex_unlock(&watch->mutex);
    return turn_came;
}

static enum slc_status
second(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct watch *watch = context;
    struct seen *seen = &watch->seen[tile->partition];
    enum slc_status status;

    expect(watch, seen->worker == worker && seen->turned);
    if (watch->in_order && !await_turn(watch, tile->partition)) {
        return slc_fail(err, SLC_ERR_INTERRUPTED, "woken");
    }
    status = maybe_fail(watch, IN_SECOND, tile->partition, err);
    if (status == SLC_OK) {
        status = take(watch, 1, tile, err);
    }
    if (status == SLC_OK && seen->nnz[1] == seen->nnz[0]) {
        pthread_mutex_lock(&watch->mutex);
        watch->finished = watch->in_order ? tile->partition + 1 : watch->finished + 1;
        pthread_cond_broadcast(&watch->changed);
        pthread_mutex_unlock(&watch->mutex);
    }
    return status;
}

static void abort_watch(void *context)
{
    struct watch *watch = context;

    pthread_mutex_lock(&watch->mutex);
    watch->aborts++;
    watch->aborted = true;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
}

static enum slc_status
run_pass(struct sorted_run *run, unsigned layout, struct watch *watch, struct slc_error *err)
{
    const struct slc_pass pass = {
        .kind = SLC_PASS_RANGES,
        .layout = layout,
        .ranges = {.consumer = {.tile = first, .wake = abort_watch, .context = watch},
                   .ranges = watch->ranges,
                   .range_done = range_done,
                   .again = second,
                   .part = watch->part},
        .stop = &watch->stop};

    return slc_stream_pass(run->stream, &pass, err);
}

/* A pass, in parts of `part` ranges each, that must succeed. */
static void check_parts(struct sorted_run *run,
                        unsigned layout,
                        const struct slc_row_ranges *ranges,
                        bool in_order,
                        uint64_t part)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_stream_stats before, after;
    struct watch *watch = calloc(1, sizeof *watch);
    uint64_t nnz = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(watch);
    watch_init(watch, ranges);
    watch->in_order = in_order;
    slc_stream_stats(run->stream, &before);
    for (uint64_t r = 0; r < ranges->count; r = watch->part.end) {
        watch->part = (struct slc_pass_part){r, slc_min_u64(r + part, ranges->count)};
        SLC_ASSERT_OK(run_pass(run, layout, watch, &err), &err);
    }
    slc_stream_stats(run->stream, &after);
    for (uint64_t r = 0; r < ranges->count; r++) {
        const struct seen *seen = &watch->seen[r];

        CU_ASSERT_TRUE(seen->turned);
        CU_ASSERT_EQUAL(seen->nnz[0], seen->nnz[1]);
        CU_ASSERT_EQUAL(seen->mix[0], seen->mix[1]);
        nnz += seen->nnz[0];
    }
    CU_ASSERT_EQUAL(nnz, run->store.manifest.nnz);
    CU_ASSERT_EQUAL(atomic_load(&watch->faults), 0);
    CU_ASSERT_EQUAL(watch->aborts, 0);
    CU_ASSERT_EQUAL(after.passes - before.passes, 1);
    if (part >= ranges->count || !ranges->shared) {
        CU_ASSERT_EQUAL(after.blocks - before.blocks, ranges->block_count);
        /* Each block is read once, or served once from the cache. */
        CU_ASSERT_EQUAL(after.bytes_read + after.bytes_cached - before.bytes_read -
                            before.bytes_cached,
                        run->plan.layouts[layout].store_bytes);
    }
    free(watch);
}

static void check_pass(struct sorted_run *run,
                       unsigned layout,
                       const struct slc_row_ranges *ranges,
                       bool in_order)
{
    check_parts(run, layout, ranges, in_order, ranges->count);
}

/* Ranges of rows over one layout of a store. There are three kinds of ranges: rows of mode 0 over
 * `blco`, whose scan completes these rows early (blocks have several tiles, so that ranges split
 * blocks and tiles); rows of mode 0 over the layout sorted by mode 0, whose partitions have several
 * blocks; and rows of mode 1 over the layout sorted by mode 1, in which each row is split over
 * partitions. */
struct ranged {
    struct sorted_run run;
    struct slc_row_ranges ranges;
    unsigned layout;
};

static const uint64_t dims[MODES] = {4000, 6, 40};
enum { KINDS_OF_RANGES = 3, NNZ = 520000 };

/* The store of all tests: ranges over blco have full tiles, which are slow to make. */
static struct sorted_store made;

static void make_ranged(struct ranged *ranged)
{
    memset(ranged, 0, sizeof *ranged);
    if (made.tensor.nnz == 0) {
        make_sorted_store(&made, "ranges", MODES, dims, NNZ, 1U << 0 | 1U << 1, 70000,
                          UINT64_C(300) << 10);
    }
}

/* Opens a stream with `slots` slots more than the largest range needs. Returns false without
 * io_uring. */
static bool open_ranged(struct ranged *ranged,
                        unsigned kind,
                        struct slc_plan_request request,
                        unsigned slots,
                        const struct slc_files *files)
{
    const bool blco = kind == 0;
    const unsigned mode = kind == 2 ? 1 : 0;
    struct slc_error err = SLC_ERROR_INIT;

    request.mode = mode;
    request.layouts = blco ? SLC_LAYOUTS_BLCO : SLC_LAYOUTS_SORTED;
    SLC_ASSERT_OK(plan_run(&ranged->run, made.path, &request, &err), &err);
    ranged->layout = blco ? 0 : 1;
    SLC_ASSERT_OK(slc_row_ranges_make(ranged->run.layouts.reader[ranged->layout], mode,
                                      ranged->run.plan.schedule == SLC_SCHEDULE_FILE,
                                      &ranged->ranges, &err),
                  &err);
    CU_ASSERT_TRUE(ranged->ranges.count >= 3);
    CU_ASSERT_EQUAL(ranged->ranges.shared, blco);
    ranged->run.plan.slot_count = (unsigned)ranged->ranges.max_blocks + slots;
    return start_run(&ranged->run, files);
}

static void close_ranged(struct ranged *ranged)
{
    close_run(&ranged->run);
    slc_row_ranges_destroy(&ranged->ranges);
}

/* Whether consumers may wait for earlier ranges: then ranges are processed in row order. */
static bool in_order(const struct ranged *ranged)
{
    return ranged->ranges.shared || ranged->run.plan.schedule == SLC_SCHEDULE_FILE;
}

static void every_range_twice(void)
{
    struct ranged ranged;
    unsigned streams = 0;

    make_ranged(&ranged);
    for (unsigned variant = 0; variant < VARIANTS; variant += slc_test_threads_only() ? 29
                                                              : slc_test_quick()      ? 13
                                                                                      : 5) {
        struct slc_plan_request request = variant_request(variant, 0);

        /* Numbers of workers, some above the number of ranges. */
        request.threads = (const unsigned[]){1, 2, 5, 12}[variant % 4];
        request.slots = 0;
        if (open_ranged(&ranged, variant % KINDS_OF_RANGES, request, variant / 3 % 3, NULL)) {
            streams++;
            for (unsigned round = 0; round < 3; round++) {
                check_pass(&ranged.run, ranged.layout, &ranged.ranges,
                           in_order(&ranged) && round > 0);
            }
            check_parts(&ranged.run, ranged.layout, &ranged.ranges, in_order(&ranged),
                        1 + variant % 7);
        }
        close_ranged(&ranged);
    }
    CU_ASSERT_TRUE(streams > 0);
}

/* Some blocks cached, others not, with the minimal number of slots. */
static void cached_and_not(void)
{
    struct ranged ranged;

    make_ranged(&ranged);
    for (unsigned variant = 0; variant < 4 * KINDS_OF_RANGES; variant += slc_test_threads_only() ? 7
                                                                         : slc_test_quick()      ? 5
                                                                                            : 1) {
        struct slc_plan_request request = variant_request(1, 0);
        struct slc_error err = SLC_ERROR_INIT;

        request.threads = 1 + variant / KINDS_OF_RANGES;
        request.schedule = variant % 2 == 0 ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_LARGEST;
        CU_ASSERT_TRUE_FATAL(open_ranged(&ranged, variant % KINDS_OF_RANGES, request, 0, NULL));
        slc_stream_close(ranged.run.stream);
        keep_some(&ranged.run, ranged.layout);
        SLC_ASSERT_OK(
            slc_stream_open(NULL, &ranged.run.layouts, &ranged.run.plan, &ranged.run.stream, &err),
            &err);
        for (unsigned round = 0; round < 3; round++) {
            check_parts(&ranged.run, ranged.layout, &ranged.ranges, in_order(&ranged),
                        round == 1 ? ranged.ranges.count : 1 + variant % 4);
        }
        close_ranged(&ranged);
    }
}

/* Consumers that fail, or set the flag that stops the pass, in every step of every range. */
static void faults_in_every_step(void)
{
    struct ranged ranged;

    make_ranged(&ranged);
    for (unsigned kind = 0; kind < KINDS_OF_RANGES; kind++) {
        struct slc_plan_request request = variant_request(1, 0);

        request.threads = 3;
        request.schedule = SLC_SCHEDULE_FILE;
        CU_ASSERT_TRUE_FATAL(open_ranged(&ranged, kind, request, 1, NULL));
        for (unsigned number = 0; number < 6 * ranged.ranges.count;
             number += slc_test_threads_only() ? 11
                       : slc_test_quick()      ? 5
                                               : 1) {
            struct watch *watch = calloc(1, sizeof *watch);
            struct slc_error err = SLC_ERROR_INIT;

            CU_ASSERT_PTR_NOT_NULL_FATAL(watch);
            watch_init(watch, &ranged.ranges);
            watch->in_order = number % 4 < 2;
            watch->fail_range = number / 6;
            watch->fail_in = (enum step)(number % 3);
            watch->stops = number % 6 >= 3;
            if (!watch->stops) {
                SLC_ASSERT_FAILS(run_pass(&ranged.run, ranged.layout, watch, &err), SLC_ERR_NUMERIC,
                                 &err, "is bad");
                CU_ASSERT_EQUAL(watch->aborts, 1);
            } else if (run_pass(&ranged.run, ranged.layout, watch, &err) != SLC_OK) {
                /* A stop that is set in the last tile does not end the pass. */
                CU_ASSERT_EQUAL(err.status, SLC_ERR_INTERRUPTED);
                CU_ASSERT_EQUAL(watch->aborts, 1);
            } else {
                CU_ASSERT_EQUAL(watch->fail_in, IN_SECOND);
            }
            CU_ASSERT_EQUAL(atomic_load(&watch->faults), 0);
            free(watch);
        }
        check_pass(&ranged.run, ranged.layout, &ranged.ranges, true);
        close_ranged(&ranged);
    }
}

/* Every read fails once, while workers hold blocks and wait for others. */
static void failing_reads(void)
{
    struct ranged ranged;

    make_ranged(&ranged);
    for (unsigned kind = 0; kind < KINDS_OF_RANGES; kind++) {
        struct slc_plan_request request = variant_request(1, 0);
        struct slc_faulty faulty;

        slc_faulty_init(&faulty);
        request.threads = 3;
        CU_ASSERT_TRUE_FATAL(open_ranged(&ranged, kind, request, 0, &faulty.table));
        for (uint64_t read = 1; read <= ranged.ranges.block_count;
             read += slc_test_quick() ? 3 : 1) {
            struct watch *watch = calloc(1, sizeof *watch);
            struct slc_error err = SLC_ERROR_INIT;

            CU_ASSERT_PTR_NOT_NULL_FATAL(watch);
            watch_init(watch, &ranged.ranges);
            watch->in_order = in_order(&ranged);
            slc_faulty_fail(&faulty, SLC_FAULTY_READ, read, EIO);
            SLC_ASSERT_FAILS(run_pass(&ranged.run, ranged.layout, watch, &err), SLC_ERR_IO, &err,
                             "reading");
            CU_ASSERT_TRUE(err.block < ranged.ranges.block_count && err.offset != SLC_NOWHERE);
            CU_ASSERT_EQUAL(watch->aborts, 1);
            free(watch);
        }
        slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
        check_pass(&ranged.run, ranged.layout, &ranged.ranges, false);
        close_ranged(&ranged);
        CU_ASSERT_EQUAL(slc_faulty_open_count(&faulty), 0);
    }
}

/* Ranges cover all rows, and all blocks with their rows. */
static void check_ranges(const struct slc_reader *reader, const struct slc_row_ranges *ranges)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    uint64_t rows = 0, wrong = 0;

    for (uint64_t r = 0; r < ranges->count; r++) {
        const struct slc_row_range *range = &ranges->ranges[r];

        rows += range->end_row - range->first_row;
        wrong += range->end_row <= range->first_row || range->block_count > ranges->max_blocks;
        for (uint64_t b = 0; b < info->block_count; b++) {
            const bool has = b >= range->first_block && b < range->first_block + range->block_count;
            struct slc_block_entry entry;

            slc_reader_entry(reader, b, &entry);
            wrong += !has && entry.min[ranges->mode] < range->end_row &&
                     entry.max[ranges->mode] >= range->first_row;
        }
        for (uint64_t other = 0; other < r; other++) {
            wrong += ranges->ranges[other].first_row < range->end_row &&
                     ranges->ranges[other].end_row > range->first_row;
        }
    }
    CU_ASSERT_EQUAL(rows, info->dims[ranges->mode]);
    CU_ASSERT_EQUAL(wrong, 0);
}

static void rows_are_divided(void)
{
    struct ranged ranged;

    make_ranged(&ranged);
    for (unsigned kind = 0; kind < KINDS_OF_RANGES; kind++) {
        for (unsigned s = 0; s < 2; s++) {
            struct slc_plan_request request = variant_request(1 + s, 0);

            request.io = SLC_IO_PREAD;
            CU_ASSERT_TRUE_FATAL(open_ranged(&ranged, kind, request, 0, NULL));
            check_ranges(ranged.run.layouts.reader[ranged.layout], &ranged.ranges);
            /* The scan of the largest mode completes its rows early: few blocks at a time. */
            CU_ASSERT_TRUE(ranged.ranges.max_blocks * 2 <= ranged.ranges.block_count);
            close_ranged(&ranged);
        }
    }
    /* Over blco, rows of the other modes are incomplete from the first block to the last. */
    for (unsigned mode = 1; mode < MODES; mode++) {
        struct slc_plan_request request = variant_request(1, mode);
        struct slc_row_ranges ranges;
        struct slc_error err = SLC_ERROR_INIT;

        request.layouts = SLC_LAYOUTS_BLCO;
        SLC_ASSERT_OK(plan_run(&ranged.run, made.path, &request, &err), &err);
        SLC_ASSERT_OK(slc_row_ranges_make(ranged.run.layouts.reader[0], mode, true, &ranges, &err),
                      &err);
        check_ranges(ranged.run.layouts.reader[0], &ranges);
        CU_ASSERT_EQUAL(ranges.max_blocks, ranges.block_count);
        slc_row_ranges_destroy(&ranges);
        close_run(&ranged.run);
    }
}

static void refusals(void)
{
    struct ranged ranged;
    struct slc_row_ranges none;
    struct slc_error err = SLC_ERROR_INIT;
    struct watch *watch = calloc(1, sizeof *watch);

    CU_ASSERT_PTR_NOT_NULL_FATAL(watch);
    make_ranged(&ranged);
    for (unsigned kind = 0; kind < KINDS_OF_RANGES; kind++) {
        CU_ASSERT_TRUE_FATAL(open_ranged(&ranged, kind, variant_request(1, 0), 0, NULL));
        watch_init(watch, &ranged.ranges);
        ranged.ranges.max_blocks++;
        SLC_ASSERT_FAILS(run_pass(&ranged.run, ranged.layout, watch, &err), SLC_ERR_USAGE, &err,
                         "slots");
        slc_error_clear(&err);
        for (uint64_t k = 1;; k++) {
            enum slc_status status;

            slc_fault_arm(SLC_FAULT_ALLOCATION, k);
            status = slc_row_ranges_make(ranged.run.layouts.reader[ranged.layout],
                                         ranged.ranges.mode, true, &none, &err);
            if (status == SLC_OK) {
                break;
            }
            CU_ASSERT_EQUAL(status, SLC_ERR_MEMORY);
            CU_ASSERT_PTR_NULL(none.ranges);
            slc_error_clear(&err);
        }
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        slc_row_ranges_destroy(&none);
        close_ranged(&ranged);
    }
    free(watch);
}

static const struct slc_test tests[] = {
    {"every range twice: kinds, schedules, threads, slots, caches", every_range_twice},
    {"cached blocks and others, with no slot to spare", cached_and_not},
    {"faults and stops in every step of every range", faults_in_every_step},
    {"failing reads", failing_reads},
    {"ranges have all rows and their blocks", rows_are_divided},
    {"what is refused", refusals},
};

SLC_SUITE(ranges)
{
    const int failed = slc_test_main("engine ranges", tests, SLC_COUNT(tests), argc, argv);

    destroy_sorted_store(&made);
    return failed;
}
