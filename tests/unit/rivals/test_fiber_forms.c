/* The baselines over tiles of fibers (tools/bench/rivals/cpu/fiber_forms.h) against the oracle:
 * both forms, outputs of the fibers' mode and of the others, in every instruction set, and rows
 * shared by many threads. */
#include "base/error/fault.h"
#include "base/thread/team.h"
#include "mttkrp_fixture.h"
#include "slc_test.h"
#include "tools/bench/rivals/cpu/fiber_forms.h"

#include <string.h>

static const uint32_t ranks[] = {1, 3, 16, 33};
static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};

/* A pass over a problem's tiles by several threads. */
struct pass {
    const struct slc_fiber_mttkrp *run;
    const struct problem *problem;
    enum slc_status status[SLC_MAX_THREADS];
};

static void add_tiles(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct pass *pass = context;
    struct slc_error err = SLC_ERROR_INIT;
    struct fake_tile tile;

    fake_tile_create(&tile, &pass->problem->tensor, pass->problem->type);
    for (uint64_t t = begin; t < end && pass->status[worker] == SLC_OK; t++) {
        fake_tile_open(&tile, t);
        pass->status[worker] = slc_fiber_mttkrp_tile(pass->run, &tile.view, &err);
    }
    fake_tile_destroy(&tile);
}

/* One MTTKRP; returns the error of a worker's tile. */
static enum slc_status
multiply(struct problem *problem, enum slc_fiber_form form, unsigned workers, struct slc_error *err)
{
    struct slc_fiber_mttkrp run = {.form = form};
    struct pass pass = {.run = &run, .problem = problem};
    struct slc_mttkrp_job job;
    enum slc_status status;

    problem_job(problem, workers, &job);
    status = slc_fiber_mttkrp_begin(&run, form, &job, err);
    if (status == SLC_OK) {
        status =
            slc_team_for(workers, fake_tensor_tiles(&problem->tensor), 1, add_tiles, &pass, err);
    }
    for (unsigned w = 0; w < workers && status == SLC_OK; w++) {
        status = pass.status[w];
    }
    slc_fiber_mttkrp_end(&run);
    return status;
}

/* Both forms on one problem; reals are compared within `tolerance`, integers bit for bit. */
static void check_forms(struct problem *problem, unsigned workers, double tolerance)
{
    for (enum slc_fiber_form form = 0; form < SLC_FIBER_FORMS; form++) {
        struct slc_error err = SLC_ERROR_INIT;

        SLC_ASSERT_OK(multiply(problem, form, workers, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(problem, tolerance), 0);
        CU_ASSERT(canaries_live(&problem->out));
    }
}

/* A shape: the modes of fibers and outputs, the length of fibers, and the size of tiles. */
struct shape {
    unsigned order;
    const uint64_t *dims;
    uint64_t nnz;
    uint32_t tile_nnz;
    unsigned mode;
    struct runs runs;
};

static void check_shape(const struct shape *shape, uint32_t rank, enum slc_value_type type)
{
    for (unsigned integers = 0; integers < 2; integers++) {
        const double tolerance = integers != 0 ? 0 : type == SLC_F32 ? 1e-4 : 1e-12;
        struct problem problem;

        problem_create_runs(&problem, shape->order, shape->dims, shape->nnz, shape->mode, rank,
                            type, integers != 0, shape->runs);
        problem.tensor.tile_nnz = shape->tile_nnz;
        check_forms(&problem, 3, tolerance);
        problem_destroy(&problem);
    }
}

/* Every mode's fibers for every mode's output, including modes of size 1. */
static void test_all_pairs(void)
{
    static const uint64_t dims[] = {40, 7, 90, 1, 5, 11};
    const uint64_t nnz = slc_test_quick() ? 300 : 1500;
    unsigned turn = 0;

    for (unsigned order = 2; order <= SLC_COUNT(dims); order++) {
        for (unsigned mode = 0; mode < order; mode++) {
            for (unsigned fibers = 0; fibers < order; fibers++, turn++) {
                const struct shape shape = {order, dims, nnz,
                                            400,   mode, {fibers, 2 + 3 * (turn % 5)}};

                if (!slc_test_quick() || turn % 4 == 0) {
                    check_shape(&shape, ranks[turn / 4 % SLC_COUNT(ranks)],
                                turn % 3 == 2 ? SLC_F32 : SLC_F64);
                }
            }
        }
    }
}

/* One mode, whose nonzeros are one fiber; sixteen, more than there are loops for. */
static void test_fewest_and_most_modes(void)
{
    uint64_t dims[SLC_MAX_ORDER];

    for (unsigned m = 0; m < SLC_MAX_ORDER; m++) {
        dims[m] = m + 2;
    }
    for (unsigned mode = 0; mode < SLC_MAX_ORDER; mode += 5) {
        const struct shape most = {SLC_MAX_ORDER, dims, 300, 100, mode, {5, 4}};
        struct problem problem;

        problem_create_runs(&problem, most.order, dims, most.nnz, mode, 9, SLC_F64, true,
                            most.runs);
        check_forms(&problem, 2, 0);
        problem_destroy(&problem);
    }
    for (size_t r = 0; r < SLC_COUNT(ranks); r++) {
        const struct shape one = {1, &(const uint64_t){300}, 1000, 300, 0, {0, 8}};

        check_shape(&one, ranks[r], SLC_F64);
        check_shape(&one, ranks[r], SLC_F32);
    }
}

/* A fiber over many tiles and chunks; no nonzeros; tiles without runs. */
static void test_long_none_and_plain(void)
{
    static const uint64_t dims[] = {1, 6000, 1};

    for (unsigned mode = 0; mode < 3; mode++) {
        const struct shape whole = {3, dims, 5000, 700, mode, {1, 1u << 30}};
        const struct shape none = {3, dims, 0, 700, mode, {1, 4}};
        const struct shape plain = {3, dims, 2500, SLC_TILE_NNZ, mode, {0, 0}};

        check_shape(&whole, 16, SLC_F64);
        check_shape(&none, 3, SLC_F64);
        check_shape(&plain, 33, SLC_F64);
    }
}

/* Every nonzero adds to one row, or to five, from many threads at once: no addition may be lost. */
static void test_few_rows(void)
{
    static const uint64_t dims[] = {50, 1, 5, 60};
    const uint64_t nnz = slc_test_quick() ? 3000 : 50000;

    for (unsigned mode = 1; mode < 3; mode++) {
        for (unsigned fibers = 0; fibers < 3; fibers += 2) {
            struct problem problem;

            problem_create_runs(&problem, 4, dims, nnz, mode, 17, SLC_F64, true,
                                (struct runs){fibers, 6});
            problem.tensor.tile_nnz = 512;
            check_forms(&problem, 8, 0);
            problem_destroy(&problem);
        }
    }
}

static void test_instruction_sets(void)
{
    static const uint64_t dims[] = {30, 20, 25, 6};
    unsigned here = 0;

    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (slc_cpu_force_instruction_set(sets[s])) {
            here++;
            for (unsigned mode = 0; mode < 2; mode++) {
                const struct shape shape = {4, dims, 400, 150, mode, {1, 7}};

                for (uint32_t rank = 15; rank <= 255; rank *= 4) {
                    check_shape(&shape, rank, SLC_F64);
                    check_shape(&shape, rank, SLC_F32);
                }
            }
        }
    }
    (void)slc_cpu_force_instruction_set(NULL);
    CU_ASSERT(here > 0);
}

/* Tiles of another tensor, a damaged tile, and a job that does not fit. */
static void test_refused(void)
{
    static const uint64_t dims[] = {50, 20, 30};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_fiber_mttkrp run = {.form = SLC_ATOMIC_FIBER};
    struct slc_mttkrp_job job;
    struct problem problem;
    struct fake_tile tile;

    problem_create_runs(&problem, 3, dims, 5000, 1, 8, SLC_F64, true, (struct runs){0, 4});
    problem.tensor.fail_tile = 0;
    problem.tensor.chunk_nnz = 256;
    for (enum slc_fiber_form form = 0; form < SLC_FIBER_FORMS; form++) {
        CU_ASSERT_EQUAL(multiply(&problem, form, 2, NULL), SLC_ERR_DAMAGED);
    }
    problem_job(&problem, 2, &job);
    job.rank = 9;
    SLC_ASSERT_FAILS(slc_fiber_mttkrp_begin(&run, SLC_ATOMIC_FIBER, &job, &err), SLC_ERR_USAGE,
                     &err, "9 columns");
    slc_error_clear(&err);
    job.rank = 8;
    SLC_ASSERT_OK(slc_fiber_mttkrp_begin(&run, SLC_ATOMIC_FIBER, &job, &err), &err);
    fake_tile_create(&tile, &problem.tensor, SLC_F64);
    fake_tile_open(&tile, 0);
    tile.view.extent[2] = 30;
    SLC_ASSERT_FAILS(slc_fiber_mttkrp_tile(&run, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "the matrix of this mode has 30 rows");
    slc_error_clear(&err);
    tile.view.value_type = SLC_F32;
    SLC_ASSERT_FAILS(slc_fiber_mttkrp_tile(&run, &tile.view, &err), SLC_ERR_USAGE, &err,
                     "of 3 modes in f32 does not match an MTTKRP of 3 modes in f64");
    fake_tile_destroy(&tile);
    slc_fiber_mttkrp_end(&run);
    problem_destroy(&problem);
}

/* The k-th allocation, or thread, fails, for every k. */
static void test_faults(void)
{
    static const struct {
        enum slc_fault_kind kind;
        enum slc_status refused;
    } kinds[] = {{SLC_FAULT_ALLOCATION, SLC_ERR_MEMORY}, {SLC_FAULT_THREAD, SLC_ERR_SYSTEM}};
    struct problem problem;

    /* An output of several pieces, so that threads are used. */
    problem_create_runs(&problem, 1, &(const uint64_t){40000}, 1000, 0, 16, SLC_F64, true,
                        (struct runs){0, 8});
    for (size_t f = 0; f < SLC_COUNT(kinds); f++) {
        bool done = false;

        for (uint64_t k = 1; !done && k < 50; k++) {
            enum slc_status status;

            slc_fault_arm(kinds[f].kind, k);
            status = multiply(&problem, SLC_ATOMIC_FIBER, 2, NULL);
            done = slc_fault_seen(kinds[f].kind) < k;
            slc_fault_arm(kinds[f].kind, 0);
            CU_ASSERT_EQUAL(status, done ? SLC_OK : kinds[f].refused);
            CU_ASSERT(!done || (k > 1 && count_wrong(&problem, 0) == 0));
        }
        CU_ASSERT(done);
    }
    problem_destroy(&problem);
}

static void test_names(void)
{
    CU_ASSERT_STRING_EQUAL(slc_fiber_form_name(SLC_ATOMIC_FIBER), "atomic-fiber");
    CU_ASSERT_STRING_EQUAL(slc_fiber_form_name(SLC_ATOMIC_NONZERO), "atomic-nonzero");
    CU_ASSERT_STRING_EQUAL(slc_fiber_form_name(SLC_FIBER_FORMS), "?");
}

SLC_SUITE(fiber_forms)
{
    static const struct slc_test tests[] = {
        {"fibers and outputs of every mode", test_all_pairs},
        {"one mode and sixteen", test_fewest_and_most_modes},
        {"a long fiber, no nonzeros, no runs", test_long_none_and_plain},
        {"few rows for all threads", test_few_rows},
        {"every instruction set", test_instruction_sets},
        {"what does not fit", test_refused},
        {"every allocation and thread refused", test_faults},
        {"names", test_names},
    };

    return slc_test_main("cpu fiber forms", tests, SLC_COUNT(tests), argc, argv);
}
