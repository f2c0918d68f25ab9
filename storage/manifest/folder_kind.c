/* Recognizes stores, runs and sweeps by their files. */
#include "storage/manifest/folder_kind.h"

#include "base/memory/memory.h"
#include "storage/manifest/store.h"

#include <stdbool.h>

/* The first of these files that a folder has determines its kind. A run also has mode-1.npy. */
static const struct {
    const char *file;
    const char *advice[3]; /* indexed by enum slc_folder_expected */
} kinds[] = {
    {SLC_MANIFEST_NAME,
     {"", "; it is a store: run sluice cpd on it to make a run",
      "; it is a store already, which other commands accept as input"}},
    {"sweep.json",
     {"; it has the runs of a sweep: name the store that they were made from",
      "; it has the runs of a sweep: name the folder of one run, such as the "
      "best one, which sweep.json names",
      "; it has the runs of a sweep"}},
    {"run.json",
     {"; it has the results of a run: name the store that they were made from", "",
      "; it has the results of a run"}},
    {"mode-1.npy",
     {"; it has factors: name the store that they were made from", "", "; it has factors"}},
};

const char *slc_folder_advice(const struct slc_files *files,
                              const char *folder,
                              enum slc_folder_expected expected)
{
    for (unsigned i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char *path = slc_path_join(folder, kinds[i].file);
        struct slc_file_stat stat;
        const bool there = path != NULL && files->stat_path(files->self, path, &stat) >= 0;

        slc_free(path);
        if (there) {
            return kinds[i].advice[expected];
        }
    }
    return "";
}
