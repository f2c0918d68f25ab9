/* MTTKRPs whose state is saved between two tiles and resumed by another backend: the oracle's
 * numbers by every strategy and, for strategies that guarantee bits, those of an uninterrupted job,
 * for any number of interruptions. */
#include "kept_state.h"
#include "mttkrp_fixture.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

static void spoil(struct problem *problem)
{
    memset(problem->out.output.buffer.data, 0x55,
           problem->out.output.rows * problem->out.output.pitch * slc_value_bytes(problem->type));
}

/* A job that moves to another backend, with other workers, after every `part` tiles or
 * partitions. */
static void run_kept(struct problem *problem, struct slc_mttkrp_job job, uint64_t part)
{
    const uint64_t count =
        job.partitions > 0 ? problem->tensor.partitions : fake_tensor_tiles(&problem->tensor);
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_kept_state kept;

    for (uint64_t first = 0; first < count; first += part) {
        const uint64_t end = first + part < count ? first + part : count;

        job.first_tile = first;
        job.workers = job.deterministic ? 1 + (unsigned)(first / part % 3) : job.workers;
        spoil(problem);
        SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
        SLC_ASSERT_OK(backend->ops->mttkrp_begin(backend, &job, &err), &err);
        if (first > 0) {
            SLC_ASSERT_OK(slc_kept_state_give(&kept, backend, &err), &err);
            slc_kept_state_free(&kept);
        }
        SLC_ASSERT_OK(run_part(backend, problem, &job, first, end, &err), &err);
        if (end < count) {
            slc_kept_state_take(&kept, backend);
            spoil(problem);
        } else {
            SLC_ASSERT_OK(backend->ops->mttkrp_end(backend, &err), &err);
        }
        CU_ASSERT(canaries_live(&problem->out));
        backend->ops->destroy(backend);
    }
}

/* Reads the state of a job after every part, and continues the same job. */
static void run_watched(struct problem *problem, const struct slc_mttkrp_job *job, uint64_t part)
{
    const uint64_t count =
        job->partitions > 0 ? problem->tensor.partitions : fake_tensor_tiles(&problem->tensor);
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    spoil(problem);
    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    SLC_ASSERT_OK(backend->ops->mttkrp_begin(backend, job, &err), &err);
    for (uint64_t first = 0; first < count; first += part) {
        struct slc_mttkrp_state state;

        SLC_ASSERT_OK(run_part(backend, problem, job, first,
                               first + part < count ? first + part : count, &err),
                      &err);
        SLC_ASSERT_OK(backend->ops->mttkrp_state(backend, &state, &err), &err);
    }
    SLC_ASSERT_OK(backend->ops->mttkrp_end(backend, &err), &err);
    CU_ASSERT(canaries_live(&problem->out));
    backend->ops->destroy(backend);
}

/* Returns the output of an uninterrupted job; release with free. */
static unsigned char *run_whole(struct problem *problem, const struct slc_mttkrp_job *job)
{
    const struct slc_matrix *output = &problem->out.output;
    const uint64_t bytes = output->rows * output->pitch * slc_value_bytes(problem->type);
    unsigned char *copy = malloc(bytes);
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;

    CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
    spoil(problem);
    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    SLC_ASSERT_OK(run_pass(backend, problem, job, &err), &err);
    memcpy(copy, output->buffer.data, bytes);
    backend->ops->destroy(backend);
    return copy;
}

static const struct {
    enum slc_conflict conflict, rival;
    bool same_bits;
} ways[] = {
    {SLC_CONFLICT_DIRECT, SLC_CONFLICT_AUTO, true},
    {SLC_CONFLICT_PRIVATE, SLC_CONFLICT_AUTO, false},
    {SLC_CONFLICT_LOCKED, SLC_CONFLICT_AUTO, false},
    {SLC_CONFLICT_COLUMNS, SLC_CONFLICT_AUTO, true},
    {SLC_CONFLICT_ORDERED, SLC_CONFLICT_AUTO, true},
    {SLC_CONFLICT_ROWS, SLC_CONFLICT_AUTO, true},
    {SLC_CONFLICT_PRIVATE, SLC_CONFLICT_LOCKED, false},
};

static void check_way(size_t way, unsigned workers, enum slc_value_type type, bool integers)
{
    const uint64_t dims[] = {ways[way].conflict == SLC_CONFLICT_ROWS ? 7 : 400, 30, 50};
    const double tolerance = integers ? 0.0 : type == SLC_F32 ? 1e-5 : 1e-12;
    struct slc_mttkrp_job job;
    struct problem problem;
    unsigned char *want;

    problem_create(&problem, 3, dims, 900, 0, 9, type, integers);
    problem.tensor.tile_nnz = 50;
    if (ways[way].conflict == SLC_CONFLICT_ROWS) {
        problem_partition(&problem, 60); /* rows span several partitions */
    }
    problem_job(&problem, ways[way].conflict == SLC_CONFLICT_DIRECT ? 1 : workers, &job);
    job.conflict = ways[way].conflict;
    job.rival = ways[way].rival;
    job.deterministic = job.conflict == SLC_CONFLICT_ORDERED || job.conflict == SLC_CONFLICT_ROWS;
    want = run_whole(&problem, &job);
    for (uint64_t part = 1; part < 12; part += part == 1 ? 2 : 5) {
        const struct slc_matrix *output = &problem.out.output;
        const uint64_t bytes = output->rows * output->pitch * slc_value_bytes(type);

        for (unsigned watched = 0; watched < 2; watched++) {
            if (watched == 1) {
                run_watched(&problem, &job, part);
            } else {
                problem.backwards = part % 2 == 1;
                run_kept(&problem, job, part);
                problem.backwards = false;
            }
            CU_ASSERT_EQUAL(count_wrong(&problem, tolerance), 0);
            if (ways[way].same_bits) {
                CU_ASSERT_EQUAL(memcmp(want, output->buffer.data, bytes), 0);
            }
        }
    }
    free(want);
    problem_destroy(&problem);
}

static void every_strategy(void)
{
    for (size_t way = 0; way < SLC_COUNT(ways); way++) {
        for (unsigned workers = slc_test_quick() ? 3 : 1; workers <= 3; workers++) {
            check_way(way, workers, workers % 2 == 0 ? SLC_F32 : SLC_F64, false);
            check_way(way, workers, workers % 2 == 0 ? SLC_F64 : SLC_F32, true);
        }
    }
}

/* The saved state of a job has the same bytes for any number of workers if its sums do. */
static void same_bytes_are_kept(void)
{
    for (size_t way = 4; way <= 5; way++) {
        const uint64_t dims[] = {7, 30, 50};
        struct problem problem;
        struct slc_kept_state first = {0};

        problem_create(&problem, 3, dims, 900, 0, 9, SLC_F32, false);
        problem.tensor.tile_nnz = 50;
        if (ways[way].conflict == SLC_CONFLICT_ROWS) {
            problem_partition(&problem, 60);
        }
        for (unsigned workers = 1; workers <= 3; workers++) {
            struct slc_backend *backend = NULL;
            struct slc_error err = SLC_ERROR_INIT;
            struct slc_mttkrp_job job;
            struct slc_kept_state kept;

            problem_job(&problem, workers, &job);
            job.deterministic = true;
            SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
            SLC_ASSERT_OK(backend->ops->mttkrp_begin(backend, &job, &err), &err);
            SLC_ASSERT_OK(run_part(backend, &problem, &job, 0, 9, &err), &err);
            slc_kept_state_take(&kept, backend);
            CU_ASSERT_EQUAL(kept.count, ways[way].conflict == SLC_CONFLICT_ROWS ? 3 : 1);
            for (unsigned i = 0; workers > 1 && i < kept.count; i++) {
                CU_ASSERT_EQUAL_FATAL(kept.bytes[i], first.bytes[i]);
                CU_ASSERT_EQUAL(memcmp(kept.data[i], first.data[i], kept.bytes[i]), 0);
            }
            if (workers == 1) {
                first = kept;
            } else {
                slc_kept_state_free(&kept);
            }
            backend->ops->destroy(backend);
        }
        slc_kept_state_free(&first);
        problem_destroy(&problem);
    }
}

static void refusals(void)
{
    const uint64_t dims[] = {7, 30, 50};
    struct slc_backend *backend = NULL;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_mttkrp_state state;
    struct slc_mttkrp_job job;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_state(backend, &state, &err), SLC_ERR_USAGE, &err,
                     "no MTTKRP was begun");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_resume(backend, &err), SLC_ERR_USAGE, &err,
                     "no MTTKRP was begun");
    slc_error_clear(&err);
    problem_create(&problem, 3, dims, 900, 0, 9, SLC_F64, false);
    problem_partition(&problem, 60);
    problem_job(&problem, 1, &job);
    SLC_ASSERT_OK(backend->ops->mttkrp_begin(backend, &job, &err), &err);
    SLC_ASSERT_OK(backend->ops->mttkrp_state(backend, &state, &err), &err);
    ((uint64_t *)state.region[1].data)[3] = dims[0];
    SLC_ASSERT_FAILS(backend->ops->mttkrp_resume(backend, &err), SLC_ERR_DAMAGED, &err,
                     "partition 3 continues row 7, but the output has 7 rows");
    backend->ops->destroy(backend);
    problem_destroy(&problem);
}

static const struct slc_test tests[] = {
    {"kept and gone on with, by every strategy", every_strategy},
    {"the same bytes are kept for any number of workers", same_bytes_are_kept},
    {"what is refused", refusals},
};

SLC_SUITE(mttkrp_parts)
{
    return slc_test_main("mttkrp parts", tests, SLC_COUNT(tests), argc, argv);
}
