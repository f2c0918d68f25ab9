/* A random MTTKRP, its result, and a comparison of an output with it. Runs on one thread; excluded
 * from ThreadSanitizer. */
#include "mttkrp_fixture.h"

#include "base/random.h"
#include "cpu/reference/reference.h"
#include "slc_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN_ROWS = 2 };

void guarded_create(struct guarded *guarded, enum slc_value_type type, uint64_t rows, uint32_t cols)
{
    struct slc_error err = SLC_ERROR_INIT;
    const uint64_t value_bytes = slc_value_bytes(type);

    SLC_ASSERT_OK(slc_matrix_create(&guarded->whole, type, rows + 2UL * MARGIN_ROWS, cols, &err),
                  &err);
    memset(guarded->whole.buffer.data, 0x7b, guarded->whole.buffer.bytes);
    guarded->output = guarded->whole;
    guarded->output.rows = rows;
    guarded->output.buffer.data = (unsigned char *)guarded->whole.buffer.data +
                                  MARGIN_ROWS * guarded->whole.pitch * value_bytes;
}

bool canaries_live(const struct guarded *guarded)
{
    const unsigned char *bytes = guarded->whole.buffer.data;
    const uint64_t stride = (uint64_t)guarded->whole.pitch * slc_value_bytes(guarded->whole.type);
    const uint64_t after = (guarded->output.rows + MARGIN_ROWS) * stride;

    for (uint64_t i = 0; i < MARGIN_ROWS * stride; i++) {
        if (bytes[i] != 0x7b || bytes[after + i] != 0x7b) {
            return false;
        }
    }
    return true;
}

void problem_create(struct problem *problem,
                    unsigned order,
                    const uint64_t *dims,
                    uint64_t nnz,
                    unsigned mode,
                    uint32_t rank,
                    enum slc_value_type type,
                    bool integers)
{
    problem_create_runs(problem, order, dims, nnz, mode, rank, type, integers, (struct runs){0, 0});
}

void problem_create_runs(struct problem *problem,
                         unsigned order,
                         const uint64_t *dims,
                         uint64_t nnz,
                         unsigned mode,
                         uint32_t rank,
                         enum slc_value_type type,
                         bool integers,
                         struct runs runs)
{
    const uint64_t seed = slc_test_seed();
    const struct slc_matrix *factors[SLC_MAX_ORDER] = {0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_coo_view view;

    memset(problem, 0, sizeof *problem);
    fake_tensor_random(&problem->tensor, order, dims, nnz, integers, order * 1000 + rank);
    if (runs.mean > 0) {
        fake_tensor_runs(&problem->tensor, runs.mode, runs.mean, order * 1000 + rank);
    }
    problem->mode = mode;
    problem->rank = rank;
    problem->type = type;
    for (unsigned m = 0; m < order; m++) {
        struct slc_matrix *factor = &problem->factors[m];

        factors[m] = factor;
        if (m == mode) {
            continue;
        }
        SLC_ASSERT_OK(slc_matrix_create(factor, type, dims[m], rank, &err), &err);
        for (uint64_t i = 0; i < dims[m]; i++) {
            for (uint32_t r = 0; r < rank; r++) {
                const double uniform = slc_random_f64(seed, 77 + m, i * rank + r);
                slc_matrix_set(factor, i, r,
                               integers ? (double)((int)(uniform * 5.0) - 2) : 2.0 * uniform - 1.0);
            }
        }
    }
    guarded_create(&problem->out, type, dims[mode], rank);
    problem->want = calloc(dims[mode] * rank + 1, sizeof(double));
    problem->magnitude = calloc(dims[mode] * rank + 1, sizeof(double));
    CU_ASSERT_PTR_NOT_NULL_FATAL(problem->want);
    CU_ASSERT_PTR_NOT_NULL_FATAL(problem->magnitude);
    fake_tensor_view(&problem->tensor, &view);
    slc_reference_mttkrp(&view, factors, mode, dims[mode], rank, problem->want);
    slc_reference_mttkrp_magnitude(&view, factors, mode, dims[mode], rank, problem->magnitude);
}

void problem_partition(struct problem *problem, uint64_t nnz)
{
    fake_tensor_partition(&problem->tensor, problem->mode, nnz);
}

void problem_destroy(struct problem *problem)
{
    for (unsigned m = 0; m < problem->tensor.order; m++) {
        slc_matrix_destroy(&problem->factors[m]);
    }
    slc_matrix_destroy(&problem->out.whole);
    fake_tensor_free(&problem->tensor);
    free(problem->want);
    free(problem->magnitude);
}

void problem_job(struct problem *problem, unsigned workers, struct slc_mttkrp_job *job)
{
    memset(job, 0, sizeof *job);
    job->order = problem->tensor.order;
    job->mode = problem->mode;
    job->rank = problem->rank;
    job->nnz = problem->tensor.nnz;
    job->workers = workers;
    job->partitions = problem->tensor.partitions;
    job->output = &problem->out.output;
    for (unsigned m = 0; m < job->order; m++) {
        job->factors[m] = &problem->factors[m];
    }
}

uint64_t count_wrong(const struct problem *problem, double tolerance)
{
    const struct slc_matrix *output = &problem->out.output;
    uint64_t wrong = 0;

    for (uint64_t i = 0; i < output->rows; i++) {
        for (uint32_t r = 0; r < output->pitch; r++) {
            struct slc_matrix wide = *output;
            double got, want = 0.0, scale = 0.0;

            wide.cols = output->pitch;
            got = slc_matrix_get(&wide, i, r);
            if (r < problem->rank) {
                want = problem->want[i * problem->rank + r];
                scale = problem->magnitude[i * problem->rank + r];
            }
            wrong += !(fabs(got - want) <= tolerance * scale);
        }
    }
    return wrong;
}
