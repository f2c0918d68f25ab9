/*
 * What a run of a command with a dry run is expected to take, judged when it begins, and what it
 * took, at its end: a line of the summary, and the member "estimate" of the last event of the JSON
 * log. It is judged by a process of its own, so that the run's memory, and what it has read, are as
 * without.
 */
#ifndef SLC_TOOLS_FORECAST_AHEAD_H
#define SLC_TOOLS_FORECAST_AHEAD_H

#include "tools/forecast/forecast.h"

struct forecast_ahead {
    bool known;
    struct forecast_told {
        uint64_t memory_bytes, read_bytes, final_bytes;
        double seconds; /* below 0: not estimated */
    } told;
    uint64_t start_ns, read_before; /* of the run itself */
};

/* Fills the forecast with what a dry run tells. */
typedef enum slc_status
forecast_judge_fn(const void *context, struct forecast *forecast, struct slc_error *err);

/*
 * Judges a run that begins. Nothing is known where the command is quiet and has no log; where
 * `input`, a file or a store (NULL: none is read), is below 128 KiB, for that is through before it
 * could be judged; nor where the forecast fails, the causes of which the run itself will tell.
 */
void forecast_ahead(struct forecast_ahead *of,
                    bool quiet,
                    const char *input,
                    forecast_judge_fn *judge,
                    const void *context);

/*
 * The run begins, and is judged by itself: the caller fills `told`, and says that it is `known`,
 * when it has its plan.
 */
void forecast_begin(struct forecast_ahead *of);

/* At the end of the run; `output`: the file or store that was made, NULL: none. */
void forecast_compare(const struct forecast_ahead *of, bool quiet, const char *output);
/*
 * The same with the bytes as the caller knows them: of an output in place of what was there (0:
 * none), and read, where system calls do not count them (io_uring; 0: as they do).
 */
void forecast_compare_bytes(const struct forecast_ahead *of,
                            bool quiet,
                            uint64_t read,
                            uint64_t size);

#endif
