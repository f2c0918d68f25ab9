/* Makes a forecast at the start of a run, for commands with a dry run. At the end of the run, a
 * line of the summary and the member "estimate" of the last event of the JSON log compare the
 * forecast with the actual values. The forecast is made in a separate process, so that it does not
 * affect the memory and bytes read of the run. */
#ifndef SLC_TOOLS_FORECAST_AHEAD_H
#define SLC_TOOLS_FORECAST_AHEAD_H

#include "tools/forecast/forecast.h"

struct forecast_ahead {
    bool known;
    struct forecast_totals {
        uint64_t memory_bytes, read_bytes, final_bytes;
        double seconds; /* below 0: not estimated */
    } expected;
    uint64_t start_ns, read_before; /* time, and bytes read, when the run started */
};

/* Makes the forecast of a dry run. */
typedef enum slc_status
forecast_estimate_fn(const void *context, struct forecast *forecast, struct slc_error *err);

/* Makes the forecast for a run that starts. Makes no forecast in three cases: the command is quiet
 * and has no log; `input`, a file or a store (NULL: none is read), is smaller than 128 KiB, so the
 * run would be complete sooner than the forecast; the forecast fails, in which case the run will
 * report the cause itself. */
void forecast_ahead(struct forecast_ahead *of,
                    bool quiet,
                    const char *input,
                    forecast_estimate_fn *estimate,
                    const void *context);

/* Starts the clock of a run that makes its own forecast: the caller sets `expected` and `known`
 * when it has its plan. */
void forecast_ahead_start(struct forecast_ahead *of);

/* Compares the forecast with the actual values at the end of the run. `output`: the file or store
 * that was written; NULL: none. */
void forecast_compare(const struct forecast_ahead *of, bool quiet, const char *output);
/* As forecast_compare, with bytes counted by the caller. `size`: bytes of the output; 0: no output.
 * `read`: bytes read; 0 means the bytes read by system calls. Reads of io_uring are no system
 * calls, so the caller must count them. */
void forecast_compare_bytes(const struct forecast_ahead *of,
                            bool quiet,
                            uint64_t read,
                            uint64_t size);

#endif
