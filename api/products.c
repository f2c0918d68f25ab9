/*
 * Public API: tensor times vectors, and times a matrix.
 */
#include "api/internal.h"
#include "cpu/fiber/fiber_dots.h"
#include "engine/planning/planning.h"
#include "engine/product/contract.h"
#include "engine/product/device_products.h"
#include "engine/product/fiber_order.h"
#include "engine/product/ttm.h"
#include "engine/solve/relabel.h"
#include "engine/stream/stream_supply.h"
#include "gpu/gpu.h"
#include "storage/manifest/path_guard.h"

#include <string.h>

/* The contraction that is asked for; `known` and `compute` live as long. */
static enum slc_status fill_contraction(struct slc_contract_options *contract,
                                        const struct sluice_store *store,
                                        const double *const *vectors,
                                        const struct sluice_ttv_options *known,
                                        const struct sluice_compute_options *compute,
                                        struct slc_error *err)
{
    const unsigned order = store->store.manifest.order;
    enum slc_status status;

    for (unsigned n = 0; n < order; n++) {
        if (vectors[n] != NULL) {
            contract->vectors[contract->vector_count].mode = n;
            contract->vectors[contract->vector_count++].values = vectors[n];
        }
    }
    if (contract->vector_count == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "no mode has a vector");
    }
    status = api_check_form(known->codec, known->relabel, err);
    if (status != SLC_OK) {
        return status;
    }
    contract->files = store->store.files;
    contract->store = store->store.path;
    contract->dots = slc_fiber_dots;
    contract->names = true;
    contract->codec = (enum slc_codec)known->codec;
    contract->relabel = (enum slc_relabel)known->relabel;
    contract->sort = known->sort != 0 || compute->schedule == SLUICE_SCHEDULE_LARGEST;
    contract->block_bytes = known->block_bytes;
    contract->memory_bytes = api_memory_bytes(compute->memory_bytes);
    contract->temp_folder = known->temp_folder;
    contract->max_temp = known->max_temp_bytes;
    contract->threads = api_threads(compute->threads);
    contract->overwrite = known->overwrite != 0;
    contract->progress = compute->progress;
    contract->context = compute->context;
    return api_take_fibers(known->fibers, known->fiber_mode, known->fiber_bits, &contract->fibers,
                           &contract->run, err);
}

/* The GPU that the options ask for, one at most. */
static enum slc_status choose_device(const struct sluice_compute_options *compute,
                                     struct slc_products_choice *choice,
                                     struct slc_error *err)
{
    struct slc_device_wish wish;
    enum slc_status status;

    memset(choice, 0, sizeof *choice);
    if (compute->device_count > 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "device_count %u: products are not divided between several devices",
                        compute->device_count);
    }
    status = api_device_wish(compute, &wish, err);
    return status == SLC_OK ? slc_products_choose(&wish, slc_gpu_maker(), choice, err) : status;
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

static enum slc_status give_ttv_report(struct sluice_ttv_report *report,
                                       const struct slc_contract_report *made,
                                       const struct slc_stream_supply *supply,
                                       const struct slc_products_report *products,
                                       struct slc_error *err)
{
    struct sluice_ttv_report known = {.struct_bytes = sizeof known,
                                      .order = made->order,
                                      .sorted = made->order > 0 && !made->ordered,
                                      .number = made->scalar,
                                      .nnz = made->build.summary.nnz,
                                      .store_bytes = made->build.summary.file_bytes,
                                      .bytes_read = supply->stats.bytes_read,
                                      .fibers = made->layout_fibers,
                                      .device_nnz = products->sides.nnz[SLC_HYBRID_GPU]};

    memcpy(known.dims, made->dims, made->order * sizeof known.dims[0]);
    return api_give_report(report, &known, sizeof known, "sluice_ttv_report", err);
}

enum slc_status sluice_ttv(const struct sluice_store *store,
                           const double *const *vectors,
                           const char *output,
                           const struct sluice_ttv_options *options,
                           struct sluice_ttv_report *report,
                           struct slc_error *err)
{
    struct sluice_ttv_options known;
    struct sluice_compute_options compute;
    struct slc_contract_options contract = {.output = output};
    struct slc_contract_report made;
    struct slc_stream_supply supply = {.files = store->store.files};
    const struct slc_tile_supply tiles = slc_stream_supply_table(&supply);
    struct slc_products_choice choice;
    struct slc_device_products device = {.optional = false};
    struct slc_stop stop = {.flag = NULL};
    enum slc_status status;

    sluice_ttv_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_ttv_options", err);
    if (status == SLC_OK) {
        status = api_take_compute(&compute, known.compute, err);
    }
    if (status == SLC_OK) {
        status = api_check_report(report, "sluice_ttv_report", err);
    }
    if (status != SLC_OK) {
        return status;
    }
    if (output == NULL && report == NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "neither an output nor a report is given");
    }
    status = fill_contraction(&contract, store, vectors, &known, &compute, err);
    if (status != SLC_OK) {
        return status;
    }
    supply.io = (enum slc_io_kind)compute.io;
    supply.schedule = (enum slc_schedule)compute.schedule;
    supply.read_limit = compute.io_limit;
    supply.stop = compute.stop;
    stop.flag = compute.stop;
    contract.stop = &stop;
    contract.supply = &tiles;
    status = choose_device(&compute, &choice, err);
    if (status == SLC_OK) {
        device = (struct slc_device_products){.device = choice.device,
                                              .hybrid = choice.hybrid,
                                              .streams = compute.streams,
                                              .optional = choice.optional,
                                              .why = choice.refused};
        status = contract_by(&contract, &device, &choice, &made, err);
    }
    if (status == SLC_OK) {
        api_log_refused(&device.why);
    }
    slc_products_drop(&choice);
    return status == SLC_OK && report != NULL
               ? give_ttv_report(report, &made, &supply, &device.report, err)
               : status;
}

/* Everything a product with a matrix holds. */
struct product {
    const struct sluice_store *store;
    const struct sluice_compute_options *compute;
    const char *output;
    unsigned mode;
    uint32_t columns;
    struct slc_fiber_order order;
    struct slc_products_choice choice; /* of a device .. */
    struct slc_error refused;          /* .. and why it is not used, where it was to be */
    struct slc_plan plan;
    struct slc_matrix matrix;
    struct slc_labels labels[SLC_MAX_ORDER];
    struct slc_ttm_options ttm;
    struct api_blocks blocks;
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
    struct slc_plan_request request =
        api_plan_request(product->compute, SLC_OP_TTM, product->mode, product->columns);
    struct slc_error refused = SLC_ERROR_INIT;

    /* Of decompositions. */
    request.copies = SLC_COPIES_AUTO;
    request.passes = SLC_PASSES_AUTO;
    request.gpu = product->choice.device;
    request.hybrid = product->choice.hybrid;
    request.streams = product->compute->streams;
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
static enum slc_status
open_fibers(struct product *product, const char *temp_folder, struct slc_error *err)
{
    const struct slc_stop stop = {.flag = product->compute->stop};
    const struct slc_fiber_order_options options = {
        .mode = product->mode,
        .memory_bytes = api_memory_bytes(product->compute->memory_bytes),
        .threads = product->compute->threads,
        .output = product->output,
        .temp_folder = temp_folder,
        .dots = slc_fiber_dots,
        .stop = &stop,
        .progress = product->compute->progress,
        .context = product->compute->context};
    enum slc_status status = plan_product(product, product->store->store.reader, err);

    if (status == SLC_OK) {
        status = slc_fiber_order_open(&product->order, &product->store->store, &options, err);
        product->sorted = product->order.path != NULL;
    }
    return status == SLC_OK ? plan_product(product, product->order.reader, err) : status;
}

/* The matrix as the layout numbers its rows, and the input's numbers of the other modes. */
static enum slc_status
take_operands(struct product *product, const double *matrix, struct slc_error *err)
{
    const struct slc_store *store = product->sorted ? &product->order.made : product->order.store;
    enum slc_status status =
        slc_matrix_create_from(&product->matrix, product->plan.request.precision,
                               store->manifest.dims[product->mode], product->columns, matrix, err);

    if (status == SLC_OK) {
        status = slc_relabel_rows(store, product->mode, SLC_ROWS_OF_STORE, &product->matrix, err);
    }
    if (status == SLC_OK) {
        status = slc_relabel_names(store, product->mode, product->labels, product->ttm.index, err);
    }
    return status;
}

static void set_options(struct product *product, bool elements)
{
    const struct slc_layout_info *info = slc_reader_info(product->order.reader);

    product->ttm.job = (struct slc_ttm_job){.order = info->order,
                                            .mode = product->mode,
                                            .form = elements ? SLC_TTM_ELEMENTS : SLC_TTM_FIBERS,
                                            .fiber_tiles = info->keys.run.bits > 0 &&
                                                           info->keys.run.mode == product->mode,
                                            .matrix = &product->matrix};
    product->ttm.workers = product->plan.threads;
    product->ttm.device = product->choice.device;
    product->ttm.plan = &product->plan;
    product->ttm.folder = product->output;
    product->ttm.stop = product->compute->stop;
    product->blocks =
        (struct api_blocks){product->compute->progress, product->compute->context, "multiply"};
    product->ttm.progress = product->blocks.progress != NULL ? api_tell_blocks : NULL;
    product->ttm.progress_context = &product->blocks;
}

/* Streams the layout as planned; the result waits beside its place. */
static enum slc_status
stream(struct product *product, bool elements, struct slc_npy_pair **pair, struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(product->order.reader);
    struct slc_stream *stream = NULL;
    enum slc_status status = slc_stream_open(NULL, &layouts, &product->plan, &stream, err);

    set_options(product, elements);
    if (status == SLC_OK) {
        status = slc_ttm_stream(stream, &product->ttm, pair, &product->report, err);
        slc_stream_stats(stream, &product->stats);
    }
    slc_stream_close(stream);
    return status;
}

/* Streams the layout, without the device where that may be and has to, and publishes the result. */
static enum slc_status multiply(struct product *product, bool elements, struct slc_error *err)
{
    struct slc_npy_pair *pair = NULL;
    struct slc_error fault = SLC_ERROR_INIT;
    enum slc_status status = stream(product, elements, &pair, &fault);

    if (status != SLC_OK && product->report.device_refused && product->choice.optional) {
        do_without(product, &fault);
        slc_error_clear(&fault);
        status = plan_product(product, product->order.reader, &fault);
        status = status == SLC_OK ? stream(product, elements, &pair, &fault) : status;
    }
    if (status == SLC_OK) {
        status = slc_npy_pair_publish(pair, err);
    } else if (err != NULL) {
        *err = fault;
    }
    slc_npy_pair_destroy(pair);
    return status;
}

static enum slc_status give_ttm_report(struct sluice_ttm_report *report,
                                       const struct product *product,
                                       struct slc_error *err)
{
    const struct sluice_ttm_report known = {.struct_bytes = sizeof known,
                                            .fibers = product->report.fibers,
                                            .bytes_read = product->stats.bytes_read,
                                            .bytes_written = product->report.output.bytes,
                                            .sorted = product->sorted,
                                            .device_nnz =
                                                product->report.products.sides.nnz[SLC_HYBRID_GPU]};

    return api_give_report(report, &known, sizeof known, "sluice_ttm_report", err);
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

enum slc_status sluice_ttm(const struct sluice_store *store,
                           uint32_t mode,
                           uint32_t columns,
                           const double *matrix,
                           const char *output,
                           const struct sluice_ttm_options *options,
                           struct sluice_ttm_report *report,
                           struct slc_error *err)
{
    struct sluice_ttm_options known;
    struct sluice_compute_options compute;
    struct product product = {
        .store = store, .compute = &compute, .output = output, .mode = mode, .columns = columns};
    enum slc_status status;

    sluice_ttm_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_ttm_options", err);
    if (status == SLC_OK) {
        status = api_take_compute(&compute, known.compute, err);
    }
    if (status == SLC_OK) {
        status = api_check_report(report, "sluice_ttm_report", err);
    }
    if (status == SLC_OK) {
        status = api_need_path(output, "output", err);
    }
    if (status == SLC_OK) {
        status = slc_check_outside_stores(store->store.files, output, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    status = choose_device(&compute, &product.choice, err);
    product.refused = product.choice.refused;
    if (status == SLC_OK) {
        status = open_fibers(&product, known.temp_folder, err);
    }
    if (status == SLC_OK) {
        slc_placement_enter(&product.plan.placement);
        status = take_operands(&product, matrix, err);
        if (status == SLC_OK) {
            status = multiply(&product, known.elements != 0, err);
        }
        slc_placement_leave();
    }
    if (status == SLC_OK) {
        api_log_refused(&product.refused);
    }
    status = release(&product, status, err);
    return status == SLC_OK && report != NULL ? give_ttm_report(report, &product, err) : status;
}
