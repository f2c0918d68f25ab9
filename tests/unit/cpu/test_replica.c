/* Replicas, in which every row has one owner: their numerical results. */
#include "base/thread/team.h"
#include "base/topology/placement.h"
#include "replica_fixture.h"
#include "slc_test.h"

#include <stdlib.h>
#include <string.h>

static void check_problem(struct problem *problem, double tolerance)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned workers = slc_test_threads_only() ? 3 : 1; workers <= 5; workers += 2) {
        SLC_ASSERT_OK(replica_load(backend, &problem->tensor, problem->type, workers, &err), &err);
        for (int again = 0; again < 2; again++) {
            memset(problem->out.output.buffer.data, 0x55,
                   problem->out.output.rows * problem->out.output.pitch *
                       slc_value_bytes(problem->type));
            SLC_ASSERT_OK(replica_multiply(backend, problem, workers, &err), &err);
            CU_ASSERT_EQUAL(count_wrong(problem, tolerance), 0);
            CU_ASSERT(canaries_live(&problem->out));
        }
    }
    backend->ops->destroy(backend);
}

/* Shapes with small, large, single-row and heavy modes; integers make sums exact. */
static void test_shapes(void)
{
    static const struct {
        unsigned order;
        uint64_t dims[5];
        uint64_t nnz;
        struct runs runs;
    } shapes[] = {
        {2, {50, 70}, 900, {0, 0}},
        {3, {40, 30, 20}, 5000, {0, 0}},
        {3, {2000, 1, 300}, 9000, {0, 6}},
        {3, {100000, 7, 5}, 6000, {2, 3}},
        {4, {300, 24, 900, 12}, 9000, {3, 4}},
        {5, {9, 400, 3, 700, 2}, 7000, {1, 9}},
        {3, {1, 1, 1}, 1, {0, 0}},
        {3, {1, 1, 1}, 40, {0, 0}},
        {3, {600, 500, 400}, 0, {0, 0}},
        {3, {300, 2, 2}, 20000, {0, 200}},
    };
    static const uint32_t ranks[] = {1, 7, 16, 33};

    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (unsigned mode = 0; mode < shapes[s].order; mode++) {
            for (unsigned r = 0; r < 4; r++) {
                const enum slc_value_type type = (mode + r) % 2 == 0 ? SLC_F64 : SLC_F32;
                struct problem problem;

                if (slc_test_quick() && (s + r / 2) % 4 != 0) {
                    continue; /* two ranks of every second shape, one of either type */
                }
                if (slc_test_threads_only() && (mode + r) % shapes[s].order != 0) {
                    continue;
                }
                problem_create_runs(&problem, shapes[s].order, shapes[s].dims, shapes[s].nnz, mode,
                                    ranks[r], type, true, shapes[s].runs);
                check_problem(&problem, 0);
                problem_destroy(&problem);
            }
        }
    }
}

/* Several pieces per range, runs across the ends of chunks, and reals. */
static void test_large(void)
{
    static const uint64_t dims[] = {12, 30000, 700};
    struct problem problem;

    if (slc_test_threads_only()) { /* the mode whose rows are in one range has four pieces */
        problem_create_runs(&problem, 3, dims, 100000, 0, 16, SLC_F64, true, (struct runs){1, 40});
        check_problem(&problem, 0);
        problem_destroy(&problem);
        return;
    }
    for (unsigned mode = 0; mode < 3; mode++) {
        problem_create_runs(&problem, 3, dims, 200000, mode, 16, SLC_F64, true,
                            (struct runs){1, 40});
        check_problem(&problem, 0);
        problem_destroy(&problem);
    }
    problem_create(&problem, 3, dims, 150000, 1, 9, SLC_F64, false);
    check_problem(&problem, 1e-13);
    problem_destroy(&problem);
}

/* Makes replicas with trials of forms; the trials are reported for the modes tried, never
 * without factors. */
static void
check_tried(struct slc_backend *backend, const struct problem *problem, unsigned workers)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_replica_form form;
    unsigned tried = 0;

    if (!slc_test_threads_only()) {
        SLC_ASSERT_OK(replica_load(backend, &problem->tensor, problem->type, workers, &err), &err);
        for (unsigned mode = 0; mode < problem->tensor.order; mode++) {
            CU_ASSERT_TRUE(backend->ops->replica_form(backend, mode, &form));
            CU_ASSERT_EQUAL(form.tried, 0);
        }
    }
    SLC_ASSERT_OK(replica_load_tried(backend, problem, workers, &err), &err);
    for (unsigned mode = 0; mode < problem->tensor.order; mode++) {
        CU_ASSERT_TRUE(backend->ops->replica_form(backend, mode, &form));
        CU_ASSERT(form.tried != 1);
        tried += form.tried > 0;
        CU_ASSERT_EQUAL(form.varying, replica_of(backend)->modes[mode].varying);
        CU_ASSERT(form.varying == SLC_REPLICA_PLAIN ? form.nnz_per_run == 1.0
                                                    : form.nnz_per_run >= 1.0);
    }
    CU_ASSERT(tried > 0);
}

/* Forms chosen by trials: for any choice the sums are right, also when replicas are made again.
 * Four modes whose best form is uncertain, and enough nonzeros for a trial; three modes under
 * ThreadSanitizer, with half as many forms. */
static void test_trial(void)
{
    static const uint64_t dims[] = {900, 30, 600, 40};
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned types = slc_test_quick() ? 1 : 0; types < 2; types++) {
        struct slc_backend *backend;
        struct problem problem;

        SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
        problem_create_runs(&problem, slc_test_threads_only() ? 3 : 4, dims, 700000, types,
                            types == 0 ? 5 : 1, types == 0 ? SLC_F64 : SLC_F32, true,
                            (struct runs){2, 5});
        for (unsigned workers = slc_test_quick() ? 2 : 1; workers <= 2; workers++) {
            check_tried(backend, &problem, workers);
            SLC_ASSERT_OK(replica_multiply(backend, &problem, workers, &err), &err);
            CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
            CU_ASSERT(canaries_live(&problem.out));
        }
        problem_destroy(&problem);
        backend->ops->destroy(backend);
    }
}

/* Sixteen modes of 32 rows need 80 bits: too many for a sort key. */
static void test_wide_keys(void)
{
    struct problem problem;
    uint64_t dims[SLC_MAX_ORDER];

    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        dims[m] = 32;
    }
    problem_create(&problem, SLC_MAX_ORDER, dims, 500, 5, 4, SLC_F64, true);
    check_problem(&problem, 0);
    problem_destroy(&problem);
}

/* With two nodes, of which the second has one of three workers, the sums are the same, and each
 * node has memory. */
static void test_nodes(void)
{
    static const struct slc_placement placement = {
        .workers = 3, .node_count = 2, .first_worker = {0, 2, 3}};
    static const uint64_t dims[] = {12, 30000, 700};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    slc_placement_enter(&placement);
    for (unsigned mode = slc_test_threads_only() ? 2 : 0; mode < 3; mode++) {
        const struct slc_replica_mode *copy = &replica_of(backend)->modes[mode];
        const unsigned char *boundary;
        uint64_t ends[SLC_MAX_NODES];

        problem_create_runs(&problem, 3, dims, 200000, mode, 16, SLC_F64, true,
                            (struct runs){1, 40});
        SLC_ASSERT_OK(replica_load(backend, &problem.tensor, problem.type, 3, &err), &err);
        SLC_ASSERT_OK(replica_multiply(backend, &problem, 3, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
        CU_ASSERT_EQUAL_FATAL(slc_team_shares(3, copy->piece_count, 1, ends), 2);
        CU_ASSERT_TRUE(ends[0] > 0 && ends[0] < ends[1] && ends[1] == copy->piece_count);
        boundary = copy->pieces[ends[0]].chunks;
        for (uint64_t p = ends[0]; p < ends[1]; p++) {
            boundary = copy->pieces[p].chunks < boundary ? copy->pieces[p].chunks : boundary;
        }
        for (uint64_t p = 0; p < ends[0]; p++) {
            CU_ASSERT_TRUE(copy->pieces[p].chunks < boundary);
        }
        problem_destroy(&problem);
    }
    slc_placement_leave();
    backend->ops->destroy(backend);
}

/* The same sums for any thread schedule: reals, whose sums depend on their order. */
static void test_repeatable(void)
{
    static const uint64_t dims[] = {20, 5000, 600};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned mode = 0; mode < 2; mode++) {
        const struct slc_matrix *output = &problem.out.output;
        unsigned char *first;
        uint64_t bytes;

        problem_create(&problem, 3, dims, 60000, mode, 8, SLC_F64, false);
        bytes = output->rows * output->pitch * sizeof(double);
        first = malloc(bytes);
        CU_ASSERT_PTR_NOT_NULL_FATAL(first);
        SLC_ASSERT_OK(replica_load(backend, &problem.tensor, SLC_F64, 4, &err), &err);
        SLC_ASSERT_OK(replica_multiply(backend, &problem, 4, &err), &err);
        memcpy(first, output->buffer.data, bytes);
        for (int again = 0; again < (slc_test_threads_only() ? 4 : 20); again++) {
            SLC_ASSERT_OK(replica_multiply(backend, &problem, 4, &err), &err);
            CU_ASSERT_EQUAL(memcmp(first, output->buffer.data, bytes), 0);
        }
        SLC_ASSERT_OK(replica_load(backend, &problem.tensor, SLC_F64, 4, &err), &err);
        SLC_ASSERT_OK(replica_multiply(backend, &problem, 4, &err), &err);
        CU_ASSERT_EQUAL(memcmp(first, output->buffer.data, bytes), 0);
        free(first);
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

/* Compares all instruction sets, for chunks with runs, with long runs and without runs. Instruction
 * sets with fused multiply-add round less often. With integers, all results are exact. */
static void check_sets(struct slc_backend *backend, struct problem *problem, double tolerance)
{
    static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(replica_load(backend, &problem->tensor, problem->type, 3, &err), &err);
    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (!slc_cpu_force_instruction_set(sets[s])) {
            continue;
        }
        SLC_ASSERT_OK(replica_multiply(backend, problem, 3, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(problem, tolerance), 0);
    }
    (void)slc_cpu_force_instruction_set(NULL);
}

static void test_instruction_sets(void)
{
    static const uint64_t dims[] = {900, 60, 40, 7};
    static const uint32_t ranks[] = {1, 2, 5, 16, 100};
    static const unsigned means[] = {0, 3, 80};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned order = 2; order <= 4; order++) {
        for (size_t i = 0; i < SLC_COUNT(ranks) * SLC_COUNT(means); i++) {
            const struct runs runs = {(unsigned)i % order, means[i % SLC_COUNT(means)]};
            const enum slc_value_type type = i % 2 == 0 ? SLC_F64 : SLC_F32;

            if (slc_test_quick() && (i + order) % 3 != 0) {
                continue; /* each rank and mean length is tested with some order */
            }
            if (slc_test_threads_only() && i % 4 != 0) {
                continue;
            }
            for (int integers = 0; integers < 2; integers++) {
                const double tolerance = integers ? 0 : type == SLC_F64 ? 1e-13 : 1e-6;
                struct problem problem;

                problem_create_runs(&problem, order, dims, 6000, (unsigned)(i / 2) % order,
                                    ranks[i / SLC_COUNT(means)], type, integers, runs);
                check_sets(backend, &problem, tolerance);
                problem_destroy(&problem);
            }
        }
    }
    backend->ops->destroy(backend);
}

/* Heavy rows throughout a large mode: many ranges in several items, each with windows. */
static void test_heavy_rows(void)
{
    static const uint64_t dims[] = {40000, 90};
    const uint64_t nnz = 30000;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    for (unsigned types = 0; types < 2; types++) {
        struct problem problem;
        struct slc_replica_mode *copy;

        problem_create_runs(&problem, 2, dims, nnz, 0, 3, types == 0 ? SLC_F64 : SLC_F32, true,
                            (struct runs){1, 3000});
        SLC_ASSERT_OK(replica_load(backend, &problem.tensor, problem.type, 4, &err), &err);
        copy = &replica_of(backend)->modes[0];
        CU_ASSERT(copy->item_count >= copy->range_count + 3);
        SLC_ASSERT_OK(replica_multiply(backend, &problem, 4, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
        CU_ASSERT(canaries_live(&problem.out));
        problem_destroy(&problem);
    }
    backend->ops->destroy(backend);
}

/* Several workers load tiles at the same time, as from a stream. */
struct loading {
    struct slc_backend *backend;
    const struct fake_tensor *tensor;
    atomic_uint_fast64_t next;
    atomic_uint failures;
};

static void load_tiles(void *context, unsigned worker, unsigned workers)
{
    struct loading *loading = context;
    struct slc_error err = SLC_ERROR_INIT;
    struct fake_tile tile;

    (void)workers;
    fake_tile_create(&tile, loading->tensor, SLC_F64);
    for (;;) {
        const uint64_t t = atomic_fetch_add(&loading->next, 1);

        if (t >= fake_tensor_tiles(loading->tensor)) {
            break;
        }
        fake_tile_open(&tile, t);
        if (loading->backend->ops->replica_tile(loading->backend, worker, &tile.view, &err) !=
            SLC_OK) {
            atomic_fetch_add(&loading->failures, 1);
        }
    }
    fake_tile_destroy(&tile);
}

static void test_loading_together(void)
{
    static const uint64_t dims[] = {70, 4000, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_tensor_shape shape;
    struct slc_backend *backend;
    struct problem problem;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 20011, 1, 8, SLC_F64, true);
    problem.tensor.tile_nnz = 128;
    replica_shape(&problem.tensor, &shape);
    for (unsigned workers = 1; workers <= 4; workers++) {
        struct loading loading = {.backend = backend, .tensor = &problem.tensor};

        /* Loads with `workers` threads, multiplies with 5 - workers: with more, or with fewer. */
        SLC_ASSERT_OK(backend->ops->replica_begin(backend, &shape, SLC_F64, 5 - workers, &err),
                      &err);
        SLC_ASSERT_OK(slc_team_run(workers, load_tiles, &loading, &err), &err);
        CU_ASSERT_EQUAL(atomic_load(&loading.failures), 0);
        SLC_ASSERT_OK(backend->ops->replica_end(backend, NULL, NULL, &err), &err);
        SLC_ASSERT_OK(replica_multiply(backend, &problem, 5 - workers, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    }
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

static const struct slc_test tests[] = {
    {"every shape, rank, type and number of workers", test_shapes},
    {"several pieces a range", test_large},
    {"forms tried by computing", test_trial},
    {"several pieces a range on two nodes", test_nodes},
    {"coordinates too wide to sort by", test_wide_keys},
    {"the same bits every time", test_repeatable},
    {"the same sums from every instruction set", test_instruction_sets},
    {"heavy rows of a long mode", test_heavy_rows},
    {"tiles from several workers at a time", test_loading_together},
};

SLC_SUITE(replica)
{
    return slc_test_main("replica", tests, SLC_COUNT(tests), argc, argv);
}
