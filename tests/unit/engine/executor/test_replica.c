/* Replicas loaded from a stream: bitwise the streamed MTTKRP for exact sums; after a stop, a
 * failing read or a damaged block nothing is held, and the same stream and device can load
 * again. */
#include "engine/executor/replica.h"

#include "base/error/fault.h"
#include "base/random.h"
#include "cp_fixture.h"
#include "engine/stream/mttkrp.h"
#include "faulty_files.h"
#include "one_layout.h"
#include "slc_test.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 7, MODES = 3 };

/* A store of several tiles and factors of small integers: sums in any order have the same bits. */
struct problem {
    struct fixture_tensor tensor;
    char path[512];
    struct slc_matrix factors[MODES];
    double *want[MODES]; /* result of the oracle for each mode */
};

static void take_answers(struct problem *problem)
{
    const struct slc_coo_view view = fixture_view(&problem->tensor);
    const struct slc_matrix *factors[MODES];

    for (unsigned n = 0; n < MODES; n++) {
        factors[n] = &problem->factors[n];
    }
    for (unsigned n = 0; n < MODES; n++) {
        problem->want[n] = calloc(problem->tensor.dims[n] * RANK, sizeof *problem->want[n]);
        CU_ASSERT_PTR_NOT_NULL_FATAL(problem->want[n]);
        slc_reference_mttkrp(&view, factors, n, problem->tensor.dims[n], RANK, problem->want[n]);
    }
}

/* Nearly all tests share this store, because its full tiles are slow to make. It has five tiles
 * (ThreadSanitizer: four), one more than two workers may have begun when the second is stopped. */
static struct problem tiled;
static unsigned tile_count;

static void make_tiles(void)
{
    static const uint64_t dims[MODES] = {300, 200, 100};
    struct problem *problem = &tiled;
    struct slc_error err = SLC_ERROR_INIT;

    if (problem->tensor.nnz > 0) {
        return;
    }
    tile_count = slc_test_threads_only() ? 4 : 5;
    fixture_random(&problem->tensor, MODES, dims, tile_count == 4 ? 210000 : 300000,
                   slc_test_seed());
    CU_ASSERT_EQUAL_FATAL((problem->tensor.nnz - 1) / SLC_TILE_NNZ + 1, tile_count);
    for (uint64_t i = 0; i < problem->tensor.nnz; i++) {
        problem->tensor.values[i] = (double)(1 + slc_random_below(slc_test_seed(), 50, i, 4));
    }
    fixture_store(&problem->tensor, slc_test_folder(), "tiled", SLC_CODEC_PACKED, 4096,
                  problem->path);
    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&problem->factors[n], SLC_F64, dims[n], RANK, &err), &err);
        for (uint64_t i = 0; i < dims[n] * RANK; i++) {
            slc_matrix_set(&problem->factors[n], i / RANK, (uint32_t)(i % RANK),
                           (double)slc_random_below(99, n, i, 5) - 2.0);
        }
    }
    take_answers(problem);
}

static void destroy_problem(struct problem *problem)
{
    for (unsigned n = 0; n < MODES; n++) {
        slc_matrix_destroy(&problem->factors[n]);
        free(problem->want[n]);
    }
    fixture_destroy(&problem->tensor);
}

static enum slc_status multiply(struct slc_stream *stream,
                                struct slc_backend *backend,
                                const struct problem *problem,
                                unsigned mode,
                                unsigned workers,
                                enum slc_conflict conflict,
                                struct slc_matrix *output,
                                struct slc_error *err)
{
    struct slc_mttkrp_job job = {.order = MODES,
                                 .mode = mode,
                                 .rank = RANK,
                                 .nnz = problem->tensor.nnz,
                                 .workers = workers,
                                 .conflict = conflict,
                                 .output = output};

    for (unsigned n = 0; n < MODES; n++) {
        job.factors[n] = &problem->factors[n];
    }
    return slc_mttkrp_stream(stream, 0, backend, &job, NULL, NULL, NULL, err);
}

static bool same_bits(const struct problem *problem, unsigned mode, const struct slc_matrix *output)
{
    bool same = true;

    for (uint64_t i = 0; i < output->rows; i++) {
        same = same && memcmp(slc_matrix_row_f64(output, i), problem->want[mode] + i * RANK,
                              RANK * sizeof(double)) == 0;
    }
    return same;
}

/* Every mode, computed in one way, has the oracle's bits. Returns the number of passes. */
static uint64_t
check_modes(struct fixture_run *run, const struct problem *problem, enum slc_conflict conflict)
{
    struct slc_stream_stats before, after;

    slc_stream_stats(run->stream, &before);
    for (unsigned mode = 0; mode < MODES; mode++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_matrix output;

        SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, problem->tensor.dims[mode], RANK, &err),
                      &err);
        SLC_ASSERT_OK(multiply(run->stream, run->backend, problem, mode, run->plan.threads,
                               conflict, &output, &err),
                      &err);
        CU_ASSERT(same_bits(problem, mode, &output));
        slc_matrix_destroy(&output);
    }
    slc_stream_stats(run->stream, &after);
    return after.passes - before.passes;
}

/* Every mode from replicas is bitwise the streamed one, and needs no pass. */
static void check_copies(struct fixture_run *run, const struct problem *problem)
{
    CU_ASSERT_EQUAL(check_modes(run, problem, SLC_CONFLICT_REPLICA), 0);
}

static enum slc_status
load(struct fixture_run *run, const volatile int *flag, struct slc_error *err)
{
    const struct slc_stop stop = {.flag = flag};

    return slc_replica_load(run->stream, run->backend, slc_reader_info(run->store.reader), SLC_F64,
                            run->plan.threads, NULL, &stop, err);
}

/* Checks that the device holds no replicas. */
static void check_empty(struct fixture_run *run, const struct problem *problem)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix output;

    SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F64, problem->tensor.dims[0], RANK, &err), &err);
    SLC_ASSERT_FAILS(multiply(run->stream, run->backend, problem, 0, run->plan.threads,
                              SLC_CONFLICT_REPLICA, &output, &err),
                     SLC_ERR_USAGE, &err, "there are no copies");
    slc_matrix_destroy(&output);
}

static void yields_the_streamed_bits(void)
{
    make_tiles();
    for (unsigned variant = 0; variant < 6; variant += slc_test_threads_only() ? 2 : 1) {
        struct slc_plan_request request = fixture_request(RANK);
        struct slc_error err = SLC_ERROR_INIT;
        struct fixture_run run;

        request.threads = 1 + variant % 3;
        request.schedule = variant < 3 ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_LARGEST;
        request.cache = variant % 2 == 0;
        SLC_ASSERT_OK(fixture_open(&run, tiled.path, &request, &err), &err);
        SLC_ASSERT_OK(load(&run, NULL, &err), &err);
        check_copies(&run, &tiled);
        CU_ASSERT_EQUAL(check_modes(&run, &tiled, SLC_CONFLICT_AUTO), MODES);
        fixture_close(&run);
    }
}

/* A device that sets `stop` in its second tile; later tiles wait for that, so that no worker
 * processes the rest while the worker with the second tile is descheduled. */
static volatile int stop_raised;
static atomic_uint tiles_seen;
static const struct slc_backend_ops *ops_below;

static enum slc_status stopping_tile(struct slc_backend *backend,
                                     unsigned worker,
                                     struct slc_tile_view *tile,
                                     struct slc_error *err)
{
    const unsigned number = atomic_fetch_add(&tiles_seen, 1);

    if (number == 1) {
        __atomic_store_n(&stop_raised, 1, __ATOMIC_RELAXED);
    }
    while (number > 1 && !__atomic_load_n(&stop_raised, __ATOMIC_RELAXED)) {
        (void)sched_yield();
    }
    return ops_below->replica_tile(backend, worker, tile, err);
}

static void continues_after_a_stop(void)
{
    make_tiles();
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct slc_plan_request request = fixture_request(RANK);
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_backend_ops stopping;
        struct fixture_run run;

        request.threads = threads;
        SLC_ASSERT_OK(fixture_open(&run, tiled.path, &request, &err), &err);
        ops_below = run.backend->ops;
        stopping = *ops_below;
        stopping.replica_tile = stopping_tile;
        atomic_store(&tiles_seen, 0);
        stop_raised = 0;
        run.backend->ops = &stopping;
        SLC_ASSERT_FAILS(load(&run, &stop_raised, &err), SLC_ERR_INTERRUPTED, &err, "");
        run.backend->ops = ops_below;
        CU_ASSERT(atomic_load(&tiles_seen) >= 2 && atomic_load(&tiles_seen) < tile_count);
        check_empty(&run, &tiled);
        stop_raised = 0;
        slc_error_clear(&err);
        SLC_ASSERT_OK(load(&run, &stop_raised, &err), &err);
        check_copies(&run, &tiled);
        fixture_close(&run);
    }
}

/* Checks that `err` names the block whose read was hit. */
static void check_block(struct fixture_run *run, struct slc_faulty *faulty, struct slc_error *err)
{
    const uint64_t hit = atomic_load(&faulty->hit_offset);
    struct slc_block_entry entry = {0};

    CU_ASSERT_FATAL(err->block < tile_count);
    slc_reader_entry(run->store.reader, err->block, &entry);
    CU_ASSERT(hit >= entry.offset && hit < entry.offset + entry.padded_bytes);
}

/* A deadline in the past ends a load before its first tile. */
static void ends_in_time(void)
{
    const struct slc_stop passed = {.deadline_ns = 1};
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_run run;

    make_tiles();
    SLC_ASSERT_OK(fixture_open(&run, tiled.path, &request, &err), &err);
    SLC_ASSERT_FAILS(slc_replica_load(run.stream, run.backend, slc_reader_info(run.store.reader),
                                      SLC_F64, run.plan.threads, NULL, &passed, &err),
                     SLC_ERR_INTERRUPTED, &err, "tiles");
    check_empty(&run, &tiled);
    slc_error_clear(&err);
    SLC_ASSERT_OK(load(&run, NULL, &err), &err);
    check_copies(&run, &tiled);
    fixture_close(&run);
}

/* The k-th read fails, for every k. */
static void names_a_failing_read(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_run run;
    struct slc_faulty faulty;

    make_tiles();
    request.cache = false;
    SLC_ASSERT_OK(fixture_open(&run, tiled.path, &request, &err), &err);
    slc_stream_close(run.stream);
    slc_faulty_init(&faulty);
    SLC_ASSERT_OK(stream_one(&faulty.table, run.store.reader, &run.plan, &run.stream, &err), &err);
    for (uint64_t read = 1; read <= tile_count; read++) {
        slc_faulty_fail(&faulty, SLC_FAULTY_READ, read, EIO);
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(load(&run, NULL, &err), SLC_ERR_IO, &err, "reading");
        CU_ASSERT_EQUAL(err.system_errno, EIO);
        CU_ASSERT(err.offset != SLC_NOWHERE);
        check_block(&run, &faulty, &err);
        CU_ASSERT_PTR_NOT_NULL(strstr(err.file, "blco.blk"));
        check_empty(&run, &tiled);
    }
    slc_faulty_fail(&faulty, SLC_FAULTY_ANY, 0, 0);
    slc_error_clear(&err);
    SLC_ASSERT_OK(load(&run, NULL, &err), &err);
    check_copies(&run, &tiled);
    /* After a flipped bit in a later load, the replicas of the earlier load are dropped, too. */
    slc_faulty_flip(&faulty, 3, 100000);
    SLC_ASSERT_FAILS(load(&run, NULL, &err), SLC_ERR_DAMAGED, &err, "");
    check_block(&run, &faulty, &err);
    check_empty(&run, &tiled);
    fixture_close(&run);
}

/* Memory or threads run out at any step of a load. */
static void holds_nothing_after_a_fault(void)
{
    static const enum slc_fault_kind faults[] = {SLC_FAULT_ALLOCATION, SLC_FAULT_THREAD};
    static const enum slc_status wanted[] = {SLC_ERR_MEMORY, SLC_ERR_SYSTEM};

    make_tiles();
    for (size_t f = 0; f < SLC_COUNT(faults); f++) {
        bool done = false;

        for (uint64_t k = 1; !done && k < 400; k += slc_test_threads_only() ? 1 + k : 1) {
            struct slc_plan_request request = fixture_request(RANK);
            struct slc_error err = SLC_ERROR_INIT;
            struct fixture_run run;
            enum slc_status status;

            SLC_ASSERT_OK(fixture_open(&run, tiled.path, &request, &err), &err);
            slc_fault_arm(faults[f], k);
            status = load(&run, NULL, &err);
            done = slc_fault_seen(faults[f]) < k;
            slc_fault_arm(faults[f], 0);
            CU_ASSERT_EQUAL(status, done ? SLC_OK : wanted[f]);
            if (done) {
                check_copies(&run, &tiled);
            } else {
                check_empty(&run, &tiled);
            }
            fixture_close(&run);
        }
        CU_ASSERT(done);
    }
}

/* A shape that differs from the stream's. */
static void refuses_another_tensor(void)
{
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_error err = SLC_ERROR_INIT;
    struct fixture_run run;

    make_tiles();
    SLC_ASSERT_OK(fixture_open(&run, tiled.path, &request, &err), &err);
    for (unsigned wrong = 0; wrong < 4; wrong++) {
        struct slc_layout_info info = *slc_reader_info(run.store.reader);

        info.dims[2] -= wrong == 0;
        info.nnz += wrong == 1;
        info.nnz -= wrong == 2;
        info.order -= wrong == 3;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(slc_replica_load(run.stream, run.backend, &info, SLC_F64, run.plan.threads,
                                          NULL, NULL, &err),
                         SLC_ERR_USAGE, &err, "copies");
        check_empty(&run, &tiled);
    }
    fixture_close(&run);
}

static void no_nonzeros_give_zeros(void)
{
    static const uint64_t dims[MODES] = {4, 5, 6};
    struct slc_plan_request request = fixture_request(RANK);
    struct slc_error err = SLC_ERROR_INIT;
    struct problem problem;
    struct fixture_run run;

    memset(&problem, 0, sizeof problem);
    fixture_random(&problem.tensor, MODES, dims, 0, 1);
    fixture_store(&problem.tensor, slc_test_folder(), "empty", SLC_CODEC_PACKED, 4096,
                  problem.path);
    for (unsigned n = 0; n < MODES; n++) {
        SLC_ASSERT_OK(slc_matrix_create(&problem.factors[n], SLC_F64, dims[n], RANK, &err), &err);
    }
    take_answers(&problem);
    SLC_ASSERT_OK(fixture_open(&run, problem.path, &request, &err), &err);
    SLC_ASSERT_OK(load(&run, NULL, &err), &err);
    check_copies(&run, &problem);
    fixture_close(&run);
    destroy_problem(&problem);
}

SLC_SUITE(replica)
{
    static const struct slc_test tests[] = {
        {"the same bits as the streamed MTTKRP", yields_the_streamed_bits},
        {"after a stop the next load works", continues_after_a_stop},
        {"a time limit ends a load", ends_in_time},
        {"a failing read is named, and nothing is held", names_a_failing_read},
        {"every failing allocation and thread", holds_nothing_after_a_fault},
        {"refused: another tensor's shape", refuses_another_tensor},
        {"no nonzeros yield zeros", no_nonzeros_give_zeros},
    };

    const int failed = slc_test_main("engine: replica", tests, SLC_COUNT(tests), argc, argv);

    destroy_problem(&tiled);
    return failed;
}
