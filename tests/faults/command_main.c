/* Calls the command's main on a test's table of file operations. */
#include "command_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 48, WORDS_BYTES = 1024 };

static const struct slc_files *files_in_place; /* NULL: the system's */

int __real_main(int argc, char **argv);
const struct slc_files *__real_slc_files_system(void);
const struct slc_files *__wrap_slc_files_system(void);
const struct slc_files *__wrap_slc_files_or_system(const struct slc_files *files);

const struct slc_files *__wrap_slc_files_system(void)
{
    return files_in_place != NULL ? files_in_place : __real_slc_files_system();
}

const struct slc_files *__wrap_slc_files_or_system(const struct slc_files *files)
{
    return files != NULL ? files : __wrap_slc_files_system();
}

static int split(char *text, char **words)
{
    static char name[] = "sluice";
    int count = 0;
    char *rest = text;

    words[count++] = name;
    while ((words[count] = strtok_r(rest, " ", &rest)) != NULL) {
        if (++count == WORDS_MAX) {
            printf("Bail out! too many words for the command\n");
            exit(EXIT_FAILURE);
        }
    }
    return count;
}

int command_main(const char *arguments, const struct slc_files *files)
{
    char text[WORDS_BYTES];
    char *words[WORDS_MAX + 1];
    int code;

    (void)snprintf(text, sizeof text, "%s", arguments);
    files_in_place = files;
    code = __real_main(split(text, words), words);
    files_in_place = NULL;
    return code;
}
