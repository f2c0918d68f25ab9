/* Replicas in every possible form, independent of the cost model: kernels of every instruction set,
 * for each number of modes that vary within a run. */
#include "cpu/replica/replica_build.h"
#include "replica_fixture.h"
#include "slc_test.h"

/* Adds a problem's nonzeros and splits them into pieces of its mode, without choosing a form. */
static void split(struct slc_backend *backend, const struct problem *problem, unsigned workers)
{
    struct slc_replica *replica = replica_of(backend);
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t bytes;

    SLC_ASSERT_OK(replica_fill(backend, &problem->tensor, problem->type, workers, &err), &err);
    bytes = slc_replica_chunks_bytes_max(replica->shape.order, replica->type, replica->shape.nnz);
    SLC_ASSERT_OK(
        slc_buffer_create(&replica->modes[problem->mode].chunks, bytes, SLC_PAGES_HUGE, &err),
        &err);
    SLC_ASSERT_OK(slc_replica_split(replica, problem->mode, &err), &err);
    replica->ready = true;
}

/* Writes the pieces in one form, and computes from them with every instruction set. */
static void check_form(struct slc_backend *backend, struct problem *problem, uint32_t varying)
{
    static const char *const sets[] = {"portable", "avx2", "avx512", "neon"};
    struct slc_replica *replica = replica_of(backend);
    struct slc_replica_mode *copy = &replica->modes[problem->mode];
    struct slc_error err = SLC_ERROR_INIT;

    copy->varying = varying;
    SLC_ASSERT_OK(slc_replica_write_chunks(replica, problem->mode, copy, &err), &err);
    for (size_t s = 0; s < SLC_COUNT(sets); s++) {
        if (!slc_cpu_force_instruction_set(sets[s])) {
            continue;
        }
        SLC_ASSERT_OK(replica_multiply(backend, problem, replica->workers, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(problem, 0), 0);
        CU_ASSERT(canaries_live(&problem->out));
    }
    (void)slc_cpu_force_instruction_set(NULL);
}

/* Checks every form: runs are fibers of the output's mode, or agree in the output's mode. */
static void check_forms(struct problem *problem)
{
    const uint32_t output = UINT32_C(1) << problem->mode;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    split(backend, problem, 2);
    for (uint32_t varying = 0; varying >> problem->tensor.order == 0; varying++) {
        if ((varying & output) == 0 || varying == output) {
            check_form(backend, problem, varying);
        }
    }
    backend->ops->destroy(backend);
}

/* Up to six modes vary, within runs that are short or, along mode 1 or the output's mode, long. */
static void test_forms(void)
{
    static const uint64_t dims[] = {40, 3, 25, 2, 4, 30, 6};
    static const uint32_t ranks[] = {1, 3, 17};
    static const struct runs runs[] = {{0, 0}, {0, 40}, {2, 40}};

    for (size_t i = 0; i < SLC_COUNT(ranks) * SLC_COUNT(runs); i++) {
        for (enum slc_value_type type = SLC_F32; type <= SLC_F64; type++) {
            struct problem problem;

            problem_create_runs(&problem, SLC_COUNT(dims), dims, 3000, 2,
                                ranks[i % SLC_COUNT(ranks)], type, true,
                                runs[i / SLC_COUNT(ranks)]);
            check_forms(&problem);
            problem_destroy(&problem);
        }
    }
}

/* Three modes of 17 bits and the output are too much for a run key: such pieces have no runs. */
static void test_wide_runs(void)
{
    static const uint64_t dims[] = {70000, 9, 70001, 70002, 70003};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct problem problem;

    problem_create(&problem, 5, dims, 5000, 0, 5, SLC_F64, true);
    check_forms(&problem);
    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    split(backend, &problem, 1);
    check_form(backend, &problem, UINT32_C(1) << 1);
    for (uint64_t p = 0; p < replica_of(backend)->modes[0].piece_count; p++) {
        const void *chunk = replica_of(backend)->modes[0].pieces[p].chunks;

        CU_ASSERT_EQUAL(((const struct slc_replica_chunk *)chunk)->runs, 0);
    }
    backend->ops->destroy(backend);
    problem_destroy(&problem);
}

/* Distinct pairs of coordinates in modes 0 and 2, below 64 each. */
static unsigned count_pairs(const struct fake_tensor *tensor)
{
    bool there[64][64] = {{false}};
    unsigned count = 0;

    for (uint64_t i = 0; i < tensor->nnz; i++) {
        bool *pair = &there[tensor->coords[0][i]][tensor->coords[2][i]];

        count += *pair ? 0 : 1;
        *pair = true;
    }
    return count;
}

/* The backend's description of a replica: the modes that vary, and nonzeros per run. */
static void test_description(void)
{
    static const uint64_t dims[] = {50, 9, 2};
    const struct slc_replica_form untouched = {.varying = 77, .nnz_per_run = 7, .tried = 7};
    struct slc_replica_form form = untouched;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_backend *backend;
    struct problem problem;
    unsigned pairs;

    SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
    problem_create(&problem, 3, dims, 1000, 0, 4, SLC_F64, true);
    pairs = count_pairs(&problem.tensor);
    CU_ASSERT_FALSE(backend->ops->replica_form(backend, 0, &form));
    split(backend, &problem, 1);
    check_form(backend, &problem, UINT32_C(1) << 1);
    CU_ASSERT_TRUE(backend->ops->replica_form(backend, 0, &form));
    CU_ASSERT_EQUAL(form.varying, UINT32_C(1) << 1);
    CU_ASSERT_DOUBLE_EQUAL(form.nnz_per_run, 1000.0 / pairs, 1e-12);
    CU_ASSERT_EQUAL(form.tried, 0);
    check_form(backend, &problem, SLC_REPLICA_PLAIN);
    CU_ASSERT_TRUE(backend->ops->replica_form(backend, 0, &form));
    CU_ASSERT_EQUAL(form.varying, SLC_REPLICA_PLAIN);
    CU_ASSERT_EQUAL(form.nnz_per_run, 1.0);

    /* If the mode does not exist, or there are no replicas, `form` does not change. */
    form = untouched;
    CU_ASSERT_FALSE(backend->ops->replica_form(backend, 3, &form));
    backend->ops->replica_drop(backend);
    CU_ASSERT_FALSE(backend->ops->replica_form(backend, 0, &form));
    CU_ASSERT(form.varying == 77 && form.nnz_per_run == 7.0 && form.tried == 7);
    problem_destroy(&problem);

    /* Replicas of a tensor without nonzeros. */
    problem_create(&problem, 3, dims, 0, 0, 4, SLC_F64, true);
    SLC_ASSERT_OK(replica_load(backend, &problem.tensor, SLC_F64, 1, &err), &err);
    CU_ASSERT_TRUE(backend->ops->replica_form(backend, 2, &form));
    CU_ASSERT(form.varying == SLC_REPLICA_PLAIN && form.nnz_per_run == 1.0 && form.tried == 0);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

static const struct slc_test tests[] = {
    {"every form, by every instruction set", test_forms},
    {"runs too wide for keys", test_wide_runs},
    {"the description of a form", test_description},
};

SLC_SUITE(replica_forms)
{
    return slc_test_main("replica_forms", tests, SLC_COUNT(tests), argc, argv);
}
