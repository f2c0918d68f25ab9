/* Multiplies tiles on a device.
 *
 * Two lanes are allocated first, then space for whole tiles, then more lanes. A lane without space
 * for a whole tile delivers the tile in pieces, and is idle while it waits for the results of
 * earlier tiles. More lanes hide the latency of copies and kernel launches, because a tile is
 * little work for a device. */
#include "engine/product/products.h"

#include "base/error/clock.h"
#include "base/memory/memory.h"
#include "engine/plan/plan_sizes.h"
#include "storage/codec/describe.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum {
    /* Fewest fibers that a lane delivers at once. With fewer, a tile would need many small
     * copies. */
    FIBERS_LEAST = 1024,
    /* Number of lanes that are allocated before lanes get space for a whole tile: one lane computes
     * while the results of the other are copied. */
    LANES_WANTED = 2
};

/* A product in the form that a device accepts. */
struct product {
    struct slc_device_product device;
    struct slc_matrix shapes[SLC_MAX_ORDER];
};

static void describe_product(const struct slc_reader *reader,
                             const struct slc_products_shape *shape,
                             const struct slc_plan_gpu *plan,
                             struct product *product)
{
    const struct slc_layout_info *info = slc_reader_info(reader);

    memset(product, 0, sizeof *product);
    product->device = (struct slc_device_product){.order = info->order,
                                                  .precision = shape->precision,
                                                  .lanes = plan->streams,
                                                  .tile_bytes = plan->slot_bytes,
                                                  .expanded_bytes = plan->expanded_bytes,
                                                  .room = plan->fibers};
    memcpy(product->device.dims, info->dims, sizeof product->device.dims);
    if (shape->used != NULL) {
        memcpy(product->device.used, shape->used, sizeof product->device.used);
    }
    for (unsigned n = 0; n < info->order; n++) {
        if ((shape->modes >> n & 1U) != 0) {
            product->shapes[n] = slc_plan_matrix(
                shape->precision, slc_used_elements(&product->device.used[n], info->dims[n]),
                shape->columns);
            product->device.matrix[n] = &product->shapes[n];
        }
    }
}

/* Returns the bytes of device memory for the plan's lanes, and sets *host_bytes to the bytes of
 * host memory. */
static uint64_t device_bytes(const struct slc_device *device,
                             const struct slc_reader *reader,
                             const struct slc_products_shape *shape,
                             const struct slc_plan_gpu *plan,
                             uint64_t *host_bytes)
{
    struct product product;

    describe_product(reader, shape, plan, &product);
    *host_bytes = device->ops->product.host_bytes(device, &product.device);
    return device->ops->product.memory_bytes(device, &product.device);
}

/* Returns an upper bound for the number of fibers of a tile. */
static uint32_t fibers_most(const struct slc_reader *reader)
{
    const uint64_t nnz = slc_reader_info(reader)->max_block_nnz;

    return (uint32_t)slc_max_u64(slc_min_u64(nnz, SLC_TILE_NNZ), 1);
}

enum slc_status slc_products_plan(const struct slc_device *device,
                                  const struct slc_reader *reader,
                                  const struct slc_products_shape *shape,
                                  unsigned streams,
                                  struct slc_plan_gpu *plan,
                                  uint64_t *host_bytes,
                                  struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(reader);
    const uint64_t mib = UINT64_C(1) << 20;
    struct slc_device_info about;

    device->ops->info(device, &about);
    *plan =
        (struct slc_plan_gpu){.budget_bytes = about.free_bytes,
                              .streams = streams != 0 ? streams : 1,
                              /* A tensor without nonzeros still needs a lane. */
                              .slot_bytes = slc_max_u64(slc_describe_tile_bound(info), 1),
                              .expanded_bytes = slc_describe_tile_expanded_bound(info),
                              .fibers = (uint32_t)slc_min_u64(FIBERS_LEAST, fibers_most(reader))};
    memcpy(plan->name, about.name, sizeof plan->name);
    plan->minimum_bytes = device_bytes(device, reader, shape, plan, host_bytes);
    plan->factor_bytes = plan->minimum_bytes;
    plan->total_bytes = plan->minimum_bytes;
    if (plan->minimum_bytes <= plan->budget_bytes && plan->minimum_bytes < UINT64_MAX) {
        return SLC_OK;
    }
    if (plan->minimum_bytes == UINT64_MAX) {
        return slc_fail(err, SLC_ERR_BUDGET,
                        "a matrix of %" PRIu32
                        " columns needs more memory than a device can have; use fewer columns",
                        shape->columns);
    }
    return slc_fail_field(
        err, SLC_ERR_BUDGET, SLC_FIELD_DEVICE_MEMORY,
        "products of %" PRIu32 " column%s with tiles of %" PRIu64 " KiB on %s need %" PRIu64
        " MiB of device memory or more; the limit is %" PRIu64 " MiB",
        shape->columns, shape->columns == 1 ? "" : "s", slc_div_up_u64(plan->slot_bytes, 1024),
        plan->name, slc_div_up_u64(plan->minimum_bytes, mib), plan->budget_bytes / mib);
}

void slc_products_widen(const struct slc_device *device,
                        const struct slc_reader *reader,
                        const struct slc_products_shape *shape,
                        unsigned lanes_least,
                        unsigned lanes_most,
                        uint64_t host_most,
                        struct slc_plan_gpu *plan,
                        uint64_t *host_bytes)
{
    struct slc_plan_gpu wider = *plan;
    uint64_t host;

    for (uint32_t fibers = fibers_most(reader); fibers >= plan->fibers; fibers /= 2) {
        const bool is_least = fibers / 2 < plan->fibers;
        const unsigned least =
            is_least ? lanes_least : (unsigned)slc_min_u64(lanes_most, LANES_WANTED);

        for (unsigned lanes = lanes_most; lanes >= slc_max_u64(least, lanes_least); lanes--) {
            wider.streams = lanes;
            wider.fibers = fibers;
            wider.total_bytes = device_bytes(device, reader, shape, &wider, &host);
            if (wider.total_bytes <= wider.budget_bytes && host <= host_most) {
                wider.slots_bytes = wider.total_bytes - wider.factor_bytes;
                *plan = wider;
                *host_bytes = host;
                return;
            }
        }
    }
}

/* State of a worker, accessed only by that worker. */
struct worker {
    struct slc_hybrid_place place;
    uint64_t nnz; /* nonzeros of the worker's tile */
};

struct slc_products {
    struct slc_device *device;
    struct slc_hybrid_tiles queue;
    struct worker *workers;
};

static enum slc_status open_device(const struct slc_products_options *options,
                                   struct slc_error *err)
{
    struct slc_products_shape shape = {.used = options->used};
    struct slc_encoded_layout *layout = slc_calloc(1, sizeof *layout);
    struct product product;

    SLC_TRY(slc_check_memory(layout != NULL, err, "to describe a layout"));
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        shape.precision =
            options->matrices[n] != NULL ? options->matrices[n]->type : shape.precision;
    }
    slc_describe_layout(slc_reader_info(options->reader), layout);
    describe_product(options->reader, &shape, options->plan, &product);
    memcpy(product.device.matrix, options->matrices, sizeof product.device.matrix);
    product.device.layout = layout;
    enum slc_status status =
        options->device->ops->product.open(options->device, &product.device, err);
    slc_free(layout);
    return status;
}

enum slc_status slc_products_open(const struct slc_products_options *options,
                                  struct slc_products **products,
                                  struct slc_error *err)
{
    const struct slc_hybrid_tiles_options queue = {
        .wish = options->hybrid,
        .places = {[SLC_HYBRID_CPU] =
                       options->hybrid.kind == SLC_HYBRID_NONE ? 0 : options->threads,
                   [SLC_HYBRID_GPU] = options->plan->streams},
        .tiles = slc_reader_info(options->reader)->tile_count,
        .in_order = options->in_order};
    struct slc_products *made = slc_calloc(1, sizeof *made);

    if (made != NULL) {
        made->workers = slc_calloc(options->workers, sizeof *made->workers);
    }
    if (made == NULL || made->workers == NULL) {
        slc_free(made);
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for %u workers", options->workers);
    }
    enum slc_status status = open_device(options, err);
    if (status != SLC_OK) {
        slc_free(made->workers);
        slc_free(made);
        return status;
    }
    made->device = options->device;
    slc_hybrid_tiles_init(&made->queue, &queue);
    *products = made;
    return SLC_OK;
}

/* Multiplies the tile on a lane. */
static enum slc_status multiply_tile(struct slc_products *products,
                                     const struct worker *worker,
                                     struct slc_tile_view *tile,
                                     struct slc_device_fibers *fibers,
                                     struct slc_error *err)
{
    const uint64_t start_ns = slc_clock_ns();
    struct slc_encoded_block block;

    if (tile->describe == NULL) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "a device needs whole tiles");
    }
    SLC_TRY(tile->describe(tile, &block, err));
    SLC_TRY(products->device->ops->product.tile(products->device, worker->place.number, &block,
                                                fibers, err));
    slc_hybrid_tiles_computed(&products->queue, &worker->place, tile->nnz,
                              slc_clock_ns() - start_ns);
    return SLC_OK;
}

enum slc_status slc_products_begin_tile(struct slc_products *products,
                                        unsigned worker,
                                        struct slc_tile_view *tile,
                                        unsigned *number,
                                        struct slc_device_fibers *fibers,
                                        struct slc_error *err)
{
    struct worker *own = &products->workers[worker];
    enum slc_status status =
        slc_hybrid_tiles_acquire(&products->queue, tile->ordinal, &own->place, err);

    fibers->count = 0;
    SLC_TRY(status);
    own->nnz = tile->nnz;
    *number = own->place.number;
    if (own->place.side == SLC_HYBRID_GPU) {
        status = multiply_tile(products, own, tile, fibers, err);
    }
    if (status != SLC_OK) {
        slc_hybrid_tiles_release(&products->queue, &own->place);
    }
    return status;
}

enum slc_status slc_products_more(struct slc_products *products,
                                  unsigned worker,
                                  struct slc_device_fibers *fibers,
                                  struct slc_error *err)
{
    const struct slc_hybrid_place *place = &products->workers[worker].place;
    const uint64_t start_ns = slc_clock_ns();

    assert(place->side == SLC_HYBRID_GPU && fibers->more);
    enum slc_status status =
        products->device->ops->product.more(products->device, place->number, fibers, err);
    slc_hybrid_tiles_computed(&products->queue, place, 0, slc_clock_ns() - start_ns);
    return status;
}

void slc_products_computed(struct slc_products *products, unsigned worker, uint64_t busy_ns)
{
    const struct worker *own = &products->workers[worker];

    assert(own->place.side == SLC_HYBRID_CPU);
    slc_hybrid_tiles_computed(&products->queue, &own->place, own->nnz, busy_ns);
}

void slc_products_end_tile(struct slc_products *products, unsigned worker)
{
    slc_hybrid_tiles_release(&products->queue, &products->workers[worker].place);
}

void slc_products_abort(struct slc_products *products)
{
    slc_hybrid_tiles_abort(&products->queue);
}

void slc_products_report(const struct slc_products *products, struct slc_products_report *report)
{
    slc_hybrid_tiles_report(&products->queue, &report->hybrid);
    products->device->ops->stats(products->device, &report->device);
}

void slc_products_close(struct slc_products *products)
{
    if (products == NULL) {
        return;
    }
    products->device->ops->memory.close(products->device);
    slc_hybrid_tiles_destroy(&products->queue);
    slc_free(products->workers);
    slc_free(products);
}
