/* Writes to standard error under one lock. */
#include "tools/progress/console.h"

#include "base/error/log.h"
#include "base/text/plain_text.h"
#include "tools/options/fields.h"
#include "tools/progress/format.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Maximum length of a note: two paths of maximum length and the text. */
enum { NOTE_BYTES = 3 * 4096 };

static pthread_mutex_t console_lock = PTHREAD_MUTEX_INITIALIZER;
static enum console_level console_level = CONSOLE_NORMAL;
static bool live_shown;
static const char *last_status = "";

static void wipe_locked(void)
{
    if (live_shown) {
        /* Erases to the end of the line. NO_COLOR does not apply, because this sequence sets no
         * color. */
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

/* Returns true if NO_COLOR is unset and standard error is a terminal. */
static bool is_coloured(void)
{
    const char *no_colour = getenv("NO_COLOR");

    return (no_colour == NULL || *no_colour == '\0') && console_can_rewrite();
}

/* Returns advice for an error that the user can resolve, such as a full disk or missing permission;
 * NULL if there is none. */
static const char *advice_for(const struct slc_error *err)
{
    switch (err->system_errno) {
    case EACCES:
    case EPERM:
        return "grant this user the permission, or choose another location; then repeat the "
               "command";
    case EROFS:
        return "the file system is read-only: choose another location, or remount it for writing; "
               "then repeat the command";
    case EFBIG:
        return "the file size limit is reached: raise it (ulimit -f), or choose another location; "
               "then repeat the command";
    case EMFILE:
    case ENFILE:
        return "the limit on open files is reached: raise it (ulimit -n), then repeat the command";
    case EDQUOT:
        return "the disk quota is used up: free some space, or choose another location; then "
               "repeat the command";
    case ENOSPC:
        return "free some space there, or choose another location; then repeat the command";
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

/* Returns the columns of the terminal. A live line must not be longer, because a line that wraps
 * could not be erased. */
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

void console_clear_live(void)
{
    console_live("");
}

void console_note_lost(
    bool base_lost, bool dims_lost, unsigned order, const uint64_t *dims, const char *other)
{
    char sizes[FORMAT_DIMS_BYTES] = "";
    int used = 0;

    for (unsigned n = 0; dims_lost && n < order; n++) {
        used += snprintf(sizes + used, sizeof sizes - (size_t)used, "%s%" PRIu64,
                         n == 0 ? " --dims " : "x", dims[n]);
    }
    if (base_lost || dims_lost) {
        console_note("note: the text does not state its %s%s%s: to read it back, use convert%s%s%s",
                     base_lost ? "index base" : "", base_lost && dims_lost ? " and " : "",
                     dims_lost ? "mode sizes" : "", base_lost ? " --index-base 0" : "", sizes,
                     other);
    }
}
