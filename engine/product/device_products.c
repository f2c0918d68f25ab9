#include "engine/product/device_products.h"

#include "base/error/clock.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <string.h>

/* Lanes per thread of the caller. CPU threads sort and write the results of the lanes. With two
 * lanes per thread, one lane computes while the other waits for its thread. */
enum { LANES_PER_THREAD = 2 };

/* Continues without the device, and stores the reason `refused`. */
static enum slc_status drop_device(struct slc_device_products *own, const struct slc_error *refused)
{
    own->used = false;
    own->why = *refused;
    return SLC_OK;
}

static enum slc_status plan_products(void *self,
                                     const struct slc_reader *reader,
                                     uint32_t modes,
                                     const struct slc_used used[SLC_MAX_ORDER],
                                     uint32_t columns,
                                     unsigned threads,
                                     struct slc_products_plan *plan,
                                     struct slc_error *err)
{
    struct slc_device_products *own = self;
    const struct slc_products_shape shape = {
        .modes = modes, .used = used, .columns = columns, .precision = SLC_F64};
    const unsigned most =
        own->streams != 0
            ? own->streams
            : (unsigned)slc_min_u64((uint64_t)threads * LANES_PER_THREAD, SLC_DEVICE_STREAMS);
    struct slc_error refused = SLC_ERROR_INIT;

    own->reader = reader;
    own->threads = (unsigned)slc_max_u64(threads, 1);
    own->workers = own->threads;
    *plan = (struct slc_products_plan){.workers = own->workers};
    own->used = own->device != NULL;
    slc_error_clear(&own->why);
    if (own->device == NULL) {
        return SLC_OK;
    }
    enum slc_status status = slc_products_plan(own->device, reader, &shape, own->streams,
                                               &own->plan, &plan->host_bytes, &refused);
    if (status != SLC_OK) {
        plan->host_bytes = 0;
        if (own->optional) {
            return drop_device(own, &refused);
        }
        *err = refused;
        return status;
    }
    if (threads > 0) {
        slc_products_widen(own->device, reader, &shape, own->plan.streams, most, UINT64_MAX,
                           &own->plan, &plan->host_bytes);
    }
    own->workers = own->hybrid.kind != SLC_HYBRID_NONE
                       ? own->threads + own->plan.streams
                       : (unsigned)slc_max_u64(own->threads, own->plan.streams);
    own->workers = (unsigned)slc_min_u64(own->workers, SLC_MAX_THREADS);
    plan->workers = own->workers;
    return SLC_OK;
}

static enum slc_status open_products(void *self,
                                     const struct slc_matrix *const matrices[SLC_MAX_ORDER],
                                     const struct slc_used used[SLC_MAX_ORDER],
                                     struct slc_error *err)
{
    struct slc_device_products *own = self;
    struct slc_products_options options = {.device = own->device,
                                           .used = used,
                                           .plan = &own->plan,
                                           .reader = own->reader,
                                           .hybrid = own->hybrid,
                                           .threads = own->threads,
                                           .workers = own->workers};
    struct slc_error refused = SLC_ERROR_INIT;

    memset(&own->report, 0, sizeof own->report);
    if (!own->used) {
        return SLC_OK;
    }
    memcpy(options.matrices, matrices, sizeof options.matrices);
    own->start_ns = slc_calloc(own->workers, sizeof *own->start_ns);
    SLC_TRY(slc_check_memory(own->start_ns != NULL, err, "for %u workers", own->workers));
    enum slc_status status = slc_products_open(&options, &own->products, &refused);
    if (status == SLC_OK) {
        return SLC_OK;
    }
    slc_free(own->start_ns);
    own->start_ns = NULL;
    if (own->optional) {
        return drop_device(own, &refused);
    }
    *err = refused;
    return status;
}

static enum slc_status begin_tile(void *self,
                                  unsigned worker,
                                  struct slc_tile_view *tile,
                                  struct slc_device_fibers *fibers,
                                  struct slc_error *err)
{
    struct slc_device_products *own = self;
    enum slc_status status = SLC_OK;
    unsigned number;

    fibers->count = 0;
    if (own->products != NULL) {
        status = slc_products_begin_tile(own->products, worker, tile, &number, fibers, err);
        own->start_ns[worker] = fibers->count == 0 ? slc_clock_ns() : 0;
    }
    return status;
}

static enum slc_status
more_fibers(void *self, unsigned worker, struct slc_device_fibers *fibers, struct slc_error *err)
{
    struct slc_device_products *own = self;

    return slc_products_more(own->products, worker, fibers, err);
}

static void end_tile(void *self, unsigned worker)
{
    struct slc_device_products *own = self;

    if (own->products == NULL) {
        return;
    }
    if (own->start_ns[worker] != 0) {
        slc_products_computed(own->products, worker, slc_clock_ns() - own->start_ns[worker]);
    }
    slc_products_end_tile(own->products, worker);
}

static void close_products(void *self)
{
    struct slc_device_products *own = self;

    if (own->products != NULL) {
        slc_products_report(own->products, &own->report);
        slc_products_close(own->products);
        own->products = NULL;
    }
    slc_free(own->start_ns);
    own->start_ns = NULL;
}

struct slc_tile_products slc_device_products_table(struct slc_device_products *products)
{
    return (struct slc_tile_products){.self = products,
                                      .plan = plan_products,
                                      .open = open_products,
                                      .take = begin_tile,
                                      .more = more_fibers,
                                      .leave = end_tile,
                                      .close = close_products};
}
