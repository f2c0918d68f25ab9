/*
 * Public API: tensor times vectors, and times a matrix.
 */
#include "api/internal.h"
#include "convert/contract.h"
#include "convert/fiber_order.h"
#include "cpu/fiber_dots.h"
#include "engine/relabel.h"
#include "engine/stream_supply.h"
#include "engine/ttm.h"
#include "storage/outside.h"

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

    for (unsigned n = 0; n < order; n++) {
        if (vectors[n] != NULL) {
            contract->vectors[contract->vector_count].mode = n;
            contract->vectors[contract->vector_count++].values = vectors[n];
        }
    }
    if (contract->vector_count == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "no mode has a vector");
    }
    if ((unsigned)known->codec < SLUICE_CODEC_PACKED ||
        (unsigned)known->codec > SLUICE_CODEC_BLCO ||
        (unsigned)known->relabel > SLUICE_RELABEL_FREQUENCY) {
        return slc_fail(err, SLC_ERR_USAGE, "codec %d or relabel %d is not one of the enumerations",
                        (int)known->codec, (int)known->relabel);
    }
    contract->files = store->store.files;
    contract->store = store->store.path;
    contract->dots = slc_fiber_dots;
    contract->codec = (enum slc_codec)known->codec;
    contract->relabel = (enum slc_relabel)known->relabel;
    contract->sort = known->sort != 0 || compute->schedule == SLUICE_SCHEDULE_LARGEST;
    contract->block_bytes = known->block_bytes;
    contract->memory_bytes = api_memory_bytes(compute->memory_bytes);
    contract->temp_folder = known->temp_folder;
    contract->max_temp = known->max_temp_bytes;
    contract->threads = api_threads(compute->threads);
    contract->overwrite = known->overwrite != 0;
    return SLC_OK;
}

static enum slc_status give_ttv_report(struct sluice_ttv_report *report,
                                       const struct slc_contract_report *made,
                                       const struct slc_stream_supply *supply,
                                       struct slc_error *err)
{
    struct sluice_ttv_report known = {.struct_bytes = sizeof known,
                                      .order = made->order,
                                      .sorted = made->order > 0 && !made->ordered,
                                      .number = made->scalar,
                                      .nnz = made->build.summary.nnz,
                                      .store_bytes = made->build.summary.file_bytes,
                                      .bytes_read = supply->stats.bytes_read,
                                      .fibers = made->layout_fibers};

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
    enum slc_status status;

    sluice_ttv_options_init(&known, sizeof known);
    status = api_take_options(&known, sizeof known, options, "sluice_ttv_options", err);
    if (status == SLC_OK) {
        status = api_take_compute(&compute, known.compute, err);
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
    contract.supply = &tiles;
    status = slc_contract(&contract, &made, err);
    return status == SLC_OK && report != NULL ? give_ttv_report(report, &made, &supply, err)
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
    struct slc_plan plan;
    struct slc_matrix matrix;
    struct slc_labels labels[SLC_MAX_ORDER];
    struct slc_ttm_options ttm;
    struct slc_ttm_report report;
    struct slc_stream_stats stats;
    bool sorted;
};

static enum slc_status
plan_product(struct product *product, struct slc_reader *reader, struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(reader);
    struct slc_plan_request request =
        api_plan_request(product->compute, SLC_OP_TTM, product->mode, product->columns);

    /* Of decompositions. */
    request.copies = SLC_COPIES_AUTO;
    request.passes = SLC_PASSES_AUTO;
    return slc_ttm_plan(&layouts, &request, &product->plan, &product->ttm.share, err);
}

/* The layout with whole fibers; planned before, too, so that nothing is sorted in vain. */
static enum slc_status
open_fibers(struct product *product, const char *temp_folder, struct slc_error *err)
{
    const struct slc_fiber_order_options options = {
        .mode = product->mode,
        .memory_bytes = api_memory_bytes(product->compute->memory_bytes),
        .threads = product->compute->threads,
        .output = product->output,
        .temp_folder = temp_folder,
        .dots = slc_fiber_dots};
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

/* Streams the layout and publishes the result. */
static enum slc_status multiply(struct product *product, bool elements, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(product->order.reader);
    const struct slc_layouts layouts = slc_layouts_one(product->order.reader);
    struct slc_stream *stream = NULL;
    struct slc_npy_pair *pair = NULL;
    enum slc_status status = slc_stream_open(NULL, &layouts, &product->plan, &stream, err);

    product->ttm.job = (struct slc_ttm_job){.order = info->order,
                                            .mode = product->mode,
                                            .form = elements ? SLC_TTM_ELEMENTS : SLC_TTM_FIBERS,
                                            .fiber_tiles = info->keys.run.bits > 0 &&
                                                           info->keys.run.mode == product->mode,
                                            .matrix = &product->matrix};
    product->ttm.workers = product->plan.threads;
    product->ttm.folder = product->output;
    product->ttm.stop = product->compute->stop;
    if (status == SLC_OK) {
        status = slc_ttm_stream(stream, &product->ttm, &pair, &product->report, err);
        slc_stream_stats(stream, &product->stats);
    }
    if (status == SLC_OK) {
        status = slc_npy_pair_publish(pair, err);
    }
    slc_npy_pair_destroy(pair);
    slc_stream_close(stream);
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
                                            .sorted = product->sorted};

    return api_give_report(report, &known, sizeof known, "sluice_ttm_report", err);
}

/* Closes everything; where all went well a temporary store that is left over is an error. */
static enum slc_status
release(struct product *product, enum slc_status status, struct slc_error *err)
{
    enum slc_status closed;

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
        status = slc_check_outside_stores(store->store.files, output, err);
    }
    if (status != SLC_OK) {
        return status;
    }
    status = open_fibers(&product, known.temp_folder, err);
    if (status == SLC_OK) {
        slc_placement_enter(&product.plan.placement);
        status = take_operands(&product, matrix, err);
        if (status == SLC_OK) {
            status = multiply(&product, known.elements != 0, err);
        }
        slc_placement_leave();
    }
    status = release(&product, status, err);
    return status == SLC_OK && report != NULL ? give_ttm_report(report, &product, err) : status;
}
