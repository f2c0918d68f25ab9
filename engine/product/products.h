/*
 * Multiplies tiles on a device (product.open of base/device.h), in addition to or instead of CPU
 * workers: divides the memory of the device, chooses the side of each tile
 * (engine/hybrid/hybrid_tiles.h), and serves workers whose tiles the device multiplies.
 */
#ifndef SLC_ENGINE_PRODUCTS_H
#define SLC_ENGINE_PRODUCTS_H

#include "base/block.h"
#include "base/device.h"
#include "engine/hybrid/hybrid_tiles.h"
#include "engine/plan/plan.h"
#include "storage/block/reader.h"

/* The product to plan. */
struct slc_products_shape {
    uint32_t modes; /* bit n: mode n has a matrix */
    uint32_t columns;
    enum slc_value_type precision; /* type of the matrices; sums are f64 */
};

/*
 * Plans the smallest sufficient device memory: one lane, or `streams` lanes, and few fibers at a
 * time. Sets *host_bytes to the host memory of the lanes. Fills *plan like a plan of blocks:
 * `streams` is the number of lanes, `slot_bytes` and `expanded_bytes` are the sizes of a tile, and
 * `fibers` is the number of fibers delivered at a time. Errors: SLC_ERR_BUDGET, naming the
 * --device-memory that is enough, which is then also set in *plan.
 */
enum slc_status slc_products_plan(const struct slc_device *device,
                                  const struct slc_reader *reader,
                                  const struct slc_products_shape *shape,
                                  unsigned streams,
                                  struct slc_plan_gpu *plan,
                                  uint64_t *host_bytes,
                                  struct slc_error *err) SLC_NODISCARD;
/* After slc_products_plan: adds lanes, up to `lanes_most` unless their number is given, and space
 * for whole tiles, within the device memory budget and `host_most` bytes of host memory. */
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
    const struct slc_reader *reader; /* reader of the layout whose tiles are multiplied */
    const struct slc_matrix *matrices[SLC_MAX_ORDER]; /* NULL: the mode is kept */
    struct slc_hybrid_wish hybrid;
    unsigned threads; /* workers that multiply tiles on the CPU at the same time */
    unsigned workers; /* all workers */
    bool in_order;    /* see struct slc_hybrid_tiles_options */
};

struct slc_products;

/* Opens the device. Owns: release with slc_products_close. Errors: those of product.open,
 * SLC_ERR_MEMORY; nothing is held after an error. */
enum slc_status slc_products_open(const struct slc_products_options *options,
                                  struct slc_products **products,
                                  struct slc_error *err) SLC_NODISCARD;

/*
 * Assigns the worker's tile a place and, if the place is a lane, multiplies the tile: *fibers then
 * has the first results. On the CPU's side fibers->count is 0, and the worker multiplies the tile
 * and calls slc_products_computed. *number is the number of the place on its side. Errors:
 * SLC_ERR_INTERRUPTED after slc_products_abort, SLC_ERR_UNSUPPORTED for a tile that cannot be
 * described, those of product.tile; no place is held after an error.
 */
enum slc_status slc_products_begin_tile(struct slc_products *products,
                                        unsigned worker,
                                        struct slc_tile_view *tile,
                                        unsigned *number,
                                        struct slc_device_fibers *fibers,
                                        struct slc_error *err) SLC_NODISCARD;
/* Returns the next fibers of the worker's tile. Errors: those of product.more. */
enum slc_status slc_products_more(struct slc_products *products,
                                  unsigned worker,
                                  struct slc_device_fibers *fibers,
                                  struct slc_error *err) SLC_NODISCARD;
/* Records the time that the worker needed to multiply its tile. */
void slc_products_computed(struct slc_products *products, unsigned worker, uint64_t busy_ns);
/* Releases the worker's place. */
void slc_products_end_tile(struct slc_products *products, unsigned worker);

/* Wakes workers that wait for a place. Threads: any. */
void slc_products_abort(struct slc_products *products);

struct slc_products_report {
    struct slc_hybrid_tiles_report hybrid;
    struct slc_device_stats device;
};
/* Must be called only while no tile is being multiplied. */
void slc_products_report(const struct slc_products *products, struct slc_products_report *report);

/* Closes the device. Accepts NULL. */
void slc_products_close(struct slc_products *products);

#endif
