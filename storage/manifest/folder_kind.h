/* Recognizes folders that the user named by mistake, for messages that suggest a correction. */
#ifndef SLC_STORAGE_FOLDER_KIND_H
#define SLC_STORAGE_FOLDER_KIND_H

#include "storage/file/files.h"

enum slc_folder_expected {
    SLC_FOLDER_STORE,
    SLC_FOLDER_RUN,
    SLC_FOLDER_NONE /* a file */
};

/* Returns the end of an error message about `folder`, where `expected` was expected, such as "; it
 * is a store ..". The text depends on the names of the files in the folder; it is "" for unknown
 * files and if the folder cannot be read. Returns a string constant. */
const char *slc_folder_advice(const struct slc_files *files,
                              const char *folder,
                              enum slc_folder_expected expected);

#endif
