#include "tools/report/fiber_order.h"

#include "base/memory/memory.h"
#include "tools/progress/console.h"
#include "tools/progress/progress.h"
#include "tools/progress/signals.h"

struct sorting {
    const struct slc_store *store;
    const struct fiber_order_options *options;
    char *path; /* path of the temporary store; NULL: none */
    struct signals_abandon before;
};

static void remove_temporary_store(void *context)
{
    const struct sorting *sorting = context;

    if (slc_fiber_order_remove(slc_files_system(), sorting->path, NULL) != SLC_OK) {
        console_note("%s remains and can be removed", sorting->path);
    }
    if (sorting->before.function != NULL) {
        sorting->before.function(sorting->before.context);
    }
}

static void note_temporary_store(void *context, const char *path)
{
    struct sorting *sorting = context;

    if (!sorting->options->quiet) {
        console_note("%s has no layout with whole fibers of mode %u: sorting its nonzeros into %s, "
                     "which is removed at the end",
                     sorting->store->path, sorting->options->mode + 1, path);
    }
    sorting->path = slc_strdup(path);
    if (sorting->path != NULL) {
        sorting->before = signals_abandon_by(remove_temporary_store, sorting);
    }
}

enum slc_status fiber_order_open(struct slc_fiber_order *order,
                                 const struct slc_store *store,
                                 const struct fiber_order_options *options,
                                 struct slc_error *err)
{
    struct sorting sorting = {.store = store, .options = options};
    const struct slc_fiber_order_options request = {.mode = options->mode,
                                                    .memory_bytes = options->memory_bytes,
                                                    .threads = options->threads,
                                                    .output = options->output,
                                                    .temp_folder = options->temp_dir,
                                                    .sorting = note_temporary_store,
                                                    .progress =
                                                        options->quiet ? NULL : progress_phase,
                                                    .context = &sorting};
    const enum slc_status status = slc_fiber_order_open(order, store, &request, err);

    if (sorting.path != NULL) {
        (void)signals_abandon_by(sorting.before.function, sorting.before.context);
        console_clear_live();
        slc_free(sorting.path);
    }
    return status;
}

void fiber_order_close(struct slc_fiber_order *order)
{
    struct slc_error fault = SLC_ERROR_INIT;

    if (slc_fiber_order_close(order, &fault) != SLC_OK) {
        console_note("the temporary store remains and can be removed: %s", fault.message);
    }
}
