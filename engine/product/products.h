/*
 * Tiles multiplied by a device (product.open of base/device.h), beside workers that do so
 * themselves or in place of them: what its memory is divided into, which side takes which tile
 * (engine/hybrid/hybrid_tiles.h), and what a worker does whose tile the device takes.
 */
#ifndef SLC_ENGINE_PRODUCTS_H
#define SLC_ENGINE_PRODUCTS_H

#include "base/block.h"
#include "base/device.h"
#include "engine/hybrid/hybrid_tiles.h"
#include "engine/plan/plan.h"
#include "storage/block/reader.h"

/* Of what products. */
struct slc_products_shape {
    uint32_t modes; /* bit n: mode n has a matrix */
    uint32_t columns;
    enum slc_value_type precision; /* of the matrices; sums are f64 */
};

/*
 * The least that works of a device's memory: one lane, or as many as `streams` asks for, and few
 * fibers at a time. *host_bytes: what that takes of the host's. Fills *plan as a plan's: `streams`
 * are lanes, `slot_bytes` and `expanded_bytes` those of a tile, `fibers` what a lane hands out.
 * Errors: SLC_ERR_BUDGET, naming the --device-memory that is enough; *plan has it then, too.
 */
enum slc_status slc_products_plan(const struct slc_device *device,
                                  const struct slc_reader *reader,
                                  const struct slc_products_shape *shape,
                                  unsigned streams,
                                  struct slc_plan_gpu *plan,
                                  uint64_t *host_bytes,
                                  struct slc_error *err) SLC_NODISCARD;
/*
 * More lanes, up to `lanes_most` where these are not given, and whole tiles at a time, within what
 * may be used of the device's memory and `host_most` bytes of the host's: after slc_products_plan.
 */
void slc_products_widen(const struct slc_device *device,
                        const struct slc_reader *reader,
                        const struct slc_products_shape *shape,
                        unsigned lanes_least,
                        unsigned lanes_most,
                        uint64_t host_most,
                        struct slc_plan_gpu *plan,
                        uint64_t *host_bytes);

struct slc_products_options {
    struct slc_device *device;
    const struct slc_plan_gpu *plan;
    const struct slc_reader *reader;                  /* of the layout whose tiles are multiplied */
    const struct slc_matrix *matrices[SLC_MAX_ORDER]; /* NULL: the mode stays */
    struct slc_hybrid_wish hybrid;
    unsigned threads; /* that multiply by themselves, at a time */
    unsigned workers; /* that take tiles */
    bool in_order;    /* as in struct slc_hybrid_tiles_options */
};

struct slc_products;

/*
 * Opens the device. Owns: slc_products_close. Errors: those of product.open, SLC_ERR_MEMORY;
 * nothing is held then.
 */
enum slc_status slc_products_open(const struct slc_products_options *options,
                                  struct slc_products **products,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Gives the worker's tile a place, and has it multiplied where that is a lane: *fibers has the
 * first of what it made. On the CPU's side fibers->count is 0, the worker multiplies, and says so
 * by slc_products_computed. *number: the place's, among those of its side. Errors:
 * SLC_ERR_INTERRUPTED after slc_products_abort, SLC_ERR_UNSUPPORTED for a tile that cannot be
 * described, those of product.tile; there is nothing to leave then.
 */
enum slc_status slc_products_take(struct slc_products *products,
                                  unsigned worker,
                                  struct slc_tile_view *tile,
                                  unsigned *number,
                                  struct slc_device_fibers *fibers,
                                  struct slc_error *err) SLC_NODISCARD;
/* The next fibers of the worker's tile. Errors: those of product.more. */
enum slc_status slc_products_more(struct slc_products *products,
                                  unsigned worker,
                                  struct slc_device_fibers *fibers,
                                  struct slc_error *err) SLC_NODISCARD;
/* The worker has multiplied its tile in so much time. */
void slc_products_computed(struct slc_products *products, unsigned worker, uint64_t busy_ns);
/* The worker needs its place no longer. */
void slc_products_leave(struct slc_products *products, unsigned worker);

/* Wakes whoever waits for a place. Any thread. */
void slc_products_abort(struct slc_products *products);

struct slc_products_report {
    struct slc_hybrid_tiles_report hybrid;
    struct slc_device_stats device;
};
/* Not while tiles are multiplied. */
void slc_products_report(const struct slc_products *products, struct slc_products_report *report);

/* Closes the device. Takes NULL. */
void slc_products_close(struct slc_products *products);

#endif
