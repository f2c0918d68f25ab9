/* Standard error under one lock; see console.h. */
#include "tools/progress/console.h"

#include "base/error/log.h"
#include "base/text/plain_text.h"
#include "tools/options/fields.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Of a note: two paths as long as the system takes them, and what is said of them. */
enum { NOTE_BYTES = 3 * 4096 };

static pthread_mutex_t console_lock = PTHREAD_MUTEX_INITIALIZER;
static enum console_level console_level = CONSOLE_NORMAL;
static bool live_shown;
static const char *last_status = "";

static void wipe_locked(void)
{
    if (live_shown) {
        /* Erase to the end of the line: cursor movement, not colour, so NO_COLOR does not apply. */
        (void)fputs("\r\033[K", stderr);
        live_shown = false;
    }
}

static void log_sink(void *context, enum slc_log_level level, const char *message)
{
    static const char *const names[] = {"warning", "note", "detail"};

    (void)context;
    if (console_level == CONSOLE_QUIET ||
        (level == SLC_LOG_DETAIL && console_level != CONSOLE_VERBOSE)) {
        return;
    }
    console_note("%s: %s", names[level], message);
}

void console_start(enum console_level level)
{
    console_level = level;
    slc_log_set_sink(log_sink, NULL);
}

void console_note(const char *format, ...)
{
    char text[NOTE_BYTES];
    va_list arguments;

    if (console_level == CONSOLE_QUIET) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    slc_text_make_plain(text);
    (void)pthread_mutex_lock(&console_lock);
    wipe_locked();
    (void)fprintf(stderr, "sluice: %s\n", text);
    (void)pthread_mutex_unlock(&console_lock);
}

bool console_can_rewrite(void)
{
    const char *terminal = getenv("TERM");

    return terminal != NULL && *terminal != '\0' && strcmp(terminal, "dumb") != 0 &&
           isatty(STDERR_FILENO) == 1;
}

/* True when NO_COLOR is unset and standard error is a terminal. */
static bool is_coloured(void)
{
    const char *no_colour = getenv("NO_COLOR");

    return (no_colour == NULL || *no_colour == '\0') && console_can_rewrite();
}

/* What helps where a file cannot grow, or this user may not do what was tried; NULL: who knows. */
static const char *advice_for(const struct slc_error *err)
{
    switch (err->system_errno) {
    case EACCES:
    case EPERM:
        return "this user may not do that there: grant it, or name another place; then give the "
               "same command again";
    case EROFS:
        return "nothing can be written to that file system: name another place, or mount it for "
               "writing; then give the same command again";
    case EFBIG:
        return "files there may not grow so large: raise the limit (ulimit -f), or name another "
               "place; then give the same command again";
    case EDQUOT:
        return "the quota there is used up: make room, or name another place; then give the same "
               "command again";
    case ENOSPC:
        return "make room there, or name another place; then give the same command again";
    default:
        return NULL;
    }
}

int console_error(const struct slc_error *err)
{
    struct fault_text text;
    const char *advice =
        err->status == SLC_ERR_NOSPACE || err->status == SLC_ERR_IO ? advice_for(err) : NULL;
    bool colour = is_coloured();

    (void)fault_text(&text, err);
    slc_text_make_plain(text.text);
    (void)fflush(stdout);
    (void)pthread_mutex_lock(&console_lock);
    last_status = slc_status_name(err->status);
    wipe_locked();
    (void)fprintf(stderr, "%ssluice:%s %s\n", colour ? "\033[31m" : "", colour ? "\033[0m" : "",
                  text.text);
    if (advice != NULL) {
        (void)fprintf(stderr, "sluice: %s\n", advice);
    }
    (void)pthread_mutex_unlock(&console_lock);
    return slc_status_exit_code(err->status);
}

const char *console_last_status(void)
{
    return last_status;
}

void console_line(const char *text)
{
    (void)pthread_mutex_lock(&console_lock);
    wipe_locked();
    (void)fprintf(stderr, "%s\n", text);
    (void)pthread_mutex_unlock(&console_lock);
}

/* Columns of the terminal: a live line that wraps could not be wiped. */
static int terminal_columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
}

void console_live(const char *text)
{
    (void)pthread_mutex_lock(&console_lock);
    wipe_locked();
    if (*text != '\0') {
        (void)fprintf(stderr, "%.*s", terminal_columns(), text);
        live_shown = true;
    }
    (void)fflush(stderr);
    (void)pthread_mutex_unlock(&console_lock);
}

void console_settle(void)
{
    console_live("");
}
