/* See fiber_order.h. A temporary store is a product with no vectors, under keys of another order.
 */
#include "fiber_order.h"

#include "base/memory.h"
#include "base/team.h"
#include "console.h"
#include "convert/contract.h"
#include "cpu/fiber_dots.h"
#include "progress.h"
#include "signals.h"

#include <stdio.h>
#include <string.h>

/* Removes the store, finished or not. */
static void remove_made(void *path)
{
    const struct slc_files *files = slc_files_system();
    char part[4096];

    (void)snprintf(part, sizeof part, "%s.part", (const char *)path);
    if (slc_folder_remove(files, part, NULL) != SLC_OK ||
        slc_folder_remove(files, path, NULL) != SLC_OK) {
        console_note("%s is left over and can be removed", (const char *)path);
    }
}

static enum slc_status make_store(const struct fiber_order *order,
                                  const struct fiber_order_options *options,
                                  struct slc_error *err)
{
    const uint64_t length = order->store->manifest.dims[options->mode];
    const struct slc_contract_options contract = {
        .store = order->store->path,
        .output = order->path,
        .codec = SLC_CODEC_PACKED,
        .dots = slc_fiber_dots,
        .sort = true,
        .fibers = SLC_FIBERS_GIVEN,
        .run = {options->mode, slc_bits_for_length(length)},
        .memory_bytes = options->memory_bytes,
        .temp_folder = options->temp_dir,
        .threads = options->threads != 0 ? options->threads : slc_team_default_workers(),
        .overwrite = true, /* what a run that was killed has left */
        .progress = options->quiet ? NULL : progress_phase};
    struct slc_contract_report report;
    enum slc_status status;

    if (contract.run.bits > SLC_FIBER_BITS_MAX) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "%s keeps no fibers of mode %u together, which has more than 2^%d indices: "
                        "add the layout first (sluice layout %s --fiber %u)",
                        order->store->path, options->mode + 1, SLC_FIBER_BITS_MAX,
                        order->store->path, options->mode + 1);
    }
    if (!options->quiet) {
        console_note("%s has no layout with whole fibers of mode %u: sorting its nonzeros into %s, "
                     "which is removed at the end",
                     order->store->path, options->mode + 1, order->path);
    }
    signals_abandon_by(remove_made, order->path);
    status = slc_contract(&contract, &report, err);
    signals_abandon_by(NULL, NULL);
    console_settle();
    return status;
}

enum slc_status fiber_order_open(struct fiber_order *order,
                                 const struct slc_store *store,
                                 const struct fiber_order_options *options,
                                 struct slc_error *err)
{
    const uint64_t room = options->memory_bytes != 0 ? options->memory_bytes : UINT64_MAX;
    enum slc_status status;

    memset(order, 0, sizeof *order);
    order->store = store;
    status = slc_store_open_fibers(store, options->mode, room, &order->reader, err);
    if (status != SLC_OK || order->reader != NULL) {
        return status;
    }
    order->path = slc_strdup(options->temporary);
    if (order->path == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
    }
    status = make_store(order, options, err);
    if (status != SLC_OK) {
        slc_free(order->path);
        order->path = NULL;
        return status;
    }
    status = slc_store_open_within(slc_files_system(), order->path, room, &order->made, err);
    order->reader = order->made.reader;
    return status;
}

void fiber_order_close(struct fiber_order *order)
{
    if (order->path != NULL) {
        slc_store_close(&order->made);
        remove_made(order->path);
        slc_free(order->path);
    } else if (order->store != NULL) {
        slc_store_close_layout(order->store, order->reader);
    }
    memset(order, 0, sizeof *order);
}
