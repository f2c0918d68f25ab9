/* Passes log messages to the sink. A mutex ensures that the sink is called by one thread at a
 * time. */
#include "base/error/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slc_log_fn *sink;
static void *sink_context;

void slc_log_set_sink(slc_log_fn *fn, void *context)
{
    pthread_mutex_lock(&lock);
    sink = fn;
    sink_context = context;
    pthread_mutex_unlock(&lock);
}

void slc_log(enum slc_log_level level, const char *format, ...)
{
    char message[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    pthread_mutex_lock(&lock);
    if (sink) {
        sink(sink_context, level, message);
    }
    pthread_mutex_unlock(&lock);
}
