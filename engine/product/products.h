/* Multiplies tiles on a device (product.open of base/device.h) instead of, or together with, CPU
 * workers. Divides the memory of the device into lanes, chooses for each tile whether the CPU or a
 * lane multiplies it (engine/hybrid/hybrid_tiles.h), and delivers the results of lanes to
 * workers. */
#ifndef SLC_ENGINE_PRODUCTS_H
#define SLC_ENGINE_PRODUCTS_H

#include "base/block.h"
#include "base/device.h"
#include "base/used.h"
#include "engine/hybrid/hybrid_tiles.h"
#include "engine/plan/plan.h"
#include "storage/block/reader.h"

/* The shape of the product that is planned. */
struct slc_products_shape {
    uint32_t modes; /* bit n: mode n has a matrix */
    /* per mode: the used indices, for which the matrix has rows; NULL: all indices of all modes */
    const struct slc_used *used;
    uint32_t columns;
    enum slc_value_type precision; /* type of the matrices; sums are f64 */
};

/* Plans the smallest sufficient device memory, with which lanes deliver few fibers at once: for
 * `streams` lanes, or for one lane if `streams` is 0. Sets *host_bytes to the host memory of the
 * lanes. In *plan, `streams` is the number of lanes, `slot_bytes` and `expanded_bytes` are the
 * sizes of a tile, and `fibers` is the number of fibers that a lane delivers at once. Errors:
 * SLC_ERR_BUDGET, with the smallest sufficient device memory in the message and in *plan. */
enum slc_status slc_products_plan(const struct slc_device *device,
                                  const struct slc_reader *reader,
                                  const struct slc_products_shape *shape,
                                  unsigned streams,
                                  struct slc_plan_gpu *plan,
                                  uint64_t *host_bytes,
                                  struct slc_error *err) SLC_NODISCARD;
/* Call it after slc_products_plan. Adds lanes, up to `lanes_most`, and space for whole tiles,
 * within the budget of device memory and within `host_most` bytes of host memory. */
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
    const struct slc_matrix *matrices[SLC_MAX_ORDER]; /* NULL for a kept mode */
    const struct slc_used *used;                      /* as in struct slc_products_shape */
    struct slc_hybrid_wish hybrid;
    unsigned threads; /* workers that multiply tiles on the CPU at the same time */
    unsigned workers; /* all workers */
    bool in_order;    /* see struct slc_hybrid_tiles_options */
};

struct slc_products;

/* Opens the device. Ownership: release with slc_products_close. Errors: those of product.open,
 * SLC_ERR_MEMORY; after an error the device is closed. */
enum slc_status slc_products_open(const struct slc_products_options *options,
                                  struct slc_products **products,
                                  struct slc_error *err) SLC_NODISCARD;

/* Assigns a lane, or a place on the CPU, to the worker's tile. A lane multiplies the tile, and
 * *fibers then has the first results. On the CPU, fibers->count is 0; the worker must multiply the
 * tile and call slc_products_computed. *number is the number of the lane, or of the place on the
 * CPU. Errors: SLC_ERR_INTERRUPTED after slc_products_abort, SLC_ERR_UNSUPPORTED if the tile cannot
 * be described, those of product.tile. After an error the worker holds neither a lane nor a place.
 */
enum slc_status slc_products_begin_tile(struct slc_products *products,
                                        unsigned worker,
                                        struct slc_tile_view *tile,
                                        unsigned *number,
                                        struct slc_device_fibers *fibers,
                                        struct slc_error *err) SLC_NODISCARD;
/* Sets *fibers to the next fibers of the worker's tile. Errors: those of product.more. */
enum slc_status slc_products_more(struct slc_products *products,
                                  unsigned worker,
                                  struct slc_device_fibers *fibers,
                                  struct slc_error *err) SLC_NODISCARD;
/* Records the time that the worker took to multiply its tile. */
void slc_products_computed(struct slc_products *products, unsigned worker, uint64_t busy_ns);
/* Releases the worker's lane or place. */
void slc_products_end_tile(struct slc_products *products, unsigned worker);

/* Wakes all workers that wait for a place. Any thread may call it. */
void slc_products_abort(struct slc_products *products);

struct slc_products_report {
    struct slc_hybrid_tiles_report hybrid;
    struct slc_device_stats device;
};
/* Fills *report. Needs: no tile is being multiplied. */
void slc_products_report(const struct slc_products *products, struct slc_products_report *report);

/* Closes the device. Accepts NULL. */
void slc_products_close(struct slc_products *products);

#endif
