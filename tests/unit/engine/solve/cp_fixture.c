/* Random tensors and stores for the solver's tests. */
#include "cp_fixture.h"

#include "base/random.h"
#include "one_layout.h"
#include "slc_test.h"
#include "storage/block/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct drawn {
    slc_u128 key;
    uint64_t coords[SLC_MAX_ORDER];
};

static int compare_drawn(const void *left, const void *right)
{
    const struct drawn *a = left;
    const struct drawn *b = right;

    return a->key < b->key ? -1 : a->key > b->key;
}

void fixture_random(struct fixture_tensor *tensor,
                    unsigned order,
                    const uint64_t *dims,
                    uint64_t draws,
                    uint64_t seed)
{
    fixture_random_run(tensor, order, dims, (struct slc_fiber_run){0, 0}, draws, seed);
}

void fixture_random_run(struct fixture_tensor *tensor,
                        unsigned order,
                        const uint64_t *dims,
                        struct slc_fiber_run run,
                        uint64_t draws,
                        uint64_t seed)
{
    struct drawn *drawn = calloc(draws + 1, sizeof *drawn);
    struct slc_key_layout layout;
    struct slc_error err = SLC_ERROR_INIT;
    uint64_t kept = 0;

    memset(tensor, 0, sizeof *tensor);
    CU_ASSERT_PTR_NOT_NULL_FATAL(drawn);
    SLC_ASSERT_OK(slc_key_layout_init_run(&layout, order, dims, run, &err), &err);
    tensor->order = order;
    tensor->run = run;
    memcpy(tensor->dims, dims, order * sizeof *dims);
    for (uint64_t i = 0; i < draws; i++) {
        for (unsigned n = 0; n < order; n++) {
            drawn[i].coords[n] = slc_random_below(seed, n, i, dims[n]);
        }
        drawn[i].key = slc_key_encode(&layout, drawn[i].coords);
    }
    qsort(drawn, draws, sizeof *drawn, compare_drawn);
    for (uint64_t i = 0; i < draws; i++) {
        if (kept == 0 || drawn[kept - 1].key != drawn[i].key) {
            drawn[kept++] = drawn[i];
        }
    }
    tensor->nnz = kept;
    tensor->values = calloc(kept + 1, sizeof(double));
    for (unsigned n = 0; n < order; n++) {
        tensor->coords[n] = calloc(kept + 1, sizeof(uint64_t));
        for (uint64_t i = 0; i < kept; i++) {
            tensor->coords[n][i] = drawn[i].coords[n];
        }
    }
    for (uint64_t i = 0; i < kept; i++) {
        tensor->values[i] = 1.0 - slc_random_f64(seed, order, i);
    }
    free(drawn);
}

void fixture_destroy(struct fixture_tensor *tensor)
{
    for (unsigned n = 0; n < tensor->order; n++) {
        free(tensor->coords[n]);
    }
    free(tensor->values);
}

struct slc_coo_view fixture_view(const struct fixture_tensor *tensor)
{
    struct slc_coo_view view = {
        .order = tensor->order, .nnz = tensor->nnz, .values = tensor->values};

    for (unsigned n = 0; n < tensor->order; n++) {
        view.coords[n] = tensor->coords[n];
    }
    return view;
}

/* Encodes and appends the nonzeros [begin, end) as one tile. */
static void append_tile(const struct fixture_tensor *tensor,
                        const struct slc_key_layout *layout,
                        uint64_t begin,
                        uint64_t end,
                        struct slc_encoder *encoder,
                        struct slc_writer *writer)
{
    const uint64_t count = end - begin;
    uint64_t *lo = calloc(count, sizeof *lo);
    uint64_t *hi = calloc(count, sizeof *hi);
    struct slc_tile_source source = {
        .nnz = (uint32_t)count, .key_lo = lo, .key_hi = hi, .values = tensor->values + begin};
    struct slc_tile_blob blob;
    struct slc_error err = SLC_ERROR_INIT;

    for (uint64_t i = 0; i < count; i++) {
        uint64_t coords[SLC_MAX_ORDER];
        slc_u128 key;

        for (unsigned n = 0; n < tensor->order; n++) {
            coords[n] = tensor->coords[n][begin + i];
        }
        key = slc_key_encode(layout, coords);
        lo[i] = (uint64_t)key;
        hi[i] = (uint64_t)(key >> 64);
    }
    SLC_ASSERT_OK(slc_tile_encode(encoder, &source, &blob, &err), &err);
    blob.sum_of_squares *= tensor->lie != 0 ? tensor->lie : 1.0;
    SLC_ASSERT_OK(slc_writer_append(writer, &blob, &err), &err);
    free(lo);
    free(hi);
}

static void write_manifest(const struct fixture_tensor *tensor,
                           const struct slc_writer_summary *summary,
                           enum slc_codec codec,
                           const char *path)
{
    struct slc_manifest manifest = {.order = tensor->order,
                                    .nnz = summary->nnz,
                                    .value_type = summary->value_type,
                                    .sum_of_squares = summary->sum_of_squares,
                                    .content_sum = summary->content_sum,
                                    .layout_count = 1};
    struct slc_store_layout *layout = &manifest.layouts[0];
    struct slc_error err = SLC_ERROR_INIT;

    memcpy(manifest.dims, tensor->dims, sizeof manifest.dims);
    snprintf(layout->file, sizeof layout->file, "blco.blk");
    layout->layout = SLC_LAYOUT_BLCO;
    layout->codec = codec;
    layout->file_bytes = summary->file_bytes;
    layout->block_count = summary->block_count;
    layout->index_bytes = summary->index_bytes;
    layout->header_hash = summary->header_hash;
    snprintf(manifest.origin.source, sizeof manifest.origin.source, "fixture");
    snprintf(manifest.origin.dialect, sizeof manifest.origin.dialect, "tns");
    snprintf(manifest.origin.duplicate_policy, sizeof manifest.origin.duplicate_policy, "sum");
    snprintf(manifest.origin.writer, sizeof manifest.origin.writer, "fixture");
    SLC_ASSERT_OK(slc_manifest_write(slc_files_system(), path, &manifest, &err), &err);
}

void fixture_store(const struct fixture_tensor *tensor,
                   const char *folder,
                   const char *name,
                   enum slc_codec codec,
                   uint64_t block_bytes,
                   char *path)
{
    const struct slc_files *files = slc_files_system();
    char block_path[600];
    struct slc_writer_options options = {.path = block_path,
                                         .layout = SLC_LAYOUT_BLCO,
                                         .order = tensor->order,
                                         .dims = tensor->dims,
                                         .run = tensor->run,
                                         .codec = codec,
                                         .block_bytes = block_bytes};
    struct slc_key_layout layout;
    struct slc_encoder *encoder = NULL;
    struct slc_writer *writer = NULL;
    struct slc_writer_summary summary;
    struct slc_error err = SLC_ERROR_INIT;

    snprintf(path, 512, "%.400s/%.64s.slc", folder, name);
    snprintf(block_path, sizeof block_path, "%.512s/blco.blk", path);
    CU_ASSERT_EQUAL_FATAL(files->make_folder(files->self, path), 0);
    SLC_ASSERT_OK(slc_key_layout_init_run(&layout, tensor->order, tensor->dims, tensor->run, &err),
                  &err);
    SLC_ASSERT_OK(slc_encoder_create(&layout, codec, &encoder, &err), &err);
    SLC_ASSERT_OK(slc_writer_open(&options, &writer, &err), &err);
    for (uint64_t begin = 0, tile = 0, count; begin < tensor->nnz; begin += count, tile++) {
        count = tensor->tile_nnz[tile % 3] != 0 ? tensor->tile_nnz[tile % 3] : SLC_TILE_NNZ;
        count = count < tensor->nnz - begin ? count : tensor->nnz - begin;
        append_tile(tensor, &layout, begin, begin + count, encoder, writer);
    }
    SLC_ASSERT_OK(slc_writer_finish(writer, &summary, &err), &err);
    slc_encoder_destroy(encoder);
    write_manifest(tensor, &summary, codec, path);
}

struct slc_plan_request fixture_request(uint32_t rank)
{
    const struct slc_plan_request request = {.operation = SLC_OP_CPD,
                                             .rank = rank,
                                             .precision = SLC_F64,
                                             .threads = 2,
                                             .io = SLC_IO_PREAD,
                                             .memory_bytes = UINT64_C(8) << 30,
                                             .cache = true};

    return request;
}

struct slc_cp_options fixture_options(uint32_t rank, unsigned iterations)
{
    const struct slc_cp_options options = {.rank = rank, .iterations = iterations};

    return options;
}

/* Opens stream and backend for an open store with a plan. */
static enum slc_status start(struct fixture_run *run, struct slc_error *err)
{
    const enum slc_status status =
        stream_one(NULL, run->store.reader, &run->plan, &run->stream, err);

    return status == SLC_OK ? slc_cpu_backend_create(&run->backend, err) : status;
}

void fixture_regularize(struct slc_cp_options *options, double regularization)
{
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        options->terms[n].ridge = regularization;
    }
}

enum slc_status fixture_open(struct fixture_run *run,
                             const char *path,
                             const struct slc_plan_request *request,
                             struct slc_error *err)
{
    enum slc_status status;

    memset(run, 0, sizeof *run);
    status = slc_store_open(NULL, path, &run->store, err);
    if (status == SLC_OK) {
        status = plan_one(run->store.reader, request, &run->plan, err);
    }
    return status == SLC_OK ? start(run, err) : status;
}

enum slc_status fixture_plan_beyond(struct slc_reader *reader,
                                    struct slc_plan_request *request,
                                    int64_t extra,
                                    struct slc_plan *plan,
                                    struct slc_error *err)
{
    if (request->resident_bytes == 0) {
        request->resident_bytes = slc_memory_resident();
    }
    request->memory_bytes = 1;
    CU_ASSERT_EQUAL(plan_one(reader, request, plan, NULL), SLC_ERR_BUDGET);
    request->memory_bytes = plan->minimum_bytes + (uint64_t)extra;
    slc_error_clear(err);
    return plan_one(reader, request, plan, err);
}

enum slc_status fixture_open_beyond(struct fixture_run *run,
                                    const char *path,
                                    struct slc_plan_request *request,
                                    uint64_t extra,
                                    struct slc_error *err)
{
    enum slc_status status;

    memset(run, 0, sizeof *run);
    status = slc_store_open(NULL, path, &run->store, err);
    if (status == SLC_OK) {
        status = fixture_plan_beyond(run->store.reader, request, (int64_t)extra, &run->plan, err);
    }
    return status == SLC_OK ? start(run, err) : status;
}

void fixture_close(struct fixture_run *run)
{
    slc_stream_close(run->stream);
    if (run->backend != NULL) {
        run->backend->ops->destroy(run->backend);
    }
    slc_store_close(&run->store);
    memset(run, 0, sizeof *run);
}
