/* A thread that waits for signals; see signals.h. */
#include "signals.h"

#include "console.h"
#include "progress.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static volatile int stop_signal;
static sigset_t waited;
static void (*abandon_fn)(void *context);
static void *abandon_context;

static void *signal_thread(void *unused)
{
    for (;;) {
        int number;

        if (sigwait(&waited, &number) != 0) {
            continue;
        }
        if (number == SIGUSR1) {
            progress_print_state();
            continue;
        }
        if (stop_signal != 0) {
            _exit(128 + number);
        }
        stop_signal = number;
        if (abandon_fn != NULL) {
            console_note("stopped by a signal");
            abandon_fn(abandon_context);
            _exit(128 + number);
        }
        console_note("stopping at the end of the part at hand; a second signal stops at once");
    }
    return unused;
}

enum slc_status signals_start(void (*abandon)(void *context), void *context, struct slc_error *err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1};
    pthread_t thread;
    int failed;

    abandon_fn = abandon;
    abandon_context = context;
    (void)sigemptyset(&waited);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction old;

        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
            (void)sigaddset(&waited, numbers[i]);
        }
    }
    /* Threads inherit the mask: only the one below ever sees these signals. */
    failed = pthread_sigmask(SIG_BLOCK, &waited, NULL);
    if (failed == 0) {
        failed = pthread_create(&thread, NULL, signal_thread, NULL);
    }
    if (failed != 0) {
        return slc_fail(err, SLC_ERR_SYSTEM, "cannot start the thread that takes signals: error %d",
                        failed);
    }
    (void)pthread_detach(thread);
    return SLC_OK;
}

const volatile int *signals_stop(void)
{
    return &stop_signal;
}

int signals_exit_code(void)
{
    return stop_signal != 0 ? 128 + stop_signal : 130;
}
