#include "tools/cmd/cpd/cpd_run.h"

#include "base/thread/team.h"
#include "convert/layout/relayout.h"
#include "tools/forecast/forecast.h"
#include "tools/progress/console.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"
#include "tools/session/layout_report.h"

#include <stdio.h>
#include <string.h>

/* Space for sorted layouts. */
struct space {
    uint64_t limit; /* value of --max-disk; 0: no limit */
    uint64_t used;  /* size of the layouts that were built or, in a dry run, would be built */
};

static bool fits(const struct space *space, uint64_t bytes)
{
    return space->limit == 0 || (bytes <= space->limit && space->used <= space->limit - bytes);
}

static void note_omitted(unsigned mode, uint64_t bytes, const struct space *space)
{
    struct format_text a, b;

    console_note("the layout sorted-%u was not built, because it takes %s and --max-disk leaves %s",
                 mode + 1, format_data(&a, (double)bytes),
                 format_data(&b, (double)(space->limit - space->used)));
}

/* Checks that the drive has space for a layout of this size. Errors: SLC_ERR_BUDGET. */
static enum slc_status check_drive(const char *store, uint64_t bytes, struct slc_error *err)
{
    struct forecast forecast = {.command = "cpd", .output = store, .final_bytes = bytes};

    return forecast_check_space(&forecast, err);
}

/* Builds the layout sorted by `mode`. A layout that turns out to exceed the space is removed. */
static enum slc_status build_layout(struct slc_relayout *layouts,
                                    const struct arguments *args,
                                    unsigned mode,
                                    struct space *space,
                                    struct slc_error *err)
{
    struct slc_sorted_report built;
    const enum slc_status status = slc_relayout_add(layouts, SLC_LAYOUT_SORTED, mode, &built, err);

    console_clear_live();
    SLC_TRY(status);
    if (!fits(space, built.summary.file_bytes)) {
        note_omitted(mode, built.summary.file_bytes, space);
        return slc_relayout_drop(layouts, SLC_LAYOUT_SORTED, mode, err);
    }
    space->used += built.summary.file_bytes;
    if (!args->quiet) {
        layout_print_built(layouts, SLC_LAYOUT_SORTED, mode, &built, args->verbose);
        (void)fflush(stdout);
    }
    return SLC_OK;
}

/* Builds each missing layout that fits in the space if it has the size of the first layout. */
static enum slc_status
build_missing(struct slc_relayout *layouts, const struct arguments *args, struct slc_error *err)
{
    const struct slc_manifest *manifest = &layouts->store.manifest;
    const uint64_t bytes = manifest->layouts[0].file_bytes;
    struct space space = {.limit = args->max_disk};
    struct format_text a;

    for (unsigned n = 0; n < manifest->order; n++) {
        if (slc_manifest_find(manifest, SLC_LAYOUT_SORTED, n) != NULL) {
            continue;
        }
        if (!fits(&space, bytes)) {
            note_omitted(n, bytes, &space);
            continue;
        }
        SLC_TRY(check_drive(layouts->store.path, bytes, err));
        if (!args->dry_run) {
            SLC_TRY(build_layout(layouts, args, n, &space, err));
            continue;
        }
        space.used += bytes;
        printf("sorted-%u: would be built first, with about %s; the plan below does not use it\n",
               n + 1, format_data(&a, (double)bytes));
    }
    return SLC_OK;
}

static bool lacks_layouts(const struct slc_manifest *manifest)
{
    for (unsigned n = 0; n < manifest->order; n++) {
        if (slc_manifest_find(manifest, SLC_LAYOUT_SORTED, n) == NULL) {
            return true;
        }
    }
    return false;
}

enum slc_status cpd_layouts_build(const struct arguments *args,
                                  const struct slc_files *files,
                                  struct slc_store *store,
                                  struct slc_error *err)
{
    const struct slc_stop stop = {.flag = signals_stop()};
    const struct slc_relayout_options options = {.files = files,
                                                 .store = store->path,
                                                 .memory_bytes = args->session.memory,
                                                 .workers = args->session.threads != 0
                                                                ? (unsigned)args->session.threads
                                                                : slc_team_default_workers(),
                                                 .reads_only = args->dry_run,
                                                 .stop = &stop,
                                                 .progress = progress_phase};
    struct slc_relayout layouts = {.lock = -1};
    struct slc_store grown;

    if (strcmp(args->session.layouts, "build") != 0) {
        return args->max_disk == 0
                   ? SLC_OK
                   : slc_fail(err, SLC_ERR_USAGE, "--max-disk needs --layouts build");
    }
    if (!lacks_layouts(&store->manifest)) {
        return SLC_OK; /* without a lock, so that the store may be read-only */
    }
    enum slc_status status = slc_relayout_open(&options, &layouts, err);

    SLC_THEN(status, build_missing(&layouts, args, err));
    slc_relayout_close(&layouts);
    SLC_TRY(status);
    SLC_TRY(slc_store_open_within(files, store->path, args->session.memory, &grown, err));
    slc_store_close(store);
    *store = grown;
    return SLC_OK;
}
