/* Opening, planning and closing what a streaming command holds; see session.h. */
#include "session.h"

#include "accelerator.h"
#include "base/memory.h"
#include "base/team.h"
#include "cpu/cpu.h"
#include "engine/accelerator.h"
#include "engine/accelerators.h"
#include "engine/solve/cp_als.h"

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

enum slc_status session_open(struct session *session,
                             const char *path,
                             uint64_t memory_bytes,
                             struct slc_error *err)
{
    return slc_store_open_within(slc_files_system(), path, memory_bytes, &session->store, err);
}

enum slc_status session_share(const struct session_options *options,
                              struct slc_share_wish *wish,
                              struct slc_error *err)
{
    struct slc_error refused = SLC_ERROR_INIT;

    *wish = (struct slc_share_wish){SLC_SHARE_NONE, 0};
    if (options->split == NULL || !slc_share_known(options->split)) {
        return SLC_OK;
    }
    if (slc_share_parse(options->split, wish, &refused) != SLC_OK) {
        return slc_fail(err, SLC_ERR_USAGE, "--split: %s", refused.message);
    }
    if (options->device == NULL || strcmp(options->device, "cpu") == 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--split %s shares the work between the CPU and a GPU: add --device gpu",
                        options->split);
    }
    if (options->devices.count > 1 ||
        (options->devices.count == 1 && strcmp(options->device, "gpu") != 0)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--split %s shares the work between the CPU and one GPU: leave --devices "
                        "out, or divide partitions or nnz between several",
                        options->split);
    }
    if (options->deterministic) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--split %s has CPU and GPU add up parts of the same sums, whose bits "
                        "depend on who had which: leave it or --deterministic out",
                        options->split);
    }
    return SLC_OK;
}

/* Whether the store has the partitions of every mode of the set `modes`. */
static enum slc_status
check_partitions(const struct slc_store *store, uint32_t modes, struct slc_error *err)
{
    for (unsigned n = 0; n < store->manifest.order; n++) {
        if ((modes >> n & 1U) != 0 &&
            slc_manifest_find(&store->manifest, SLC_LAYOUT_SORTED, n) == NULL) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "devices divide the partitions of sorted layouts, and the store has "
                            "none sorted by mode %u: make it (sluice layout %s --sorted %u), or "
                            "divide nonzeros (--split nnz)",
                            n + 1, store->path, n + 1);
        }
    }
    return SLC_OK;
}

/* Which layouts devices divide; those that were asked for have to be these. */
static enum slc_status choose_for_devices(const struct slc_store *store,
                                          const struct session_options *options,
                                          uint32_t modes,
                                          struct slc_plan_request *request,
                                          struct slc_error *err)
{
    const struct option_counts *named = &options->devices;
    const bool gpu = options->device != NULL && strcmp(options->device, "gpu") == 0;
    enum slc_layout_choice wanted;
    enum slc_status status;

    if (!gpu && named->count > 1) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--devices names %u GPUs, but they are not asked for: add --device gpu, or "
                        "give the number of devices of the CPU",
                        named->count);
    }
    request->devices = !gpu && named->count > 0 ? (unsigned)named->number[0] : 0;
    status = session_share(options, &request->share, err);
    if (status != SLC_OK) {
        return status;
    }
    request->accelerator_count = gpu && request->share.kind == SLC_SHARE_NONE ? named->count : 0;
    if (options->split != NULL && request->share.kind == SLC_SHARE_NONE &&
        !slc_split_parse(options->split, &request->split)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--split: '%s' is none of partitions, nnz (between several devices), "
                        "static=F, adaptive, queue (between the CPU and a GPU)",
                        options->split);
    }
    if (request->devices == 0 && request->accelerator_count == 0) {
        return options->split == NULL || request->share.kind != SLC_SHARE_NONE
                   ? SLC_OK
                   : slc_fail(err, SLC_ERR_USAGE,
                              "--split %s divides between devices, and there is one: name several "
                              "with --devices",
                              options->split);
    }
    wanted = request->split == SLC_SPLIT_PARTITIONS ? SLC_LAYOUTS_SORTED : SLC_LAYOUTS_BLCO;
    if (options->layouts != NULL && request->layouts != SLC_LAYOUTS_AUTO &&
        request->layouts != wanted) {
        return slc_fail(err, SLC_ERR_USAGE, "devices divide %s (--split %s): ask for --layouts %s",
                        wanted == SLC_LAYOUTS_SORTED ? "the partitions of sorted layouts"
                                                     : "the blocks of blco",
                        slc_split_name(request->split), slc_layout_choice_name(wanted));
    }
    request->layouts = wanted;
    request->copies = request->copies == SLC_COPIES_AUTO ? SLC_COPIES_NEVER : request->copies;
    return wanted == SLC_LAYOUTS_SORTED ? check_partitions(store, modes, err) : SLC_OK;
}

/* The order of modes that the options give, where they do. */
static enum slc_status take_mode_order(const struct option_modes *given,
                                       unsigned order,
                                       struct slc_plan_request *request,
                                       struct slc_error *err)
{
    if (given->count != 0 && given->count != order) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "--mode-order names %u modes; the tensor has %u, each must stand in it once",
            given->count, order);
    }
    for (unsigned n = 0; n < given->count; n++) {
        if (given->mode[n] >= order) {
            return slc_fail(err, SLC_ERR_USAGE, "--mode-order names mode %u; the tensor has %u",
                            given->mode[n] + 1, order);
        }
        request->mode_order[n] = given->mode[n];
    }
    request->mode_order_set = given->count != 0;
    return SLC_OK;
}

static void drop_accelerators(struct session *session)
{
    accelerator_drop(&session->wish.options, session->accelerators, session->accelerator_count);
    session->accelerator_count = 0;
    session->accelerator = NULL;
}

unsigned session_plan_devices(const struct slc_plan *plan)
{
    return plan->devices > 0 ? plan->devices : plan->request.accelerator_count;
}

/* Plans for the device that is asked for; with `auto` for the CPU where that plan cannot be. */
static enum slc_status
plan_for_device(struct session *session, struct slc_plan_request *request, struct slc_error *err)
{
    const struct session_options *options = &session->wish.options;
    const bool cache = request->cache;
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status;

    status = accelerator_choose(options, session->accelerators, &session->accelerator_count,
                                &session->no_accelerator, err);
    session->accelerator = session->accelerator_count > 0 ? session->accelerators[0] : NULL;
    if (status != SLC_OK) {
        return status;
    }
    if (session->accelerator == NULL) {
        request->share.kind = SLC_SHARE_NONE; /* there is nobody to share with */
        return slc_plan_choose(&session->layouts, request, &session->plan, err);
    }
    request->accelerator = session->accelerator;
    request->accelerators = session->accelerators;
    request->streams = (unsigned)options->streams;
    /* One pass would fill a cache that nobody reads, in memory that is registered with the device.
     */
    request->cache = cache && request->operation != SLC_OP_MTTKRP;
    status = slc_plan_choose(&session->layouts, request, &session->plan, &refused);
    if (status == SLC_OK) {
        return SLC_OK;
    }
    if (options->device[0] == 'a') {
        drop_accelerators(session);
        request->cache = cache;
        session->no_accelerator = refused;
        request->accelerator = NULL;
        request->streams = 0;
        request->share.kind = SLC_SHARE_NONE;
        return slc_plan_choose(&session->layouts, request, &session->plan, err);
    }
    *err = refused;
    return status;
}

/* Plans what is wished for, for a process with that many bytes resident; 0: as it is now. */
static enum slc_status
plan_wish(struct session *session, uint64_t resident_bytes, struct slc_error *err)
{
    const struct session_wish *wish = &session->wish;
    const struct session_options *options = &wish->options;
    struct slc_plan_request request = {
        .operation = wish->operation,
        .mode = wish->mode,
        .rank = wish->rank,
        .precision = options->precision[1] == '3' ? SLC_F32 : SLC_F64,
        .threads = (unsigned)options->threads,
        .deterministic = options->deterministic,
        .memory_bytes = options->memory,
        .resident_bytes = resident_bytes,
        .read_limit = options->io_limit,
        .cache = !options->no_cache,
        .layouts = SLC_LAYOUTS_BLCO,
        .copies = SLC_COPIES_NEVER,
        .passes = SLC_PASSES_PLAIN,
        .beside_bytes = slc_cp_holdout_bytes(
            session->store.manifest.order, session->store.manifest.nnz, options->holdout,
            options->threads != 0 ? (unsigned)options->threads : slc_team_default_workers()),
    };
    const uint32_t modes = wish->operation == SLC_OP_CPD ? UINT32_MAX : UINT32_C(1) << wish->mode;
    enum slc_status status;

    if (!slc_io_parse(options->io, &request.io) ||
        !slc_schedule_parse(options->schedule, &request.schedule) ||
        !slc_pin_parse(options->pin, &request.pin) ||
        (options->layouts != NULL &&
         !slc_layout_choice_parse(options->layouts, &request.layouts)) ||
        (options->copies != NULL && !slc_copies_parse(options->copies, &request.copies)) ||
        (options->passes != NULL && !slc_passes_parse(options->passes, &request.passes))) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "--io %s, --schedule %s, --pin %s, --layouts %s, --copies %s or --passes %s is not "
            "known to this library",
            options->io, options->schedule, options->pin,
            options->layouts != NULL ? options->layouts : "blco",
            options->copies != NULL ? options->copies : "never",
            options->passes != NULL ? options->passes : "plain");
    }
    status = take_mode_order(&options->mode_order, session->store.manifest.order, &request, err);
    if (status != SLC_OK) {
        return status;
    }
    status = choose_for_devices(&session->store, options, modes, &request, err);
    if (status != SLC_OK) {
        return status;
    }
    slc_layouts_close(&session->layouts);
    status = slc_layouts_open(&session->store, request.layouts, modes,
                              options->memory != 0 ? options->memory : UINT64_MAX,
                              &session->layouts, err);
    if (status != SLC_OK) {
        return status;
    }
    session->resident_bytes = resident_bytes != 0 ? resident_bytes : slc_memory_resident();
    return plan_for_device(session, &request, err);
}

enum slc_status session_plan(struct session *session,
                             const struct session_options *options,
                             enum slc_operation operation,
                             unsigned mode,
                             uint32_t rank,
                             struct slc_error *err)
{
    drop_accelerators(session);
    session->wish = (struct session_wish){*options, operation, mode, rank};
    return plan_wish(session, 0, err);
}

enum slc_status session_plan_request(struct session *session,
                                     const struct slc_plan_request *request,
                                     struct slc_error *err)
{
    if (session->layouts.count == 0) {
        session->layouts = slc_layouts_one(session->store.reader);
    }
    return slc_plan_make(&session->layouts, request, &session->plan, err);
}

static enum slc_status start(struct session *session, struct slc_error *err)
{
    const unsigned count = session->plan.devices > 0 ? session->plan.devices : 1;
    enum slc_status status;

    slc_placement_enter(&session->plan.placement);
    status = slc_stream_open(slc_files_system(), &session->layouts, &session->plan,
                             &session->stream, err);
    if (status == SLC_OK && session->plan.request.accelerator_count > 0) {
        return slc_accelerators_open(&session->layouts, &session->plan, session->stream,
                                     &session->group, err);
    }
    if (status == SLC_OK && session->plan.request.accelerator != NULL) {
        status = slc_accelerator_open(session->accelerator, &session->layouts, &session->plan,
                                      session->stream, err);
        session->accelerator_open = status == SLC_OK;
        if (session->plan.request.share.kind == SLC_SHARE_NONE) {
            return status;
        }
    }
    for (unsigned d = 0; d < count && status == SLC_OK; d++) {
        status = slc_cpu_backend_create(&session->devices[d], err);
    }
    session->backend = session->devices[0];
    return status;
}

enum slc_status session_start(struct session *session, struct slc_error *err)
{
    const bool can_do_without = session->accelerator != NULL &&
                                session->wish.options.device != NULL &&
                                session->wish.options.device[0] == 'a';
    struct slc_error refused = SLC_ERROR_INIT;
    enum slc_status status = start(session, &refused);

    if (status == SLC_OK) {
        return SLC_OK;
    }
    /* Without a stream it is not the device that failed. */
    if (!can_do_without || session->stream == NULL) {
        *err = refused;
        return status;
    }
    session_stop(session);
    drop_accelerators(session);
    session->wish.options.device = NULL;
    if (session->plan.request.share.kind != SLC_SHARE_NONE) {
        session->wish.options.split = NULL; /* there is nobody to share with */
    }
    session->wish.options.device_memory = 0;
    session->wish.options.streams = 0;
    status = plan_wish(session, 0, err);
    session->no_accelerator = refused;
    return status == SLC_OK ? start(session, err) : status;
}

void session_stop(struct session *session)
{
    for (unsigned d = 0; d < SLC_MAX_DEVICES; d++) {
        if (session->devices[d] != NULL) {
            session->devices[d]->ops->destroy(session->devices[d]);
            session->devices[d] = NULL;
        }
    }
    session->backend = NULL;
    slc_accelerators_close(session->group);
    session->group = NULL;
    if (session->accelerator_open) {
        slc_accelerator_close(session->accelerator, session->stream);
        session->accelerator_open = false;
    }
    slc_stream_close(session->stream);
    session->stream = NULL;
    slc_placement_leave();
}

enum slc_status
session_start_in_order(struct session *session, const unsigned *mode_order, struct slc_error *err)
{
    struct option_modes *given = &session->wish.options.mode_order;
    /* What has been opened since is in the plan; but the driver of a device is not. */
    const bool device = session->accelerator != NULL || session->no_accelerator.status != SLC_OK;
    enum slc_status status;

    session_stop(session);
    drop_accelerators(session);
    given->count = session->store.manifest.order;
    memcpy(given->mode, mode_order, given->count * sizeof given->mode[0]);
    status = plan_wish(session, device ? 0 : session->resident_bytes, err);
    return status == SLC_OK ? session_start(session, err) : status;
}

void session_close(struct session *session)
{
    session_stop(session);
    drop_accelerators(session);
    slc_layouts_close(&session->layouts);
    slc_store_close(&session->store);
}

uint64_t session_store_bytes(const struct slc_manifest *manifest)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < manifest->layout_count; i++) {
        bytes += manifest->layouts[i].file_bytes;
    }
    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        bytes += manifest->permutations[i].file_bytes;
    }
    for (unsigned i = 0; i < manifest->names_count; i++) {
        bytes += manifest->names[i].file_bytes;
    }
    return bytes;
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
    return manifest->nnz > 0 ? (double)session_store_bytes(manifest) / (double)manifest->nnz : 0;
}
