#include "convert/build/resume/build_folder.h"

#include "base/error/log.h"
#include "base/memory/limits.h"
#include "base/memory/memory.h"
#include "convert/build/resume/state_file.h"
#include "storage/file/folder_lock.h"
#include "storage/file/stripes.h"
#include "storage/manifest/path_guard.h"
#include "storage/manifest/store.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char another_run[] =
    "another run is writing this output: wait until it ends, or name another output";

static char *with_suffix(const char *path, size_t length, const char *suffix)
{
    size_t bytes = length + strlen(suffix) + 1;
    char *text = slc_malloc(bytes);

    if (text != NULL) {
        snprintf(text, bytes, "%.*s%s", (int)length, path, suffix);
    }
    return text;
}

/* Sets *kind to 'f' (file), 'd' (folder), 'o' (other), or 0 if `path` does not exist. */
static enum slc_status
kind_of(const struct slc_files *files, const char *path, char *kind, struct slc_error *err)
{
    struct slc_file_stat stat;
    int code = files->stat_path(files->self, path, &stat);

    *kind = 0;
    if (code == -ENOENT) {
        return SLC_OK;
    }
    SLC_TRY(slc_check_call(code, err, path, "looking for an existing output"));
    *kind = stat.kind;
    return SLC_OK;
}

struct census {
    char foreign[256]; /* name of the first file that no build writes; "": none */
    char striped[256]; /* name of the first list of stripes in other folders; "": none */
    bool store;        /* there is a manifest */
    const struct slc_files *files;
    const char *path;
};

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
    bool found = false;

    for (size_t i = 0; i < count; i++) {
        found = found || strcmp(name, list[i]) == 0;
    }
    return found;
}

/* Returns true if `name` consists of the prefix, a mode number from 1, and one of the suffixes. */
static bool
is_numbered(const char *name, const char *prefix, const char *const *suffixes, size_t suffix_count)
{
    size_t length = strlen(prefix);
    bool found = false;

    for (unsigned mode = 1; mode <= SLC_MAX_ORDER && strncmp(name, prefix, length) == 0; mode++) {
        char digits[16];
        int count = snprintf(digits, sizeof digits, "%u", mode);

        found = found || (strncmp(name + length, digits, (size_t)count) == 0 &&
                          is_one_of(name + length + count, suffixes, suffix_count));
    }
    return found;
}

/* Returns true for files of permutations, names and additional layouts, finished or not. */
static bool is_of_a_mode(const char *name)
{
    static const char *const numbers[] = {".bin", ".bin.tmp"};
    static const char *const layouts[] = {".blk",          ".blk.tmp",         ".blk.tmp.journal",
                                          ".blk.stripes",  ".blk.unstripe",    ".blk.stripes.tmp",
                                          ".blk.gathered", ".blk.unstripe.tmp"};

    return is_numbered(name, "perm-", numbers, sizeof numbers / sizeof numbers[0]) ||
           is_numbered(name, "names-", numbers, sizeof numbers / sizeof numbers[0]) ||
           is_numbered(name, "sorted-", layouts, sizeof layouts / sizeof layouts[0]) ||
           is_numbered(name, "fiber-", layouts, sizeof layouts / sizeof layouts[0]);
}

/* Returns true if file `name` of the folder is a valid list of stripes in other folders that this
 * folder owns, or whose owner is unknown. */
static bool is_list_of_stripes(const struct census *census, const char *name)
{
    struct slc_stripe_list list = {.shape = {0}};
    struct slc_error ignored = SLC_ERROR_INIT;
    char *path = strstr(name, ".blk") != NULL ? slc_path_join(census->path, name) : NULL;
    bool found = false;

    if (path != NULL &&
        slc_stripe_list_load(census->files, path, &list, &found, &ignored) != SLC_OK) {
        found = false;
    }
    if (found && list.shape.owner.inode != 0) {
        bool own;

        if (slc_stripe_is_own(census->files, path, &list.shape, &own, &ignored) == SLC_OK && !own) {
            slc_stripe_note_kept(path, &list);
            found = false;
        }
    }
    slc_stripe_list_clear(&list);
    slc_free(path);
    return found;
}

static int count_name(void *context, const char *name, char kind)
{
    static const char *const files[] = {SLC_BLCO_NAME,
                                        SLC_BLCO_NAME ".tmp",
                                        SLC_MANIFEST_NAME,
                                        SLC_MANIFEST_NAME ".tmp",
                                        SLC_SPILL_NAME,
                                        SLC_BLCO_NAME ".journal",
                                        SLC_PUSHED_STATE_NAME,
                                        SLC_PUSHED_STATE_NAME ".tmp",
                                        SLC_SORTED_STATE_NAME,
                                        SLC_SORTED_STATE_NAME ".tmp",
                                        SLC_COMPLETE_STATE_NAME,
                                        SLC_COMPLETE_STATE_NAME ".tmp",
                                        SLC_BLCO_NAME ".stripes",
                                        SLC_BLCO_NAME ".stripes.tmp",
                                        SLC_BLCO_NAME ".unstripe",
                                        SLC_BLCO_NAME ".unstripe.tmp",
                                        SLC_BLCO_NAME ".gathered"};
    static const char *const folders[] = {SLC_RELABELLED_NAME, SLC_RELABELLED_NAME ".part"};
    struct census *census = context;
    bool known = kind == 'f'
                     ? is_one_of(name, files, sizeof files / sizeof files[0]) || is_of_a_mode(name)
                     : kind == 'd' && is_one_of(name, folders, sizeof folders / sizeof folders[0]);

    if (kind == 'f' && census->striped[0] == '\0' && is_list_of_stripes(census, name)) {
        (void)snprintf(census->striped, sizeof census->striped, "%s", name);
    }
    census->store = census->store || strcmp(name, SLC_MANIFEST_NAME) == 0;
    if (!known && census->foreign[0] == '\0') {
        (void)snprintf(census->foreign, sizeof census->foreign, "%s", name);
    }
    return 0;
}

static enum slc_status count_names(const struct slc_files *files,
                                   const char *path,
                                   struct census *census,
                                   struct slc_error *err)
{
    *census = (struct census){.files = files, .path = path};
    int code = files->list_folder(files->self, path, count_name, census);
    SLC_TRY(slc_check_call(code, err, path, "listing the folder"));
    return SLC_OK;
}

/* Locks the folder that an interrupted run left at `path`. *lock is -1 if `path` does not exist. A
 * file that no run writes is an error. */
static enum slc_status
lock_leftover(const struct slc_files *files, const char *path, int *lock, struct slc_error *err)
{
    struct census census;
    bool taken;
    char kind;
    enum slc_status status = kind_of(files, path, &kind, err);

    *lock = -1;
    if (status != SLC_OK || kind == 0) {
        return status;
    }
    if (kind == 'd') {
        status = count_names(files, path, &census, err);
        SLC_TRY(status);
    }
    if (kind != 'd' || census.foreign[0] != '\0') {
        return slc_fail_file(err, SLC_ERR_IO, path,
                             "a folder with this name exists and contains files that no conversion "
                             "wrote: move it elsewhere");
    }
    return slc_folder_lock(files, path, another_run, lock, &taken, err);
}

enum slc_status
slc_build_leftover_remove(const struct slc_files *files, const char *path, struct slc_error *err)
{
    int lock;
    enum slc_status status = lock_leftover(files, path, &lock, err);

    if (status == SLC_OK && lock >= 0) {
        slc_log(SLC_LOG_NOTE, "removing %s, the leftover of an interrupted run", path);
        /* Another run may have just renamed the folder. Sync the new name, so that after a power
         * failure the folder does not reappear, empty, under its old name. */
        status = slc_name_sync(files, path, err);
        SLC_THEN(status, slc_folder_remove(files, path, err));
    }
    slc_folder_unlock(files, &lock);
    return status;
}

/* Moves the store at `old`, locked by this run, to `output`, which does not exist. */
static enum slc_status
move_back(const struct slc_files *files, const char *old, const char *output, struct slc_error *err)
{
    struct census census = {.store = false};
    int lock = -1;
    int code;
    enum slc_status status = lock_leftover(files, old, &lock, err);

    if (status == SLC_OK && lock >= 0) {
        status = count_names(files, old, &census, err);
    }
    if (status == SLC_OK && census.store) {
        slc_log(SLC_LOG_NOTE, "moving %s back: a run was interrupted while it replaced the store",
                old);
        code = files->rename(files->self, old, output);
        status = code < 0 ? slc_fail_errno(err, -code, output, "moving the store back")
                          : slc_name_sync(files, output, err);
    }
    slc_folder_unlock(files, &lock);
    return status;
}

enum slc_status
slc_build_folder_restore(const struct slc_files *files, const char *output, struct slc_error *err)
{
    size_t length = strlen(output);
    char *old = slc_malloc(length + sizeof ".old");
    char kind = 0;

    SLC_TRY(slc_check_memory(old != NULL, err, "for a path"));
    files = slc_files_or_system(files);
    while (length > 1 && output[length - 1] == '/') {
        length--;
    }
    memcpy(old, output, length);
    memcpy(old + length, ".old", sizeof ".old");
    enum slc_status status = kind_of(files, output, &kind, err);
    if (status == SLC_OK && kind == 0) {
        status = move_back(files, old, output, err);
    }
    slc_free(old);
    return status;
}

/* Creates and locks OUT.slc.part. Between these two steps, another run may treat the folder as left
 * by an interrupted run, and lock or remove it. */
static enum slc_status make_part(struct slc_build_folder *folder, struct slc_error *err)
{
    int code = folder->files->make_folder(folder->files->self, folder->part);
    bool taken;

    if (code == -EEXIST) { /* another run has just created it */
        return slc_fail_file(err, SLC_ERR_IO, folder->part, "%s", another_run);
    }
    SLC_TRY(slc_check_call(code, err, folder->part, "creating the output folder"));
    enum slc_status status =
        slc_folder_lock(folder->files, folder->part, another_run, &folder->lock, &taken, err);
    folder->made = !taken; /* a folder of another run must not be removed */
    return status;
}

/* Locks the store that will be replaced, so that `sluice layout` does not add a layout to it: the
 * layout would be lost, or be mixed with files of the new store. */
static enum slc_status lock_output(struct slc_build_folder *folder, struct slc_error *err)
{
    bool taken;
    char kind;
    enum slc_status status = kind_of(folder->files, folder->output, &kind, err);

    if (status != SLC_OK || kind != 'd' || folder->output_lock >= 0) {
        return status;
    }
    return slc_folder_lock(folder->files, folder->output,
                           "another run is changing this store, which would be replaced: wait "
                           "until it ends, or name another output",
                           &folder->output_lock, &taken, err);
}

static enum slc_status check_output(const struct slc_build_folder *folder, struct slc_error *err)
{
    struct census census = {.store = false};
    char kind;
    enum slc_status status = kind_of(folder->files, folder->output, &kind, err);

    if (status != SLC_OK || kind == 0) {
        return status;
    }
    if (!folder->overwrite) {
        status = slc_fail_field(err, SLC_ERR_IO, SLC_FIELD_OVERWRITE,
                                "the output exists: remove it, or replace it");
    } else {
        if (kind == 'd') {
            status = count_names(folder->files, folder->output, &census, err);
        }
        if (status == SLC_OK && !census.store) {
            status = slc_fail(
                err, SLC_ERR_IO,
                "the output exists and is not a store, so it is not overwritten: remove it first");
        } else if (status == SLC_OK && census.foreign[0] != '\0') {
            status = slc_fail(err, SLC_ERR_IO,
                              "the store is not overwritten, because it contains %s, which is not "
                              "a file of a store: move that file elsewhere first",
                              census.foreign);
        } else if (status == SLC_OK && census.striped[0] != '\0') {
            status = slc_fail_field(err, SLC_ERR_IO, SLC_FIELD_GATHER_LAYOUT,
                                    "the store is not replaced, because %s has stripes in other "
                                    "folders, which would remain: gather it first",
                                    census.striped);
        }
    }
    slc_error_locate_file(err, folder->output);
    return status;
}

struct link_search {
    const char *name;
    bool found;
};

static int find_link(void *context, const char *name, char kind)
{
    struct link_search *search = context;

    search->found = strcmp(name, search->name) == 0 && kind == 'o';
    return search->found;
}

/* Rejects a symbolic link at OUT.slc: renaming a folder over it would fail, but only after
 * everything is written. Lists the parent folder, because stat would follow the link. */
static enum slc_status reject_link(const struct slc_build_folder *folder, struct slc_error *err)
{
    const char *slash = strrchr(folder->output, '/');
    struct link_search search = {slash == NULL ? folder->output : slash + 1, false};
    char *parent = slc_path_parent(folder->output);

    SLC_TRY(slc_check_memory(parent != NULL, err, "for the path of a folder"));
    int code = folder->files->list_folder(folder->files->self, parent, find_link, &search);
    slc_free(parent);
    if (search.found) {
        return slc_fail_file(err, SLC_ERR_IO, folder->output,
                             "the output is a symbolic link: name its target instead");
    }
    /* A missing or unreadable folder is reported when the output is created. */
    if (code < 0 && code != -ENOENT && code != -ENOTDIR && code != -EACCES) {
        return slc_fail_errno(err, -code, folder->output, "looking for an existing output");
    }
    return SLC_OK;
}

/* Returns true for a relabelled store, which is built inside the unfinished store that it may
 * replace (relabel.c). */
static bool is_relabelled(const char *output)
{
    static const char end[] = ".part/" SLC_RELABELLED_NAME;
    const size_t length = strlen(output);

    return length >= sizeof end && strcmp(output + length - (sizeof end - 1), end) == 0;
}

/* Sets the folder's paths and checks that a store may be written there. */
static enum slc_status name_place(struct slc_build_folder *folder,
                                  const struct slc_files *files,
                                  const char *output,
                                  bool overwrite,
                                  struct slc_error *err)
{
    size_t length = strlen(output);

    while (length > 1 && output[length - 1] == '/') {
        length--;
    }
    *folder = (struct slc_build_folder){
        .files = files, .overwrite = overwrite, .lock = -1, .output_lock = -1};
    folder->output = with_suffix(output, length, "");
    folder->part = with_suffix(output, length, ".part");
    folder->old = with_suffix(output, length, ".old");
    SLC_TRY(slc_check_memory(folder->output != NULL && folder->part != NULL && folder->old != NULL,
                             err, "for the paths of the output"));
    if (length == 0) {
        return slc_fail(err, SLC_ERR_USAGE, "the name of the output is empty");
    }
    SLC_TRY(check_output(folder, err));
    SLC_TRY(reject_link(folder, err));
    if (!is_relabelled(folder->output)) {
        SLC_TRY(slc_check_parent_outside_stores(files, folder->output, err));
    }
    return SLC_OK;
}

enum slc_status slc_build_folder_check(const struct slc_files *files,
                                       const char *output,
                                       bool overwrite,
                                       struct slc_error *err)
{
    struct slc_build_folder folder;
    const enum slc_status status = name_place(&folder, files, output, overwrite, err);

    slc_build_folder_end(&folder);
    return status;
}

enum slc_status slc_build_folder_create(struct slc_build_folder *folder,
                                        const struct slc_files *files,
                                        const char *output,
                                        bool overwrite,
                                        bool resume,
                                        struct slc_error *err)
{
    enum slc_status status = name_place(folder, files, output, overwrite, err);

    SLC_THEN(status, lock_output(folder, err));
    if (status == SLC_OK && resume) {
        status = lock_leftover(files, folder->part, &folder->lock, err);
        folder->found = folder->lock >= 0;
        folder->made = folder->keep = status == SLC_OK && folder->found;
    } else if (status == SLC_OK) {
        status = slc_build_leftover_remove(files, folder->part, err);
    }
    if (status == SLC_OK && !folder->found) {
        status = make_part(folder, err);
    }
    if (status != SLC_OK) {
        slc_build_folder_end(folder);
    }
    return status;
}

static enum slc_status
sync_folder(const struct slc_files *files, const char *path, struct slc_error *err)
{
    int code = files->sync_folder(files->self, path);

    return slc_check_call(code, err, path, "syncing the folder");
}

enum slc_status slc_build_folder_empty(struct slc_build_folder *folder, struct slc_error *err)
{
    const struct slc_files *files = folder->files;
    enum slc_status status = slc_name_sync(files, folder->part, err);

    /* After a power failure, an old state must not reappear next to new files. */
    SLC_THEN(status, slc_state_remove(files, folder->part, SLC_COMPLETE_STATE_NAME, err));
    SLC_THEN(status, slc_state_remove(files, folder->part, SLC_PUSHED_STATE_NAME, err));
    SLC_THEN(status, sync_folder(files, folder->part, err));
    SLC_THEN(status, slc_folder_remove(files, folder->part, err));

    /* Keep the lock until the folder is removed; a run that waits for the lock then finds no
     * folder. */
    slc_folder_unlock(folder->files, &folder->lock);
    folder->made = folder->keep = folder->found = false;
    SLC_TRY(status);
    return make_part(folder, err);
}

/* Renames the new store to its final name, and an old store to *old_path (NULL: there was no old
 * store). If names cannot be exchanged and the second rename fails, moves the old store back. */
static enum slc_status install_store(struct slc_build_folder *folder,
                                     bool replace,
                                     const char **old_path,
                                     struct slc_error *err)
{
    const struct slc_files *files = folder->files;
    int code = 0;

    *old_path = NULL;
    if (replace) {
        code = files->exchange(files->self, folder->part, folder->output);
        if (code >= 0) {
            *old_path = folder->part;
            folder->made = false;
            return SLC_OK;
        }
        if (code != -EOPNOTSUPP) {
            return slc_fail_errno(err, -code, folder->output, "exchanging the old and new store");
        }
        code = files->rename(files->self, folder->output, folder->old);
        SLC_TRY(slc_check_call(code, err, folder->output, "renaming the old store"));
    }
    code = files->rename(files->self, folder->part, folder->output);
    if (code < 0) {
        if (replace) {
            int back = files->rename(files->self, folder->old, folder->output);

            if (back < 0) {
                slc_log(SLC_LOG_WARNING, "the old store is at %s: moving it back failed",
                        folder->old);
            }
        }
        return slc_fail_errno(err, -code, folder->output, "moving the finished store in place");
    }
    folder->made = false;
    *old_path = replace ? folder->old : NULL;
    return SLC_OK;
}

enum slc_status slc_build_folder_publish(struct slc_build_folder *folder, struct slc_error *err)
{
    const struct slc_files *files = folder->files;
    char *parent = slc_path_parent(folder->output);
    const char *old_path = NULL;
    char kind = 0;

    SLC_TRY(slc_check_memory(parent != NULL, err, "for the path of a folder"));
    enum slc_status status = sync_folder(files, folder->part, err);
    /* Check again: another process may have changed the output since the start. */
    SLC_THEN(status, check_output(folder, err));
    SLC_THEN(status, lock_output(folder, err));
    SLC_THEN(status, kind_of(files, folder->output, &kind, err));
    if (status == SLC_OK && kind != 0) {
        status = slc_build_leftover_remove(files, folder->old, err);
    }
    SLC_THEN(status, install_store(folder, kind != 0, &old_path, err));
    SLC_THEN(status, sync_folder(files, parent, err));
    if (status == SLC_OK && old_path != NULL) {
        status = slc_folder_remove(files, old_path, err);
    } else if (status == SLC_OK && folder->overwrite) {
        /* A run that was killed between the two renames left the old store at OUT.slc.old. */
        status = slc_build_leftover_remove(files, folder->old, err);
    }
    slc_free(parent);
    return status;
}

void slc_build_folder_end(struct slc_build_folder *folder)
{
    if (folder->made && !folder->keep) {
        struct slc_error ignored = SLC_ERROR_INIT;

        if (slc_folder_remove(folder->files, folder->part, &ignored) != SLC_OK) {
            slc_log(SLC_LOG_WARNING, "%s could not be removed: %s", folder->part, ignored.message);
        }
    }
    if (folder->output != NULL) {
        slc_folder_unlock(folder->files, &folder->lock);
        slc_folder_unlock(folder->files, &folder->output_lock);
    }
    slc_free(folder->output);
    slc_free(folder->part);
    slc_free(folder->old);
    *folder = (struct slc_build_folder){0};
}
