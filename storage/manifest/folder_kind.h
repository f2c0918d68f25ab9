/* What a folder is that is not what was looked for: for messages that say what to name instead. */
#ifndef SLC_STORAGE_FOLDER_KIND_H
#define SLC_STORAGE_FOLDER_KIND_H

#include "storage/file/files.h"

enum slc_folder_wanted {
    SLC_FOLDER_STORE,
    SLC_FOLDER_RUN,
    SLC_FOLDER_NONE /* a file */
};

/*
 * The end of a message about `folder`, by the names of the files in it: "; it is a store ..", or
 * "" where nothing is known of it. Owns: nothing, the text is constant. Errors: none, what cannot
 * be looked at is not known.
 */
const char *
slc_folder_advice(const struct slc_files *files, const char *folder, enum slc_folder_wanted wanted);

#endif
