/* Cleans up after interrupted changes of stripes. The stripes of a list at P.stripes or P.unstripe
 * are removed, unless P is a list of the same stripes: P.stripes has then already become P, or P
 * has not been replaced yet. This rule is correct after every crash. */
#include "convert/layout/restripe.h"

#include "base/error/log.h"
#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "storage/file/stripes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { SECTOR_BYTES = 512 };

char *slc_restripe_path(const char *path, const char *suffix)
{
    const size_t bytes = strlen(path) + strlen(suffix) + 1;
    char *text = slc_malloc(bytes);

    if (text != NULL) {
        (void)snprintf(text, bytes, "%s%s", path, suffix);
    }
    return text;
}

static enum slc_status
remove_file(const struct slc_files *files, const char *path, struct slc_error *err)
{
    int code = files->unlink(files->self, path);

    return code < 0 && code != -ENOENT ? slc_fail_errno(err, -code, path, "removing the file")
                                       : SLC_OK;
}

/* Returns true if the open file is the expected stripe. A power failure may have zeroed sectors of
 * its header; the remaining sectors must equal the header of this stripe. */
static bool is_expected_stripe(const struct slc_files *files,
                               int fd,
                               const struct slc_stripe_shape *shape,
                               unsigned ordinal)
{
    static const uint8_t nothing[SECTOR_BYTES];
    uint8_t page[SLC_PAGE_BYTES] = {0}, header[SLC_PAGE_BYTES];
    struct slc_error ignored = SLC_ERROR_INIT;
    struct slc_file_stat stat;
    bool expected = true;

    if (files->stat_fd(files->self, fd, &stat) < 0 || stat.kind != 'f' ||
        slc_file_read_at(files, fd, NULL, page, slc_min_u64(stat.bytes, sizeof page), 0,
                         &ignored) != SLC_OK) {
        return false;
    }
    slc_stripe_header_encode(shape, ordinal, header);
    for (size_t at = 0; at < sizeof page; at += SECTOR_BYTES) {
        expected = expected && (memcmp(page + at, header + at, SECTOR_BYTES) == 0 ||
                                memcmp(page + at, nothing, SECTOR_BYTES) == 0);
    }
    return expected;
}

/* Syncs the folder of a stripe that an earlier run removed; warns if the folder is missing. */
static enum slc_status
sync_gone(const struct slc_files *files, const char *path, struct slc_error *err)
{
    char *folder = slc_path_parent(path);
    enum slc_status status = slc_check_memory(folder != NULL, err, "for a path");
    int code = 0;

    if (status == SLC_OK && (code = files->sync_folder(files->self, folder)) == -ENOENT) {
        slc_log(SLC_LOG_WARNING,
                "%s does not exist; if the folder was moved, a stripe in it remains", folder);
    } else if (code < 0) {
        status = slc_fail_errno(err, -code, folder, "syncing the folder");
    }
    slc_free(folder);
    return status;
}

/* Removes the file at `path` if it is the expected stripe. Any other file is kept. */
static enum slc_status remove_stripe(const struct slc_files *files,
                                     const char *path,
                                     const struct slc_stripe_shape *shape,
                                     unsigned ordinal,
                                     struct slc_error *err)
{
    int fd = files->open(files->self, path, O_RDONLY | SLC_OPEN_OWN, 0);
    enum slc_status status = SLC_OK;

    if (fd < 0) {
        return fd == -ENOENT ? sync_gone(files, path, err)
                             : slc_fail_errno(err, -fd, path, "opening a stripe to remove it");
    }
    bool expected = is_expected_stripe(files, fd, shape, ordinal);
    (void)files->close(files->self, fd);
    if (expected) {
        status = remove_file(files, path, err);
        return status == SLC_OK ? slc_name_sync(files, path, err) : status;
    }
    slc_log(SLC_LOG_WARNING, "%s is not the stripe that its name indicates, so it is kept", path);
    return SLC_OK;
}

/* Removes all stripes of a list that is, or was, at `path`, if this store owns them. */
static enum slc_status remove_stripes(const struct slc_files *files,
                                      const char *path,
                                      const struct slc_stripe_list *list,
                                      struct slc_error *err)
{
    bool own;
    enum slc_status status = slc_stripe_is_own(files, path, &list->shape, &own, err);

    if (status == SLC_OK && !own) {
        slc_stripe_note_kept(path, list);
        return SLC_OK;
    }
    for (unsigned k = 0; k < list->shape.count && status == SLC_OK; k++) {
        char *stripe = slc_stripe_path(&list->shape, path, list->folders[k], k);

        status = slc_check_memory(stripe != NULL, err, "for a path");
        SLC_THEN(status, remove_stripe(files, stripe, &list->shape, k, err));
        slc_free(stripe);
    }
    return status;
}

enum slc_status slc_restripe_clean_list(const struct slc_files *files,
                                        const char *path,
                                        const char *suffix,
                                        struct slc_error *err)
{
    char *left = slc_restripe_path(path, suffix);
    struct slc_stripe_list list = {.shape = {0}}, own = {.shape = {0}};
    bool found = false, has_own = false;
    enum slc_status status = slc_check_memory(left != NULL, err, "for a path");
    SLC_THEN(status, slc_stripe_list_load(files, left, &list, &found, err));

    if (status == SLC_OK && found) {
        status = slc_stripe_list_load(files, path, &own, &has_own, err);
        if (status == SLC_OK && (!has_own || own.shape.id != list.shape.id)) {
            status = remove_stripes(files, path, &list, err);
        }
        SLC_THEN(status, remove_file(files, left, err));
        SLC_THEN(status, slc_name_sync(files, left, err));
    }
    slc_stripe_list_clear(&list);
    slc_stripe_list_clear(&own);
    slc_free(left);
    return status;
}

/* A file in the store's folder that an interrupted change of stripes left. */
struct leftover {
    char name[256];
    const char *suffix;
    bool list; /* true for a list of stripes */
};

static int find_leftover(void *context, const char *name, char kind)
{
    /* Lists come first, because they name the stripes that must be removed. */
    static const char *const suffixes[] = {SLC_STRIPES_COMING, SLC_STRIPES_LEAVING,
                                           SLC_STRIPES_GATHERED, ".stripes.tmp", ".unstripe.tmp"};
    struct leftover *leftover = context;
    const size_t length = strlen(name);

    for (size_t i = 0; kind == 'f' && i < sizeof suffixes / sizeof suffixes[0]; i++) {
        const size_t end = strlen(suffixes[i]);

        if (length > end + 4 && length < sizeof leftover->name &&
            strcmp(name + length - end, suffixes[i]) == 0 &&
            memcmp(name + length - end - 4, ".blk", 4) == 0) {
            memcpy(leftover->name, name, length + 1);
            leftover->suffix = suffixes[i];
            leftover->list = i < 2;
            return 1;
        }
    }
    return 0;
}

enum slc_status
slc_restripe_clean(const struct slc_files *files, const char *store, struct slc_error *err)
{
    /* Each round removes one file. The limit ends the loop if the removal has no effect. */
    const unsigned rounds_max = 1000;
    enum slc_status status = SLC_OK;

    for (unsigned round = 0; round < rounds_max && status == SLC_OK; round++) {
        struct leftover leftover = {.suffix = NULL};
        const int code = files->list_folder(files->self, store, find_leftover, &leftover);

        SLC_TRY(slc_check_call(code, err, store, "listing the store's folder"));
        if (leftover.suffix == NULL) {
            return SLC_OK;
        }
        char *path = slc_path_join(store, leftover.name);
        SLC_TRY(slc_check_memory(path != NULL, err, "for a path"));
        if (leftover.list) {
            path[strlen(path) - strlen(leftover.suffix)] = '\0';
            status = slc_restripe_clean_list(files, path, leftover.suffix, err);
            path[strlen(path)] = leftover.suffix[0];
        }
        /* slc_restripe_clean_list has removed a list; any other file is unusable. */
        SLC_THEN(status, remove_file(files, path, err));
        slc_free(path);
    }
    return status;
}

enum slc_status
slc_restripe_discard(const struct slc_files *files, const char *path, struct slc_error *err)
{
    struct slc_stripe_list list = {.shape = {0}};
    bool found = false;
    enum slc_status status = slc_stripe_list_load(files, path, &list, &found, err);
    char *left = NULL;

    if (status == SLC_OK && found) {
        int code;

        left = slc_restripe_path(path, SLC_STRIPES_LEAVING);
        if (left == NULL) {
            status = slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
        } else if ((code = files->rename(files->self, path, left)) < 0) {
            status = slc_fail_errno(err, -code, path, "renaming a list of stripes");
        } else {
            status = slc_name_sync(files, path, err);
        }
        SLC_THEN(status, slc_restripe_clean_list(files, path, SLC_STRIPES_LEAVING, err));
    }
    slc_stripe_list_clear(&list);
    slc_free(left);
    return status;
}
