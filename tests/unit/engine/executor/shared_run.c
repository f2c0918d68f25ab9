/* MTTKRPs on the CPU and a fake device, compared with the oracle. */
#include "shared_run.h"

#include "slc_test.h"

#include "cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

const struct slc_hybrid_wish shared_wishes[SHARED_WISHES] = {{SLC_HYBRID_STATIC, 0},
                                                             {SLC_HYBRID_STATIC, 0.3},
                                                             {SLC_HYBRID_STATIC, 1},
                                                             {SLC_HYBRID_ADAPTIVE, 0},
                                                             {SLC_HYBRID_QUEUE, 0}};

void shared_problem(struct shared_problem *problem,
                    const char *name,
                    uint64_t draws,
                    uint32_t block)
{
    const struct slc_matrix *views[SLC_MAX_ORDER];
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo_view view;

    if (problem->path[0] != '\0') {
        return;
    }
    device_run_tensor(&problem->tensor, draws);
    fixture_store(&problem->tensor, slc_test_folder(), name, SLC_CODEC_PACKED, block,
                  problem->path);
    view = fixture_view(&problem->tensor);
    for (unsigned n = 0; n < 3; n++) {
        const uint64_t rows = problem->tensor.dims[n];

        SLC_ASSERT_OK(slc_matrix_create(&problem->factors[n], SLC_F64, rows, SHARED_RANK, &err),
                      &err);
        for (uint64_t i = 0; i < rows * SHARED_RANK; i++) {
            slc_matrix_set(&problem->factors[n], i / SHARED_RANK, (uint32_t)(i % SHARED_RANK),
                           (double)(1 + (i + n) % 5));
        }
        views[n] = &problem->factors[n];
        problem->want[n] = calloc(rows * SHARED_RANK, sizeof(double));
    }
    for (unsigned n = 0; n < 3; n++) {
        slc_reference_mttkrp(&view, views, n, problem->tensor.dims[n], SHARED_RANK,
                             problem->want[n]);
    }
}

void shared_problem_free(struct shared_problem *problem)
{
    for (unsigned n = 0; n < 3; n++) {
        slc_matrix_destroy(&problem->factors[n]);
        free(problem->want[n]);
    }
    fixture_destroy(&problem->tensor);
}

void shared_limits(const struct shared_problem *problem,
                   const struct slc_plan_request *request,
                   uint64_t *least,
                   uint64_t *all)
{
    struct slc_plan_request wanted = *request;

    wanted.hybrid.kind = SLC_HYBRID_NONE;
    device_run_limits(problem->path, &wanted, least, all);
}

enum slc_status shared_open(struct shared_run *shared,
                            const struct shared_problem *problem,
                            const struct slc_files *files,
                            const struct slc_plan_request *request,
                            uint64_t device_bytes,
                            unsigned late_us,
                            struct slc_error *err)
{
    enum slc_status status;

    memset(shared, 0, sizeof *shared);
    shared->problem = problem;
    device_run_store(&shared->run, problem->path, files, device_bytes, late_us);
    status = device_run_start(&shared->run, request, err);
    if (status == SLC_OK) {
        status = slc_cpu_backend_create(&shared->backend, err);
    }
    for (unsigned n = 0; n < 3 && status == SLC_OK; n++) {
        shared->hybrid[n].wish = request->hybrid;
        status = shared->run.device->ops->memory.factor_write(shared->run.device, n,
                                                              &problem->factors[n], err);
    }
    return status;
}

void shared_close(struct shared_run *shared)
{
    uint64_t alone = 0;

    /* The host may wait only in passes that an adaptive split leaves to the device alone. */
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        alone +=
            shared->hybrid[n].wish.kind == SLC_HYBRID_ADAPTIVE ? shared->hybrid[n].passes_alone : 0;
    }
    CU_ASSERT(alone > 0 || fake_counts(shared->run.device)->waits == 0);
    if (shared->backend != NULL) {
        shared->backend->ops->destroy(shared->backend);
    }
    device_run_close(&shared->run);
}

enum slc_status shared_compute(struct shared_run *shared,
                               unsigned mode,
                               const volatile int *stop,
                               void (*progress)(void *, uint64_t, uint64_t, uint64_t),
                               void *context,
                               struct slc_error *err)
{
    const struct slc_plan *plan = &shared->run.plan;
    struct slc_matrix output = {0};
    struct slc_mttkrp_job job = {.order = 3,
                                 .mode = mode,
                                 .rank = SHARED_RANK,
                                 .nnz = shared->problem->tensor.nnz,
                                 .workers = plan->threads,
                                 .conflict = plan->choices[mode].chosen,
                                 .output = &output};
    const struct slc_hybrid_cpu cpu = {
        .backend = shared->backend, .job = &job, .hybrid = &shared->hybrid[mode]};
    enum slc_status status;

    for (unsigned n = 0; n < 3; n++) {
        job.factors[n] = &shared->problem->factors[n];
    }
    SLC_ASSERT_OK(
        slc_matrix_create(&output, SLC_F64, shared->problem->tensor.dims[mode], SHARED_RANK, err),
        err);
    status = slc_gpu_executor_mttkrp_hybrid(shared->run.device, shared->run.stream, plan, &cpu,
                                            stop, progress, context, err);
    slc_matrix_destroy(&output);
    return status;
}

void shared_check(struct shared_run *shared, unsigned mode)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix output = {0};
    uint64_t wrong = 0;

    SLC_ASSERT_OK(shared_compute(shared, mode, NULL, NULL, NULL, &err), &err);
    SLC_ASSERT_OK(
        slc_matrix_create(&output, SLC_F64, shared->problem->tensor.dims[mode], SHARED_RANK, &err),
        &err);
    SLC_ASSERT_OK(shared->run.device->ops->memory.output_read(shared->run.device, &output, &err),
                  &err);
    for (uint64_t i = 0; i < output.rows; i++) {
        for (uint32_t r = 0; r < SHARED_RANK; r++) {
            wrong +=
                slc_matrix_get(&output, i, r) != shared->problem->want[mode][i * SHARED_RANK + r];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    slc_matrix_destroy(&output);
}

struct slc_plan_request shared_request(enum slc_io_kind io,
                                       unsigned threads,
                                       bool cache,
                                       const struct slc_hybrid_wish *wish)
{
    struct slc_plan_request request = fixture_request(SHARED_RANK);

    request.io = io;
    request.threads = threads;
    request.cache = cache;
    request.slots = 2;
    request.streams = 2;
    request.hybrid = *wish;
    return request;
}
