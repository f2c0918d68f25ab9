/*
 * The whole command in this process, on a disk in memory (tests/lib/recorded_files.h): what it
 * does to files can be recorded, cut short and tried again thousands of times. Paths are relative:
 * what the command asks of the system past the table is asked in an empty folder.
 */
#ifndef SLC_COMMAND_DISK_H
#define SLC_COMMAND_DISK_H

#include "base/error/error.h"
#include "storage/file/files.h"

#include <stdbool.h>

struct command_words {
    char text[8192]; /* all that it said on standard output and standard error */
};

/* Runs the command on these files. What is not exit code 0 fails with the code and the message. */
enum slc_status command_on_disk(const struct slc_files *files,
                                const char *arguments,
                                struct command_words *said,
                                struct slc_error *err);

/* Copies a file, or a folder of files, of the system to `path` on the disk; what fails ends the
 * program. */
void command_disk_put(const struct slc_files *files, const char *from, const char *path);

/* A hash of the file, or of all files of the folder, at `path`; 0 where nothing is there. */
uint64_t command_disk_hash(const struct slc_files *files, const char *path);

#endif
