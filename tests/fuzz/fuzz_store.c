/* Scratch folder and files of the store's fuzz targets. */
#include "fuzz_store.h"

#include "storage/file/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char path[128];

static void remove_all(void)
{
    /* On failure the system must clean up. */
    enum slc_status ignored = slc_folder_remove(slc_files_system(), folder, NULL);

    (void)ignored;
}

const char *fuzz_folder(void)
{
    if (folder[0] == '\0') {
        /* The folder is in memory if possible, because a target writes a million small files per
         * hour. */
        (void)snprintf(folder, sizeof folder, "%s/slc-fuzz-XXXXXX",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        if (!mkdtemp(folder)) {
            abort();
        }
        (void)atexit(remove_all);
    }
    return folder;
}

const char *fuzz_path(const char *name)
{
    (void)snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return path;
}

void fuzz_write(const char *file, const void *data, size_t bytes)
{
    FILE *out = fopen(file, "wb");

    if (!out || fwrite(data, 1, bytes, out) != bytes || fclose(out) != 0) {
        abort();
    }
}
