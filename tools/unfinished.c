/* Removes what an interrupted command cannot go on with; see unfinished.h. */
#include "unfinished.h"

#include "console.h"
#include "convert/build_folder.h"
#include "signals.h"
#include "storage/files.h"

#include <stdio.h>
#include <string.h>

static const char *watched_output;

/* Whether the unfinished folder says how far its build has come. */
static bool can_go_on(const struct slc_files *files, const char *folder)
{
    char path[4096 + sizeof SLC_PUSHED_STATE_NAME];
    struct slc_file_stat stat;

    (void)snprintf(path, sizeof path, "%s/" SLC_PUSHED_STATE_NAME, folder);
    return files->stat_path(files->self, path, &stat) >= 0;
}

static void remove_unfinished(void *unused)
{
    static const char *const suffixes[] = {".part", ".tmp"};
    const struct slc_files *files = slc_files_system();
    size_t length = strlen(watched_output);

    (void)unused;
    if (strcmp(watched_output, "-") == 0) {
        return;
    }
    while (length > 1 && watched_output[length - 1] == '/') {
        length--;
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        char path[4096];
        struct slc_file_stat stat;

        (void)snprintf(path, sizeof path, "%.*s%s", (int)length, watched_output, suffixes[i]);
        if (files->stat_path(files->self, path, &stat) < 0) {
            continue;
        }
        if (stat.kind == 'd' && can_go_on(files, path)) {
            console_note("what is done stays in %s: the same command line goes on with it", path);
        } else if (stat.kind == 'd') {
            if (slc_folder_remove(files, path, NULL) != SLC_OK) {
                console_note("%s is left over and can be removed", path);
            }
        } else {
            (void)files->unlink(files->self, path);
        }
    }
}

enum slc_status unfinished_watch(const char *output, struct slc_error *err)
{
    watched_output = output;
    return signals_start(remove_unfinished, NULL, err);
}
