/* Stores with sorted layouts, and runs over them. */
#include "sorted_fixture.h"

#include "base/random.h"
#include "engine/planning/planning.h"
#include "slc_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void make_sorted_store(struct sorted_store *made,
                       const char *name,
                       unsigned order,
                       const uint64_t *dims,
                       uint64_t nnz,
                       uint32_t modes,
                       uint64_t target_nnz,
                       uint64_t block_bytes)
{
    struct slc_error err = SLC_ERROR_INIT;

    memset(made, 0, sizeof *made);
    (void)snprintf(made->path, sizeof made->path, "%s/%s.slc", slc_test_folder(), name);
    slc_made_tensor_create(&made->tensor, order, dims, nnz, SLC_MADE_DOUBLES, slc_test_seed());
    SLC_ASSERT_OK(
        slc_made_store_write(&made->tensor, NULL, made->path, SLC_CODEC_PACKED, block_bytes, &err),
        &err);
    made->view.order = order;
    made->view.nnz = made->tensor.nnz;
    made->view.values = made->tensor.values;
    for (unsigned n = 0; n < order; n++) {
        made->coords[n] = calloc(made->tensor.nnz + 1, sizeof(uint64_t));
        CU_ASSERT_PTR_NOT_NULL_FATAL(made->coords[n]);
        made->view.coords[n] = made->coords[n];
        SLC_ASSERT_OK(slc_matrix_create(&made->factors[n], SLC_F64, dims[n], RANK, &err), &err);
        made->views[n] = &made->factors[n];
        for (uint64_t i = 0; i < dims[n] * RANK; i++) {
            slc_matrix_set(&made->factors[n], i / RANK, (uint32_t)(i % RANK),
                           slc_random_f64(7, n, i) - 0.5);
        }
        if ((modes >> n & 1U) != 0) {
            struct slc_made_tensor rekeyed; /* runs of layouts differ; the first is none */

            slc_made_tensor_rekey(&made->tensor, (struct slc_fiber_run){(n + 1) % order, 4 * n},
                                  &rekeyed);
            SLC_ASSERT_OK(slc_made_store_add_sorted(&rekeyed, made->path, n, target_nnz,
                                                    SLC_CODEC_PACKED, block_bytes, &err),
                          &err);
            slc_made_tensor_destroy(&rekeyed);
        }
    }
    for (uint64_t i = 0; i < made->tensor.nnz; i++) {
        uint64_t coords[SLC_MAX_ORDER];

        slc_key_decode(&made->tensor.keys,
                       slc_key_join(made->tensor.key_lo[i],
                                    made->tensor.key_hi != NULL ? made->tensor.key_hi[i] : 0),
                       coords);
        for (unsigned n = 0; n < order; n++) {
            made->coords[n][i] = coords[n];
        }
    }
}

void destroy_sorted_store(struct sorted_store *made)
{
    for (unsigned n = 0; n < made->tensor.order; n++) {
        free(made->coords[n]);
        slc_matrix_destroy(&made->factors[n]);
    }
    slc_made_tensor_destroy(&made->tensor);
}

enum slc_status plan_run(struct sorted_run *run,
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
    if (status == SLC_OK) {
        status = slc_plan_choose(&run->layouts, request, &run->plan, err);
    }
    return status;
}

bool start_run(struct sorted_run *run, const struct slc_files *files)
{
    struct slc_error err = SLC_ERROR_INIT;
    const enum slc_status status =
        slc_stream_open(files, &run->layouts, &run->plan, &run->stream, &err);

    if (status == SLC_ERR_UNSUPPORTED && run->plan.request.io == SLC_IO_URING) {
        return false;
    }
    SLC_ASSERT_OK(status, &err);
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_cpu_backend_create(&run->backend, &err), &err);
    return true;
}

void close_run(struct sorted_run *run)
{
    if (run->backend != NULL) {
        run->backend->ops->destroy(run->backend);
    }
    slc_stream_close(run->stream);
    slc_layouts_close(&run->layouts);
    slc_store_close(&run->store);
}

static const enum slc_io_kind kinds[] = {SLC_IO_URING, SLC_IO_PREAD, SLC_IO_MMAP};

struct slc_plan_request variant_request(unsigned variant, unsigned mode)
{
    struct slc_plan_request request = fixture_request(RANK);

    request.operation = SLC_OP_MTTKRP;
    request.mode = mode;
    request.layouts = SLC_LAYOUTS_SORTED;
    request.io = kinds[variant % 3];
    request.schedule = variant % 2 == 0 ? SLC_SCHEDULE_FILE : SLC_SCHEDULE_LARGEST;
    request.threads = (const unsigned[]){1, 2, 5, 3}[variant % 4];
    request.slots = variant % 5 < 3 ? 2 + variant % 5 : 0;
    request.cache = variant % 3 != 1;
    return request;
}

void keep_some(struct sorted_run *run, unsigned number)
{
    struct slc_plan_layout *layout = &run->plan.layouts[number];
    const struct slc_reader *reader = run->layouts.reader[number];
    const uint64_t count = slc_reader_info(reader)->block_count;

    layout->cached_blocks = count / 2;
    layout->cache_bytes = 0;
    for (uint64_t b = 0; b < count; b++) {
        struct slc_block_entry entry;

        slc_reader_entry(reader, b, &entry);
        layout->cache_bytes +=
            slc_plan_keeps(layout->cached_blocks, count, b) ? entry.padded_bytes : 0;
    }
}
