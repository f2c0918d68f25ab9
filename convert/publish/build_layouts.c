#include "convert/publish/build_layouts.h"

#include "base/error/log.h"
#include "convert/layout/relayout.h"

/* Adds a layout unless it exists. Sets *left_out if the memory is too small for it. */
static enum slc_status add_layout(struct slc_relayout *layouts,
                                  const struct slc_build_layout *requested,
                                  bool *left_out,
                                  struct slc_error *err)
{
    struct slc_error fault = SLC_ERROR_INIT;
    struct slc_sorted_report report;
    enum slc_status status = SLC_OK;

    *left_out = false;
    if (slc_manifest_find(&layouts->store.manifest, requested->kind, requested->mode) == NULL) {
        status = slc_relayout_add(layouts, requested->kind, requested->mode, &report, &fault);
    }
    if (status == SLC_ERR_BUDGET) {
        slc_log(SLC_LOG_NOTE, "the layout %s-%u is not built: %s", slc_layout_name(requested->kind),
                requested->mode + 1, fault.message);
        *left_out = true;
        return SLC_OK;
    }
    if (status != SLC_OK) {
        slc_error_pass(err, &fault);
    }
    return status;
}

enum slc_status slc_build_layouts(const struct slc_builder_options *options,
                                  const char *folder,
                                  struct slc_builder_report *report,
                                  struct slc_error *err)
{
    const struct slc_relayout_options open = {.files = options->files,
                                              .store = folder,
                                              /* The budget of the whole process. */
                                              .memory_bytes =
                                                  options->memory_bytes + options->caller_bytes,
                                              .workers = options->workers,
                                              .locked = true,
                                              .stop = options->stop,
                                              .progress = options->progress,
                                              .context = options->context};
    struct slc_relayout layouts = {.lock = -1};

    report->layout_count = 0;
    if (options->layout_count == 0) {
        return SLC_OK;
    }
    enum slc_status status = slc_relayout_open(&open, &layouts, err);
    for (unsigned i = 0; i < options->layout_count && status == SLC_OK; i++) {
        bool left_out;

        status = add_layout(&layouts, &options->layouts[i], &left_out, err);
        if (status == SLC_OK && !left_out) {
            report->layouts[report->layout_count++] = options->layouts[i];
        }
    }
    slc_relayout_close(&layouts);
    return status;
}
