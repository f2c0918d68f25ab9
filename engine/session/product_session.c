#include "engine/session/product_session.h"

#include "base/hash.h"
#include "engine/plan/layouts.h"
#include "engine/planning/planning.h"
#include "engine/stream/relabel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Continues without the device, and records the reason `refused`. */
static void drop_device(struct slc_ttm_session *session, const struct slc_error *refused)
{
    slc_products_drop(&session->choice);
    session->refused = *refused;
}

enum slc_status slc_ttm_session_plan(struct slc_ttm_session *session,
                                     struct slc_reader *reader,
                                     struct slc_error *err)
{
    const struct slc_layouts layouts = slc_layouts_one(reader);
    struct slc_plan_request *request = &session->request;
    struct slc_ttm_division *division = &session->options.division;
    struct slc_error refused = SLC_ERROR_INIT;

    if (session->options.part != NULL) {
        SLC_TRY(slc_ttm_plan(&layouts, request, &session->plan, division, err));
        session->plan.iteration_bytes = session->part.bytes;
        return SLC_OK;
    }
    request->gpu = session->choice.device;
    request->hybrid = session->choice.hybrid;
    if (request->gpu != NULL && session->choice.optional) {
        if (slc_ttm_plan(&layouts, request, &session->plan, division, &refused) == SLC_OK) {
            return SLC_OK;
        }
        drop_device(session, &refused);
        request->gpu = NULL;
    }
    return slc_ttm_plan(&layouts, request, &session->plan, division, err);
}

enum slc_status slc_ttm_session_open_part(struct slc_ttm_session *session,
                                          struct slc_part_choice choice,
                                          struct slc_error *err)
{
    const struct slc_store *store = session->store;
    const uint64_t memory = session->request.memory_bytes;
    const unsigned mode = session->request.mode;
    const uint32_t all = (UINT32_C(1) << store->manifest.order) - 1;

    if (session->choice.device != NULL || store->manifest.order == 1) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "only the CPU computes parts, and only of tensors of two modes or more");
    }
    session->order.store = store;
    SLC_TRY(slc_store_open_fibers(store, mode, memory != 0 ? memory : UINT64_MAX,
                                  &session->order.reader, err));
    if (session->order.reader == NULL) {
        return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_FIBER_LAYOUT,
                              "%s has no layout with whole fibers of mode %u, which parts need: "
                              "add the layout first",
                              store->path, mode + 1);
    }
    SLC_TRY(slc_part_open(&session->part, session->order.reader, all & ~(UINT32_C(1) << mode),
                          choice, err));
    session->options.part = &session->part;
    return SLC_OK;
}

const struct slc_store *slc_ttm_session_numbering(const struct slc_ttm_session *session)
{
    return session->order.path != NULL ? &session->order.made : session->store;
}

enum slc_status slc_ttm_session_relabel(struct slc_ttm_session *session, struct slc_error *err)
{
    const struct slc_store *store = slc_ttm_session_numbering(session);
    const unsigned mode = session->request.mode;
    const struct slc_matrix *matrix = &session->matrix;

    if (session->options.part != NULL) {
        session->operands = slc_hash64(matrix->buffer.data, matrix->rows * matrix->pitch *
                                                                slc_value_bytes(matrix->type));
    }
    SLC_TRY(slc_relabel_rows(store, mode, SLC_ROWS_OF_STORE, &session->matrix, err));
    return slc_relabel_names(store, mode, session->labels, session->options.index, err);
}

/* Streams the layout as planned, and returns the unpublished result in *pair. */
static enum slc_status
stream_layout(struct slc_ttm_session *session, struct slc_npy_pair **pair, struct slc_error *err)
{
    const struct slc_layout_info *info = slc_reader_info(session->order.reader);
    const struct slc_layouts layouts = slc_layouts_one(session->order.reader);
    struct slc_ttm_options *options = &session->options;

    options->job.order = info->order;
    options->job.mode = session->request.mode;
    options->job.fiber_tiles =
        info->keys.run.bits > 0 && info->keys.run.mode == session->request.mode;
    options->job.matrix = &session->matrix;
    options->workers = session->plan.threads;
    options->device = session->choice.device;
    options->plan = &session->plan;
    slc_stream_close(session->stream);
    session->stream = NULL;
    SLC_TRY(slc_stream_open(NULL, &layouts, &session->plan, &session->stream, err));
    enum slc_status status = slc_ttm_stream(session->stream, options, pair, &session->report, err);
    slc_stream_stats(session->stream, &session->stats);
    return status;
}

/* Removes the record of a part that an earlier run left in the folder of the result. */
static enum slc_status remove_record(const struct slc_ttm_session *session, struct slc_error *err)
{
    const struct slc_files *files = slc_files_or_system(session->options.files);
    char *path = slc_path_join(session->options.folder, SLC_PART_RECORD_NAME);

    SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
    const int rc = files->unlink(files->self, path);
    const enum slc_status status =
        rc == -ENOENT ? SLC_OK : slc_check_call(rc, err, path, "removing an old record");
    slc_free(path);
    return status;
}

/* Writes the record of the part into the folder of the result. */
static enum slc_status write_record(const struct slc_ttm_session *session, struct slc_error *err)
{
    char lines[128];
    const struct slc_part_product product = {.operation = "ttm",
                                             .store = session->store,
                                             .reader = session->order.reader,
                                             .modes = UINT32_C(1) << session->request.mode,
                                             .operands = session->operands,
                                             .options = lines};
    struct slc_part_record record;

    (void)snprintf(lines, sizeof lines, "kernel=%s\ncolumns=%" PRIu32 "\nbits=%u\nother modes=%u\n",
                   slc_ttm_form_name(session->options.job.form), session->matrix.cols,
                   8 * slc_value_bytes(session->matrix.type), session->options.job.order - 1);
    slc_part_record_set(&record, &product, &session->part);
    return slc_part_record_write(&record, session->options.files, session->options.folder,
                                 "/" SLC_PART_RECORD_NAME, err);
}

/* Publishes the result, and the record of a part after it. */
static enum slc_status publish_pair(const struct slc_ttm_session *session,
                                    struct slc_npy_pair *pair,
                                    struct slc_error *err)
{
    SLC_TRY(remove_record(session, err));
    SLC_TRY(slc_npy_pair_publish(pair, err));
    return session->options.part != NULL ? write_record(session, err) : SLC_OK;
}

enum slc_status slc_ttm_session_multiply(struct slc_ttm_session *session, struct slc_error *err)
{
    struct slc_npy_pair *pair = NULL;
    struct slc_error fault = SLC_ERROR_INIT;
    enum slc_status status = stream_layout(session, &pair, &fault);

    if (status != SLC_OK && session->report.device_refused && session->choice.optional) {
        drop_device(session, &fault);
        slc_error_clear(&fault);
        status = slc_ttm_session_plan(session, session->order.reader, &fault);
        SLC_THEN(status, stream_layout(session, &pair, &fault));
    }
    if (status == SLC_OK) {
        status = publish_pair(session, pair, err);
    } else if (err != NULL) {
        *err = fault;
    }
    slc_npy_pair_destroy(pair);
    return status;
}

enum slc_status slc_contract_on_device(struct slc_contract_options *contract,
                                       struct slc_products_choice *choice,
                                       struct slc_device_products *device,
                                       struct slc_contract_report *report,
                                       struct slc_error *err)
{
    struct slc_tile_products table = slc_device_products_table(device);
    struct slc_error refused = SLC_ERROR_INIT;

    contract->products = choice->device != NULL ? &table : NULL;
    enum slc_status status = slc_contract(contract, report, &refused);
    if (status == SLC_ERR_BUDGET && report->scan_seconds == 0 && choice->device != NULL &&
        choice->optional) {
        slc_products_drop(choice);
        contract->products = NULL;
        device->why = refused;
        return slc_contract(contract, report, err);
    }
    if (status != SLC_OK && err != NULL) {
        *err = refused;
    }
    return status;
}

void slc_ttm_session_close(struct slc_ttm_session *session)
{
    slc_stream_close(session->stream);
    slc_products_drop(&session->choice);
    slc_matrix_destroy(&session->matrix);
    slc_part_close(&session->part);
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        slc_labels_destroy(&session->labels[n]);
    }
}
