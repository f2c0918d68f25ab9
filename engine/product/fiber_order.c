/* Opens layouts with whole fibers of a mode. A temporary store is made by slc_contract. Without
 * vectors, slc_contract only sorts the nonzeros in the order of the fibers. */
#include "engine/product/fiber_order.h"

#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/build/resume/build_folder.h"
#include "engine/product/contract.h"
#include "storage/file/folder_lock.h"

#include <string.h>

/* Returns the path without trailing slashes, plus `suffix`, or NULL if there is not enough memory.
 * Ownership: release with slc_free. */
static char *path_with_suffix(const char *path, const char *suffix, struct slc_error *err)
{
    size_t length = strlen(path);
    char *joined = slc_calloc(length + strlen(suffix) + 1, 1);

    if (joined == NULL) {
        (void)slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
        return NULL;
    }
    while (length > 1 && path[length - 1] == '/') {
        length--;
    }
    memcpy(joined, path, length);
    memcpy(joined + length, suffix, strlen(suffix));
    return joined;
}

enum slc_status
slc_fiber_order_remove(const struct slc_files *files, const char *path, struct slc_error *err)
{
    char *part = path_with_suffix(path, ".part", err);

    if (part == NULL) {
        return SLC_ERR_MEMORY;
    }
    enum slc_status status = slc_folder_remove(files, part, err);
    slc_free(part);
    SLC_TRY(status);
    return slc_folder_remove(files, path, err);
}

enum slc_status
slc_fiber_order_check(const struct slc_store *store, unsigned mode, struct slc_error *err)
{
    if (slc_bits_for_length(store->manifest.dims[mode]) > SLC_FIBER_BITS_MAX) {
        return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_FIBER_LAYOUT,
                              "%s has no layout with whole fibers of mode %u, which has more than "
                              "2^%d indices: add the layout first",
                              store->path, mode + 1, SLC_FIBER_BITS_MAX);
    }
    return SLC_OK;
}

static enum slc_status make_store(const struct slc_fiber_order *order,
                                  const struct slc_fiber_order_options *options,
                                  struct slc_error *err)
{
    const uint64_t length = order->store->manifest.dims[options->mode];
    const struct slc_contract_options contract = {
        .files = order->store->files,
        .store = order->store->path,
        .output = order->path,
        .codec = SLC_CODEC_PACKED,
        .sort = true,
        .fibers = SLC_FIBERS_GIVEN,
        .run = {options->mode, slc_bits_for_length(length)},
        .memory_bytes = options->memory_bytes,
        .temp_folder = options->temp_folder,
        .threads = options->threads != 0 ? options->threads : slc_team_default_workers(),
        .stop = options->stop,
        .progress = options->progress,
        .context = options->context};
    struct slc_contract_report report;

    SLC_TRY(slc_fiber_order_check(order->store, options->mode, err));
    /* Removes a temporary store that a killed run left, even if the store is incomplete. */
    SLC_TRY(slc_build_leftover_remove(slc_files_or_system(order->store->files), order->path, err));
    if (options->sorting != NULL) {
        options->sorting(options->context, order->path);
    }
    return slc_contract(&contract, &report, err);
}

/* Opens the temporary store, and locks it until it is closed, so that no other run replaces it. */
static enum slc_status
open_temporary(struct slc_fiber_order *order, uint64_t memory_bytes, struct slc_error *err)
{
    const struct slc_files *files = slc_files_or_system(order->store->files);
    bool taken;
    enum slc_status status = slc_folder_lock(
        files, order->path,
        "another run is writing this output: wait until it is done, or name another output",
        &order->lock, &taken, err);

    SLC_THEN(status, slc_store_open_within(order->store->files, order->path, memory_bytes,
                                           &order->made, err));
    if (status != SLC_OK && !taken) {
        /* The first error is returned, so an error of removing is ignored. */
        const enum slc_status left = slc_folder_remove(files, order->path, NULL);

        (void)left;
    }
    if (status != SLC_OK) {
        slc_folder_unlock(files, &order->lock);
    }
    return status;
}

enum slc_status slc_fiber_order_open(struct slc_fiber_order *order,
                                     const struct slc_store *store,
                                     const struct slc_fiber_order_options *options,
                                     struct slc_error *err)
{
    const uint64_t memory_left = options->memory_bytes != 0 ? options->memory_bytes : UINT64_MAX;

    memset(order, 0, sizeof *order);
    order->store = store;
    enum slc_status status =
        slc_store_open_fibers(store, options->mode, memory_left, &order->reader, err);
    if (status != SLC_OK || order->reader != NULL) {
        return status;
    }
    order->path = path_with_suffix(options->output, ".fibers.tmp", err);
    if (order->path == NULL) {
        return SLC_ERR_MEMORY;
    }
    status = make_store(order, options, err);
    if (status == SLC_OK) {
        status = open_temporary(order, memory_left, err);
    } else {
        /* Even if make_store failed, the temporary store may exist. The first error is returned, so
         * an error of removing is ignored. */
        const enum slc_status left =
            slc_build_leftover_remove(slc_files_or_system(store->files), order->path, NULL);

        (void)left;
    }
    if (status != SLC_OK) {
        slc_free(order->path);
        memset(order, 0, sizeof *order);
        return status;
    }
    order->reader = order->made.reader;
    return SLC_OK;
}

enum slc_status slc_fiber_order_close(struct slc_fiber_order *order, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    if (order->path != NULL) {
        const struct slc_files *files = order->store->files;

        slc_store_close(&order->made);
        /* A folder PATH.part is not removed, because it belongs to another run. */
        status = slc_folder_remove(files, order->path, err);
        slc_folder_unlock(files, &order->lock);
        slc_free(order->path);
    } else if (order->store != NULL) {
        slc_store_close_layout(order->store, order->reader);
    }
    memset(order, 0, sizeof *order);
    return status;
}
