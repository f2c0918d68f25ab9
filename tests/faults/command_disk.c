/* Runs the whole command on a disk in memory.
 *
 * The command would start a thread that handles signals, never ends and must be started only once,
 * so it is left out (-Wl,--wrap=signals_start). So are checks for write permission
 * (-Wl,--wrap=access), which no table of file operations has. */
#include "command_disk.h"

#include "command_main.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "storage/manifest/store.h"
#include "tools/progress/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* More bytes than any file that a command writes in these tests. */
enum { FILE_BYTES_MAX = 1 << 24 };

enum slc_status
__wrap_signals_start(void (*abandon)(void *context), void *context, struct slc_error *err);
int __wrap_access(const char *path, int mode);
/* Sanitizers provide this function; without a sanitizer, its address is NULL. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

enum slc_status
__wrap_signals_start(void (*abandon)(void *context), void *context, struct slc_error *err)
{
    (void)abandon;
    (void)context;
    (void)err;
    return SLC_OK;
}

int __wrap_access(const char *path, int mode)
{
    (void)path;
    (void)mode;
    return 0;
}

static void must(bool holds, const char *what)
{
    if (!holds) {
        printf("Bail out! %s: %s\n", what, strerror(errno));
        exit(EXIT_FAILURE);
    }
}

/* Standard output and error of the command, and copies of the test's own while it runs. */
static struct {
    int words, out, err;
} outputs;

static void open_outputs(void)
{
    char folder[] = "/tmp/slc-empty-XXXXXX";

    if (outputs.words != 0) {
        return;
    }
    outputs.words = memfd_create("words", MFD_CLOEXEC);
    outputs.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    outputs.err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    must(outputs.words > 0 && outputs.out > 0 && outputs.err > 0, "descriptors");
    if (__sanitizer_set_report_fd != NULL) {
        __sanitizer_set_report_fd((void *)(intptr_t)outputs.err);
    }
    /* An empty folder in which nothing can be created and which needs no removal. */
    must(mkdtemp(folder) != NULL && chdir(folder) == 0 && rmdir(folder) == 0, "an empty folder");
}

/* The last line of the command's output, without the name of the command and the newline. */
static void put_message(char *text, size_t bytes, const char *said)
{
    const char *line = said;

    for (const char *at = said; (at = strstr(at, "sluice: ")) != NULL; at++) {
        line = at + strlen("sluice: ");
    }
    (void)snprintf(text, bytes, "%.*s", (int)strcspn(line, "\n"), line);
}

enum slc_status command_on_disk(const struct slc_files *files,
                                const char *arguments,
                                struct command_words *said,
                                struct slc_error *err)
{
    char message[1024];
    int code;
    ssize_t got;

    open_outputs();
    (void)fflush(stdout);
    must(ftruncate(outputs.words, 0) == 0 && lseek(outputs.words, 0, SEEK_SET) == 0 &&
             dup2(outputs.words, STDOUT_FILENO) >= 0 && dup2(outputs.words, STDERR_FILENO) >= 0,
         "turning outputs away");
    code = command_main(arguments, files);
    (void)fflush(stdout);
    must(dup2(outputs.out, STDOUT_FILENO) >= 0 && dup2(outputs.err, STDERR_FILENO) >= 0,
         "turning outputs back");
    got = pread(outputs.words, said->text, sizeof said->text - 1, 0);
    said->text[got > 0 ? got : 0] = '\0';
    if (code == 0) {
        return SLC_OK;
    }
    put_message(message, sizeof message, said->text);
    return slc_fail(err, SLC_ERR_IO, "exit code %d: %s", code, message);
}

struct copying {
    const struct slc_files *files;
    const char *from, *path;
};

static int copy_entry(void *context, const char *name, char kind)
{
    const struct copying *copying = context;
    char *from = slc_path_join(copying->from, name), *path = slc_path_join(copying->path, name);

    (void)kind;
    command_disk_put(copying->files, from, path);
    slc_free(from);
    slc_free(path);
    return 0;
}

void command_disk_put(const struct slc_files *files, const char *from, const char *path)
{
    const struct slc_files *system = slc_files_system();
    struct slc_file_stat stat;
    struct slc_error err = SLC_ERROR_INIT;
    void *data = NULL;
    uint64_t bytes;

    must(system->stat_path(system->self, from, &stat) == 0, from);
    if (stat.kind == 'd') {
        struct copying copying = {files, from, path};

        must(files->make_folder(files->self, path) == 0 &&
                 system->list_folder(system->self, from, copy_entry, &copying) == 0,
             path);
        return;
    }
    must(slc_file_load(system, from, FILE_BYTES_MAX, &data, &bytes, &err) == SLC_OK &&
             slc_file_replace(files, path, data, bytes, &err) == SLC_OK,
         err.message);
    slc_free(data);
}

struct hashing {
    const struct slc_files *files;
    const char *path;
    uint64_t sum; /* a sum of hashes, so that the order of entries does not matter */
};

static int hash_entry(void *context, const char *name, char kind)
{
    struct hashing *hashing = context;
    char *path = slc_path_join(hashing->path, name);
    const uint64_t parts[] = {slc_hash64(name, strlen(name)),
                              command_disk_hash(hashing->files, path)};

    (void)kind;
    /* The file that marks a complete store is not part of the store. */
    if (strcmp(name, SLC_COMPLETE_STATE_NAME) != 0) {
        hashing->sum += slc_hash64(parts, sizeof parts);
    }
    slc_free(path);
    return 0;
}

uint64_t command_disk_hash(const struct slc_files *files, const char *path)
{
    struct hashing hashing = {files, path, 1};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_file_stat stat;
    void *data = NULL;
    uint64_t bytes;

    if (files->stat_path(files->self, path, &stat) < 0) {
        return 0;
    }
    if (stat.kind == 'd') {
        must(files->list_folder(files->self, path, hash_entry, &hashing) == 0, path);
        return hashing.sum;
    }
    must(slc_file_load(files, path, FILE_BYTES_MAX, &data, &bytes, &err) == SLC_OK, err.message);
    hashing.sum += slc_hash64(data, bytes);
    slc_free(data);
    return hashing.sum;
}
