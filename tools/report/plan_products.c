/* See plan_products.h. Both are planned by the functions that the commands plan by. */
#include "tools/report/plan_products.h"

#include "base/thread/team.h"
#include "engine/planning/planning.h"
#include "engine/product/contract.h"
#include "engine/product/fiber_order.h"
#include "engine/product/ttm.h"
#include "engine/stream/tile_stream.h"
#include "report/json_parts.h"
#include "tools/progress/format.h"

#include <inttypes.h>
#include <stdio.h>

/* A vector in one mode. A budget that is too small is no error here: the least is told. */
static enum slc_status plan_ttv(const struct slc_store *store,
                                const struct session_options *options,
                                unsigned mode,
                                struct plan_product *product,
                                struct slc_error *err)
{
    struct slc_tile_stream tiles = {.io = SLC_IO_AUTO};
    const struct slc_contract_options contract = {
        .files = store->files,
        .store = store->path,
        .output = store->manifest.order > 1 ? store->path : NULL,
        .vector_count = 1,
        .vectors = {{.mode = mode}},
        .stream = &tiles,
        .codec = SLC_CODEC_PACKED,
        .block_bytes = SLC_DEFAULT_BLOCK_BYTES,
        .memory_bytes = options->memory,
        .threads = options->threads != 0 ? (unsigned)options->threads : slc_team_default_workers(),
        .dry_run = true};
    struct slc_error refused = SLC_ERROR_INIT;
    struct slc_contract_report report;
    const enum slc_status status = slc_contract(&contract, &report, &refused);

    if (status != SLC_OK && status != SLC_ERR_BUDGET) {
        *err = refused;
        return status;
    }
    product->layout = report.layout;
    product->layout_bytes = report.layout_bytes;
    product->fibers = report.layout_fibers;
    product->ttv_sorts = !report.ordered && report.order > 0;
    product->ttv_minimum_bytes = report.least_bytes;
    return SLC_OK;
}

/* What a product takes of a device's memory at least. */
static uint64_t device_least(const struct slc_device *device,
                             const struct slc_reader *reader,
                             unsigned mode,
                             uint32_t columns)
{
    const struct slc_products_shape shape = {
        .modes = UINT32_C(1) << mode, .columns = columns, .precision = SLC_F64};
    struct slc_plan_gpu plan;
    uint64_t host_bytes;
    const enum slc_status status =
        slc_products_plan(device, reader, &shape, 0, &plan, &host_bytes, NULL);

    /* A device that is too small is no error here, either. */
    return status == SLC_OK || status == SLC_ERR_BUDGET ? plan.minimum_bytes : 0;
}

static enum slc_status plan_ttm(const struct slc_store *store,
                                const struct session_options *options,
                                unsigned mode,
                                uint32_t columns,
                                const struct slc_device *device,
                                struct plan_product *product,
                                struct slc_error *err)
{
    const struct slc_plan_request request = {.mode = mode,
                                             .rank = columns,
                                             .precision = SLC_F64,
                                             .threads = (unsigned)options->threads,
                                             .memory_bytes = options->memory};
    struct slc_error refused = SLC_ERROR_INIT;
    struct slc_reader *reader = NULL;
    struct slc_layouts layouts;
    struct slc_ttm_division share;
    struct slc_plan plan;
    enum slc_status status;

    SLC_TRY(slc_store_open_fibers(store, mode, options->memory, &reader, err));
    product->ttm_needs_layout =
        reader == NULL && slc_fiber_order_check(store, mode, NULL) != SLC_OK;
    product->ttm_sorts = reader == NULL && !product->ttm_needs_layout;
    layouts = slc_layouts_one(reader != NULL ? reader : store->reader);
    status = slc_ttm_plan(&layouts, &request, &plan, &share, &refused);
    if (device != NULL) {
        product->ttv_device_bytes = device_least(device, layouts.reader[0], mode, 1);
        product->ttm_device_bytes = device_least(device, layouts.reader[0], mode, columns);
    }
    slc_store_close_layout(store, reader != NULL ? reader : store->reader);
    if (status != SLC_OK && status != SLC_ERR_BUDGET) {
        *err = refused;
        return status;
    }
    product->ttm_minimum_bytes = plan.minimum_bytes;
    return SLC_OK;
}

enum slc_status plan_products(const struct slc_store *store,
                              const struct session_options *options,
                              uint32_t columns,
                              const struct slc_device *device,
                              struct plan_product products[SLC_MAX_ORDER],
                              struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    for (unsigned n = 0; n < store->manifest.order && status == SLC_OK; n++) {
        products[n] = (struct plan_product){.fibers = 0};
        status = plan_ttv(store, options, n, &products[n], err);
        if (status == SLC_OK) {
            status = plan_ttm(store, options, n, columns, device, &products[n], err);
        }
    }
    return status;
}

/* Where a mode's products sort, and what spares that. */
static void
print_sorting(const struct slc_store *store, const struct plan_product *product, unsigned mode)
{
    if (product->ttv_sorts || product->ttm_sorts) {
        printf("  %-12s %s sorted first%s", "",
               product->ttv_sorts && product->ttm_sorts ? "sums (ttv) and nonzeros (ttm) are"
               : product->ttv_sorts                     ? "sums (ttv) are"
                                                        : "nonzeros (ttm) are",
               product->ttm_sorts ? "; sluice layout " : "");
        if (product->ttm_sorts) {
            printf("%s --fiber %u spares that", store->path, mode + 1);
        }
        printf("\n");
    }
    if (product->ttm_needs_layout) {
        printf("  %-12s ttm needs sluice layout %s --fiber %u\n", "", store->path, mode + 1);
    }
}

void plan_products_print(const struct slc_store *store,
                         uint32_t columns,
                         const struct plan_product *products)
{
    printf("Products with a vector (ttv) or a matrix of %" PRIu32 " column%s (ttm)\n", columns,
           columns == 1 ? "" : "s");
    for (unsigned n = 0; n < store->manifest.order; n++) {
        const struct plan_product *product = &products[n];
        struct format_text name, bytes, ttv, ttm;
        char mode[16];

        (void)snprintf(mode, sizeof mode, "mode %u", n + 1);
        printf("  %-12s %s, %s: needs %s (ttv), %s (ttm)\n", mode,
               session_layout_name(&name, product->layout, n),
               format_data(&bytes, (double)product->layout_bytes),
               format_memory(&ttv, product->ttv_minimum_bytes),
               format_memory(&ttm, product->ttm_minimum_bytes));
        if (product->ttm_device_bytes > 0) {
            printf("  %-12s of the device's memory %s (ttv), %s (ttm) at least\n", "",
                   format_memory(&ttv, product->ttv_device_bytes),
                   format_memory(&ttm, product->ttm_device_bytes));
        }
        print_sorting(store, product, n);
    }
}

json_t *plan_products_json(unsigned order, const struct plan_product *products)
{
    json_t *array = json_array();

    for (unsigned n = 0; n < order; n++) {
        const struct plan_product *product = &products[n];
        struct format_text name;
        json_t *object = json_pack("{s:i, s:s, s:I, s:b, s:b, s:b, s:I, s:I}", "mode", (int)n + 1,
                                   "layout", session_layout_name(&name, product->layout, n),
                                   "layout_bytes", (json_int_t)product->layout_bytes, "ttv_sorts",
                                   (int)product->ttv_sorts, "ttm_sorts", (int)product->ttm_sorts,
                                   "ttm_needs_layout", (int)product->ttm_needs_layout,
                                   "ttv_minimum_bytes", (json_int_t)product->ttv_minimum_bytes,
                                   "ttm_minimum_bytes", (json_int_t)product->ttm_minimum_bytes);

        if (product->ttm_device_bytes > 0) {
            slc_json_set_count(object, "ttv_device_bytes", product->ttv_device_bytes);
            slc_json_set_count(object, "ttm_device_bytes", product->ttm_device_bytes);
        }
        if (product->fibers > 0) {
            slc_json_set_count(object, "fibers", product->fibers);
        }
        (void)json_array_append_new(array, object);
    }
    return array;
}
