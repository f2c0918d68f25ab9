/*
 * Products on the device that was chosen, or without it where it may be left out. One with a matrix
 * (engine/product/ttm.h) from its request to the published result: planned,
 * with operands as the layout numbers them, and streamed on the device that was chosen, or without
 * it where it may be left out. A command and the library hold one each.
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
    /* Set by the caller. Of the request `gpu` and `hybrid` follow from `choice`; of the options the
     * form, the folder, `stop` and `progress` are set. */
    const struct slc_store *store;
    struct slc_plan_request request;
    struct slc_products_choice choice; /* of a device .. */
    struct slc_error refused;          /* .. and why it is not used, where it was to be */
    struct slc_ttm_options options;
    struct slc_fiber_order order; /* opened, and closed after the session */

    struct slc_plan plan;
    struct slc_matrix matrix;
    struct slc_labels labels[SLC_MAX_ORDER];
    struct slc_stream *stream;
    struct slc_ttm_report report;
    struct slc_stream_stats stats;
};

/*
 * Plans the product over the layout of `reader`. Where the device may be left out and does not
 * permit it, `refused` says why and the CPU multiplies. Errors: as slc_ttm_plan.
 */
enum slc_status slc_ttm_session_plan(struct slc_ttm_session *session,
                                     struct slc_reader *reader,
                                     struct slc_error *err) SLC_NODISCARD;

/* The store whose indices the open layout has: the given one, or the temporary one. */
const struct slc_store *slc_ttm_session_numbering(const struct slc_ttm_session *session);

/* Renumbers `matrix`, which the caller has filled, as the layout does, and finds the input's
 * numbers of the other modes. Errors: those of slc_relabel_rows and slc_relabel_names. */
enum slc_status slc_ttm_session_relabel(struct slc_ttm_session *session,
                                        struct slc_error *err) SLC_NODISCARD;

/* Streams the layout as planned, without the device where that may be and has to, and publishes the
 * result. Errors: those of slc_ttm_stream and of publishing. */
enum slc_status slc_ttm_session_multiply(struct slc_ttm_session *session,
                                         struct slc_error *err) SLC_NODISCARD;

/*
 * A product with vectors (engine/product/contract.h); `device`, for the chosen one, has why it was
 * not used where a plan finds no memory for both. Errors: as slc_contract.
 */
enum slc_status slc_contract_on_device(struct slc_contract_options *contract,
                                       struct slc_products_choice *choice,
                                       struct slc_device_products *device,
                                       struct slc_contract_report *report,
                                       struct slc_error *err) SLC_NODISCARD;

/* Releases everything but `order` and the store. Takes a session of zeros. */
void slc_ttm_session_close(struct slc_ttm_session *session);

#endif
