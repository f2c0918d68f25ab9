/* Recognizes folders that the user named by mistake, for messages that suggest a correction. */
#ifndef SLC_STORAGE_FOLDER_KIND_H
#define SLC_STORAGE_FOLDER_KIND_H

#include "storage/file/files.h"

enum slc_folder_expected {
    SLC_FOLDER_STORE,
    SLC_FOLDER_RUN,
    SLC_FOLDER_NONE /* a file */
};

/*
 * End of a message about `folder`, derived from the names of the files in it: "; it is a store ..",
 * or "" if the kind is unknown. Owns: nothing, the text is constant. Errors: none, an unreadable
 * folder is unknown.
 */
const char *slc_folder_advice(const struct slc_files *files,
                              const char *folder,
                              enum slc_folder_expected expected);

#endif
