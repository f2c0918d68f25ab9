/* Block files for the tests of streams, and a checking consumer. */
#include "stream_fixture.h"

#include "slc_test.h"

#include "base/hash.h"
#include "make_store.h"
#include "one_layout.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Enough for several chunks of 1024, and for blocks of several pages; full tiles are slow to
 * make. */
enum { FIXTURE_TILE_NNZ = 5000, FIXTURE_NNZ = 9 * FIXTURE_TILE_NNZ + 1000 };

struct fixture small_blocks;
struct fixture large_blocks;

const enum slc_io_kind kinds[KINDS] = {SLC_IO_URING, SLC_IO_PREAD, SLC_IO_MMAP};
const enum slc_schedule schedules[SCHEDULES] = {SLC_SCHEDULE_LARGEST, SLC_SCHEDULE_FILE};

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
    slc_made_tensor_create(&tensor, ORDER, dims, FIXTURE_NNZ, SLC_MADE_COUNTS, slc_test_seed());
    tensor.tile_nnz = FIXTURE_TILE_NNZ;
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

void make_fixtures(void)
{
    make_fixture(&small_blocks, "small.blk", SLC_MIN_BLOCK_BYTES);
    make_fixture(&large_blocks, "large.blk", UINT64_C(60) << 10);
    CU_ASSERT(small_blocks.info->block_count == small_blocks.info->tile_count);
    CU_ASSERT(large_blocks.info->block_count >= 3);
    CU_ASSERT(large_blocks.info->block_count * 2 < large_blocks.info->tile_count);
}

struct slc_plan make_plan(const struct fixture *fixture, const struct shape *shape)
{
    struct slc_plan plan;

    memset(&plan, 0, sizeof plan);
    plan.request.io = shape->io;
    plan.request.precision = shape->precision;
    plan.threads = shape->threads;
    plan.schedule = shape->schedule;
    plan.slot_count = shape->slots;
    plan.slot_bytes = fixture->info->max_block_bytes;
    plan.layout_count = 1;
    plan.layouts[0].cached_blocks = shape->cached;
    for (uint64_t b = 0; b < fixture->info->block_count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(fixture->reader, b, &entry);
        if (slc_plan_keeps(shape->cached, fixture->info->block_count, b)) {
            plan.layouts[0].cache_bytes += entry.padded_bytes;
        }
    }
    return plan;
}

struct slc_stream *
open_stream(const struct fixture *fixture, const struct shape *shape, const struct slc_files *files)
{
    struct slc_plan plan = make_plan(fixture, shape);
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_stream *stream = NULL;
    enum slc_status status = stream_one(files, fixture->reader, &plan, &stream, &err);

    if (status == SLC_ERR_UNSUPPORTED && shape->io == SLC_IO_URING) {
        return NULL;
    }
    SLC_ASSERT_OK(status, &err);
    CU_ASSERT_FATAL(stream != NULL);
    return stream;
}

void consumer_init(struct consumer *consumer, const struct shape *shape)
{
    memset(consumer, 0, sizeof *consumer);
    consumer->precision = shape->precision;
    consumer->fail_at = SLC_NOWHERE;
    consumer->stop_at = SLC_NOWHERE;
    consumer->stored_bytes = UINT64_MAX;
    consumer->ascending = shape->schedule == SLC_SCHEDULE_FILE;
    consumer->takers = shape->every_worker ? shape->threads : 0;
    pthread_mutex_init(&consumer->mutex, NULL);
    pthread_cond_init(&consumer->changed, NULL);
}

static void consume_chunk(struct consumer *consumer,
                          unsigned worker,
                          const struct slc_tile_view *tile,
                          const struct slc_chunk_view *chunk)
{
    uint64_t fingerprint = 0;

    for (uint32_t i = 0; i < chunk->nnz; i++) {
        uint64_t coords[ORDER];
        double value = tile->value_type == SLC_F32 ? (double)((const float *)chunk->values)[i]
                                                   : ((const double *)chunk->values)[i];

        for (unsigned m = 0; m < ORDER; m++) {
            coords[m] = tile->corner[m] + chunk->offset[m][i];
        }
        fingerprint += term(coords, value);
    }
    consumer->fingerprint[worker] += fingerprint;
    consumer->nnz[worker] += chunk->nnz;
}

/* Waits for the turn of a tile. Returns false if the pass was aborted. */
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

/* Sets `stop` in the tile begun as number `stop_at`; later tiles wait for that, so that the pass
 * cannot end first with any thread schedule. */
static void raise_stop(struct consumer *consumer)
{
    const uint64_t number = atomic_fetch_add(&consumer->begun, 1);

    if (number == consumer->stop_at) {
        __atomic_store_n(&consumer->stop, 1, __ATOMIC_RELAXED);
    }
    while (number > consumer->stop_at && !__atomic_load_n(&consumer->stop, __ATOMIC_RELAXED)) {
        (void)sched_yield();
    }
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
    raise_stop(consumer);
    do {
        enum slc_status status = tile->next(tile, 1024, &chunk, err);

        if (status != SLC_OK) {
            return status;
        }
        consume_chunk(consumer, worker, tile, &chunk);
        nnz += chunk.nnz;
    } while (chunk.nnz > 0);
    CU_ASSERT_EQUAL(nnz, tile->nnz);
    CU_ASSERT(tile->ordinal >= consumer->next[worker]);
    consumer->next[worker] = consumer->ascending ? tile->ordinal + 1 : 0;
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

enum slc_status
run_pass(struct slc_stream *stream, struct consumer *consumer, struct slc_error *err)
{
    struct slc_pass pass = {
        .tiles = {.consumer = {.tile = consume, .wake = abort_consumer, .context = consumer},
                  .order = consumer->takers > 0 ? SLC_TILES_TO_EVERY_WORKER : SLC_TILES_BY_SCHEDULE,
                  .part = consumer->part},
        .stop = &consumer->stop,
        .progress = count_progress,
        .progress_context = consumer,
    };

    return slc_stream_pass(stream, &pass, err);
}

void check_pass(struct slc_stream *stream,
                const struct fixture *fixture,
                const struct shape *shape,
                bool ordered)
{
    check_parts(stream, fixture, shape, ordered, &(uint64_t){0}, 1);
}

void check_parts(struct slc_stream *stream,
                 const struct fixture *fixture,
                 const struct shape *shape,
                 bool ordered,
                 const uint64_t *ends,
                 unsigned count)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct consumer consumer;
    uint64_t nnz = 0;
    uint64_t fingerprint = 0;
    unsigned wrong = 0;
    const unsigned times = shape->every_worker ? shape->threads : 1;

    consumer_init(&consumer, shape);
    consumer.ordered = ordered;
    consumer.stored_bytes = fixture->stored_bytes;
    for (unsigned p = 0; p < count; p++) {
        consumer.part = (struct slc_pass_part){p == 0 ? 0 : ends[p - 1], ends[p]};
        SLC_ASSERT_OK(run_pass(stream, &consumer, &err), &err);
    }
    for (unsigned w = 0; w < MAX_WORKERS; w++) {
        nnz += consumer.nnz[w];
        fingerprint += consumer.fingerprint[w];
    }
    for (uint64_t t = 0; t < fixture->info->tile_count; t++) {
        wrong += atomic_load(&consumer.seen[t]) != times;
    }
    for (unsigned w = 0; shape->every_worker && w < shape->threads; w++) {
        wrong += consumer.nnz[w] != fixture->nnz || consumer.fingerprint[w] != fixture->fingerprint;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(nnz, fixture->nnz * times);
    CU_ASSERT_EQUAL(fingerprint, fixture->fingerprint * times);
    CU_ASSERT_EQUAL(atomic_load(&consumer.aborts), 0);
}

void close_fixtures(void)
{
    slc_reader_close(small_blocks.reader);
    slc_reader_close(large_blocks.reader);
}
