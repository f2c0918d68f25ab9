/* Checks output paths. The check starts at the innermost existing folder of the path and ascends
 * through "FOLDER/..". The system resolves links in these paths as it does in the output path, so
 * links need no special handling. */
#include "storage/manifest/path_guard.h"

#include "base/memory/memory.h"
#include "storage/manifest/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

/* Paths have at most 4,096 bytes, and each folder uses at least two bytes. */
enum { LEVELS_MAX = 2048 };

/* Returns 1 and sets *stat if `path` exists, 0 if it does not exist or is not visible, otherwise
 * the negated errno. */
static int find_path(const struct slc_files *files, const char *path, struct slc_file_stat *stat)
{
    const int code = files->stat_path(files->self, path, stat);

    if (code >= 0) {
        return 1;
    }
    return code == -ENOENT || code == -ENOTDIR || code == -EACCES || code == -ENAMETOOLONG ? 0
                                                                                           : code;
}

/* Returns 1 if `folder` counts as a store (path_guard.h), 0 if not, or a negated errno. */
static int is_store(const struct slc_files *files, const char *folder)
{
    static const char *const names[] = {SLC_MANIFEST_NAME, SLC_BLCO_NAME};
    int found = 1;

    for (unsigned i = 0; i < sizeof names / sizeof names[0] && found == 1; i++) {
        struct slc_file_stat stat;
        char *path = slc_path_join(folder, names[i]);

        found = path == NULL ? -ENOMEM : find_path(files, path, &stat);
        slc_free(path);
    }
    return found;
}

static enum slc_status refuse_path(const char *path, int found, bool itself, struct slc_error *err)
{
    if (found == -ENOMEM) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
    }
    SLC_TRY(slc_check_call(found, err, path, "checking whether the output is inside a store"));
    return slc_fail_file(err, SLC_ERR_USAGE, path,
                         itself
                             ? "it is a store, which holds only its own files: name another output"
                             : "it is inside the folder of a store, which holds only its own "
                               "files: name an output outside the store");
}

/* True if `name` is the name of a file with which a run or a sweep stores its results. */
static bool is_result_name(const char *name)
{
    static const char mode[] = "mode-";
    const char *number = name + sizeof mode - 1;

    return strcmp(name, "run.json") == 0 || strcmp(name, "sweep.json") == 0 ||
           strcmp(name, "lambda.npy") == 0 ||
           (strncmp(name, mode, sizeof mode - 1) == 0 &&
            strcmp(number + strspn(number, "0123456789"), ".npy") == 0);
}

/* Refuses a path that is a file of the results of a run or a sweep in `folder`. */
static enum slc_status check_results(const struct slc_files *files,
                                     const char *folder,
                                     const char *path,
                                     struct slc_error *err)
{
    static const char *const names[] = {"run.json", "sweep.json", "mode-1.npy"};
    const char *slash = strrchr(path, '/');
    int found = 0;

    if (!is_result_name(slash != NULL ? slash + 1 : path)) {
        return SLC_OK;
    }
    for (unsigned i = 0; i < sizeof names / sizeof names[0] && found == 0; i++) {
        struct slc_file_stat stat;
        char *file = slc_path_join(folder, names[i]);

        found = file == NULL ? -ENOMEM : find_path(files, file, &stat);
        slc_free(file);
    }
    return found == 0  ? SLC_OK
           : found < 0 ? refuse_path(path, found, false, err)
                       : slc_fail_file(err, SLC_ERR_USAGE, path,
                                       "it is a file of the results of a run: name another output");
}

/* Checks `folder` and its parents; frees `folder`. */
static enum slc_status check_parents(const struct slc_files *files,
                                     char *folder,
                                     const char *path,
                                     bool itself,
                                     struct slc_error *err)
{
    struct slc_file_stat here, above;
    int found = find_path(files, folder, &here);

    for (unsigned level = 0; found == 1 && level < LEVELS_MAX; level++) {
        found = is_store(files, folder);
        if (found != 0) {
            slc_free(folder);
            return refuse_path(path, found, itself && level == 0, err);
        }
        char *next = slc_path_join(folder, "..");
        slc_free(folder);
        folder = next;
        found = next == NULL ? -ENOMEM : find_path(files, next, &above);
        if (found == 1) {
            if (above.inode == here.inode && above.device == here.device) {
                break; /* the root is its own parent */
            }
            here = above;
        }
    }
    slc_free(folder);
    return found < 0 ? refuse_path(path, found, false, err) : SLC_OK;
}

enum slc_status slc_check_parent_outside_stores(const struct slc_files *files,
                                                const char *path,
                                                struct slc_error *err)
{
    char *folder = slc_path_parent(path);

    if (folder == NULL) {
        return refuse_path(path, -ENOMEM, false, err);
    }
    files = slc_files_or_system(files);
    const enum slc_status status = check_results(files, folder, path, err);
    if (status != SLC_OK) {
        slc_free(folder);
        return status;
    }
    return check_parents(files, folder, path, false, err);
}

enum slc_status
slc_check_outside_stores(const struct slc_files *files, const char *path, struct slc_error *err)
{
    struct slc_file_stat stat;

    files = slc_files_or_system(files);
    int found = find_path(files, path, &stat);
    if (found < 0) {
        return refuse_path(path, found, false, err);
    }
    if (found == 1 && stat.kind == 'd') {
        char *folder = slc_strdup(path);

        return folder == NULL ? refuse_path(path, -ENOMEM, false, err)
                              : check_parents(files, folder, path, true, err);
    }
    return slc_check_parent_outside_stores(files, path, err);
}

enum slc_status slc_check_own_form(const struct slc_files *files,
                                   const char *path,
                                   const char *begin,
                                   const char *what,
                                   struct slc_error *err)
{
    char found[64];
    struct slc_file_stat stat;

    files = slc_files_or_system(files);
    if (files->stat_path(files->self, path, &stat) < 0 || stat.kind != 'f') {
        return SLC_OK;
    }
    int fd = files->open(files->self, path, O_RDONLY | O_CLOEXEC | SLC_OPEN_PLAIN, 0);
    int64_t got = fd < 0 ? fd : files->read_at(files->self, fd, found, strlen(begin), 0);
    if (fd >= 0) {
        (void)files->close(files->self, fd);
    }
    if (got < 0) {
        return slc_fail_errno(err, (int)-got, path, "reading the file to be replaced");
    }
    if (memcmp(found, begin, (size_t)got) != 0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "%s: the file exists and is not %s, so it is not overwritten: remove it or "
                        "name another output",
                        path, what);
    }
    return SLC_OK;
}
