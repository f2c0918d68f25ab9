/*
 * Products on the chosen device, or on the CPU if the device is optional and cannot be used. A
 * session computes a product with a matrix (engine/product/ttm.h) from the request to the published
 * result: it makes the plan, permutes the operands into the order of the layout, and streams. A
 * command and the library hold one session each.
 */
#ifndef SLC_ENGINE_PRODUCT_SESSION_H
#define SLC_ENGINE_PRODUCT_SESSION_H

#include "engine/plan/plan.h"
#include "engine/product/contract.h"
#include "engine/product/device_products.h"
#include "engine/product/fiber_order.h"
#include "engine/product/ttm.h"
#include "engine/session/device_choice.h"
#include "storage/manifest/labels.h"

struct slc_ttm_session {
    /* Set by the caller. In the request, `gpu` and `hybrid` are overwritten from `choice`; in the
     * options, the caller sets the form, the folder, `stop` and `progress`. */
    const struct slc_store *store;
    struct slc_plan_request request;
    struct slc_products_choice choice; /* choice of a device */
    struct slc_error refused;          /* why the chosen device is not used */
    struct slc_ttm_options options;
    struct slc_fiber_order order; /* opened by the caller, closed after the session */

    struct slc_plan plan;
    struct slc_matrix matrix;
    struct slc_labels labels[SLC_MAX_ORDER];
    struct slc_stream *stream;
    struct slc_ttm_report report;
    struct slc_stream_stats stats;
};

/* Plans the product over the layout of `reader`. If the device is optional and the plan with it
 * fails, `refused` states the reason and the CPU multiplies. Errors: those of slc_ttm_plan. */
enum slc_status slc_ttm_session_plan(struct slc_ttm_session *session,
                                     struct slc_reader *reader,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * The store that defines the index order of the open layout: the given store, or the temporary one.
 */
const struct slc_store *slc_ttm_session_numbering(const struct slc_ttm_session *session);

/* Permutes `matrix`, filled by the caller, into the order of the layout, and loads the input's
 * indices of the other modes. Errors: those of slc_relabel_rows and slc_relabel_names. */
enum slc_status slc_ttm_session_relabel(struct slc_ttm_session *session,
                                        struct slc_error *err) SLC_NODISCARD;

/* Streams the layout as planned, without the device if it is optional and fails, and publishes the
 * result. Errors: those of slc_ttm_stream and of publishing. */
enum slc_status slc_ttm_session_multiply(struct slc_ttm_session *session,
                                         struct slc_error *err) SLC_NODISCARD;

/* Computes a product with vectors (engine/product/contract.h). `device` is for the chosen device;
 * it records why the device was not used if no plan has memory for both. Errors: those of
 * slc_contract. */
enum slc_status slc_contract_on_device(struct slc_contract_options *contract,
                                       struct slc_products_choice *choice,
                                       struct slc_device_products *device,
                                       struct slc_contract_report *report,
                                       struct slc_error *err) SLC_NODISCARD;

/* Releases everything except `order` and the store. Accepts an all-zero session. */
void slc_ttm_session_close(struct slc_ttm_session *session);

#endif
