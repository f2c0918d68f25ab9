/*
 * Public API: further layouts of a store.
 */
#include "api/internal.h"
#include "convert/relayout.h"

void sluice_layout_options_init(struct sluice_layout_options *options, uint64_t bytes)
{
    static const struct sluice_layout_options defaults = {.struct_bytes = sizeof defaults};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

uint32_t sluice_store_layouts(const struct sluice_store *store)
{
    return store->store.manifest.layout_count;
}

enum slc_status sluice_store_layout(const struct sluice_store *store,
                                    uint32_t number,
                                    struct sluice_layout_info *info,
                                    struct slc_error *err)
{
    const struct slc_manifest *manifest = &store->store.manifest;
    struct sluice_layout_info known = {.struct_bytes = sizeof known};
    const struct slc_store_layout *layout;

    if (number >= manifest->layout_count) {
        return slc_fail(err, SLC_ERR_USAGE, "layout %u of a store that has %u, from 0 on", number,
                        manifest->layout_count);
    }
    layout = &manifest->layouts[number];
    known.kind = (enum sluice_layout)layout->layout;
    known.mode = layout->layout_mode;
    known.codec = (enum sluice_codec)layout->codec;
    known.file_bytes = layout->file_bytes;
    known.block_count = layout->block_count;
    return api_give_report(info, &known, sizeof known, "sluice_layout_info", err);
}

static enum slc_status check_kind(enum sluice_layout kind, struct slc_error *err)
{
    if (kind != SLUICE_LAYOUT_SORTED && kind != SLUICE_LAYOUT_FIBER) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "layout kind %d: sorted and fiber layouts are added and dropped",
                        (int)kind);
    }
    return SLC_OK;
}

/* The store, locked; its modes reach to `mode` at least. */
static enum slc_status open_store(const char *path,
                                  uint32_t mode,
                                  const struct slc_relayout_options *options,
                                  struct slc_relayout *layouts,
                                  struct slc_error *err)
{
    struct slc_relayout_options open = *options;
    enum slc_status status;

    open.store = path;
    status = slc_relayout_open(&open, layouts, err);
    if (status == SLC_OK && mode >= layouts->store.manifest.order) {
        status = slc_fail(err, SLC_ERR_USAGE, "mode %u of a tensor of %u modes, from 0 on", mode,
                          layouts->store.manifest.order);
    }
    return status;
}

enum slc_status sluice_layout_add(const char *path,
                                  enum sluice_layout kind,
                                  uint32_t mode,
                                  const struct sluice_layout_options *options,
                                  struct slc_error *err)
{
    struct sluice_layout_options known;
    struct slc_relayout layouts = {.lock = -1};
    struct slc_sorted_report report;
    struct slc_stop stop = {NULL, 0};
    struct slc_relayout_options open = {.stop = &stop};
    enum slc_status status = check_kind(kind, err);

    sluice_layout_options_init(&known, sizeof known);
    if (status == SLC_OK) {
        status = api_take_options(&known, sizeof known, options, "sluice_layout_options", err);
    }
    if (status != SLC_OK) {
        return status;
    }
    stop.flag = known.stop;
    open.progress = known.progress;
    open.context = known.context;
    open.memory_bytes = api_memory_bytes(known.memory_bytes);
    open.workers = api_threads(known.threads);
    status = open_store(path, mode, &open, &layouts, err);
    if (status == SLC_OK &&
        slc_manifest_find(&layouts.store.manifest, (enum slc_layout_kind)kind, mode) == NULL) {
        status = slc_relayout_add(&layouts, (enum slc_layout_kind)kind, mode, &report, err);
    }
    slc_relayout_close(&layouts);
    return status;
}

enum slc_status
sluice_layout_drop(const char *path, enum sluice_layout kind, uint32_t mode, struct slc_error *err)
{
    const struct slc_relayout_options open = {.memory_bytes = api_memory_bytes(0), .workers = 1};
    struct slc_relayout layouts = {.lock = -1};
    enum slc_status status = check_kind(kind, err);

    if (status != SLC_OK) {
        return status;
    }
    status = open_store(path, mode, &open, &layouts, err);
    if (status == SLC_OK) {
        status = slc_relayout_drop(&layouts, (enum slc_layout_kind)kind, mode, err);
    }
    slc_relayout_close(&layouts);
    return status;
}
