/* A folder that another process may replace, move or change while it is read. Opening the folder
 * once, and every file in it through the folder's descriptor, prevents a mix of files of two
 * folders.
 *
 * slc_held_folder_open returns a table of file operations for which slc_file_open works this way.
 * Until slc_held_folder_seal, the table also keeps open each file that it opens: a later
 * slc_file_open of the same path returns another descriptor of the kept file, even if its name has
 * been removed or belongs to another file by then. A reader therefore opens all files that it may
 * need, asks slc_held_folder_changed whether the folder changed meanwhile (and then starts again),
 * seals the folder, and afterwards finds the same files at any time. */
#ifndef SLC_STORAGE_HELD_FOLDER_H
#define SLC_STORAGE_HELD_FOLDER_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>

/* Number of attempts at opening files that are being replaced. A replacement makes one attempt
 * fail, and takes much longer than an attempt. */
enum { SLC_HELD_ATTEMPTS = 32 };

/* Opens the folder at `path`. Its table uses the operations of `files`, which may be NULL; if
 * `files` itself has a held folder, only its operations are used. Of the descriptors that the
 * process may open, at most a quarter of those beyond the first 32 are used to keep files; other
 * files are only opened through the folder. Ownership: release with slc_held_folder_close, which
 * accepts NULL. Errors: SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_held_folder_open(const struct slc_files *files,
                                     const char *path,
                                     struct slc_held_folder **folder,
                                     struct slc_error *err) SLC_NODISCARD;
void slc_held_folder_close(struct slc_held_folder *folder);

/* Returns the table of the folder. Borrowed. */
const struct slc_files *slc_held_folder_files(const struct slc_held_folder *folder);

/* True if the folder was opened as `path`. */
bool slc_held_folder_is(const struct slc_held_folder *folder, const char *path);

/* Ends the keeping of files. Before this call, only one thread may call slc_file_open; afterwards,
 * any thread may. */
void slc_held_folder_seal(struct slc_held_folder *folder);

/* True if the name of a kept file now belongs to another file or to none. With `path`, only the
 * file at this path counts; with NULL, all kept files and the folder itself count. */
bool slc_held_folder_changed(const struct slc_held_folder *folder, const char *path);

#endif
