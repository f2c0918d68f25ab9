/* Calls the command's main in a test that is linked with it. The linker (-Wl,--wrap=) substitutes
 * the program's main for the command's, and this module for the operating system's file
 * operations. */
#ifndef SLC_COMMAND_MAIN_H
#define SLC_COMMAND_MAIN_H

#include "storage/file/files.h"

/* Runs `arguments` (words after the command's name) with these files instead of the operating
 * system's; returns the exit code. One run at a time. */
int command_main(const char *arguments, const struct slc_files *files);

#endif
