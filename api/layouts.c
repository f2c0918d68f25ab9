/* Public functions that describe and change layouts of a store and their stripes. */
#include "api/call.h"
#include "base/memory/memory.h"
#include "convert/layout/relayout.h"
#include "convert/layout/restripe.h"
#include "sluice/store.h"
#include "storage/file/block_file.h"
#include "storage/file/stripes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t sluice_store_layout_count(const struct sluice_store *store)
{
    return store != NULL ? store->store.manifest.layout_count : 0;
}

static enum slc_status no_path(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
}

static enum slc_status
no_layout(const struct sluice_store *store, uint32_t number, struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_USAGE,
                    "layout %u does not exist: the store has %u layouts, and layouts start at 0",
                    number, store->store.manifest.layout_count);
}

/* Opens the file of a layout, with the paths of its stripes. Ownership: release with
 * slc_block_file_close. */
static enum slc_status open_file(const struct sluice_store *store,
                                 uint32_t number,
                                 struct slc_block_file *file,
                                 struct slc_error *err)
{
    char *path = slc_path_join(store->store.path, store->store.manifest.layouts[number].file);
    const enum slc_status status =
        path == NULL ? no_path(err)
                     : slc_block_file_open(slc_files_or_system(store->store.files), path,
                                           "opening a block file", file, err);

    slc_free(path);
    return status;
}

/* Counts the stripes of a layout without opening the stripe files. */
static enum slc_status count_stripes(const struct sluice_store *store,
                                     const struct slc_store_layout *layout,
                                     uint32_t *count,
                                     struct slc_error *err)
{
    char *path = slc_path_join(store->store.path, layout->file);
    struct slc_stripe_list list = {.shape = {0}};
    bool found = false;
    const enum slc_status status =
        path == NULL ? no_path(err)
                     : slc_stripe_list_load(slc_files_or_system(store->store.files), path, &list,
                                            &found, err);

    *count = status == SLC_OK && found ? list.shape.count : 0;
    slc_stripe_list_clear(&list);
    slc_free(path);
    return status;
}

enum sluice_status sluice_store_get_stripe(const struct sluice_store *store,
                                           uint32_t number,
                                           uint32_t stripe,
                                           char *path,
                                           uint64_t path_bytes,
                                           uint64_t *ret_bytes,
                                           struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"path", API_ARRAY(path, path_bytes)});
    struct slc_block_file file = SLC_BLOCK_FILE_INIT;
    enum slc_status status = number < store->store.manifest.layout_count
                                 ? open_file(store, number, &file, err)
                                 : no_layout(store, number, err);

    if (status == SLC_OK && stripe >= file.shape.count) {
        status =
            slc_fail(err, SLC_ERR_USAGE,
                     "stripe %u does not exist: the layout has %u stripes, and stripes start at 0",
                     stripe, file.shape.count);
    }
    if (status == SLC_OK) {
        const char *found = file.parts[stripe].path;

        if (path_bytes > 0) {
            (void)snprintf(path, path_bytes, "%s", found);
        }
        if (ret_bytes != NULL) {
            *ret_bytes = strlen(found) + 1;
        }
    }
    slc_block_file_close(&file);
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_store_get_layout(const struct sluice_store *store,
                                           uint32_t number,
                                           struct sluice_layout_info *info,
                                           struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"store", store}, {"info", info});
    const struct slc_manifest *manifest = &store->store.manifest;
    struct sluice_layout_info known = {.mode = 0};

    if (number >= manifest->layout_count) {
        return api_return(no_layout(store, number, err), err, ret_err);
    }
    const struct slc_store_layout *layout = &manifest->layouts[number];
    known.kind = (enum sluice_layout_kind)layout->layout;
    known.mode = layout->layout_mode;
    known.codec = (enum sluice_codec)layout->codec;
    known.file_bytes = layout->file_bytes;
    known.block_count = layout->block_count;
    enum slc_status status = count_stripes(store, layout, &known.stripes, err);
    SLC_THEN(status, API_FILL_REPORT(sluice_layout_info, info, &known, err));
    return api_return(status, err, ret_err);
}

static enum slc_status check_kind(enum sluice_layout_kind kind, struct slc_error *err)
{
    if (kind != SLUICE_LAYOUT_SORTED && kind != SLUICE_LAYOUT_FIBER) {
        return slc_fail(
            err, SLC_ERR_USAGE,
            "layout kind %d cannot be added or dropped: only sorted and fiber layouts can",
            (int)kind);
    }
    return SLC_OK;
}

/* State of a call that changes the layouts of a store. */
struct changing {
    struct api_run run;
    struct slc_relayout layouts;
};

/* Opens and locks the store, and checks the mode. Ownership: the caller calls slc_relayout_close,
 * also after an error. */
static enum slc_status open_layouts(struct changing *changing,
                                    const char *path,
                                    uint32_t mode,
                                    const struct sluice_layout_options *options,
                                    struct slc_error *err)
{
    struct sluice_layout_options known = {0};
    struct slc_relayout_options open = {.store = path};
    struct slc_relayout *layouts = &changing->layouts;
    enum slc_status status = API_READ_OPTIONS(sluice_layout_options, &known, options, err);

    *layouts = (struct slc_relayout){.lock = -1};
    api_run_init(&changing->run, &known.run);
    API_SET_RUN(&open, &changing->run);
    open.workers = api_run_threads(&changing->run);
    SLC_THEN(status, slc_relayout_open(&open, layouts, err));
    SLC_TRY(status);
    if (mode >= layouts->store.manifest.order) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "mode %u does not exist: the tensor has %u modes, and modes start at 0",
                        mode, layouts->store.manifest.order);
    }
    return SLC_OK;
}

enum sluice_status sluice_layout_add(const char *path,
                                     enum sluice_layout_kind kind,
                                     uint32_t mode,
                                     const struct sluice_layout_options *options,
                                     struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"path", path});
    struct changing changing = {.layouts = {.lock = -1}};
    struct slc_relayout *layouts = &changing.layouts;
    struct slc_sorted_report report;
    enum slc_status status = check_kind(kind, err);

    SLC_THEN(status, open_layouts(&changing, path, mode, options, err));
    if (status == SLC_OK &&
        slc_manifest_find(&layouts->store.manifest, (enum slc_layout_kind)kind, mode) == NULL) {
        status = slc_relayout_add(layouts, (enum slc_layout_kind)kind, mode, &report, err);
    }
    slc_relayout_close(layouts);
    return api_return(status, err, ret_err);
}

/* Resolves folders to absolute paths. Ownership: the caller releases each path with free, also
 * after an error. */
static enum slc_status
resolve_folders(uint32_t count, const char *const *given, char **folders, struct slc_error *err)
{
    if (count == 0 || count > SLC_MAX_STRIPES) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%u folders for stripes: the number of folders must be 1 to %d", count,
                        (int)SLC_MAX_STRIPES);
    }
    for (uint32_t k = 0; k < count; k++) {
        if (given[k] == NULL) {
            return slc_fail(err, SLC_ERR_USAGE, "folders[%u] is NULL", k);
        }
        folders[k] = realpath(given[k], NULL);
        if (folders[k] == NULL) {
            return slc_fail_errno(err, errno, given[k], "looking for a folder for stripes");
        }
    }
    return SLC_OK;
}

/* Divides the layout into stripes in the folders, or moves the layout back into the store if count
 * is 0. */
static enum slc_status move_layout(const char *path,
                                   enum sluice_layout_kind kind,
                                   uint32_t mode,
                                   uint32_t count,
                                   char *const *folders,
                                   const struct sluice_layout_options *options,
                                   struct slc_error *err)
{
    struct changing changing = {.layouts = {.lock = -1}};
    bool changed;

    if ((unsigned)kind < SLUICE_LAYOUT_BLCO || (unsigned)kind > SLUICE_LAYOUT_FIBER) {
        return slc_fail(err, SLC_ERR_USAGE, "layout kind %d is not a value of its enumeration",
                        (int)kind);
    }
    enum slc_status status = open_layouts(&changing, path, mode, options, err);
    SLC_THEN(status, count > 0
                         ? slc_relayout_stripe(&changing.layouts, (enum slc_layout_kind)kind, mode,
                                               (const char *const *)folders, count, &changed, err)
                         : slc_relayout_gather(&changing.layouts, (enum slc_layout_kind)kind, mode,
                                               &changed, err));
    slc_relayout_close(&changing.layouts);
    return status;
}

enum sluice_status sluice_layout_stripe(const char *path,
                                        enum sluice_layout_kind kind,
                                        uint32_t mode,
                                        uint32_t count,
                                        const char *const *folders,
                                        const struct sluice_layout_options *options,
                                        struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"path", path}, {"folders", API_ARRAY(folders, count)});
    char *absolute[SLC_MAX_STRIPES] = {NULL};
    enum slc_status status = resolve_folders(count, folders, absolute, err);

    SLC_THEN(status, move_layout(path, kind, mode, count, absolute, options, err));
    for (unsigned k = 0; k < SLC_MAX_STRIPES; k++) {
        free(absolute[k]);
    }
    return api_return(status, err, ret_err);
}

enum sluice_status sluice_layout_gather(const char *path,
                                        enum sluice_layout_kind kind,
                                        uint32_t mode,
                                        const struct sluice_layout_options *options,
                                        struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"path", path});

    return api_return(move_layout(path, kind, mode, 0, NULL, options, err), err, ret_err);
}

enum sluice_status sluice_layout_drop(const char *path,
                                      enum sluice_layout_kind kind,
                                      uint32_t mode,
                                      struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"path", path});
    struct changing changing = {.layouts = {.lock = -1}};
    enum slc_status status = check_kind(kind, err);

    SLC_THEN(status, open_layouts(&changing, path, mode, NULL, err));
    SLC_THEN(status, slc_relayout_drop(&changing.layouts, (enum slc_layout_kind)kind, mode, err));
    slc_relayout_close(&changing.layouts);
    return api_return(status, err, ret_err);
}
