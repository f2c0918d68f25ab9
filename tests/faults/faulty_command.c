/* Runs a command with one failing operation.
 *
 * The linker redirects calls of the functions below from the libraries to their __wrap_
 * versions. */
#include "faulty_command.h"

#include "command_main.h"
#include "thread_stacks.h"

#include "base/error/fault.h"
#include "base/memory/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef SLC_HAVE_URING
#include <liburing.h>
#endif

/* A run that takes longer than this is considered to hang. The limit is far above the longest run
 * under a sanitizer on a busy machine. */
enum { PATIENCE_SECONDS = 120 };

/* The armed fault and the counts of operations; used in the child. */
static struct slc_faulty faulty_files;
static struct command_fault fault_in_place;
static uint64_t fault_at;
static pid_t command_process;
static atomic_uint_fast64_t seen[COMMAND_KINDS];
static atomic_int_fast64_t buffers;

int __real_pthread_create(pthread_t *thread,
                          const pthread_attr_t *attributes,
                          void *(*run)(void *context),
                          void *context);
int __wrap_pthread_create(pthread_t *thread,
                          const pthread_attr_t *attributes,
                          void *(*run)(void *context),
                          void *context);
enum slc_status __real_slc_buffer_create(struct slc_buffer *buffer,
                                         size_t bytes,
                                         enum slc_pages pages,
                                         struct slc_error *err);
enum slc_status __wrap_slc_buffer_create(struct slc_buffer *buffer,
                                         size_t bytes,
                                         enum slc_pages pages,
                                         struct slc_error *err);
void __real_slc_buffer_destroy(struct slc_buffer *buffer);
void __wrap_slc_buffer_destroy(struct slc_buffer *buffer);
void __real_slc_buffer_shrink(struct slc_buffer *buffer, size_t bytes);
void __wrap_slc_buffer_shrink(struct slc_buffer *buffer, size_t bytes);
/* LeakSanitizer provides this function; without it, the address is NULL. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* Counts an operation; returns whether it must fail. */
static bool struck(unsigned kind)
{
    return atomic_fetch_add(&seen[kind], 1) + 1 == fault_at && fault_in_place.kind == kind;
}

int __wrap_pthread_create(pthread_t *thread,
                          const pthread_attr_t *attributes,
                          void *(*run)(void *context),
                          void *context)
{
    return struck(COMMAND_THREAD) ? fault_in_place.error
                                  : __real_pthread_create(thread, attributes, run, context);
}

enum slc_status __wrap_slc_buffer_create(struct slc_buffer *buffer,
                                         size_t bytes,
                                         enum slc_pages pages,
                                         struct slc_error *err)
{
    enum slc_status status = __real_slc_buffer_create(buffer, bytes, pages, err);

    atomic_fetch_add(&buffers, status == SLC_OK && buffer->data != NULL);
    return status;
}

void __wrap_slc_buffer_destroy(struct slc_buffer *buffer)
{
    atomic_fetch_sub(&buffers, buffer->data != NULL);
    __real_slc_buffer_destroy(buffer);
}

void __wrap_slc_buffer_shrink(struct slc_buffer *buffer, size_t bytes)
{
    const bool held = buffer->data != NULL;

    __real_slc_buffer_shrink(buffer, bytes);
    atomic_fetch_sub(&buffers, held && buffer->data == NULL);
}

#ifdef SLC_HAVE_URING
int __real_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags);
int __real_io_uring_register_buffers(struct io_uring *ring,
                                     const struct iovec *vectors,
                                     unsigned count);
int __wrap_io_uring_register_buffers(struct io_uring *ring,
                                     const struct iovec *vectors,
                                     unsigned count);
int __real_io_uring_register_files(struct io_uring *ring, const int *fds, unsigned count);
int __wrap_io_uring_register_files(struct io_uring *ring, const int *fds, unsigned count);
int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
    return struck(COMMAND_RING_SETUP) ? -fault_in_place.error
                                      : __real_io_uring_queue_init(entries, ring, flags);
}

int __wrap_io_uring_register_buffers(struct io_uring *ring,
                                     const struct iovec *vectors,
                                     unsigned count)
{
    return struck(COMMAND_RING_SETUP) ? -fault_in_place.error
                                      : __real_io_uring_register_buffers(ring, vectors, count);
}

int __wrap_io_uring_register_files(struct io_uring *ring, const int *fds, unsigned count)
{
    return struck(COMMAND_RING_SETUP) ? -fault_in_place.error
                                      : __real_io_uring_register_files(ring, fds, count);
}

int __wrap_io_uring_submit(struct io_uring *ring)
{
    return struck(COMMAND_RING_SUBMIT) ? -fault_in_place.error : __real_io_uring_submit(ring);
}
#endif

static int64_t count_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int64_t count = 0;

    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

/* Calls command_fault.call once. A process started by the command has a copy of this state and must
 * not repeat the call. */
static void call_in_command(void)
{
    if (getpid() == command_process) {
        fault_in_place.call();
    }
}

static void arm(const struct command_fault *fault, uint64_t k)
{
    command_process = getpid();
    slc_faulty_init(&faulty_files);
    fault_at = k;
    fault_in_place = fault != NULL ? *fault : (struct command_fault){0};
    slc_fault_arm(SLC_FAULT_ALLOCATION, fault_in_place.kind == COMMAND_ALLOCATION ? k : 0);
    if (fault != NULL && fault->kind <= SLC_FAULTY_ANY) {
        slc_faulty_fail(&faulty_files, (enum slc_faulty_kind)fault->kind, k, fault->error);
        faulty_files.action = fault->action;
        faulty_files.detail = fault->detail;
        faulty_files.from_then = fault->from_then;
        faulty_files.call = fault->call != NULL ? call_in_command : NULL;
    }
}

/* Stores what the command itself has done and left: the numbers of its operations, and the
 * resources that it has not released. */
static void account(int64_t descriptors_before, struct command_end *end)
{
    for (unsigned kind = 0; kind <= SLC_FAULTY_ANY; kind++) {
        end->seen[kind] = slc_faulty_seen(&faulty_files, (enum slc_faulty_kind)kind);
    }
    end->seen[COMMAND_ALLOCATION] = slc_fault_seen(SLC_FAULT_ALLOCATION);
    for (unsigned kind = COMMAND_THREAD; kind < COMMAND_KINDS; kind++) {
        end->seen[kind] = atomic_load(&seen[kind]);
    }
    end->fired = fault_at > 0 && (fault_in_place.kind <= SLC_FAULTY_ANY
                                      ? slc_faulty_fired(&faulty_files)
                                      : end->seen[fault_in_place.kind] >= fault_at);
    end->open_files = slc_faulty_open_count(&faulty_files);
    end->descriptors = count_descriptors() - descriptors_before;
    end->buffers = atomic_load(&buffers);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    end->leaked = __lsan_do_recoverable_leak_check != NULL && __lsan_do_recoverable_leak_check();
}

static _Noreturn void be_the_command(const char *folder,
                                     const char *arguments,
                                     const int outputs[2],
                                     const struct command_fault *fault,
                                     uint64_t k,
                                     struct command_end *end)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int64_t descriptors;

    if (chdir(folder) != 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(outputs[0], STDOUT_FILENO) < 0 || dup2(outputs[1], STDERR_FILENO) < 0) {
        _exit(EXIT_FAILURE);
    }
    descriptors = count_descriptors();
    arm(fault, k);
    end->code = command_main(arguments, &faulty_files.table);
    account(descriptors, end);
    end->finished = true;
    _exit(EXIT_SUCCESS);
}

/* Waits for the child and returns its status. Kills a child that hangs, after printing the stacks
 * of its threads. A second counts only if this process could run in it, so that a suspended machine
 * is not mistaken for a hang. */
static int wait_for_child(pid_t child)
{
    struct pollfd end = {.fd = pidfd_open(child, 0), .events = POLLIN};
    int status = 0;

    for (unsigned seconds = 1; end.fd >= 0 && poll(&end, 1, 1000) == 0; seconds++) {
        if (seconds == PATIENCE_SECONDS) {
            printf("# the command has not ended after %d s\n", PATIENCE_SECONDS);
            thread_stacks_print(child);
            (void)kill(child, SIGKILL);
        }
    }
    if (end.fd < 0 || waitpid(child, &status, 0) != child) {
        printf("Bail out! cannot wait for the command: %s\n", strerror(errno));
        exit(EXIT_FAILURE);
    }
    (void)close(end.fd);
    return status;
}

static int new_output(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);

    if (fd < 0) {
        printf("Bail out! no memory for the command's output: %s\n", strerror(errno));
        exit(EXIT_FAILURE);
    }
    return fd;
}

static void take_output(int fd, char *text, size_t text_bytes)
{
    ssize_t bytes = pread(fd, text, text_bytes - 1, 0);

    text[bytes > 0 ? bytes : 0] = '\0';
    (void)close(fd);
}

void command_run(const char *folder,
                 const char *arguments,
                 const struct command_fault *fault,
                 uint64_t k,
                 struct command_end *end)
{
    const int outputs[2] = {new_output("printed"), new_output("said")};
    struct command_end *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child;
    int status;

    (void)fflush(stdout);
    child = shared != MAP_FAILED ? fork() : -1;
    if (child == 0) {
        be_the_command(folder, arguments, outputs, fault, k, shared);
    }
    if (child < 0) {
        printf("Bail out! cannot run the command: %s\n", strerror(errno));
        exit(EXIT_FAILURE);
    }
    status = wait_for_child(child);
    *end = *shared;
    (void)munmap(shared, sizeof *shared);
    if (!end->finished) {
        end->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    }
    take_output(outputs[0], end->printed, sizeof end->printed);
    take_output(outputs[1], end->said, sizeof end->said);
}
