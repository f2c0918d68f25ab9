/* Replicas whose construction ends early: by a stop, and by a fault at every point. Nothing is held
 * then, and the same backend can make them again. */
#include "base/error/fault.h"
#include "replica_fixture.h"
#include "slc_test.h"

/* A stop, by flag or time, is noticed before the next replica, and nothing is held then. */
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
        SLC_ASSERT_OK(replica_fill(backend, &problem.tensor, SLC_F64, 2, &err), &err);
        SLC_ASSERT_FAILS(backend->ops->replica_end(backend, NULL, &stops[s], &err),
                         SLC_ERR_INTERRUPTED, &err, "0 of 3 copies");
        replica_check_dropped(backend);
    }
    flag = 0;
    slc_error_clear(&err);
    SLC_ASSERT_OK(replica_fill(backend, &problem.tensor, SLC_F64, 2, &err), &err);
    SLC_ASSERT_OK(backend->ops->replica_end(backend, NULL, &later, &err), &err);
    SLC_ASSERT_OK(replica_multiply(backend, &problem, 2, &err), &err);
    CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
    problem_destroy(&problem);
    backend->ops->destroy(backend);
}

/* The k-th allocation, or thread, fails, for every k; then the same backend is used again. */
static void
check_faults(enum slc_fault_kind kind, enum slc_status refused, enum slc_value_type type)
{
    static const uint64_t dims[] = {50, 2000, 30};
    struct problem problem;
    bool done = false;

    problem_create(&problem, 3, dims, 3000, 0, 8, type, true);
    for (uint64_t k = 1; !done && k < 400; k += slc_test_threads_only() ? 1 + k / 4 : 1) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_backend *backend;
        enum slc_status status;

        SLC_ASSERT_OK(slc_cpu_backend_create(&backend, &err), &err);
        slc_fault_arm(kind, k);
        status = replica_load(backend, &problem.tensor, type, 2, &err);
        if (status == SLC_OK) {
            status = replica_multiply(backend, &problem, 2, &err);
        } else {
            replica_check_dropped(backend);
        }
        done = slc_fault_seen(kind) < k;
        slc_fault_arm(kind, 0);
        CU_ASSERT_EQUAL(status, done ? SLC_OK : refused);
        slc_error_clear(&err);
        SLC_ASSERT_OK(replica_load(backend, &problem.tensor, type, 2, &err), &err);
        SLC_ASSERT_OK(replica_multiply(backend, &problem, 2, &err), &err);
        CU_ASSERT_EQUAL(count_wrong(&problem, 0), 0);
        backend->ops->destroy(backend);
    }
    CU_ASSERT(done);
    problem_destroy(&problem);
}

/* Returns the number of allocations for making replicas, with or without trials of forms. */
static uint64_t allocations(struct slc_backend *backend, const struct problem *problem, bool tried)
{
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t seen;

    slc_fault_arm(SLC_FAULT_ALLOCATION, UINT64_MAX);
    SLC_ASSERT_OK(tried ? replica_load_tried(backend, problem, 1, &err)
                        : replica_load(backend, &problem->tensor, problem->type, 1, &err),
                  &err);
    seen = slc_fault_seen(SLC_FAULT_ALLOCATION);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    return seen;
}

/* Faults during trials of forms, and factors of another tensor. */
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
    for (uint64_t k = 1; !done && k < 400; k += slc_test_threads_only() ? 1 + 2 * k
                                                : slc_test_quick()      ? 1 + k / 2
                                                                        : 1) {
        enum slc_status status;

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        slc_error_clear(&err);
        status = replica_load_tried(backend, &problem, 1, &err);
        done = slc_fault_seen(SLC_FAULT_ALLOCATION) < k;
        slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
        CU_ASSERT_EQUAL(status, done ? SLC_OK : SLC_ERR_MEMORY);
        if (!done) {
            replica_check_dropped(backend);
        }
    }
    CU_ASSERT(done);
    if (!slc_test_threads_only()) { /* omitted under ThreadSanitizer: it tests no threads */
        CU_ASSERT(allocations(backend, &problem, true) >=
                  allocations(backend, &problem, false) + 3);
    }
    replica_shape(&problem.tensor, &shape);
    slc_error_clear(&err);
    SLC_ASSERT_OK(backend->ops->replica_begin(backend, &shape, SLC_F64, 1, &err), &err);
    problem.factors[1] = problem.factors[0];
    SLC_ASSERT_FAILS(backend->ops->replica_end(backend, problem.factors, NULL, &err), SLC_ERR_USAGE,
                     &err, "factor of mode 2 does not match the tensor");
    replica_check_dropped(backend);
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

static const struct slc_test tests[] = {
    {"stopped on the way", test_stop},
    {"faults while forms are tried", test_trial_faults},
    {"every failing allocation and thread", test_faults},
};

SLC_SUITE(replica_faults)
{
    return slc_test_main("replica_faults", tests, SLC_COUNT(tests), argc, argv);
}
