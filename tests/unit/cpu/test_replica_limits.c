/* Replicas at their limits: the memory counted by a plan, the largest mode and the most threads. */
#include "base/memory/checked.h"
#include "cpu/mttkrp/mttkrp.h"
#include "cpu/replica/replica_build.h"
#include "replica_fixture.h"
#include "slc_test.h"

static uint64_t buckets_of(uint64_t rows)
{
    unsigned shift = 0;

    while ((rows - 1) >> shift >= SLC_REPLICA_BUCKETS) {
        shift++;
    }
    return ((rows - 1) >> shift) + 1;
}

/* Bytes of the replica of one mode. */
static uint64_t mode_bytes(const struct slc_replica *replica, unsigned mode)
{
    const struct slc_replica_mode *copy = &replica->modes[mode];

    return copy->chunks.bytes + buckets_of(replica->shape.dims[mode]) * sizeof *copy->ranges +
           copy->item_count * sizeof *copy->items + (copy->piece_count + 1) * sizeof *copy->pieces;
}

/* Scratch bytes mapped for an MTTKRP of the mode. */
static uint64_t
scratch_bytes(struct slc_backend *backend, unsigned mode, uint32_t rank, unsigned workers)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;
    uint64_t bytes;

    cpu->type = cpu->replica->type;
    cpu->job = (struct slc_mttkrp_job){.mode = mode, .rank = rank, .workers = workers};
    cpu->sum_stride = slc_mttkrp_sum_stride(&cpu->job, cpu->type);
    bytes = slc_replica_scratch_bytes(cpu);
    return slc_buffer_footprint(bytes, slc_mttkrp_pages(bytes));
}

/* Bytes mapped for trials of forms of the mode, after scratch_bytes. */
static uint64_t trial_bytes(const struct slc_backend *backend, unsigned mode)
{
    const struct slc_cpu_backend *cpu = (const struct slc_cpu_backend *)(const void *)backend;
    const struct slc_replica_mode *copy = &cpu->replica->modes[mode];
    const uint64_t windows = copy->rows_max * cpu->sum_stride * cpu->replica->workers;

    return slc_buffer_footprint(windows, slc_mttkrp_pages(windows)) +
           copy->piece_count / SLC_REPLICA_TRIED_SHARE * sizeof *copy->pieces +
           cpu->replica->workers * sizeof(uint64_t);
}

/* Adds up the bytes mapped while replicas are built and used: never more than the plan counts.
 * `run` consecutive nonzeros share a row of mode 0, and such rows are `step` apart. */
static void check_memory(const uint64_t *dims,
                         unsigned workers,
                         uint32_t rank,
                         enum slc_value_type type,
                         uint64_t run,
                         uint64_t step)
{
    const uint64_t nnz = 48 * (uint64_t)workers + 3000;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_tensor_shape shape;
    struct slc_backend *backend;
    struct fake_tensor tensor;
    const struct slc_replica *replica;
    uint64_t building, holding = 0, counting = 0, scratch = 0, trial = 0, bound;

    fake_tensor_random(&tensor, 3, dims, nnz, true, 5);
    for (uint64_t i = 0; run > 0 && i < nnz; i++) {
        tensor.coords[0][i] = i / run * step % dims[0];
    }
    replica_shape(&tensor, &shape);
    bound = slc_cpu_backend_ops()->replica_bytes(&shape, rank, type, workers);
    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    replica = replica_of(backend);
    SLC_ASSERT_OK(backend->ops->replica_begin(backend, &shape, type, workers, &err), &err);
    building = replica->records.bytes + replica->sorted.bytes + replica->scratch.bytes;
    SLC_ASSERT_OK(replica_load(backend, &tensor, type, workers, &err), &err);
    for (unsigned m = 0; m < 3; m++) {
        const uint64_t counts = buckets_of(dims[m]) * (workers * sizeof(uint64_t) + 4);

        counting = slc_max_u64(counting, counts);
        holding += mode_bytes(replica, m);
        scratch = slc_max_u64(scratch, scratch_bytes(backend, m, rank, workers));
        trial = slc_max_u64(trial, trial_bytes(backend, m));
    }
    CU_ASSERT(building + holding + slc_max_u64(counting, trial) <= bound);
    CU_ASSERT(holding + scratch <= bound);
    backend->ops->destroy(backend);
    fake_tensor_free(&tensor);
}

static void test_memory(void)
{
    static const uint64_t dims[][3] = {
        {256, 256, 256},    {1, 1, 1},
        {2, 3, 5},          {257, 1, 300},
        {16384, 3, 4},      {16385, 70000, 1},
        {UINT32_MAX, 2, 9}, {UINT32_MAX, 1U << 31, 100},
        {1U << 20, 1, 1},   {(1U << 27) + 1, 5, 5},
    };
    static const unsigned workers[] = {1, 2, 7, 64};
    static const uint32_t ranks[] = {1, 100, SLC_MAX_RANK};

    for (size_t d = 0; d < SLC_COUNT(dims); d++) {
        for (size_t w = 0; w < SLC_COUNT(workers); w++) {
            /* Rows of three nonzeros are split at the smallest target; each has its own bucket
             * of a large mode. */
            const uint64_t step = slc_max_u64(dims[d][0] / 1500, 1);

            for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
                for (enum slc_value_type type = SLC_F32; type <= SLC_F64; type++) {
                    if (!slc_test_full() && (type + d + w + r) % (slc_test_quick() ? 4 : 2) != 0) {
                        continue;
                    }
                    check_memory(dims[d], workers[w], ranks[r], type, 0, 0);
                    check_memory(dims[d], workers[w], ranks[r], type, 9, step);
                    check_memory(dims[d], workers[w], ranks[r], type, 400, step);
                }
            }
        }
    }
}

/* Coordinates at both ends of 32 bits, in a mode of the largest possible size. */
static void test_longest_mode(void)
{
    static const uint64_t ends[] = {
        0, 1, (1U << 18) - 1, 1U << 18, 1U << 31, UINT32_MAX - 2, UINT32_MAX - 1};
    static const uint64_t dims[] = {UINT32_MAX, 40};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix factor, output;
    struct slc_backend *backend;
    struct fake_tensor tensor;
    double want[40] = {0};
    struct slc_mttkrp_job job;

    if (slc_matrix_create(&factor, SLC_F32, dims[0], 1, &err) != SLC_OK) {
        slc_test_skip("no room for a matrix of 2^32 - 1 rows");
        return;
    }
    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    SLC_ASSERT_OK(slc_matrix_create(&output, SLC_F32, dims[1], 1, &err), &err);
    fake_tensor_random(&tensor, 2, dims, 5000, true, 11);
    for (size_t e = 0; e < SLC_COUNT(ends); e++) {
        slc_matrix_set(&factor, ends[e], 0, (double)(e + 1));
    }
    for (uint64_t i = 0; i < tensor.nnz; i++) {
        const size_t e = (size_t)(i * i / 7 % SLC_COUNT(ends));

        tensor.coords[0][i] = ends[e];
        want[tensor.coords[1][i]] += tensor.values[i] * (double)(e + 1);
    }
    /* The extent of a tile is one less than the size of the largest mode. */
    tensor.tile_nnz = 5000;
    for (unsigned workers = 1; workers <= 3; workers += 2) {
        SLC_ASSERT_OK(replica_load(backend, &tensor, SLC_F32, workers, &err), &err);
        job = (struct slc_mttkrp_job){.order = 2,
                                      .mode = 1,
                                      .rank = 1,
                                      .nnz = tensor.nnz,
                                      .workers = workers,
                                      .conflict = SLC_CONFLICT_REPLICA,
                                      .factors = {&factor},
                                      .output = &output};
        SLC_ASSERT_OK(backend->ops->mttkrp_replica(backend, &job, &err), &err);
        for (uint64_t row = 0; row < dims[1]; row++) {
            CU_ASSERT_EQUAL(slc_matrix_get(&output, row, 0), want[row]);
        }
    }
    fake_tensor_free(&tensor);
    slc_matrix_destroy(&output);
    slc_matrix_destroy(&factor);
    backend->ops->destroy(backend);
}

/* Must be the last test, because the thread pool keeps its threads. */
static void test_most_threads(void)
{
    static const uint64_t dims[] = {30, 2000, 3};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned mode = 0; mode < 2; mode++) {
        struct problem problem;

        problem_create(&problem, 3, dims, 9000, mode, 3, mode == 0 ? SLC_F32 : SLC_F64, true);
        SLC_ASSERT_OK(replica_load(backend, &problem.tensor, problem.type, SLC_MAX_THREADS, &err),
                      &err);
        SLC_ASSERT_OK(replica_multiply(backend, &problem, SLC_MAX_THREADS, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
        CU_ASSERT(canaries_live(&problem.out));
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

static const struct slc_test tests[] = {
    {"never more memory than was counted", test_memory},
    {"the longest mode", test_longest_mode},
    {"the most threads", test_most_threads},
};

SLC_SUITE(replica_limits)
{
    return slc_test_main("replica_limits", tests, SLC_COUNT(tests), argc, argv);
}
