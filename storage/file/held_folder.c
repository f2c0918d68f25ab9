/* Opens a folder once, and the files below it through its descriptor. */
#include "storage/file/held_folder.h"

#include "base/memory/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Descriptors that are left to the rest of the process. */
enum { OTHER_FILES = 32 };

struct kept_file {
    char *path;
    int fd;
};

struct slc_held_folder {
    struct slc_files files; /* the operations of the caller's table, with this folder */
    char *path;             /* without trailing slashes */
    int fd;
    bool sealed;
    unsigned count, limit, capacity;
    struct kept_file *kept;
};

/* Returns how many files may be kept. */
static unsigned kept_limit(void)
{
    const long descriptors = sysconf(_SC_OPEN_MAX);
    const long spare = descriptors < 0 || descriptors > 4096 ? 4096 : descriptors - OTHER_FILES;

    return spare > 0 ? (unsigned)spare / 4 : 0;
}

enum slc_status slc_held_folder_open(const struct slc_files *files,
                                     const char *path,
                                     struct slc_held_folder **folder,
                                     struct slc_error *err)
{
    struct slc_held_folder *opened = slc_calloc(1, sizeof *opened);

    SLC_TRY(slc_check_memory(opened != NULL, err, "for an open folder"));
    opened->files = *slc_files_or_system(files);
    opened->files.held = opened;
    opened->limit = kept_limit();
    opened->fd = -1;
    opened->path = slc_strdup(path);
    enum slc_status status = slc_check_memory(opened->path != NULL, err, "for a path");
    if (status == SLC_OK) {
        for (size_t end = strlen(path); end > 1 && opened->path[end - 1] == '/'; end--) {
            opened->path[end - 1] = '\0';
        }
        opened->fd = opened->files.open(opened->files.self, path, O_PATH | O_DIRECTORY, 0);
        status = slc_check_call(opened->fd, err, path, "opening the folder");
    }
    if (status != SLC_OK) {
        slc_held_folder_close(opened);
        return status;
    }
    *folder = opened;
    return SLC_OK;
}

void slc_held_folder_close(struct slc_held_folder *folder)
{
    if (folder == NULL) {
        return;
    }
    for (unsigned k = 0; k < folder->count; k++) {
        (void)folder->files.close(folder->files.self, folder->kept[k].fd);
        slc_free(folder->kept[k].path);
    }
    if (folder->fd >= 0) {
        (void)folder->files.close(folder->files.self, folder->fd);
    }
    slc_free(folder->kept);
    slc_free(folder->path);
    slc_free(folder);
}

const struct slc_files *slc_held_folder_files(const struct slc_held_folder *folder)
{
    return &folder->files;
}

bool slc_held_folder_is(const struct slc_held_folder *folder, const char *path)
{
    const size_t length = strlen(folder->path);

    return strncmp(path, folder->path, length) == 0 &&
           path[length + strspn(path + length, "/")] == '\0';
}

void slc_held_folder_seal(struct slc_held_folder *folder)
{
    folder->sealed = true;
}

static const struct kept_file *find_kept(const struct slc_held_folder *folder, const char *path)
{
    for (unsigned k = 0; k < folder->count; k++) {
        if (strcmp(folder->kept[k].path, path) == 0) {
            return &folder->kept[k];
        }
    }
    return NULL;
}

/* Makes space for another kept file. */
static bool reserve_kept(struct slc_held_folder *folder)
{
    const unsigned capacity = 2 * folder->capacity + 8;

    if (folder->count < folder->capacity) {
        return true;
    }
    struct kept_file *kept = slc_calloc(capacity, sizeof *kept);
    if (kept == NULL) {
        return false;
    }
    if (folder->count > 0) {
        memcpy(kept, folder->kept, folder->count * sizeof *kept);
    }
    slc_free(folder->kept);
    folder->kept = kept;
    folder->capacity = capacity;
    return true;
}

/* Keeps a second descriptor of the open file `fd`, unless there are too few descriptors. Returns 0
 * or a negated errno. */
static int keep_file(struct slc_held_folder *folder, const char *path, int fd)
{
    char *copy = NULL;

    if (folder->count == folder->limit) {
        return 0;
    }
    if (!reserve_kept(folder) || (copy = slc_strdup(path)) == NULL) {
        return -ENOMEM;
    }
    const int again = folder->files.open_again(folder->files.self, fd, 0);
    if (again < 0) {
        slc_free(copy);
        return again == -EMFILE || again == -ENFILE ? 0 : again;
    }
    folder->kept[folder->count++] = (struct kept_file){copy, again};
    return 0;
}

/* Returns the part of `path` after the folder, or NULL if `path` is not below the folder. */
static const char *name_in_folder(const struct slc_held_folder *folder, const char *path)
{
    const size_t length = strlen(folder->path);

    if (strncmp(path, folder->path, length) != 0 ||
        (path[length] != '/' && folder->path[length - 1] != '/')) {
        return NULL;
    }
    path += length + strspn(path + length, "/");
    return *path != '\0' ? path : NULL;
}

int slc_file_open(const struct slc_files *files, const char *path, int flags)
{
    struct slc_held_folder *folder = files->held;

    if (folder == NULL) {
        return files->open(files->self, path, O_RDONLY | flags, 0);
    }
    const struct kept_file *kept = find_kept(folder, path);
    if (kept != NULL) {
        return files->open_again(files->self, kept->fd, 0);
    }
    const char *name = name_in_folder(folder, path);
    const int fd = name != NULL ? files->open_at(files->self, folder->fd, name, O_RDONLY | flags)
                                : files->open(files->self, path, O_RDONLY | flags, 0);
    if (fd >= 0 && !folder->sealed) {
        const int rc = keep_file(folder, path, fd);

        if (rc < 0) {
            (void)files->close(files->self, fd);
            return rc;
        }
    }
    return fd;
}

/* True if `path` certainly leads to another file than the open file `fd`, or to none. */
static bool is_elsewhere(const struct slc_files *files, const char *path, int fd)
{
    struct slc_file_stat held, now;

    if (files->stat_fd(files->self, fd, &held) < 0) {
        return false;
    }
    const int rc = files->stat_path(files->self, path, &now);
    return rc < 0 ? rc == -ENOENT || rc == -ENOTDIR
                  : now.inode != held.inode || now.device != held.device;
}

bool slc_held_folder_changed(const struct slc_held_folder *folder, const char *path)
{
    const struct slc_files *files = &folder->files;

    for (unsigned k = 0; k < folder->count; k++) {
        const struct kept_file *kept = &folder->kept[k];

        if ((path == NULL || strcmp(kept->path, path) == 0) &&
            is_elsewhere(files, kept->path, kept->fd)) {
            return true;
        }
    }
    return path == NULL && is_elsewhere(files, folder->path, folder->fd);
}
