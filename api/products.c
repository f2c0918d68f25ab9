/* Public functions that multiply a tensor by vectors or by a matrix. */
#include "api/call.h"
#include "api/session.h"
#include "engine/product/contract.h"
#include "engine/product/device_products.h"
#include "engine/session/product_session.h"
#include "engine/stream/tile_stream.h"
#include "gpu/gpu.h"
#include "sluice/compute.h"
#include "storage/manifest/path_guard.h"

#include <string.h>

/* Fills in the contraction; the contraction borrows the operands. */
static enum slc_status fill_contraction(struct slc_contract_options *contract,
                                        const struct sluice_store *store,
                                        const double *const *vectors,
                                        const struct sluice_ttv_options *known,
                                        struct slc_error *err)
{
    for (unsigned n = 0; n < store->store.manifest.order; n++) {
        if (vectors[n] != NULL) {
            contract->vectors[contract->vector_count].mode = n;
            contract->vectors[contract->vector_count++].values = vectors[n];
        }
    }
    if (contract->vector_count == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "no mode has a vector");
    }
    contract->files = store->store.files;
    contract->store = store->store.path;
    contract->names = true;
    contract->part = (struct slc_part_choice){known->part, known->parts};
    contract->sort = known->sort != 0 || known->compute.schedule == SLUICE_SCHEDULE_LARGEST;
    return SLC_OK;
}

/* Chooses the GPU that the options select; products use at most one GPU. */
static enum slc_status choose_device(const struct sluice_compute_options *compute,
                                     struct api_devices *devices,
                                     struct slc_products_choice *choice,
                                     struct slc_error *err)
{
    enum slc_status status = api_read_devices(compute, devices, err);

    memset(choice, 0, sizeof *choice);
    SLC_TRY(status);
    if (devices->known.count > 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "count is %u: products use only one device, so count must be 0",
                        devices->known.count);
    }
    return slc_products_choose(&devices->wish, slc_gpu_maker(), choice, err);
}

static struct sluice_ttv_report ttv_report(const struct slc_contract_report *made,
                                           const struct slc_tile_stream *tiles,
                                           const struct slc_products_report *products)
{
    struct sluice_ttv_report known = {.order = made->order,
                                      .sorted = made->order > 0 && !made->ordered,
                                      .number = made->scalar,
                                      .nnz = made->build.summary.nnz,
                                      .store_bytes = made->build.summary.file_bytes,
                                      .bytes_read = tiles->stats.bytes_read,
                                      .fibers = made->layout_fibers,
                                      .device_nnz = products->hybrid.nnz[SLC_HYBRID_GPU]};

    memcpy(known.dims, made->dims, made->order * sizeof known.dims[0]);
    return known;
}

/* Reads the options, and checks that `output` or `report` can receive the result. */
static enum slc_status read_ttv(struct sluice_ttv_options *known,
                                const struct sluice_ttv_options *options,
                                const char *output,
                                const struct sluice_ttv_report *report,
                                struct slc_error *err)
{
    SLC_TRY(API_READ_OPTIONS(sluice_ttv_options, known, options, err));
    SLC_TRY(api_check_compute(&known->compute, err));
    SLC_TRY(api_check_output(&known->output, err));
    SLC_TRY(api_check_report(report, "sluice_ttv_report", err));
    if (output == NULL && report == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "output and report are both NULL");
    }
    return SLC_OK;
}

enum sluice_status sluice_ttv(const struct sluice_store *store,
                              const double *const *vectors,
                              const char *output,
                              const struct sluice_ttv_options *options,
                              struct sluice_ttv_report *report,
                              struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"vectors", vectors});
    struct sluice_ttv_options known = {0};
    struct api_run run = {.phase = NULL};
    struct slc_contract_options contract = {.output = output};
    struct slc_contract_report made;
    struct slc_tile_stream tiles = {.files = NULL};
    struct api_devices devices;
    struct slc_products_choice choice;
    struct slc_device_products device = {.optional = false};
    enum slc_status status = read_ttv(&known, options, output, report, err);

    SLC_THEN(status, fill_contraction(&contract, store, vectors, &known, err));
    if (status != SLC_OK) {
        return api_return(status, err, ret_err);
    }
    api_run_init(&run, &known.run);
    API_SET_RUN(&contract, &run);
    API_SET_OUTPUT(&contract, &known.output);
    contract.threads = api_run_threads(&run);
    contract.stream = &tiles;
    tiles.io = (enum slc_io_kind)known.compute.io;
    tiles.schedule = (enum slc_schedule)known.compute.schedule;
    tiles.read_limit = known.compute.io_limit;
    tiles.stop = run.stop.flag;
    status = choose_device(&known.compute, &devices, &choice, err);
    if (status == SLC_OK) {
        device = (struct slc_device_products){.device = choice.device,
                                              .hybrid = choice.hybrid,
                                              .streams = devices.known.streams,
                                              .optional = choice.optional,
                                              .why = choice.refused};
        status = slc_contract_on_device(&contract, &choice, &device, &made, err);
    }
    if (status == SLC_OK) {
        api_log_refused(&device.why);
    }
    slc_products_drop(&choice);
    if (status == SLC_OK) {
        const struct sluice_ttv_report filled = ttv_report(&made, &tiles, &device.report);

        status = API_FILL_REPORT(sluice_ttv_report, report, &filled, err);
    }
    return api_return(status, err, ret_err);
}

struct product {
    const struct sluice_store *store;
    struct sluice_ttm_options known;
    struct api_run run;
    struct api_devices devices;
    const char *output;
    struct slc_ttm_session ttm;
};

static void set_request(struct product *product, uint32_t mode, uint32_t columns)
{
    struct slc_ttm_options *options = &product->ttm.options;
    struct slc_plan_request *request = &product->ttm.request;

    *request =
        api_plan_request(&product->known.compute, &product->run.options, SLC_OP_TTM, mode, columns);
    /* These members apply only to decompositions. */
    request->copies = SLC_COPIES_AUTO;
    request->passes = SLC_PASSES_AUTO;
    request->streams = product->devices.known.streams;
    product->ttm.store = &product->store->store;
    options->job.form = product->known.nonzeros != 0 ? SLC_TTM_NONZEROS : SLC_TTM_FIBERS;
    options->folder = product->output;
    options->stop = product->run.stop.flag;
    options->progress = api_run_blocks(&product->run);
    options->progress_context = &product->run;
}

/* Opens a layout with whole fibers, which may first have to be sorted. The product is planned
 * before and after the sort, so that a budget that is too small is an error before the sort. */
static enum slc_status open_fibers(struct product *product, struct slc_error *err)
{
    struct slc_ttm_session *ttm = &product->ttm;
    struct slc_fiber_order_options options = {.mode = ttm->request.mode,
                                              .threads = product->known.run.threads,
                                              .output = product->output,
                                              .temp_folder = product->known.temp_folder};

    API_SET_RUN(&options, &product->run);
    SLC_TRY(slc_ttm_session_plan(ttm, ttm->store->reader, err));
    if (product->known.parts > 0) {
        const struct slc_part_choice part = {product->known.part, product->known.parts};

        SLC_TRY(slc_ttm_session_open_part(ttm, part, err));
    } else {
        SLC_TRY(slc_fiber_order_open(&ttm->order, ttm->store, &options, err));
    }
    return slc_ttm_session_plan(ttm, ttm->order.reader, err);
}

/* Multiplies the tensor by the caller's matrix. */
static enum slc_status
multiply(struct slc_ttm_session *ttm, const double *matrix, struct slc_error *err)
{
    const struct slc_store *store = slc_ttm_session_numbering(ttm);
    const struct slc_plan_request *request = &ttm->request;

    SLC_TRY(slc_matrix_create_from(&ttm->matrix, ttm->plan.request.precision,
                                   store->manifest.dims[request->mode], request->rank, matrix,
                                   err));
    SLC_TRY(slc_ttm_session_relabel(ttm, err));
    return slc_ttm_session_multiply(ttm, err);
}

static enum slc_status read_ttm(struct product *product,
                                const struct sluice_ttm_options *options,
                                const struct sluice_ttm_report *report,
                                struct slc_error *err)
{
    SLC_TRY(API_READ_OPTIONS(sluice_ttm_options, &product->known, options, err));
    SLC_TRY(api_check_compute(&product->known.compute, err));
    SLC_TRY(api_check_report(report, "sluice_ttm_report", err));
    return slc_check_outside_stores(product->store->store.files, product->output, err);
}

enum sluice_status sluice_ttm(const struct sluice_store *store,
                              uint32_t mode,
                              uint32_t columns,
                              const double *matrix,
                              const char *output,
                              const struct sluice_ttm_options *options,
                              struct sluice_ttm_report *report,
                              struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"matrix", matrix}, {"output", output});
    struct product product = {.store = store, .run = {.phase = "multiply"}, .output = output};
    struct slc_ttm_session *ttm = &product.ttm;
    enum slc_status closed, status = read_ttm(&product, options, report, err);

    if (status != SLC_OK) {
        return api_return(status, err, ret_err);
    }
    api_run_init(&product.run, &product.known.run);
    status = choose_device(&product.known.compute, &product.devices, &ttm->choice, err);
    ttm->refused = ttm->choice.refused;
    set_request(&product, mode, columns);
    SLC_THEN(status, open_fibers(&product, err));
    bool sorted = ttm->order.path != NULL;
    if (status == SLC_OK) {
        slc_placement_enter(&ttm->plan.placement);
        status = multiply(ttm, matrix, err);
        slc_placement_leave();
    }
    if (status == SLC_OK) {
        api_log_refused(&ttm->refused);
    }
    slc_ttm_session_close(ttm);
    /* If the product succeeded, a temporary store that cannot be removed is an error. */
    closed = slc_fiber_order_close(&ttm->order, status == SLC_OK ? err : NULL);
    status = status == SLC_OK ? closed : status;
    if (status == SLC_OK) {
        const struct sluice_ttm_report filled = {
            .fibers = ttm->report.fibers,
            .bytes_read = ttm->stats.bytes_read,
            .bytes_written = ttm->report.output.bytes,
            .sorted = sorted,
            .device_nnz = ttm->report.products.hybrid.nnz[SLC_HYBRID_GPU]};

        status = API_FILL_REPORT(sluice_ttm_report, report, &filled, err);
    }
    return api_return(status, err, ret_err);
}
