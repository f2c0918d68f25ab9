/* Opens, plans and closes the store and layouts of a streaming command. */
#include "tools/session/session.h"
#include "base/text/format.h"

#include "base/thread/team.h"
#include "engine/plan/plan_sizes.h"
#include "engine/planning/planning.h"
#include "engine/solve/cp.h"

#include <stdio.h>
#include <string.h>

const char *const session_io_choices[] = {"auto", "uring", "pread", "mmap", NULL};
const char *const session_schedule_choices[] = {"auto", "largest", "file", NULL};
const char *const session_precision_choices[] = {"f64", "f32", NULL};
const char *const session_pin_choices[] = {"auto", "never", "always", NULL};
const char *const session_layout_choices[] = {"auto", "blco", "sorted", NULL};
const char *const session_copies_choices[] = {"auto", "never", "always", NULL};
const char *const session_passes_choices[] = {"auto", "plain", "fused", NULL};

const char *const session_device_choices[] = {"auto", "cpu", "gpu", NULL};

enum slc_status session_open(struct slc_session *session,
                             const char *path,
                             uint64_t memory_bytes,
                             struct slc_error *err)
{
    return slc_store_open_within(slc_files_system(), path, memory_bytes, &session->store, err);
}

/* Returns the device kind of `text`; the option table admits only valid names. */
static enum slc_device_kind device_kind(const char *text)
{
    if (text == NULL || strcmp(text, "cpu") == 0) {
        return SLC_DEVICE_CPU;
    }
    return strcmp(text, "gpu") == 0 ? SLC_DEVICE_GPU : SLC_DEVICE_AUTO;
}

enum slc_status session_device_wish(const struct session_options *options,
                                    bool several,
                                    struct slc_device_wish *wish,
                                    struct slc_error *err)
{
    *wish = (struct slc_device_wish){.kind = device_kind(options->device),
                                     .memory_bytes = options->device_memory,
                                     .streams = (unsigned)options->streams,
                                     .count = options->devices.count,
                                     .chip = options->device_name,
                                     .plan_only = options->plan_only,
                                     .any_layouts = options->layouts == NULL};

    /* The option row admits no more numbers than fit. */
    memcpy(wish->number, options->devices.number, wish->count * sizeof wish->number[0]);
    return slc_split_wish_parse(options->split, several, &wish->split, err);
}

/* Sets the order of modes from the options, if given. */
static enum slc_status set_mode_order(const struct option_modes *given,
                                      unsigned order,
                                      struct slc_plan_request *request,
                                      struct slc_error *err)
{
    if (given->count != 0 && given->count != order) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "--mode-order lists %u modes; it must list each of the %u modes exactly once",
            given->count, order);
    }
    for (unsigned n = 0; n < given->count; n++) {
        if (given->mode[n] >= order) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--mode-order lists mode %u; the tensor has %u modes",
                            given->mode[n] + 1, order);
        }
        request->mode_order[n] = given->mode[n];
    }
    request->mode_order_set = given->count != 0;
    return SLC_OK;
}

enum slc_status session_plan(struct slc_session *session,
                             const struct session_options *options,
                             enum slc_operation operation,
                             unsigned mode,
                             uint32_t rank,
                             struct slc_error *err)
{
    const char *layouts = options->layouts;
    struct slc_device_wish wish;
    struct slc_plan_request request = {
        .operation = operation,
        .mode = mode,
        .rank = rank,
        .precision = options->precision[1] == '3' ? SLC_F32 : SLC_F64,
        .threads = (unsigned)options->threads,
        .deterministic = options->deterministic,
        .memory_bytes = options->memory,
        .read_limit = options->io_limit,
        .cache = !options->no_cache,
        .encoded = options->encoded,
        .layouts = SLC_LAYOUTS_BLCO,
        .copies = SLC_COPIES_NEVER,
        .passes = SLC_PASSES_PLAIN,
        .beside_bytes = slc_cp_holdout_bytes(
            session->store.manifest.order, session->store.manifest.nnz, options->holdout,
            options->threads != 0 ? (unsigned)options->threads : slc_team_default_workers()),
        .host_rows = options->host_rows,
    };

    request.beside_bytes = slc_plan_plus(request.beside_bytes, options->beside_bytes);
    if (options->solver != NULL) {
        SLC_TRY(slc_cp_plan_request(session->store.manifest.order, session->store.manifest.dims,
                                    options->solver, &request, err));
    }
    if (options->layouts != NULL && strcmp(options->layouts, "build") == 0) {
        layouts = "auto"; /* the caller has built the layouts */
    }
    if (!slc_io_parse(options->io, &request.io) ||
        !slc_schedule_parse(options->schedule, &request.schedule) ||
        !slc_pin_parse(options->pin, &request.pin) ||
        (layouts != NULL && !slc_layout_choice_parse(layouts, &request.layouts)) ||
        (options->copies != NULL && !slc_copies_parse(options->copies, &request.copies)) ||
        (options->passes != NULL && !slc_passes_parse(options->passes, &request.passes))) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--io %s, --schedule %s, --pin %s, --layouts %s, --copies %s or --passes "
                        "%s is not supported by this library",
                        options->io, options->schedule, options->pin,
                        layouts != NULL ? layouts : "blco",
                        options->copies != NULL ? options->copies : "never",
                        options->passes != NULL ? options->passes : "plain");
    }
    SLC_TRY(session_device_wish(options, true, &wish, err));
    SLC_TRY(set_mode_order(&options->mode_order, session->store.manifest.order, &request, err));
    session->maker = slc_gpu_maker();
    return slc_session_plan(session, &request, &wish, err);
}

enum slc_status session_plan_request(struct slc_session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err)
{
    if (session->layouts.count == 0) {
        session->layouts = slc_layouts_one(session->store.reader);
    }
    return slc_plan_make(&session->layouts, request, &session->plan, err);
}

void session_close(struct slc_session *session)
{
    slc_session_close(session);
    slc_store_close(&session->store);
}

const char *session_layout_name(struct format_text *out, enum slc_layout_kind layout, unsigned mode)
{
    const char *name = slc_layout_name(layout);

    if (layout == SLC_LAYOUT_BLCO) {
        (void)snprintf(out->text, sizeof out->text, "%s", name);
    } else {
        (void)snprintf(out->text, sizeof out->text, "%s-%u", name, mode + 1);
    }
    return out->text;
}

double session_bytes_per_nonzero(const struct slc_manifest *manifest)
{
    return slc_ratio((double)slc_manifest_file_bytes(manifest), (double)manifest->nnz);
}
