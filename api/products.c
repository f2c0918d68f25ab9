/*
 * Public API: tensor times vectors, and times a matrix.
 */
#include "api/output.h"
#include "api/session.h"
#include "engine/planning/planning.h"
#include "engine/product/contract.h"
#include "engine/product/device_products.h"
#include "engine/product/fiber_order.h"
#include "engine/product/ttm.h"
#include "engine/solve/relabel.h"
#include "engine/stream/tile_stream.h"
#include "gpu/gpu.h"
#include "sluice/compute.h"
#include "storage/manifest/path_guard.h"

#include <string.h>

/* The contraction that is asked for; the operands live as long. */
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
    contract->sort = known->sort != 0 || known->compute.schedule == SLUICE_SCHEDULE_LARGEST;
    return SLC_OK;
}

/* The GPU that the options ask for, one at most. */
static enum slc_status choose_device(const struct sluice_compute_options *compute,
                                     struct api_devices *devices,
                                     struct slc_products_choice *choice,
                                     struct slc_error *err)
{
    enum slc_status status = api_read_devices(compute, devices, err);

    memset(choice, 0, sizeof *choice);
    if (status == SLC_OK && devices->known.count > 0) {
        status = slc_fail(err, SLC_ERR_USAGE,
                          "count is %u: products are not divided between several devices",
                          devices->known.count);
    }
    return status == SLC_OK ? slc_products_choose(&devices->wish, slc_gpu_maker(), choice, err)
                            : status;
}

/* Contracts on the device; without it where it may be left out and there is no memory for both. */
static enum slc_status contract_by(struct slc_contract_options *contract,
                                   struct slc_device_products *device,
                                   struct slc_products_choice *choice,
                                   struct slc_contract_report *made,
                                   struct slc_error *err)
{
    struct slc_tile_products table = slc_device_products_table(device);
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status;

    contract->products = choice->device != NULL ? &table : NULL;
    status = slc_contract(contract, made, &refused);
    if (status == SLC_ERR_BUDGET && made->scan_seconds == 0 && contract->products != NULL &&
        choice->optional) {
        slc_products_drop(choice);
        contract->products = NULL;
        device->why = refused;
        return slc_contract(contract, made, err);
    }
    if (status != SLC_OK && err != NULL) {
        *err = refused;
    }
    return status;
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
                                      .device_nnz = products->sides.nnz[SLC_HYBRID_GPU]};

    memcpy(known.dims, made->dims, made->order * sizeof known.dims[0]);
    return known;
}

/* Reads the options and checks that there is a place for the result. */
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
        return slc_fail(err, SLC_ERR_USAGE, "neither an output nor a report is given");
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
    struct sluice_ttv_options known = {0};
    struct api_run run = {.phase = NULL};
    struct slc_contract_options contract = {.output = output};
    struct slc_contract_report made;
    struct slc_tile_stream tiles = {.files = store->store.files};
    struct api_devices devices;
    struct slc_products_choice choice;
    struct slc_device_products device = {.optional = false};
    enum slc_status status = read_ttv(&known, options, output, report, err);

    API_THEN(status, fill_contraction(&contract, store, vectors, &known, err));
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
        status = contract_by(&contract, &device, &choice, &made, err);
    }
    if (status == SLC_OK) {
        api_log_refused(&device.why);
    }
    slc_products_drop(&choice);
    if (status == SLC_OK) {
        const struct sluice_ttv_report told = ttv_report(&made, &tiles, &device.report);

        status = API_FILL_REPORT(sluice_ttv_report, report, &told, err);
    }
    return api_return(status, err, ret_err);
}

/* Everything a product with a matrix holds. */
struct product {
    const struct sluice_store *store;
    struct sluice_ttm_options known;
    struct api_run run;
    const char *output;
    unsigned mode;
    uint32_t columns;
    struct slc_fiber_order order;
    struct api_devices devices;
    struct slc_products_choice choice; /* of a device .. */
    struct slc_error refused;          /* .. and why it is not used, where it was to be */
    struct slc_plan plan;
    struct slc_matrix matrix;
    struct slc_labels labels[SLC_MAX_ORDER];
    struct slc_ttm_options ttm;
    struct slc_ttm_report report;
    struct slc_stream_stats stats;
    bool sorted;
};

/* Goes on without the device, because of `refused`. */
static void do_without(struct product *product, const struct slc_error *refused)
{
    slc_products_drop(&product->choice);
    product->refused = *refused;
}

static enum slc_status
plan_product(struct product *product, struct slc_reader *reader, struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(reader);
    struct slc_plan_request request = api_plan_request(&product->known.compute, &product->known.run,
                                                       SLC_OP_TTM, product->mode, product->columns);
    struct slc_error refused = SLC_ERROR_INIT;

    /* Of decompositions. */
    request.copies = SLC_COPIES_AUTO;
    request.passes = SLC_PASSES_AUTO;
    request.gpu = product->choice.device;
    request.hybrid = product->choice.hybrid;
    request.streams = product->devices.known.streams;
    if (product->choice.device != NULL && product->choice.optional) {
        if (slc_ttm_plan(&layouts, &request, &product->plan, &product->ttm.division, &refused) ==
            SLC_OK) {
            return SLC_OK;
        }
        do_without(product, &refused);
        request.gpu = NULL;
    }
    return slc_ttm_plan(&layouts, &request, &product->plan, &product->ttm.division, err);
}

/* The layout with whole fibers; planned before, too, so that nothing is sorted in vain. */
static enum slc_status open_fibers(struct product *product, struct slc_error *err)
{
    struct slc_fiber_order_options options = {.mode = product->mode,
                                              .threads = product->known.run.threads,
                                              .output = product->output,
                                              .temp_folder = product->known.temp_folder};
    enum slc_status status = plan_product(product, product->store->store.reader, err);

    API_SET_RUN(&options, &product->run);
    if (status == SLC_OK) {
        status = slc_fiber_order_open(&product->order, &product->store->store, &options, err);
        product->sorted = product->order.path != NULL;
    }
    return status == SLC_OK ? plan_product(product, product->order.reader, err) : status;
}

/* The matrix as the layout numbers its rows, and the input's numbers of the other modes. */
static enum slc_status
prepare_operands(struct product *product, const double *matrix, struct slc_error *err)
{
    const struct slc_store *store = product->sorted ? &product->order.made : product->order.store;

    SLC_TRY(slc_matrix_create_from(&product->matrix, product->plan.request.precision,
                                   store->manifest.dims[product->mode], product->columns, matrix,
                                   err));
    SLC_TRY(slc_relabel_rows(store, product->mode, SLC_ROWS_OF_STORE, &product->matrix, err));
    return slc_relabel_names(store, product->mode, product->labels, product->ttm.index, err);
}

static void set_options(struct product *product)
{
    const struct slc_layout_info *info = slc_reader_info(product->order.reader);

    product->ttm.job = (struct slc_ttm_job){
        .order = info->order,
        .mode = product->mode,
        .form = product->known.elements != 0 ? SLC_TTM_ELEMENTS : SLC_TTM_FIBERS,
        .fiber_tiles = info->keys.run.bits > 0 && info->keys.run.mode == product->mode,
        .matrix = &product->matrix};
    product->ttm.workers = product->plan.threads;
    product->ttm.device = product->choice.device;
    product->ttm.plan = &product->plan;
    product->ttm.folder = product->output;
    product->ttm.stop = product->run.stop.flag;
    product->ttm.progress = api_run_blocks(&product->run);
    product->ttm.progress_context = &product->run;
}

/* Streams the layout as planned; the result waits beside its place. */
static enum slc_status
stream(struct product *product, struct slc_npy_pair **pair, struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(product->order.reader);
    struct slc_stream *stream = NULL;
    enum slc_status status = slc_stream_open(NULL, &layouts, &product->plan, &stream, err);

    set_options(product);
    if (status == SLC_OK) {
        status = slc_ttm_stream(stream, &product->ttm, pair, &product->report, err);
        slc_stream_stats(stream, &product->stats);
    }
    slc_stream_close(stream);
    return status;
}

/* Streams the layout, without the device where that may be and has to, and publishes the result. */
static enum slc_status multiply(struct product *product, struct slc_error *err)
{
    struct slc_npy_pair *pair = NULL;
    struct slc_error fault = SLC_ERROR_INIT;
    enum slc_status status = stream(product, &pair, &fault);

    if (status != SLC_OK && product->report.device_refused && product->choice.optional) {
        do_without(product, &fault);
        slc_error_clear(&fault);
        status = plan_product(product, product->order.reader, &fault);
        status = status == SLC_OK ? stream(product, &pair, &fault) : status;
    }
    if (status == SLC_OK) {
        status = slc_npy_pair_publish(pair, err);
    } else if (err != NULL) {
        *err = fault;
    }
    slc_npy_pair_destroy(pair);
    return status;
}

/* Closes everything; where all went well a temporary store that is left over is an error. */
static enum slc_status
release(struct product *product, enum slc_status status, struct slc_error *err)
{
    enum slc_status closed;

    slc_products_drop(&product->choice);
    slc_matrix_destroy(&product->matrix);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_labels_destroy(&product->labels[n]);
    }
    closed = slc_fiber_order_close(&product->order, status == SLC_OK ? err : NULL);
    return status == SLC_OK ? closed : status;
}

static enum slc_status read_ttm(struct product *product,
                                const struct sluice_ttm_options *options,
                                const struct sluice_ttm_report *report,
                                struct slc_error *err)
{
    enum slc_status status = API_READ_OPTIONS(sluice_ttm_options, &product->known, options, err);

    API_THEN(status, api_check_compute(&product->known.compute, err));
    API_THEN(status, api_check_report(report, "sluice_ttm_report", err));
    API_THEN(status, api_need_path(product->output, "output", err));
    return status == SLC_OK
               ? slc_check_outside_stores(product->store->store.files, product->output, err)
               : status;
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
    struct product product = {.store = store,
                              .run = {.phase = "multiply"},
                              .output = output,
                              .mode = mode,
                              .columns = columns};
    enum slc_status status = read_ttm(&product, options, report, err);

    if (status != SLC_OK) {
        return api_return(status, err, ret_err);
    }
    api_run_init(&product.run, &product.known.run);
    status = choose_device(&product.known.compute, &product.devices, &product.choice, err);
    product.refused = product.choice.refused;
    API_THEN(status, open_fibers(&product, err));
    if (status == SLC_OK) {
        slc_placement_enter(&product.plan.placement);
        status = prepare_operands(&product, matrix, err);
        API_THEN(status, multiply(&product, err));
        slc_placement_leave();
    }
    if (status == SLC_OK) {
        api_log_refused(&product.refused);
    }
    status = release(&product, status, err);
    if (status == SLC_OK) {
        const struct sluice_ttm_report told = {
            .fibers = product.report.fibers,
            .bytes_read = product.stats.bytes_read,
            .bytes_written = product.report.output.bytes,
            .sorted = product.sorted,
            .device_nnz = product.report.products.sides.nnz[SLC_HYBRID_GPU]};

        status = API_FILL_REPORT(sluice_ttm_report, report, &told, err);
    }
    return api_return(status, err, ret_err);
}
