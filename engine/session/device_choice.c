#include "engine/session/device_choice.h"

#include "base/memory/checked.h"

#include <string.h>

enum slc_status slc_split_wish_parse(const char *text,
                                     bool several,
                                     struct slc_split_wish *split,
                                     struct slc_error *err)
{
    *split = (struct slc_split_wish){.given = text != NULL};
    if (text == NULL || (several && slc_split_parse(text, &split->between))) {
        return SLC_OK;
    }
    if (!several || slc_hybrid_is_split(text)) {
        return slc_hybrid_parse(text, &split->hybrid, err);
    }
    return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_SPLIT,
                          "unknown split '%s': use partitions or nnz (between several devices), or "
                          "static=F, adaptive or queue (between the CPU and a GPU)",
                          text);
}

/* Returns SLC_ERR_USAGE if the wish requests a split between CPU and GPU that is not possible. */
static enum slc_status
check_hybrid(const struct slc_device_wish *wish, bool deterministic, struct slc_error *err)
{
    struct slc_hybrid_text name;

    if (wish->split.hybrid.kind == SLC_HYBRID_NONE) {
        return SLC_OK;
    }
    (void)slc_hybrid_name(&wish->split.hybrid, &name);
    if (wish->kind == SLC_DEVICE_CPU) {
        return slc_fail_fields(
            err, SLC_ERR_USAGE, SLC_FIELD_SPLIT, SLC_FIELD_DEVICE,
            "the split '%s' shares the work between the CPU and a GPU: request the device 'gpu'",
            name.text);
    }
    if (wish->count > 1 || (wish->count == 1 && wish->kind != SLC_DEVICE_GPU)) {
        return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_SPLIT, SLC_FIELD_DEVICES,
                               "the split '%s' shares the work between the CPU and one GPU: name "
                               "no devices, or use the split 'partitions' or 'nnz' between several",
                               name.text);
    }
    if (deterministic) {
        return slc_fail_fields(
            err, SLC_ERR_USAGE, SLC_FIELD_SPLIT, SLC_FIELD_DETERMINISTIC,
            "with the split '%s' CPU and GPU add to the same sums, so the bits are not "
            "deterministic: omit the split, or do not request deterministic",
            name.text);
    }
    return SLC_OK;
}

/* Checks that the store has a sorted layout for every mode of the set `modes` (bit n: mode n). */
static enum slc_status
check_partitions(const struct slc_store *store, uint32_t modes, struct slc_error *err)
{
    for (unsigned n = 0; n < store->manifest.order; n++) {
        if ((modes >> n & 1U) != 0 &&
            slc_manifest_find(&store->manifest, SLC_LAYOUT_SORTED, n) == NULL) {
            return slc_fail_fields(
                err, SLC_ERR_USAGE, SLC_FIELD_SORTED_LAYOUT, SLC_FIELD_SPLIT,
                "devices divide the partitions of sorted layouts, but the store has no layout "
                "sorted by mode %u: build it, or divide nonzeros with the split 'nnz'",
                n + 1);
        }
    }
    return SLC_OK;
}

/* Requests the layouts whose blocks the devices divide. It is an error if the user has requested
 * other layouts. */
static enum slc_status choose_layouts(const struct slc_device_wish *wish,
                                      struct slc_plan_request *request,
                                      struct slc_error *err)
{
    const enum slc_layout_choice wanted =
        request->split == SLC_SPLIT_PARTITIONS ? SLC_LAYOUTS_SORTED : SLC_LAYOUTS_BLCO;

    if (!wish->any_layouts && request->layouts != SLC_LAYOUTS_AUTO && request->layouts != wanted) {
        return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_SPLIT, SLC_FIELD_LAYOUTS,
                               "devices divide %s (the split '%s'): request the layouts '%s'",
                               wanted == SLC_LAYOUTS_SORTED ? "the partitions of sorted layouts"
                                                            : "the blocks of blco",
                               slc_split_name(request->split), slc_layout_choice_name(wanted));
    }
    request->layouts = wanted;
    request->copies = request->copies == SLC_COPIES_AUTO ? SLC_COPIES_NEVER : request->copies;
    return SLC_OK;
}

enum slc_status slc_device_wish_apply(const struct slc_device_wish *wish,
                                      const struct slc_store *store,
                                      uint32_t modes,
                                      struct slc_plan_request *request,
                                      struct slc_error *err)
{
    const bool gpu = wish->kind == SLC_DEVICE_GPU;

    if (!gpu && wish->count > 1) {
        return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_DEVICES, SLC_FIELD_DEVICE,
                               "%u GPUs are named without the device 'gpu': request the device "
                               "'gpu', or give a number of CPU devices",
                               wish->count);
    }
    request->cpu_groups = !gpu && wish->count > 0 ? (unsigned)wish->number[0] : 0;
    SLC_TRY(check_hybrid(wish, request->deterministic, err));
    request->hybrid = wish->split.hybrid;
    request->split = wish->split.between;
    request->gpu_count = gpu && request->hybrid.kind == SLC_HYBRID_NONE ? wish->count : 0;
    if (request->cpu_groups == 0 && request->gpu_count == 0) {
        return !wish->split.given || request->hybrid.kind != SLC_HYBRID_NONE
                   ? SLC_OK
                   : slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_SPLIT, SLC_FIELD_DEVICES,
                                     "the split '%s' divides the work between devices, but there "
                                     "is only one: name several devices",
                                     slc_split_name(request->split));
    }
    enum slc_status status = choose_layouts(wish, request, err);
    return status == SLC_OK && request->layouts == SLC_LAYOUTS_SORTED
               ? check_partitions(store, modes, err)
               : status;
}

/* Returns SLC_ERR_USAGE if the request needs the CPU, with the reason in `why`. */
static enum slc_status check_gpu_fits(const struct slc_device_wish *wish,
                                      const struct slc_plan_request *request,
                                      struct slc_error *why)
{
    if (wish->count > 0 && wish->number[0] > 0) {
        return slc_fail_field(why, SLC_ERR_USAGE, SLC_FIELD_DEVICES,
                              "the work is divided between CPU devices");
    }
    if (request == NULL) {
        return SLC_OK;
    }
    if (request->copies == SLC_COPIES_ALWAYS) {
        return slc_fail_field(why, SLC_ERR_USAGE, SLC_FIELD_COPIES, "replicas need the CPU");
    }
    if (request->passes == SLC_PASSES_FUSED) {
        return slc_fail_field(why, SLC_ERR_USAGE, SLC_FIELD_PASSES,
                              "passes that update two modes need the CPU");
    }
    if (request->deterministic) {
        return slc_fail_field(
            why, SLC_ERR_USAGE, SLC_FIELD_DETERMINISTIC,
            "the bits of a deterministic run depend on its device, so the device must be named");
    }
    return SLC_OK;
}

/* Opens a device of the machine, or describes a device if a chip is named. */
static enum slc_status make_device(const struct slc_device_maker *maker,
                                   const char *chip,
                                   unsigned ordinal,
                                   uint64_t memory_bytes,
                                   struct slc_device **device,
                                   struct slc_error *err)
{
    return chip != NULL ? maker->describe(chip, memory_bytes, device, err)
                        : maker->create(ordinal, memory_bytes, device, err);
}

/* If `parts` devices are on the same GPU, sets *bytes to the memory that each of them may use: an
 * equal part. */
static enum slc_status part_of_memory(const struct slc_device_maker *maker,
                                      const char *chip,
                                      unsigned ordinal,
                                      unsigned parts,
                                      uint64_t *bytes,
                                      struct slc_error *err)
{
    struct slc_device_info info;
    struct slc_device *device;

    if (parts == 1) {
        return SLC_OK;
    }
    SLC_TRY(make_device(maker, chip, ordinal, *bytes, &device, err));
    device->ops->info(device, &info);
    device->ops->destroy(device);
    *bytes = slc_max_u64(info.free_bytes / parts, 1);
    return SLC_OK;
}

void slc_device_set_drop(struct slc_device_set *set)
{
    for (unsigned d = set->count; d > 0; d--) {
        set->devices[d - 1]->ops->destroy(set->devices[d - 1]);
    }
    for (unsigned d = 0; d < set->count; d++) {
        bool again = set->described;

        for (unsigned e = 0; e < d; e++) {
            again = again || set->ordinals[e] == set->ordinals[d];
        }
        if (!again) {
            set->maker->release(set->ordinals[d]);
        }
    }
    set->count = 0;
}

/* Creates the named devices, or the first device if none are named. If a chip is named, devices are
 * described but not opened. */
static enum slc_status make_devices(const struct slc_device_wish *wish,
                                    const char *chip,
                                    struct slc_device_set *set,
                                    struct slc_error *err)
{
    const unsigned wanted = wish->count > 0 ? wish->count : 1;
    enum slc_status status = SLC_OK;

    set->described = chip != NULL;
    for (unsigned d = 0; d < wanted && status == SLC_OK; d++) {
        uint64_t bytes = wish->memory_bytes;
        unsigned parts = 0;

        set->ordinals[d] = (unsigned)wish->number[d];
        for (unsigned e = 0; e < wanted; e++) {
            parts += wish->number[e] == wish->number[d];
        }
        status = part_of_memory(set->maker, chip, set->ordinals[d], parts, &bytes, err);
        SLC_THEN(status,
                 make_device(set->maker, chip, set->ordinals[d], bytes, &set->devices[d], err));
        set->count += status == SLC_OK;
    }
    if (status != SLC_OK) {
        slc_device_set_drop(set);
    }
    return status;
}

/* Returns SLC_ERR_USAGE if GPU options contradict the other options. */
static enum slc_status check_wish(const struct slc_device_wish *wish, struct slc_error *err)
{
    const bool none = wish->kind == SLC_DEVICE_CPU;

    if (none && (wish->streams != 0 || wish->memory_bytes != 0)) {
        return slc_fail_fields(
            err, SLC_ERR_USAGE, wish->streams != 0 ? SLC_FIELD_STREAMS : SLC_FIELD_DEVICE_MEMORY,
            SLC_FIELD_DEVICE,
            "%s needs a GPU: request the device 'gpu' or 'auto', or omit the option",
            wish->streams != 0 ? "a number of streams" : "a limit of device memory");
    }
    if (wish->chip != NULL && wish->kind != SLC_DEVICE_GPU) {
        return slc_fail_fields(
            err, SLC_ERR_USAGE, SLC_FIELD_DEVICE_NAME, SLC_FIELD_DEVICE,
            "a device name describes a GPU to plan for: request the device 'gpu' or omit the name");
    }
    if (wish->chip != NULL && !wish->plan_only) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_DEVICE_NAME,
                              "a device name describes a GPU to plan for, which cannot compute: "
                              "omit the name, or request only the plan");
    }
    return SLC_OK;
}

/* Called if a GPU is requested but cannot be used. Describes a device if only a plan is requested
 * and the memory size is given; otherwise returns the error. */
static enum slc_status describe_instead(const struct slc_device_wish *wish,
                                        struct slc_device_set *set,
                                        const struct slc_error *refused,
                                        struct slc_error *why,
                                        struct slc_error *err)
{
    const bool describes = wish->plan_only && refused->status == SLC_ERR_SYSTEM;

    if (describes && wish->memory_bytes != 0) {
        *why = *refused;
        return make_devices(wish, SLC_DEVICE_CHIP, set, err);
    }
    return slc_fail_fields(
        err, refused->status, describes ? SLC_FIELD_DEVICE_NAME : SLC_FIELD_DEVICE,
        describes ? SLC_FIELD_DEVICE_MEMORY : refused->field, "device gpu: %s%s", refused->message,
        describes ? "; to plan for a GPU that this machine lacks, give its name or its memory size"
                  : "");
}

enum slc_status slc_device_set_make(const struct slc_device_wish *wish,
                                    const struct slc_device_maker *maker,
                                    const struct slc_plan_request *request,
                                    struct slc_device_set *set,
                                    struct slc_error *why,
                                    struct slc_error *err)
{
    const bool insists = wish->kind == SLC_DEVICE_GPU;
    struct slc_error refused = SLC_ERROR_INIT;

    *set = (struct slc_device_set){.maker = maker};
    slc_error_clear(why);
    enum slc_status status = check_wish(wish, err);
    if (status != SLC_OK || wish->kind == SLC_DEVICE_CPU) {
        return status;
    }
    if (!insists && check_gpu_fits(wish, request, why) != SLC_OK) {
        return SLC_OK;
    }
    if (wish->chip != NULL) {
        return make_devices(wish, wish->chip, set, err);
    }
    status = make_devices(wish, NULL, set, &refused);
    if (status == SLC_OK) {
        return SLC_OK;
    }
    if (insists) {
        return describe_instead(wish, set, &refused, why, err);
    }
    *why = refused;
    return SLC_OK;
}

enum slc_status slc_products_choose(const struct slc_device_wish *wish,
                                    const struct slc_device_maker *maker,
                                    struct slc_products_choice *choice,
                                    struct slc_error *err)
{
    memset(choice, 0, sizeof *choice);
    if (wish->split.given && wish->split.hybrid.kind == SLC_HYBRID_NONE) {
        return slc_hybrid_parse(slc_split_name(wish->split.between), &choice->hybrid, err);
    }
    SLC_TRY(check_hybrid(wish, false, err));
    choice->hybrid = wish->split.hybrid;
    enum slc_status status =
        slc_device_set_make(wish, maker, NULL, &choice->set, &choice->refused, err);
    choice->device = status == SLC_OK && choice->set.count > 0 ? choice->set.devices[0] : NULL;
    choice->optional = wish->kind == SLC_DEVICE_AUTO;
    return status;
}

void slc_products_drop(struct slc_products_choice *choice)
{
    slc_device_set_drop(&choice->set);
    choice->device = NULL;
}
