/* A handler writes each signal and its time into a pipe, which a thread reads. The signals are
 * blocked in all other threads, so their system calls are not interrupted. sigwait alone would not
 * suffice, because libraries (OpenBLAS) start threads before main, and these threads block no
 * signals. */
#include "tools/progress/signals.h"

#include "base/error/clock.h"
#include "tools/progress/console.h"
#include "tools/progress/log_json.h"
#include "tools/progress/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* A second signal within this time counts as the same request. */
#define SAME_REQUEST_NS UINT64_C(500000000)

/* Interval of progress_tick. */
enum { TICK_MS = 1000 };

/* Message in the pipe, written atomically (POSIX: up to PIPE_BUF). The handler records the time,
 * because the thread may read the second signal much later: on a slow machine, or while a terminal
 * blocks the output about the first signal. */
struct arrival {
    uint64_t number, at_ns;
};

static volatile int stop_signal;
static int wake_pipe[2];
static sigset_t handled;
static pthread_mutex_t abandon_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct signals_abandon current;

static void handler(int number)
{
    int saved = errno;
    const struct arrival arrival = {.number = (uint64_t)number, .at_ns = slc_clock_ns()};

    /* A full pipe already holds enough requests, so a failed write is harmless. */
    ssize_t wrote = write(wake_pipe[1], &arrival, sizeof arrival);

    (void)wrote;
    errno = saved;
}

static void handle_first_stop(int number)
{
    __atomic_store_n(&stop_signal, number, __ATOMIC_RELEASE);
    pthread_mutex_lock(&abandon_mutex);
    if (current.function != NULL) {
        console_note("stopped by a signal");
        current.function(current.context);
        run_log_abort(128 + number);
        _exit(128 + number);
    }
    pthread_mutex_unlock(&abandon_mutex);
    console_note("stopping after the current part; a second signal stops at once");
}

/* Waits for a signal. Meanwhile, updates the progress. */
static void wait_for_signal(void)
{
    struct pollfd wake = {.fd = wake_pipe[0], .events = POLLIN};

    while (poll(&wake, 1, TICK_MS) == 0) {
        progress_tick();
    }
}

static void *signal_thread(void *unused)
{
    uint64_t first_ns = 0;

    (void)pthread_sigmask(SIG_UNBLOCK, &handled, NULL);
    for (;;) {
        struct arrival arrival;

        wait_for_signal();
        ssize_t got = read(wake_pipe[0], &arrival, sizeof arrival);

        if (got != sizeof arrival) {
            if (got < 0 && errno == EINTR) {
                continue;
            }
            return unused;
        }
        if (arrival.number == SIGUSR1) {
            progress_print_state();
        } else if (!signals_stop_requested()) {
            first_ns = arrival.at_ns;
            handle_first_stop((int)arrival.number);
        } else if (arrival.at_ns > first_ns + SAME_REQUEST_NS) {
            run_log_abort(128 + (int)arrival.number);
            _exit(128 + (int)arrival.number);
        }
    }
}

/* Installs handlers for the signals that were not ignored, and blocks those signals in threads that
 * start later. */
static int install_handlers(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1};

    (void)sigemptyset(&handled);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction old;
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

        if (sigaction(numbers[i], NULL, &old) != 0 || old.sa_handler == SIG_IGN) {
            continue;
        }
        (void)sigemptyset(&action.sa_mask);
        (void)sigaddset(&handled, numbers[i]);
        if (sigaction(numbers[i], &action, NULL) != 0) {
            return errno;
        }
    }
    return pthread_sigmask(SIG_BLOCK, &handled, NULL);
}

struct signals_abandon signals_abandon_by(void (*abandon)(void *context), void *context)
{
    pthread_mutex_lock(&abandon_mutex);
    const struct signals_abandon before = current;

    current = (struct signals_abandon){.function = abandon, .context = context};
    pthread_mutex_unlock(&abandon_mutex);
    return before;
}

enum slc_status signals_start(void (*abandon)(void *context), void *context, struct slc_error *err)
{
    pthread_t thread;

    (void)signals_abandon_by(abandon, context);
    if (wake_pipe[1] != 0) {
        return SLC_OK;
    }
    if (pipe2(wake_pipe, O_CLOEXEC) != 0) {
        return slc_fail_errno(err, errno, NULL, "cannot create the pipe for signals");
    }
    int failed = install_handlers();
    if (failed == 0) {
        failed = pthread_create(&thread, NULL, signal_thread, NULL);
    }
    if (failed != 0) {
        return slc_fail(
            err, SLC_ERR_SYSTEM,
            "cannot start the signal thread: %s; raise the limit on processes (ulimit -u)",
            strerror(failed));
    }
    (void)pthread_detach(thread);
    return SLC_OK;
}

const volatile int *signals_stop(void)
{
    return &stop_signal;
}

bool signals_stop_requested(void)
{
    return __atomic_load_n(&stop_signal, __ATOMIC_ACQUIRE) != 0;
}

int signals_exit_code(void)
{
    const int number = __atomic_load_n(&stop_signal, __ATOMIC_ACQUIRE);

    return number != 0 ? 128 + number : 130;
}
