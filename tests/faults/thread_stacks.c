#include "thread_stacks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { STACK_WORDS = 4096, ADDRESSES = 24 };

/* Bounds of the program's code, defined by the linker: the same in a fork. */
extern char __executable_start[], etext[];

/* Reads one line of a file of a thread; "?" if there is none. */
static void read_line(pid_t child, const char *thread, const char *name, char *line, size_t bytes)
{
    char path[320];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%s/%s", (int)child, thread, name);
    file = fopen(path, "re");
    if (file == NULL || fgets(line, (int)bytes, file) == NULL) {
        (void)snprintf(line, bytes, "?");
    }
    line[strcspn(line, "\n")] = '\0';
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* Prints the code addresses in the stack above `top`, as offsets within the program. */
static void print_addresses(pid_t child, uintptr_t top)
{
    static uintptr_t words[STACK_WORDS];
    const struct iovec here = {words, sizeof words};
    char command[128 + ADDRESSES * 20] = "addr2line -sfipe /proc/", line[512];
    ssize_t read = -1;
    size_t length, found = 0;
    FILE *lines;

    /* If the stack ends within the range, try shorter ranges. */
    for (size_t bytes = sizeof words; read < 0 && bytes >= 512; bytes /= 2) {
        read = process_vm_readv(child, &here, 1, &(struct iovec){(void *)top, bytes}, 1, 0);
    }
    length = strlen(command);
    length += (size_t)snprintf(command + length, sizeof command - length, "%d/exe", (int)getpid());
    for (ssize_t i = 0; i < read / (ssize_t)sizeof *words && found < ADDRESSES; i++) {
        if (words[i] > (uintptr_t)__executable_start && words[i] < (uintptr_t)etext) {
            length += (size_t)snprintf(command + length, sizeof command - length, " %#" PRIxPTR,
                                       words[i] - (uintptr_t)__executable_start);
            found++;
        }
    }
    printf("#   %s\n", command);
    lines = found > 0 ? popen(command, "r") : NULL; /* NOLINT(cert-env33-c): a constant command */
    while (lines != NULL && fgets(line, sizeof line, lines) != NULL) {
        printf("#   %s", line);
    }
    if (lines != NULL) {
        (void)pclose(lines);
    }
}

void thread_stacks_print(pid_t child)
{
    char path[64], name[64], wait[128], call[256];
    const struct dirent *entry;
    uintptr_t top = 0;
    DIR *folder;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)child);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        read_line(child, entry->d_name, "comm", name, sizeof name);
        read_line(child, entry->d_name, "wchan", wait, sizeof wait);
        /* "running", or number of the call, six arguments, stack pointer, program counter */
        read_line(child, entry->d_name, "syscall", call, sizeof call);
        printf("# thread %s (%s) in %s, system call %s\n", entry->d_name, name, wait, call);
        if (sscanf(call, "%*s %*s %*s %*s %*s %*s %*s %" SCNxPTR, &top) == 1) {
            print_addresses(child, top);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    (void)fflush(stdout);
}
