/* Runs the whole command in this process on a disk in memory (tests/lib/recorded_files.h), so that
 * its changes to files can be recorded, cut and retried thousands of times. Paths are relative:
 * system calls that bypass the table run in an empty folder. */
#ifndef SLC_COMMAND_DISK_H
#define SLC_COMMAND_DISK_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>

struct command_words {
    char text[8192]; /* everything written to standard output and standard error */
};

/* Runs the command on these files. An exit code other than 0 fails with the code and the
 * message. */
enum slc_status command_on_disk(const struct slc_files *files,
                                const char *arguments,
                                struct command_words *said,
                                struct slc_error *err);

/* Copies a file, or a folder of files, of the system to `path` on the disk; ends the program on
 * failure. */
void command_disk_put(const struct slc_files *files, const char *from, const char *path);

/* A hash of the file, or of all files of the folder, at `path`; 0 if it does not exist. */
uint64_t command_disk_hash(const struct slc_files *files, const char *path);

#endif
