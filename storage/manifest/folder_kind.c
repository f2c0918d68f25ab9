/* See folder_kind.h. */
#include "storage/manifest/folder_kind.h"

#include "base/memory/memory.h"
#include "storage/manifest/store.h"

#include <stdbool.h>

/* By a file that nothing else has. A sweep is looked for before the runs in it. */
static const struct {
    const char *file;
    const char *advice[3]; /* by slc_folder_wanted */
} kinds[] = {
    {SLC_MANIFEST_NAME,
     {"", "; it is a store, of which sluice cpd makes a run",
      "; it is a store already, which other commands take as it is"}},
    {"sweep.json",
     {"; it has the runs of a sweep: name the store that they are of",
      "; it has the runs of a sweep: name the folder of one of them, such as r4-seed0 in it",
      "; it has the runs of a sweep"}},
    {"run.json",
     {"; it has the results of a run: name the store that they are of", "",
      "; it has the results of a run"}},
    {"mode-1.npy", {"; it has factors: name the store that they are of", "", "; it has factors"}},
};

const char *
slc_folder_advice(const struct slc_files *files, const char *folder, enum slc_folder_wanted wanted)
{
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *path = slc_path_join(folder, kinds[i].file);
        struct slc_file_stat stat;
        const bool there = path != NULL && files->stat_path(files->self, path, &stat) >= 0;

        slc_free(path);
        if (there) {
            return kinds[i].advice[wanted];
        }
    }
    return "";
}
