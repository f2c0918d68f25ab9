/* Log messages of the library. The process has one sink for them; without a sink, messages are
 * discarded. */
#ifndef SLC_BASE_LOG_H
#define SLC_BASE_LOG_H

#include "base/error/error.h"

enum slc_log_level { SLC_LOG_WARNING, SLC_LOG_NOTE, SLC_LOG_DETAIL };

/* Receives a message: one line without a newline. Any thread may call the sink, but never two
 * threads at the same time. */
typedef void slc_log_fn(void *context, enum slc_log_level level, const char *message);

/* Sets the process-wide sink; NULL discards messages. */
void slc_log_set_sink(slc_log_fn *fn, void *context);
void slc_log(enum slc_log_level level, const char *format, ...) SLC_PRINTF(2, 3);

#endif
