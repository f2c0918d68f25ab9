/*
 * The command's own main, in a test that is linked with it: the linker (-Wl,--wrap=) takes the
 * program's main for the command's, and has whoever asks for the operating system's files ask here.
 */
#ifndef SLC_COMMAND_MAIN_H
#define SLC_COMMAND_MAIN_H

#include "storage/file/files.h"

/*
 * Runs `arguments` (words, behind the command's name) with these files in the place of the
 * operating system's; returns the exit code. One run at a time.
 */
int command_main(const char *arguments, const struct slc_files *files);

#endif
