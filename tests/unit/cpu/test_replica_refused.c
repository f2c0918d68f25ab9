/* Replicas that are rejected: shapes, tiles, steps and jobs that do not fit, and the state
 * afterwards. */
#include "replica_fixture.h"
#include "slc_test.h"

/* A device, and a tensor of 1,000 nonzeros for the replicas. */
static void set_up(uint32_t tile_nnz, struct slc_backend **backend, struct problem *problem)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_cpu_backend_create(backend, &err), &err);
    problem_create(problem, 3, dims, 1000, 0, 8, SLC_F64, true);
    problem->tensor.tile_nnz = tile_nnz;
}

static void tear_down(struct slc_backend *backend, struct problem *problem)
{
    problem_destroy(problem);
    backend->ops->destroy(backend);
}

/* Tensors that do not fit in memory, and invalid shapes. */
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
        SLC_ASSERT_FAILS(backend->ops->replica_begin(backend, &shape, SLC_F64, workers, &err), want,
                         &err, "copies");
        replica_check_dropped(backend);
    }
    shape = good;
    shape.dims[1] = UINT64_C(1) << 32;
    CU_ASSERT_EQUAL(backend->ops->replica_bytes(&shape, 8, SLC_F64, 2), UINT64_MAX);
    shape = good;
    shape.order = 1;
    CU_ASSERT_EQUAL(backend->ops->replica_bytes(&shape, 8, SLC_F64, 2), UINT64_MAX);
    for (unsigned shift = 40; shift < 64; shift++) {
        shape = good;
        shape.nnz = UINT64_C(1) << shift;
        CU_ASSERT(backend->ops->replica_bytes(&shape, 8, SLC_F64, 2) > shape.nnz);
    }
    shape = good;
    shape.dims[2] = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->replica_begin(backend, &shape, SLC_F64, 2, &err), SLC_ERR_USAGE,
                     &err, "mode sizes");
    backend->ops->destroy(backend);
}

/* Passes tile `ordinal` after `change` of its view, and expects an error. */
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
    SLC_ASSERT_FAILS(backend->ops->replica_tile(backend, 1, &tile.view, &err), want, &err, "tile");
    fake_tile_destroy(&tile);
}

static void test_tiles_refused(void)
{
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

    set_up(100, &backend, &problem);
    replica_shape(&problem.tensor, &shape);
    SLC_ASSERT_OK(backend->ops->replica_begin(backend, &shape, SLC_F64, 2, &err), &err);
    for (size_t c = 0; c < SLC_COUNT(changes); c++) {
        refuse_tile(backend, &problem.tensor, &changes[c], SLC_ERR_USAGE);
    }
    SLC_ASSERT_FAILS(backend->ops->replica_end(backend, NULL, NULL, &err), SLC_ERR_USAGE, &err,
                     "but 0 were added");
    replica_check_dropped(backend);
    tear_down(backend, &problem);
}

/* A tile with fewer nonzeros than it declares, and one with more. */
static void test_miscounted_tiles(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_tensor_shape shape;
    struct slc_backend *backend;
    struct problem problem;
    struct fake_tile tile;

    set_up(100, &backend, &problem);
    problem.tensor.chunk_nnz = 30;
    replica_shape(&problem.tensor, &shape);
    fake_tile_create(&tile, &problem.tensor, SLC_F64);
    SLC_ASSERT_OK(backend->ops->replica_begin(backend, &shape, SLC_F64, 2, &err), &err);
    fake_tile_open(&tile, 3);
    tile.end--;
    SLC_ASSERT_FAILS(backend->ops->replica_tile(backend, 0, &tile.view, &err), SLC_ERR_DAMAGED,
                     &err, "fewer than the 100");
    fake_tile_open(&tile, 3);
    tile.end++;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->replica_tile(backend, 0, &tile.view, &err), SLC_ERR_DAMAGED,
                     &err, "more than the 100");
    fake_tile_destroy(&tile);
    tear_down(backend, &problem);
}

/* Steps out of order: each is rejected, and the next complete round works. */
static void test_steps(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_tensor_shape shape;
    struct slc_backend *backend;
    struct problem problem;
    struct fake_tile tile;

    set_up(500, &backend, &problem);
    replica_shape(&problem.tensor, &shape);
    fake_tile_create(&tile, &problem.tensor, SLC_F64);
    fake_tile_open(&tile, 0);

    /* replica_begin was not called. */
    SLC_ASSERT_FAILS(backend->ops->replica_tile(backend, 0, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "tile 0");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->replica_end(backend, NULL, NULL, &err), SLC_ERR_USAGE, &err,
                     "begun");
    backend->ops->replica_drop(backend);
    replica_check_dropped(backend);

    /* Begun again without an end, and one tile twice instead of another. */
    SLC_ASSERT_OK(backend->ops->replica_begin(backend, &shape, SLC_F32, 3, &err), &err);
    SLC_ASSERT_OK(backend->ops->replica_begin(backend, &shape, SLC_F64, 2, &err), &err);
    for (int twice = 0; twice < 3; twice++) {
        fake_tile_open(&tile, twice == 2);
        SLC_ASSERT_OK(backend->ops->replica_tile(backend, 0, &tile.view, &err), &err);
    }
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->replica_end(backend, NULL, NULL, &err), SLC_ERR_USAGE, &err,
                     "but 1500 were added");
    replica_check_dropped(backend);

    /* Tiles after replica_end, and calls after a drop, are rejected. */
    slc_error_clear(&err);
    SLC_ASSERT_OK(replica_load(backend, &problem.tensor, SLC_F64, 2, &err), &err);
    fake_tile_open(&tile, 0);
    SLC_ASSERT_FAILS(backend->ops->replica_tile(backend, 0, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "tile 0");
    slc_error_clear(&err);
    SLC_ASSERT_OK(replica_multiply(backend, &problem, 2, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    SLC_ASSERT_FAILS(backend->ops->replica_end(backend, NULL, NULL, &err), SLC_ERR_USAGE, &err,
                     "begun");
    replica_check_dropped(backend);
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(replica_multiply(backend, &problem, 2, &err), SLC_ERR_USAGE, &err,
                     "there are no copies");
    slc_error_clear(&err);
    SLC_ASSERT_OK(replica_load(backend, &problem.tensor, SLC_F64, 2, &err), &err);
    SLC_ASSERT_OK(replica_multiply(backend, &problem, 2, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    fake_tile_destroy(&tile);
    tear_down(backend, &problem);
}

/* Jobs that do not match the replicas. */
static void test_jobs_refused(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct slc_mttkrp_job job;
    struct problem problem;

    set_up(100, &backend, &problem);
    SLC_ASSERT_FAILS(replica_multiply(backend, &problem, 2, &err), SLC_ERR_USAGE, &err,
                     "there are no copies");
    problem.tensor.chunk_nnz = 10;
    problem.tensor.fail_tile = 7;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(replica_load(backend, &problem.tensor, SLC_F64, 2, &err), SLC_ERR_DAMAGED,
                     &err, "damaged");
    replica_check_dropped(backend);
    problem.tensor.fail_tile = UINT64_MAX;
    slc_error_clear(&err);
    SLC_ASSERT_OK(replica_load(backend, &problem.tensor, SLC_F64, 2, &err), &err);
    SLC_ASSERT_FAILS(replica_multiply(backend, &problem, 3, &err), SLC_ERR_USAGE, &err,
                     "3 threads");
    problem_job(&problem, 2, &job);
    job.conflict = SLC_CONFLICT_REPLICA;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_begin(backend, &job, &err), SLC_ERR_USAGE, &err, "tiles");
    job.rank = 0;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_replica(backend, &job, &err), SLC_ERR_USAGE, &err,
                     "rank");
    problem_job(&problem, 2, &job);
    job.nnz--;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_replica(backend, &job, &err), SLC_ERR_USAGE, &err,
                     "there are no copies");
    problem_job(&problem, 2, &job);
    problem.factors[2].rows--;
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(backend->ops->mttkrp_replica(backend, &job, &err), SLC_ERR_USAGE, &err,
                     "there are no copies");
    problem.factors[2].rows++;
    slc_error_clear(&err);
    SLC_ASSERT_OK(replica_multiply(backend, &problem, 2, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    backend->ops->replica_drop(backend);
    SLC_ASSERT_FAILS(replica_multiply(backend, &problem, 2, &err), SLC_ERR_USAGE, &err,
                     "there are no copies");
    tear_down(backend, &problem);
}

static const struct slc_test tests[] = {
    {"shapes", test_shapes_refused},
    {"tiles of another tensor", test_tiles_refused},
    {"tiles with fewer or more nonzeros than they declare", test_miscounted_tiles},
    {"steps out of order", test_steps},
    {"jobs that do not fit the copies", test_jobs_refused},
};

SLC_SUITE(replica_refused)
{
    return slc_test_main("replica_refused", tests, SLC_COUNT(tests), argc, argv);
}
