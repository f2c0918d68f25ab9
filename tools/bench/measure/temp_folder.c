/* Temporary folders; see temp_folder.h. */
#include "tools/bench/measure/temp_folder.h"

#include "base/memory/memory.h"
#include "storage/file/files.h"
#include "tools/progress/console.h"
#include "tools/progress/signals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Not what the caller frees: a signal may come while it does. */
static char watched[4096];

static void remove_folder(const char *path)
{
    struct slc_error err = SLC_ERROR_INIT;

    /* The figures hold all the same. */
    if (slc_folder_remove(slc_files_system(), path, &err) != SLC_OK) {
        console_note("%s is left: %s", path, err.message);
    }
}

static void remove_watched(void *unused)
{
    (void)unused;
    remove_folder(watched);
}

enum slc_status bench_temp_folder(const char *parent, char **path, struct slc_error *err)
{
    const char *standard = getenv("TMPDIR");
    enum slc_status status;
    char *folder;

    if (parent == NULL) {
        parent = standard != NULL ? standard : "/tmp";
    }
    folder = slc_path_join(parent, "sluice-bench-XXXXXX");
    if (folder == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
    }
    if (mkdtemp(folder) == NULL) {
        status = slc_fail_errno(err, errno, folder, "creating a folder for temporary files");
        slc_free(folder);
        return status;
    }
    (void)snprintf(watched, sizeof watched, "%s", folder);
    status = signals_start(remove_watched, NULL, err);
    if (status != SLC_OK) {
        (void)rmdir(folder);
        slc_free(folder);
        return status;
    }
    *path = folder;
    return SLC_OK;
}

void bench_temp_folder_remove(char *path)
{
    if (path != NULL) {
        remove_folder(path);
        slc_free(path);
    }
}
