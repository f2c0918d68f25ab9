/* Computes products on the chosen device, or on the CPU if the device is optional and cannot be
 * used. A session computes a product with a matrix (engine/product/ttm.h): it plans, permutes the
 * matrix into the order of the layout, streams, and publishes the result. */
#ifndef SLC_ENGINE_PRODUCT_SESSION_H
#define SLC_ENGINE_PRODUCT_SESSION_H

#include "engine/plan/plan.h"
#include "engine/product/contract.h"
#include "engine/product/device_products.h"
#include "engine/product/fiber_order.h"
#include "engine/product/part_record.h"
#include "engine/product/ttm.h"
#include "engine/session/device_choice.h"
#include "storage/manifest/labels.h"

struct slc_ttm_session {
    /* Set by the caller. In `options`, the caller sets files, folder, stop and progress.
     * request.gpu and request.hybrid are overwritten from `choice`. */
    const struct slc_store *store;
    struct slc_plan_request request;
    struct slc_products_choice choice; /* choice of a device */
    struct slc_error refused;          /* the reason why the chosen device is not used */
    struct slc_ttm_options options;
    struct slc_fiber_order order; /* opened by the caller, who closes it after the session */
    struct slc_part part;         /* all zero unless slc_ttm_session_open_part opened a part */
    uint64_t operands;            /* hash of the matrix of a part */

    struct slc_plan plan;
    struct slc_matrix matrix;
    struct slc_labels labels[SLC_MAX_ORDER];
    struct slc_stream *stream;
    struct slc_ttm_report report;
    struct slc_stream_stats stats;
};

/* Plans the product over the layout of `reader`. If the device is optional and the plan with the
 * device fails, `refused` states the reason, and the product is planned for the CPU. Errors: those
 * of slc_ttm_plan. */
enum slc_status slc_ttm_session_plan(struct slc_ttm_session *session,
                                     struct slc_reader *reader,
                                     struct slc_error *err) SLC_NODISCARD;

/* Computes a part of the result, over a layout of the store that keeps fibers whole, instead of the
 * caller's opening of `order`. The folder of the result gets the record of the part. Errors: those
 * of slc_part_open and of opening the layout; SLC_ERR_UNSUPPORTED if there is no such layout, with
 * a device, or if the tensor has one mode. */
enum slc_status slc_ttm_session_open_part(struct slc_ttm_session *session,
                                          struct slc_part_choice choice,
                                          struct slc_error *err) SLC_NODISCARD;

/* Returns the store whose permutations apply to the open layout: the given store, or the temporary
 * store that has the layout. */
const struct slc_store *slc_ttm_session_numbering(const struct slc_ttm_session *session);

/* Permutes the rows of `matrix`, which the caller has filled, into the order of the layout. Loads
 * the maps from indices of the layout to indices of the input for the other modes. Errors: those of
 * slc_relabel_rows and slc_relabel_names. */
enum slc_status slc_ttm_session_relabel(struct slc_ttm_session *session,
                                        struct slc_error *err) SLC_NODISCARD;

/* Streams the layout as planned and publishes the result. If the device is optional and cannot be
 * opened, plans again and streams without the device. Errors: those of slc_ttm_stream and of
 * publishing. */
enum slc_status slc_ttm_session_multiply(struct slc_ttm_session *session,
                                         struct slc_error *err) SLC_NODISCARD;

/* Computes a product with vectors (engine/product/contract.h) on the chosen device, for which the
 * caller has set up `device`. If the device is optional and the budget is too small to use it, the
 * CPU computes alone, and device->why states the reason. Errors: those of slc_contract. */
enum slc_status slc_contract_on_device(struct slc_contract_options *contract,
                                       struct slc_products_choice *choice,
                                       struct slc_device_products *device,
                                       struct slc_contract_report *report,
                                       struct slc_error *err) SLC_NODISCARD;

/* Releases everything except `order` and the store. Accepts an all-zero session. */
void slc_ttm_session_close(struct slc_ttm_session *session);

#endif
