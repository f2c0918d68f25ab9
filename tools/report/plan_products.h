/* What products with a vector (ttv) or a matrix (ttm) in each mode of a store would read and take.
 */
#ifndef SLC_TOOLS_PLAN_PRODUCTS_H
#define SLC_TOOLS_PLAN_PRODUCTS_H

#include "tools/session/session.h"

#include <jansson.h>

/* Of one mode. */
struct plan_product {
    enum slc_layout_kind layout; /* that is read */
    uint64_t layout_bytes;
    uint64_t fibers;            /* that have nonzeros; 0 where the layout does not tell */
    bool ttv_sorts;             /* sums do not come in the order of the result */
    bool ttm_sorts;             /* there are no whole fibers: a temporary store is made */
    bool ttm_needs_layout;      /* and the mode is too long for one */
    uint64_t ttv_minimum_bytes; /* smallest budgets that work */
    uint64_t ttm_minimum_bytes;
    /* The same of a device's memory, where one is to multiply; 0: there is none. */
    uint64_t ttv_device_bytes, ttm_device_bytes;
};

/*
 * Plans a product in every mode, with `columns` columns of a matrix. Modes of the result count as
 * those of the store. `device` may be NULL. Errors: those of opening layouts; a budget that is too
 * small is none.
 */
enum slc_status plan_products(const struct slc_store *store,
                              const struct session_options *options,
                              uint32_t columns,
                              const struct slc_device *device,
                              struct plan_product products[SLC_MAX_ORDER],
                              struct slc_error *err) SLC_NODISCARD;

void plan_products_print(const struct slc_store *store,
                         uint32_t columns,
                         const struct plan_product *products);
json_t *plan_products_json(unsigned order, const struct plan_product *products);

#endif
