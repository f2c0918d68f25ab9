/* Decomposes small stores on any number of CPU devices. */
#include "cpu_groups_fixture.h"

#include "cpu/cpu.h"
#include "engine/planning/planning.h"
#include "slc_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void devices_store_create(struct devices_store *made,
                          const char *name,
                          unsigned order,
                          const uint64_t *dims,
                          uint64_t nnz,
                          uint64_t target_nnz)
{
    struct slc_error err = SLC_ERROR_INIT;

    (void)snprintf(made->path, sizeof made->path, "%s/%s.slc", slc_test_folder(), name);
    slc_made_tensor_create(&made->tensor, order, dims, nnz, SLC_MADE_DOUBLES, slc_test_seed());
    SLC_ASSERT_OK(
        slc_made_store_write(&made->tensor, NULL, made->path, SLC_CODEC_PACKED, 4096, &err), &err);
    for (unsigned n = 0; n < order; n++) {
        SLC_ASSERT_OK(slc_made_store_add_sorted(&made->tensor, made->path, n, target_nnz,
                                                SLC_CODEC_PACKED, 4096, &err),
                      &err);
    }
}

void devices_store_destroy(struct devices_store *made)
{
    slc_made_tensor_destroy(&made->tensor);
}

struct slc_plan_request devices_request(uint32_t rank, unsigned devices, unsigned threads)
{
    return (struct slc_plan_request){.operation = SLC_OP_CPD,
                                     .rank = rank,
                                     .precision = SLC_F64,
                                     .threads = threads,
                                     .cpu_groups = devices,
                                     .io = SLC_IO_PREAD,
                                     .memory_bytes = UINT64_C(8) << 30,
                                     .cache = true,
                                     .layouts = SLC_LAYOUTS_SORTED,
                                     .copies = SLC_COPIES_NEVER};
}

enum slc_status devices_run_plan(struct devices_run *run,
                                 const char *path,
                                 const struct slc_plan_request *request,
                                 struct slc_error *err)
{
    const uint32_t modes =
        request->operation == SLC_OP_CPD ? UINT32_MAX : UINT32_C(1) << request->mode;
    enum slc_status status;

    memset(run, 0, sizeof *run);
    SLC_ASSERT_OK(slc_store_open(NULL, path, &run->store, err), err);
    status = slc_layouts_open(&run->store, request->layouts, modes, UINT64_MAX, &run->layouts, err);
    return status == SLC_OK ? slc_plan_choose(&run->layouts, request, &run->plan, err) : status;
}

void devices_run_start(struct devices_run *run)
{
    const unsigned count = run->plan.cpu_groups > 0 ? run->plan.cpu_groups : 1;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_OK(slc_stream_open(NULL, &run->layouts, &run->plan, &run->stream, &err), &err);
    for (unsigned d = 0; d < count; d++) {
        SLC_ASSERT_OK(slc_cpu_backend_create(&run->backends[d], &err), &err);
    }
}

void devices_run_close(struct devices_run *run)
{
    for (unsigned d = 0; d < FIXTURE_DEVICES_MAX; d++) {
        if (run->backends[d] != NULL) {
            run->backends[d]->ops->destroy(run->backends[d]);
        }
    }
    slc_stream_close(run->stream);
    slc_layouts_close(&run->layouts);
    slc_store_close(&run->store);
}

struct slc_cp_options devices_options(const struct devices_run *run, unsigned iterations)
{
    return (struct slc_cp_options){.rank = run->plan.request.rank,
                                   .iterations = iterations,
                                   .seed = 11,
                                   .deterministic = run->plan.request.deterministic,
                                   .parts = {.groups = run->backends, .layouts = &run->layouts}};
}

void devices_decompose(const char *path,
                       const struct slc_plan_request *request,
                       unsigned iterations,
                       struct slc_cp_result *result)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_cp_options options;
    struct devices_run run;

    SLC_ASSERT_OK(devices_run_plan(&run, path, request, &err), &err);
    devices_run_start(&run);
    options = devices_options(&run, iterations);
    SLC_ASSERT_OK(
        slc_cp_run(&run.store, run.stream, run.backends[0], &run.plan, &options, result, &err),
        &err);
    devices_run_close(&run);
}

bool devices_same_bits(const struct slc_cp_result *a, const struct slc_cp_result *b)
{
    bool same = memcmp(a->lambda, b->lambda, a->rank * sizeof *a->lambda) == 0;

    for (unsigned n = 0; n < a->order; n++) {
        const struct slc_matrix *x = &a->factors[n];

        same = same && memcmp(x->buffer.data, b->factors[n].buffer.data,
                              x->rows * slc_matrix_row_bytes(x)) == 0;
    }
    return same;
}

double devices_difference(const struct slc_cp_result *a, const struct slc_cp_result *b)
{
    double worst = 0.0;

    for (unsigned n = 0; n < a->order; n++) {
        double difference = 0.0, norm = 0.0;

        for (uint64_t i = 0; i < a->factors[n].rows; i++) {
            for (uint32_t r = 0; r < a->rank; r++) {
                const double x = slc_matrix_get(&a->factors[n], i, r);
                const double y = slc_matrix_get(&b->factors[n], i, r);

                difference += (x - y) * (x - y);
                norm += x * x;
            }
        }
        worst = fmax(worst, sqrt(difference / norm));
    }
    return worst;
}
