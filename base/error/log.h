/* Log messages of the library: a process-wide sink, silent by default. */
#ifndef SLC_BASE_LOG_H
#define SLC_BASE_LOG_H

#include "base/error/error.h"

enum slc_log_level { SLC_LOG_WARNING, SLC_LOG_NOTE, SLC_LOG_DETAIL };

/* `message` is one line without a newline. Called from any thread, one call at a time. */
typedef void slc_log_fn(void *context, enum slc_log_level level, const char *message);

/* Sets the process-wide sink; NULL discards messages. */
void slc_log_set_sink(slc_log_fn *fn, void *context);
void slc_log(enum slc_log_level level, const char *format, ...) SLC_PRINTF(2, 3);

#endif
