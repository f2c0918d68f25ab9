/* Removes the unfinished files of an interrupted command if no later run can resume them. */
#include "tools/progress/cleanup.h"

#include "convert/build/resume/build_folder.h"
#include "storage/file/files.h"
#include "storage/manifest/store.h"
#include "tools/progress/console.h"
#include "tools/progress/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cleanup_outputs watched;

/* State of a search for a descriptor of this process with which the file `there` is open. */
struct search {
    const struct slc_files *files;
    struct slc_file_stat there;
    bool found;
};

/* Sets search->found if this descriptor is open for writing to the file or locks the folder. */
static int match_descriptor(void *context, const char *name, char kind)
{
    struct search *search = context;
    const struct slc_files *files = search->files;
    const int fd = (int)strtol(name, NULL, 10);
    struct slc_file_stat open;
    char path[64];

    (void)kind;
    /* Look at the descriptor by name, because another thread owns it and may be closing it. */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (files->stat_path(files->self, path, &open) < 0 || open.inode != search->there.inode ||
        open.device != search->there.device) {
        return 0;
    }
    search->found = open.kind == 'd' ? files->lock(files->self, fd) != -EWOULDBLOCK
                                     : (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    return search->found;
}

/* Returns true if a process has locked the folder. Also returns true if the file system does not
 * support locks, because a process may then use the folder. */
static bool is_locked(const struct slc_files *files, const char *folder)
{
    const int fd = files->open(files->self, folder, O_RDONLY | O_DIRECTORY, 0);
    int code = fd;

    if (fd >= 0) {
        code = files->lock(files->self, fd);
        (void)files->close(files->self, fd);
    }
    return code < 0;
}

/* Returns whether this process is writing the file or folder at `path`. If not, the file or folder
 * belongs to another run with the same output or is unrelated: the signal may have arrived before
 * the command checked the path. */
static bool is_own(const struct slc_files *files, const char *path, struct slc_file_stat there)
{
    struct search search = {files, there, false};

    if (there.kind == 'd' && !is_locked(files, path)) {
        return false;
    }
    (void)files->list_folder(files->self, "/proc/self/fd", match_descriptor, &search);
    return search.found;
}

/* Returns whether the unfinished folder contains a state to resume from. */
static bool can_resume(const struct slc_files *files, const char *folder)
{
    static const char *const names[] = {SLC_PUSHED_STATE_NAME, SLC_COMPLETE_STATE_NAME};
    bool found = false;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[4096 + 32];
        struct slc_file_stat stat;

        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        found = found || files->stat_path(files->self, path, &stat) >= 0;
    }
    return found;
}

/* Cleans up the folder `path`, which may belong to this run (`own`) or to another run. */
static void clean_up_folder(const struct slc_files *files, const char *path, bool own)
{
    if (!own && is_locked(files, path)) {
        return;
    }
    if (can_resume(files, path)) {
        console_note("the finished work is kept in %s; repeat the command to resume", path);
    } else if (!own) {
        /* An empty folder is removed: this run may have created it, but not locked it yet. Other
         * folders stay. */
        (void)files->remove_folder(files->self, path);
    } else if (slc_folder_remove(files, path, NULL) != SLC_OK) {
        console_note("%s remains and can be removed", path);
    }
}

static void remove_output(const char *output)
{
    static const char *const suffixes[] = {".part", ".tmp"};
    const struct slc_files *files = slc_files_system();
    size_t length = strlen(output);

    if (strcmp(output, "-") == 0) {
        return;
    }
    while (length > 1 && output[length - 1] == '/') {
        length--;
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[4096];
        struct slc_file_stat stat;

        (void)snprintf(path, sizeof path, "%.*s%s", (int)length, output, suffixes[i]);
        if (files->stat_path(files->self, path, &stat) < 0) {
            continue;
        }
        bool own = is_own(files, path, stat);
        if (stat.kind == 'd') {
            clean_up_folder(files, path, own);
        } else if (own) {
            (void)files->unlink(files->self, path);
        }
    }
}

static void remove_unfinished(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < watched.count; i++) {
        remove_output(watched.paths[i]);
    }
}

enum slc_status cleanup_watch_all(const struct cleanup_outputs *outputs, struct slc_error *err)
{
    watched = *outputs;
    return signals_start(remove_unfinished, NULL, err);
}

enum slc_status cleanup_watch(const char *output, struct slc_error *err)
{
    return cleanup_watch_all(&(struct cleanup_outputs){.count = 1, .paths = {output}}, err);
}

void cleanup_publishing(void)
{
    (void)signals_abandon_by(NULL, NULL);
}
