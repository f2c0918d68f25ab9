/*
 * Streams over real block files: every tile arrives once whatever the I/O method, schedule, number
 * of workers, slots and cached blocks; faults of reads, blocks, consumers, threads and memory end a
 * pass with one error that says where, and the stream serves the next pass.
 */
#include "slc_test.h"

#include "base/fault.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/memory.h"
#include "engine/stream.h"
#include "faulty_files.h"
#include "make_store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ORDER = 3, MAX_TILES = 64, MAX_WORKERS = 8 };

/* The block file that all tests read, and what is true of it. */
struct fixture {
    char path[256];
    struct slc_reader *reader;
    const struct slc_layout_info *info;
    uint64_t stored_bytes; /* of all blocks, padded */
    uint64_t nnz;
    uint64_t fingerprint; /* sum over nonzeros of a mix of coordinates and value */
};

static struct fixture small_blocks; /* one tile each */
static struct fixture large_blocks; /* several tiles each */

static uint64_t term(const uint64_t *coords, double value)
{
    uint64_t mixed = slc_mix64((uint64_t)(int64_t)(value * 1024));

    for (unsigned m = 0; m < ORDER; m++) {
        mixed = slc_mix64(mixed + coords[m]);
    }
    return mixed;
}

static void make_fixture(struct fixture *fixture, const char *name, uint64_t block_bytes)
{
    static const uint64_t dims[ORDER] = {5000, 300, 700};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_writer_summary summary;
    struct slc_made_tensor tensor;

    if (fixture->reader != NULL) {
        return;
    }
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/%s", slc_test_folder(), name);
    slc_made_tensor_create(&tensor, ORDER, dims, 600000, SLC_MADE_COUNTS, slc_test_seed());
    SLC_ASSERT_OK(slc_made_blocks_write(&tensor, NULL, fixture->path, SLC_CODEC_PACKED, block_bytes,
                                        &summary, &err),
                  &err);
    for (uint64_t i = 0; i < tensor.nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];
        slc_u128 key = ((slc_u128)tensor.key_hi[i] << 64) | tensor.key_lo[i];

        slc_key_decode(&tensor.keys, key, coords);
        fixture->fingerprint += term(coords, tensor.values[i]);
    }
    fixture->nnz = tensor.nnz;
    slc_made_tensor_destroy(&tensor);
    SLC_ASSERT_OK(slc_reader_open(NULL, fixture->path, &fixture->reader, &err), &err);
    CU_ASSERT_FATAL(fixture->reader != NULL);
    fixture->info = slc_reader_info(fixture->reader);
    for (uint64_t b = 0; b < fixture->info->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(fixture->reader, b, &entry);
        fixture->stored_bytes += entry.padded_bytes;
    }
    CU_ASSERT_FATAL(fixture->info->tile_count <= MAX_TILES);
}

static void make_fixtures(void)
{
    make_fixture(&small_blocks, "small.blk", SLC_MIN_BLOCK_BYTES);
    make_fixture(&large_blocks, "large.blk", UINT64_C(450) << 10);
    CU_ASSERT(small_blocks.info->block_count == small_blocks.info->tile_count);
    CU_ASSERT(large_blocks.info->block_count >= 3);
    CU_ASSERT(large_blocks.info->block_count * 2 < large_blocks.info->tile_count);
}

/* How to stream. */
struct shape {
    enum slc_io_kind io;
    enum slc_schedule schedule;
    unsigned threads;
    unsigned slots;
    uint64_t cached; /* blocks */
    enum slc_value_type precision;
};

static struct slc_plan make_plan(const struct fixture *fixture, const struct shape *shape)
{
    struct slc_plan plan;

    memset(&plan, 0, sizeof plan);
    plan.request.io = shape->io;
    plan.request.precision = shape->precision;
    plan.threads = shape->threads;
    plan.schedule = shape->schedule;
    plan.slot_count = shape->slots;
    plan.slot_bytes = fixture->info->max_block_bytes;
    plan.cached_blocks = shape->cached;
    for (uint64_t b = 0; b < shape->cached; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(fixture->reader, b, &entry);
        plan.cache_bytes += entry.padded_bytes;
    }
    return plan;
}

/* Opens a stream; NULL where io_uring is refused. */
static struct slc_stream *
open_stream(const struct fixture *fixture, const struct shape *shape, const struct slc_files *files)
{
    struct slc_plan plan = make_plan(fixture, shape);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_stream *stream = NULL;
    enum slc_status status = slc_stream_open(files, fixture->reader, &plan, &stream, &err);

    if (status == SLC_ERR_UNSUPPORTED && shape->io == SLC_IO_URING) {
        return NULL;
    }
    SLC_ASSERT_OK(status, &err);
    CU_ASSERT_FATAL(stream != NULL);
    return stream;
}

/* What a consumer collects, and how it behaves. */
struct consumer {
    enum slc_value_type precision;
    bool ordered;     /* wait for all tiles before this one, as ordered commits do */
    uint64_t fail_at; /* ordinal whose tile fails; SLC_NOWHERE: none */
    uint64_t stop_at; /* ordinal at which `stop` is raised */
    volatile int stop;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t committed; /* tiles, when ordered */
    bool aborted;
    atomic_uint aborts;
    atomic_uint seen[MAX_TILES];
    uint64_t nnz[MAX_WORKERS];
    uint64_t fingerprint[MAX_WORKERS];
    uint64_t stored_bytes; /* of all blocks */
    unsigned progress_calls;
    uint64_t progress_blocks;
};

static void consumer_init(struct consumer *consumer, const struct shape *shape)
{
    memset(consumer, 0, sizeof *consumer);
    consumer->precision = shape->precision;
    consumer->fail_at = SLC_NOWHERE;
    consumer->stop_at = SLC_NOWHERE;
    consumer->stored_bytes = UINT64_MAX;
    pthread_mutex_init(&consumer->mutex, NULL);
    pthread_cond_init(&consumer->changed, NULL);
}

static void consume_chunk(struct consumer *consumer,
                          unsigned worker,
                          const struct slc_tile_view *tile,
                          const struct slc_chunk_view *chunk)
{
    for (uint32_t i = 0; i < chunk->nnz; i++) {
        uint64_t coords[ORDER];
        double value = tile->value_type == SLC_F32 ? (double)((const float *)chunk->values)[i]
                                                   : ((const double *)chunk->values)[i];

        for (unsigned m = 0; m < ORDER; m++) {
            coords[m] = tile->corner[m] + chunk->offset[m][i];
        }
        consumer->fingerprint[worker] += term(coords, value);
    }
    consumer->nnz[worker] += chunk->nnz;
}

/* Waits for the turn of a tile. False when the pass was given up. */
static bool commit(struct consumer *consumer, uint64_t ordinal)
{
    bool turn;

    pthread_mutex_lock(&consumer->mutex);
    while (consumer->committed != ordinal && !consumer->aborted) {
        pthread_cond_wait(&consumer->changed, &consumer->mutex);
    }
    turn = consumer->committed == ordinal;
    if (turn) {
        consumer->committed++;
        pthread_cond_broadcast(&consumer->changed);
    }
    pthread_mutex_unlock(&consumer->mutex);
    return turn;
}

static enum slc_status
consume(void *context, unsigned worker, struct slc_tile_view *tile, struct slc_error *err)
{
    struct consumer *consumer = context;
    struct slc_chunk_view chunk;
    uint32_t nnz = 0;

    CU_ASSERT_FATAL(worker < MAX_WORKERS && tile->ordinal < MAX_TILES);
    CU_ASSERT(tile->value_type == consumer->precision && tile->order == ORDER);
    if (tile->ordinal == consumer->fail_at) {
        return slc_fail(err, SLC_ERR_NUMERIC, "tile %u is bad", (unsigned)tile->ordinal);
    }
    if (tile->ordinal == consumer->stop_at) {
        __atomic_store_n(&consumer->stop, 1, __ATOMIC_RELAXED);
    }
    do {
        enum slc_status status = tile->next(tile, 1024, &chunk, err);

        if (status != SLC_OK) {
            return status;
        }
        consume_chunk(consumer, worker, tile, &chunk);
        nnz += chunk.nnz;
    } while (chunk.nnz > 0);
    CU_ASSERT_EQUAL(nnz, tile->nnz);
    if (consumer->ordered && !commit(consumer, tile->ordinal)) {
        return slc_fail(err, SLC_ERR_INTERRUPTED, "woken");
    }
    atomic_fetch_add(&consumer->seen[tile->ordinal], 1);
    return SLC_OK;
}

static void abort_consumer(void *context)
{
    struct consumer *consumer = context;

    atomic_fetch_add(&consumer->aborts, 1);
    pthread_mutex_lock(&consumer->mutex);
    consumer->aborted = true;
    pthread_cond_broadcast(&consumer->changed);
    pthread_mutex_unlock(&consumer->mutex);
}

static void count_progress(void *context, uint64_t done, uint64_t blocks, uint64_t bytes_read)
{
    struct consumer *consumer = context;

    CU_ASSERT(done <= blocks && done >= consumer->progress_blocks);
    CU_ASSERT(bytes_read <= consumer->stored_bytes);
    consumer->progress_blocks = done;
    consumer->progress_calls++;
}

static enum slc_status
run_pass(struct slc_stream *stream, struct consumer *consumer, struct slc_error *err)
{
    struct slc_pass pass = {
        .tile = consume,
        .abort = abort_consumer,
        .context = consumer,
        .stop = &consumer->stop,
        .progress = count_progress,
        .progress_context = consumer,
    };

    return slc_stream_pass(stream, &pass, err);
}

/* One pass that has to go well. */
static void check_pass(struct slc_stream *stream,
                       const struct fixture *fixture,
                       const struct shape *shape,
                       bool ordered)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct consumer consumer;
    uint64_t nnz = 0;
    uint64_t fingerprint = 0;
    unsigned wrong = 0;

    consumer_init(&consumer, shape);
    consumer.ordered = ordered;
    consumer.stored_bytes = fixture->stored_bytes;
    SLC_ASSERT_OK(run_pass(stream, &consumer, &err), &err);
    for (unsigned w = 0; w < MAX_WORKERS; w++) {
        nnz += consumer.nnz[w];
        fingerprint += consumer.fingerprint[w];
    }
    for (uint64_t t = 0; t < fixture->info->tile_count; t++) {
        wrong += atomic_load(&consumer.seen[t]) != 1;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(nnz, fixture->nnz);
    CU_ASSERT_EQUAL(fingerprint, fixture->fingerprint);
    CU_ASSERT_EQUAL(atomic_load(&consumer.aborts), 0);
}

static const enum slc_io_kind kinds[] = {SLC_IO_URING, SLC_IO_PREAD, SLC_IO_MMAP};
static const enum slc_schedule schedules[] = {SLC_SCHEDULE_LARGEST, SLC_SCHEDULE_FILE};

/* Three passes over one shape, and what the statistics have to say about them. */
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
        check_pass(stream, fixture, shape, shape->schedule == SLC_SCHEDULE_FILE && pass > 0);
        slc_stream_stats(stream, &stats);
        CU_ASSERT_EQUAL(stats.passes, pass + 1);
        CU_ASSERT_EQUAL(stats.blocks, (pass + 1) * fixture->info->block_count);
        /* The set is spread over the file, so its size may miss the planned one by a block. */
        if (pass == 0) {
            CU_ASSERT_EQUAL(stats.bytes_read, fixture->stored_bytes);
            CU_ASSERT_EQUAL(stats.bytes_cached, 0);
        } else if (pass == 1) {
            held = stats.bytes_cached;
            CU_ASSERT(held <= plan.cache_bytes);
            CU_ASSERT(held + fixture->info->max_block_bytes >= plan.cache_bytes);
        }
        CU_ASSERT_EQUAL(stats.bytes_read, (pass + 1) * fixture->stored_bytes - pass * held);
        CU_ASSERT_EQUAL(stats.bytes_cached, pass * held);
        CU_ASSERT(stats.cache_blocks <= shape->cached && stats.cache_blocks + 1 >= shape->cached);
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

                for (size_t c = 0; c < SLC_COUNT(cached); c++) {
                    struct shape shape = {kinds[k],   schedules[s],
                                          threads[t], slots[(t + c) % 3],
                                          cached[c],  c == 1 ? SLC_F32 : SLC_F64};

                    check_shape(fixture, &shape);
                }
            }
        }
    }
}

/* The operation of the table that carries the results of a kind's reads. */
static enum slc_faulty_kind read_operation(enum slc_io_kind kind)
{
    return kind == SLC_IO_PREAD ? SLC_FAULTY_READ : SLC_FAULTY_COMPLETED;
}

static void test_failing_reads(void)
{
    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        for (size_t s = 0; s < SLC_COUNT(schedules); s++) {
            struct shape shape = {kinds[k], schedules[s], 3, 4, 2, SLC_F64};
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
        struct shape shape = {kinds[k], SLC_SCHEDULE_FILE, 2, 3, 0, SLC_F64};
        struct slc_faulty faulty;
        struct slc_stream *stream;

        slc_faulty_init(&faulty);
        stream = open_stream(&large_blocks, &shape, &faulty.table);
        if (stream == NULL) {
            continue;
        }
        slc_faulty_shorten(&faulty, read_operation(kinds[k]), 1, 65536);
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
        struct shape shape = {kinds[k], schedules[k % 2], 3, 3, 1, SLC_F64};
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
            /* From here on block 0 is cached: damage to it on the disk is no concern of this
             * stream. */
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
            struct shape shape = {kinds[threads % 3], schedules[s], threads, 2, 2, SLC_F64};
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

static void test_stop(void)
{
    make_fixtures();
    for (size_t s = 0; s < SLC_COUNT(schedules); s++) {
        struct shape shape = {SLC_IO_PREAD, schedules[s], 3, 4, 0, SLC_F64};
        struct slc_stream *stream = open_stream(&small_blocks, &shape, NULL);
        struct slc_error err = SLC_ERROR_INIT;
        struct consumer consumer;

        consumer_init(&consumer, &shape);
        consumer.ordered = schedules[s] == SLC_SCHEDULE_FILE;
        consumer.stop_at = 3;
        SLC_ASSERT_FAILS(run_pass(stream, &consumer, &err), SLC_ERR_INTERRUPTED, &err, "stopped");
        CU_ASSERT_EQUAL(atomic_load(&consumer.aborts), 1);
        check_pass(stream, &small_blocks, &shape, false);
        slc_stream_close(stream);
    }
}

/* Every allocation of opening fails once; a pass allocates nothing but what its threads do. */
static void test_no_memory(void)
{
    make_fixtures();
    for (size_t k = 0; k < SLC_COUNT(kinds); k++) {
        struct shape shape = {kinds[k], SLC_SCHEDULE_LARGEST, 2, 3, 2, SLC_F64};
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
            status = slc_stream_open(NULL, large_blocks.reader, &plan, &stream, &err);
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
    struct shape shape = {SLC_IO_PREAD, SLC_SCHEDULE_FILE, 3, 3, 2, SLC_F64};
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
        struct shape shape = {kinds[k], schedules[k % 2], 2, 2, 0, SLC_F64};
        struct slc_plan plan = make_plan(&empty, &shape);
        enum slc_status status;

        plan.slot_bytes = SLC_PAGE_BYTES;
        status = slc_stream_open(NULL, empty.reader, &plan, &stream, &err);
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
    struct shape shape = {SLC_IO_PREAD, SLC_SCHEDULE_FILE, 1, 2, 2, SLC_F64};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_stream_stats stats;
    struct slc_stream *stream;
    struct slc_plan plan;

    make_fixtures();
    plan = make_plan(&large_blocks, &shape);
    plan.slot_bytes -= SLC_PAGE_BYTES;
    SLC_ASSERT_FAILS(slc_stream_open(NULL, large_blocks.reader, &plan, &stream, &err),
                     SLC_ERR_USAGE, &err, "slots");
    /* Less memory than the planned blocks take: fewer are kept. */
    plan = make_plan(&large_blocks, &shape);
    plan.cache_bytes -= 1;
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_stream_open(NULL, large_blocks.reader, &plan, &stream, &err), &err);
    check_pass(stream, &large_blocks, &shape, false);
    slc_stream_stats(stream, &stats);
    CU_ASSERT_EQUAL(stats.cache_blocks, 1);
    slc_stream_close(stream);
    slc_stream_close(NULL);
}

static void close_fixtures(void)
{
    slc_reader_close(small_blocks.reader);
    slc_reader_close(large_blocks.reader);
}

static const struct slc_test tests[] = {
    {"every tile once: methods, schedules, workers, slots, caches", test_shapes},
    {"failing reads name file, block and offset", test_failing_reads},
    {"short and interrupted reads", test_short_and_interrupted_reads},
    {"damaged blocks never reach the consumer", test_damaged_blocks},
    {"a consumer fails at every tile", test_failing_consumer},
    {"stopping between tiles", test_stop},
    {"no memory", test_no_memory},
    {"no threads", test_no_threads},
    {"a layout without nonzeros", test_empty_layout},
    {"plans that do not fit", test_bad_plans},
};

int main(int argc, char **argv)
{
    int failed = slc_test_main("stream", tests, SLC_COUNT(tests), argc, argv);

    close_fixtures();
    return failed;
}
