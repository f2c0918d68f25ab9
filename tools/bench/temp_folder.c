/* Temporary folders; see temp_folder.h. */
#include "temp_folder.h"

#include "base/memory.h"
#include "storage/files.h"

#include <errno.h>
#include <stdlib.h>

enum slc_status bench_temp_folder(const char *parent, char **path, struct slc_error *err)
{
    const char *standard = getenv("TMPDIR");
    char *folder;

    if (parent == NULL) {
        parent = standard != NULL ? standard : "/tmp";
    }
    folder = slc_path_join(parent, "sluice-bench-XXXXXX");
    if (folder == NULL) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a path");
    }
    if (mkdtemp(folder) == NULL) {
        const enum slc_status status =
            slc_fail_errno(err, errno, folder, "creating a folder for temporary files");

        slc_free(folder);
        return status;
    }
    *path = folder;
    return SLC_OK;
}
