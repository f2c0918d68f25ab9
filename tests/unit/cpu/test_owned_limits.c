/*
 * Copies at their limits: what the operations refuse, faults at every place, the memory that a plan
 * counts for them, the longest mode and the most threads.
 */
#include "base/checked.h"
#include "base/fault.h"
#include "cpu/mttkrp.h"
#include "cpu/owned_build.h"
#include "owned_fixture.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

static const struct slc_owned *owned_of(const struct slc_backend *backend)
{
    return &((const struct slc_cpu_backend *)(const void *)backend)->owned;
}

/* That nothing is held, and nothing leaks into the next copies. */
static void check_dropped(const struct slc_backend *backend)
{
    const struct slc_owned *owned = owned_of(backend);

    CU_ASSERT(!owned->begun && !owned->ready);
    CU_ASSERT(owned->records.data == NULL && owned->sorted.data == NULL &&
              owned->scratch.data == NULL);
    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        CU_ASSERT(owned->modes[m].chunks.data == NULL && owned->modes[m].ranges == NULL &&
                  owned->modes[m].items == NULL && owned->modes[m].pieces == NULL);
    }
}

/* Tensors that cannot be had in memory, and shapes that are none. */
static void test_shapes_refused(void)
{
    static const struct slc_tensor_shape good = {3, 1000, {50, 20, 30}, 100};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct slc_tensor_shape shape;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned wrong = 0; wrong < 9; wrong++) {
        const enum slc_status want = wrong < 4 ? SLC_ERR_MEMORY : SLC_ERR_USAGE;
        unsigned workers = 2;

        shape = good;
        shape.dims[1] = wrong == 0 ? UINT64_C(1) << 32 : good.dims[1];
        shape.nnz = wrong == 1 ? UINT64_MAX / 8 : wrong == 2 ? UINT64_C(1) << 58 : good.nnz;
        shape.order = wrong == 3 ? 1 : wrong == 4 ? 0 : wrong == 5 ? SLC_MAX_ORDER + 1 : 3;
        shape.tile_nnz = wrong == 6 ? 0 : good.tile_nnz;
        workers = wrong == 7 ? 0 : wrong == 8 ? SLC_MAX_THREADS + 1 : 2;
        slc_error_clear(&err);
        SLC_ASSERT_FAILS(backend->ops->owned_begin(backend, &shape, SLC_F64, workers, &err), want,
                         &err, "copies");
        check_dropped(backend);
    }
    shape = good;
    shape.dims[1] = UINT64_C(1) << 32;
    CU_ASSERT_EQUAL(backend->ops->owned_bytes(&shape, 8, SLC_F64, 2), UINT64_MAX);
    shape = good;
    shape.order = 1;
    CU_ASSERT_EQUAL(backend->ops->owned_bytes(&shape, 8, SLC_F64, 2), UINT64_MAX);
    for (unsigned shift = 40; shift < 64; shift++) {
        shape = good;
        shape.nnz = UINT64_C(1) << shift;
        CU_ASSERT(backend->ops->owned_bytes(&shape, 8, SLC_F64, 2) > shape.nnz);
    }
    shape = good;
    shape.dims[2] = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->owned_begin(backend, &shape, SLC_F64, 2, &err), SLC_ERR_USAGE,
                     &err, "lengths");
    backend->ops->destroy(backend);
}

/* Gives tile `ordinal` after `change` of its view, and expects it to be refused. */
static void refuse_tile(struct slc_backend *backend,
                        const struct fake_tensor *tensor,
                        const struct slc_tile_view *change,
                        enum slc_status want)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct fake_tile tile;

    fake_tile_create(&tile, tensor, change->value_type);
    fake_tile_open(&tile, 4);
    tile.view.ordinal = change->ordinal;
    tile.view.order = change->order;
    tile.view.nnz = change->nnz;
    tile.view.corner[1] += change->corner[1];
    tile.view.extent[2] += change->extent[2];
    SLC_ASSERT_FAILS(backend->ops->owned_tile(backend, 1, &tile.view, &err), want, &err, "tile");
    fake_tile_destroy(&tile);
}

static void test_tiles_refused(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    static const struct slc_tile_view changes[] = {
        {.ordinal = 10, .order = 3, .nnz = 100, .value_type = SLC_F64},
        {.ordinal = UINT64_MAX / 50, .order = 3, .nnz = 100, .value_type = SLC_F64},
        {.ordinal = 4, .order = 2, .nnz = 100, .value_type = SLC_F64},
        {.ordinal = 4, .order = 3, .nnz = 100, .value_type = SLC_F32},
        {.ordinal = 4, .order = 3, .nnz = 101, .value_type = SLC_F64},
        {.ordinal = 4, .order = 3, .nnz = 99, .value_type = SLC_F64},
        {.ordinal = 9, .order = 3, .nnz = 101, .value_type = SLC_F64},
        {.ordinal = 4, .order = 3, .nnz = 100, .value_type = SLC_F64, .corner = {0, 20}},
        {.ordinal = 4, .order = 3, .nnz = 100, .value_type = SLC_F64, .corner = {0, 1}},
        {.ordinal = 4, .order = 3, .nnz = 100, .value_type = SLC_F64, .extent = {0, 0, 30}},
        {.ordinal = 4, .order = 3, .nnz = 100, .value_type = SLC_F64, .extent = {0, 0, 1U << 31}},
    };
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_tensor_shape shape;
    struct slc_backend *backend;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 100;
    owned_shape(&problem.tensor, &shape);
    SLC_ASSERT_OK(backend->ops->owned_begin(backend, &shape, SLC_F64, 2, &err), &err);
    for (size_t c = 0; c < SLC_COUNT(changes); c++) {
        refuse_tile(backend, &problem.tensor, &changes[c], SLC_ERR_USAGE);
    }
    SLC_ASSERT_FAILS(backend->ops->owned_end(backend, NULL, NULL, &err), SLC_ERR_USAGE, &err,
                     "but 0 came");
    check_dropped(backend);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* A tile that decodes to fewer nonzeros than it declares, and one that decodes to more. */
static void test_miscounted_tiles(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_tensor_shape shape;
    struct slc_backend *backend;
    struct problem problem;
    struct fake_tile tile;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 100;
    problem.tensor.chunk_nnz = 30;
    owned_shape(&problem.tensor, &shape);
    fake_tile_create(&tile, &problem.tensor, SLC_F64);
    SLC_ASSERT_OK(backend->ops->owned_begin(backend, &shape, SLC_F64, 2, &err), &err);
    fake_tile_open(&tile, 3);
    tile.end--;
    SLC_ASSERT_FAILS(backend->ops->owned_tile(backend, 0, &tile.view, &err), SLC_ERR_DAMAGED, &err,
                     "fewer than the 100");
    fake_tile_open(&tile, 3);
    tile.end++;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->owned_tile(backend, 0, &tile.view, &err), SLC_ERR_DAMAGED, &err,
                     "more than the 100");
    fake_tile_destroy(&tile);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* Steps out of order: each is refused and the next whole round works. */
static void test_steps(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_tensor_shape shape;
    struct slc_backend *backend;
    struct problem problem;
    struct fake_tile tile;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 500;
    owned_shape(&problem.tensor, &shape);
    fake_tile_create(&tile, &problem.tensor, SLC_F64);
    fake_tile_open(&tile, 0);

    /* Nothing was begun. */
    SLC_ASSERT_FAILS(backend->ops->owned_tile(backend, 0, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "tile 0");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->owned_end(backend, NULL, NULL, &err), SLC_ERR_USAGE, &err,
                     "begun");
    backend->ops->owned_drop(backend);
    check_dropped(backend);

    /* Begun again without an end, and one tile twice in place of another. */
    SLC_ASSERT_OK(backend->ops->owned_begin(backend, &shape, SLC_F32, 3, &err), &err);
    SLC_ASSERT_OK(backend->ops->owned_begin(backend, &shape, SLC_F64, 2, &err), &err);
    for (int twice = 0; twice < 3; twice++) {
        fake_tile_open(&tile, twice == 2);
        SLC_ASSERT_OK(backend->ops->owned_tile(backend, 0, &tile.view, &err), &err);
    }
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->owned_end(backend, NULL, NULL, &err), SLC_ERR_USAGE, &err,
                     "1500 came");
    check_dropped(backend);

    /* After the end, and after a drop. */
    slc_error_clear(&err);
    SLC_ASSERT_OK(owned_load(backend, &problem.tensor, SLC_F64, 2, &err), &err);
    fake_tile_open(&tile, 0);
    SLC_ASSERT_FAILS(backend->ops->owned_tile(backend, 0, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "tile 0");
    slc_error_clear(&err);
    SLC_ASSERT_OK(owned_multiply(backend, &problem, 2, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    SLC_ASSERT_FAILS(backend->ops->owned_end(backend, NULL, NULL, &err), SLC_ERR_USAGE, &err,
                     "begun");
    check_dropped(backend);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(owned_multiply(backend, &problem, 2, &err), SLC_ERR_USAGE, &err, "not held");
    slc_error_clear(&err);
    SLC_ASSERT_OK(owned_load(backend, &problem.tensor, SLC_F64, 2, &err), &err);
    SLC_ASSERT_OK(owned_multiply(backend, &problem, 2, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    fake_tile_destroy(&tile);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* A stop, by flag or time, is noticed before the next copy, and nothing is held then. */
static void test_stop(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    volatile int flag = 1;
    const struct slc_stop stops[] = {{.flag = &flag}, {.deadline_ns = 1}};
    const struct slc_stop later = {.flag = &flag, .deadline_ns = UINT64_MAX};
    struct slc_backend *backend;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    for (size_t s = 0; s < SLC_COUNT(stops); s++) {
        slc_error_clear(&err);
        SLC_ASSERT_OK(owned_fill(backend, &problem.tensor, SLC_F64, 2, &err), &err);
        SLC_ASSERT_FAILS(backend->ops->owned_end(backend, NULL, &stops[s], &err),
                         SLC_ERR_INTERRUPTED, &err, "0 of 3 copies");
        check_dropped(backend);
    }
    flag = 0;
    slc_error_clear(&err);
    SLC_ASSERT_OK(owned_fill(backend, &problem.tensor, SLC_F64, 2, &err), &err);
    SLC_ASSERT_OK(backend->ops->owned_end(backend, NULL, &later, &err), &err);
    SLC_ASSERT_OK(owned_multiply(backend, &problem, 2, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* Jobs that are not those of the copies. */
static void test_jobs_refused(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct slc_mttkrp_job job;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 100;
    SLC_ASSERT_FAILS(owned_multiply(backend, &problem, 2, &err), SLC_ERR_USAGE, &err, "not held");
    problem.tensor.chunk_nnz = 10;
    problem.tensor.fail_tile = 7;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(owned_load(backend, &problem.tensor, SLC_F64, 2, &err), SLC_ERR_DAMAGED, &err,
                     "damaged");
    check_dropped(backend);
    problem.tensor.fail_tile = UINT64_MAX;
    slc_error_clear(&err);
    SLC_ASSERT_OK(owned_load(backend, &problem.tensor, SLC_F64, 2, &err), &err);
    SLC_ASSERT_FAILS(owned_multiply(backend, &problem, 3, &err), SLC_ERR_USAGE, &err, "3 threads");
    problem_job(&problem, 2, &job);
    job.conflict = SLC_CONFLICT_OWNED;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_begin(backend, &job, &err), SLC_ERR_USAGE, &err, "tiles");
    job.rank = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_owned(backend, &job, &err), SLC_ERR_USAGE, &err, "rank");
    problem_job(&problem, 2, &job);
    job.nnz--;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_owned(backend, &job, &err), SLC_ERR_USAGE, &err, "held");
    problem_job(&problem, 2, &job);
    problem.factors[2].rows--;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_owned(backend, &job, &err), SLC_ERR_USAGE, &err, "held");
    problem.factors[2].rows++;
    slc_error_clear(&err);
    SLC_ASSERT_OK(owned_multiply(backend, &problem, 2, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    backend->ops->owned_drop(backend);
    SLC_ASSERT_FAILS(owned_multiply(backend, &problem, 2, &err), SLC_ERR_USAGE, &err, "not held");
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* The k-th allocation, or thread, is refused, for every k; then the same backend is used again. */
static void
check_faults(enum slc_fault_kind kind, enum slc_status refused, enum slc_value_type type)
{
    static const uint64_t dims[] = {50, 2000, 30};
    struct problem problem;
    bool done = false;

    problem_create(&problem, 3, dims, 3000, 0, 8, type, true);
    for (uint64_t k = 1; !done && k < 200; k++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_backend *backend;
        enum slc_status status;

        SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
        slc_fault_arm(kind, k);
        status = owned_load(backend, &problem.tensor, type, 2, &err);
        if (status == SLC_OK) {
            status = owned_multiply(backend, &problem, 2, &err);
        } else {
            check_dropped(backend);
        }
        done = slc_fault_seen(kind) < k;
        slc_fault_arm(kind, 0);
        CU_ASSERT_EQUAL(status, done ? SLC_OK : refused);
        slc_error_clear(&err);
        SLC_ASSERT_OK(owned_load(backend, &problem.tensor, type, 2, &err), &err);
        SLC_ASSERT_OK(owned_multiply(backend, &problem, 2, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
        backend->ops->destroy(backend);
    }
    CU_ASSERT(done);
    problem_destroy(&problem);
}

/* How many allocations making copies takes, with forms tried or not. */
static uint64_t allocations(struct slc_backend *backend, const struct problem *problem, bool tried)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t seen;

    slc_fault_arm(SLC_FAULT_ALLOCATION, UINT64_MAX);
    SLC_ASSERT_OK(tried ? owned_load_tried(backend, problem, 1, &err)
                        : owned_load(backend, &problem->tensor, problem->type, 1, &err),
                  &err);
    seen = slc_fault_seen(SLC_FAULT_ALLOCATION);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    return seen;
}

/* The same while forms are tried, and factors of another tensor. */
static void test_trial_faults(void)
{
    static const uint64_t dims[] = {40, 30, 50};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct slc_tensor_shape shape;
    struct problem problem;
    bool done = false;

    problem_create(&problem, 3, dims, 530000, 1, 2, SLC_F64, true);
    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (uint64_t k = 1; !done && k < 200; k++) {
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        slc_error_clear(&err);
        status = owned_load_tried(backend, &problem, 1, &err);
        done = slc_fault_seen(SLC_FAULT_ALLOCATION) < k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, done ? SLC_OK : SLC_ERR_MEMORY);
        if (!done) {
            check_dropped(backend);
        }
    }
    CU_ASSERT(done);
    CU_ASSERT(allocations(backend, &problem, true) >= allocations(backend, &problem, false) + 3);
    owned_shape(&problem.tensor, &shape);
    slc_error_clear(&err);
    SLC_ASSERT_OK(backend->ops->owned_begin(backend, &shape, SLC_F64, 1, &err), &err);
    problem.factors[1] = problem.factors[0];
    SLC_ASSERT_FAILS(backend->ops->owned_end(backend, problem.factors, NULL, &err), SLC_ERR_USAGE,
                     &err, "factor 2 is not of the tensor");
    check_dropped(backend);
    problem.factors[1] = (struct slc_matrix){0};
    backend->ops->destroy(backend);
    problem_destroy(&problem);
}

static void test_faults(void)
{
    check_faults(SLC_FAULT_ALLOCATION, SLC_ERR_MEMORY, SLC_F64);
    check_faults(SLC_FAULT_ALLOCATION, SLC_ERR_MEMORY, SLC_F32);
    check_faults(SLC_FAULT_THREAD, SLC_ERR_SYSTEM, SLC_F64);
}

static uint64_t buckets_of(uint64_t rows)
{
    unsigned shift = 0;

    while ((rows - 1) >> shift >= SLC_OWNED_BUCKETS) {
        shift++;
    }
    return ((rows - 1) >> shift) + 1;
}

/* What one mode's copy holds. */
static uint64_t mode_bytes(const struct slc_owned *owned, unsigned mode)
{
    const struct slc_owned_mode *copy = &owned->modes[mode];

    return copy->chunks.bytes + buckets_of(owned->shape.dims[mode]) * sizeof *copy->ranges +
           copy->item_count * sizeof *copy->items + (copy->piece_count + 1) * sizeof *copy->pieces;
}

/* Scratch that an MTTKRP of the mode would map. */
static uint64_t
scratch_bytes(struct slc_backend *backend, unsigned mode, uint32_t rank, unsigned workers)
{
    struct slc_cpu_backend *cpu = (struct slc_cpu_backend *)(void *)backend;
    uint64_t bytes;

    cpu->type = cpu->owned.type;
    cpu->job = (struct slc_mttkrp_job){.mode = mode, .rank = rank, .workers = workers};
    cpu->sum_stride = slc_mttkrp_sum_stride(&cpu->job, cpu->type);
    bytes = slc_owned_scratch_bytes(cpu);
    return slc_buffer_footprint(bytes, slc_mttkrp_pages(bytes));
}

/* What trying forms of the mode would map, after scratch_bytes. */
static uint64_t trial_bytes(const struct slc_backend *backend, unsigned mode)
{
    const struct slc_cpu_backend *cpu = (const struct slc_cpu_backend *)(const void *)backend;
    const struct slc_owned_mode *copy = &cpu->owned.modes[mode];
    const uint64_t windows = copy->rows_max * cpu->sum_stride * cpu->owned.workers;

    return slc_buffer_footprint(windows, slc_mttkrp_pages(windows)) +
           copy->piece_count / SLC_OWNED_TRIED_SHARE * sizeof *copy->pieces +
           cpu->owned.workers * sizeof(uint64_t);
}

/*
 * Adds up what is mapped while copies are built and while they are used: never more than the plan
 * counts. `run` nonzeros in a row share a row of mode 0, and such rows are `step` apart.
 */
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
    const struct slc_owned *owned;
    uint64_t building, holding = 0, counting = 0, scratch = 0, trial = 0, bound;

    fake_tensor_random(&tensor, 3, dims, nnz, true, 5);
    for (uint64_t i = 0; run > 0 && i < nnz; i++) {
        tensor.coords[0][i] = i / run * step % dims[0];
    }
    owned_shape(&tensor, &shape);
    bound = slc_cpu_backend_ops()->owned_bytes(&shape, rank, type, workers);
    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    owned = owned_of(backend);
    SLC_ASSERT_OK(backend->ops->owned_begin(backend, &shape, type, workers, &err), &err);
    building = owned->records.bytes + owned->sorted.bytes + owned->scratch.bytes;
    SLC_ASSERT_OK(owned_load(backend, &tensor, type, workers, &err), &err);
    for (unsigned m = 0; m < 3; m++) {
        const uint64_t counts = buckets_of(dims[m]) * (workers * sizeof(uint64_t) + 4);

        counting = slc_max_u64(counting, counts);
        holding += mode_bytes(owned, m);
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
            /* Rows of three nonzeros are cut at the smallest target; each stands in its own bucket
             * of a long mode. */
            const uint64_t step = slc_max_u64(dims[d][0] / 1500, 1);

            for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
                for (enum slc_value_type type = SLC_F32; type <= SLC_F64; type++) {
                    check_memory(dims[d], workers[w], ranks[r], type, 0, 0);
                    check_memory(dims[d], workers[w], ranks[r], type, 9, step);
                    check_memory(dims[d], workers[w], ranks[r], type, 400, step);
                }
            }
        }
    }
}

/* Coordinates at both ends of 32 bits, in a mode that is as long as they allow. */
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
    /* A tile's extent ends one below the longest mode's. */
    tensor.tile_nnz = 5000;
    for (unsigned workers = 1; workers <= 3; workers += 2) {
        SLC_ASSERT_OK(owned_load(backend, &tensor, SLC_F32, workers, &err), &err);
        job = (struct slc_mttkrp_job){.order = 2,
                                      .mode = 1,
                                      .rank = 1,
                                      .nnz = tensor.nnz,
                                      .workers = workers,
                                      .conflict = SLC_CONFLICT_OWNED,
                                      .factors = {&factor},
                                      .output = &output};
        SLC_ASSERT_OK(backend->ops->mttkrp_owned(backend, &job, &err), &err);
        for (uint64_t row = 0; row < dims[1]; row++) {
            CU_ASSERT_EQUAL(slc_matrix_get(&output, row, 0), want[row]);
        }
    }
    fake_tensor_free(&tensor);
    slc_matrix_destroy(&output);
    slc_matrix_destroy(&factor);
    backend->ops->destroy(backend);
}

/* Last, for the pool of threads keeps them. */
static void test_most_threads(void)
{
    static const uint64_t dims[] = {30, 2000, 3};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned mode = 0; mode < 2; mode++) {
        struct problem problem;

        problem_create(&problem, 3, dims, 9000, mode, 3, mode == 0 ? SLC_F32 : SLC_F64, true);
        SLC_ASSERT_OK(owned_load(backend, &problem.tensor, problem.type, SLC_MAX_THREADS, &err),
                      &err);
        SLC_ASSERT_OK(owned_multiply(backend, &problem, SLC_MAX_THREADS, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
        CU_ASSERT(canaries_live(&problem.out));
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

static const struct slc_test tests[] = {
    {"refused: shapes", test_shapes_refused},
    {"refused: tiles of another tensor", test_tiles_refused},
    {"refused: tiles with fewer or more nonzeros than they declare", test_miscounted_tiles},
    {"refused: steps out of order", test_steps},
    {"stopped on the way", test_stop},
    {"refused: jobs that do not fit the copies", test_jobs_refused},
    {"faults while forms are tried", test_trial_faults},
    {"every failing allocation and thread", test_faults},
    {"never more memory than was counted", test_memory},
    {"the longest mode", test_longest_mode},
    {"the most threads", test_most_threads},
};

int main(int argc, char **argv)
{
    return slc_test_main("owned_limits", tests, SLC_COUNT(tests), argc, argv);
}
