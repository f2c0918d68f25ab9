/* Public functions that compare runs. */
#include "api/call.h"
#include "base/memory/memory.h"
#include "report/factors/runs_compare.h"
#include "sluice/experimental.h"

#include <math.h>

/* Passes a run and its matches to the callback. Sets *ended if the callback ends the call. */
static enum slc_status pass_run(const struct slc_compared_run *compared,
                                uint32_t number,
                                int (*pass)(void *context, const struct sluice_compared_run *run),
                                void *context,
                                bool *ended,
                                struct slc_error *err)
{
    const struct slc_run_match *match = compared->match;
    const uint32_t count = match != NULL ? match->count : 0;
    struct sluice_component_match *matches = slc_malloc((count + 1) * sizeof *matches);
    const struct sluice_compared_run run = {
        .number = number,
        .rank = compared->run.rank,
        .iterations = compared->run.recorded ? compared->run.record.iterations : 0,
        .match_count = count,
        .fit = compared->run.recorded ? compared->run.record.fit : (double)NAN,
        .score = match != NULL ? match->score : (double)NAN,
        .matches = matches};

    SLC_TRY(slc_check_memory(matches != NULL, err, "for matched components"));
    for (uint32_t p = 0; p < count; p++) {
        matches[p] = (struct sluice_component_match){.component = match->pair[p].two,
                                                     .first_component = match->pair[p].one,
                                                     .similarity = match->pair[p].similarity};
    }
    *ended = pass(context, &run) != 0;
    slc_free(matches);
    return SLC_OK;
}

static enum slc_status compare(struct slc_runs_compare_options *request,
                               const struct sluice_compare_options *options,
                               int (*pass)(void *context, const struct sluice_compared_run *run),
                               struct slc_error *err)
{
    struct sluice_compare_options known = {0};
    struct slc_runs_comparison comparison = {.count = 0};
    struct api_run run = {.phase = NULL};
    bool ended = false;

    SLC_TRY(API_READ_OPTIONS(sluice_compare_options, &known, options, err));
    api_run_init(&run, &known.run);
    request->memory_bytes = api_run_memory(&run);
    request->stop = run.stop.flag;
    enum slc_status status = slc_runs_compare(request, &comparison, err);
    for (unsigned i = 0; i < comparison.count && status == SLC_OK && !ended; i++) {
        status = pass_run(comparison.run[i], i, pass, known.run.context, &ended, err);
    }
    slc_runs_comparison_close(&comparison);
    return status;
}

enum sluice_status sluice_compare_runs(uint32_t count,
                                       const char *const *folders,
                                       const struct sluice_compare_options *options,
                                       int (*run)(void *context,
                                                  const struct sluice_compared_run *compared),
                                       struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;
    struct slc_runs_compare_options request = {.count = count, .folders = folders};

    API_NEED(err, ret_err, {"folders", API_ARRAY(folders, count)},
             {"run", run != NULL ? "" : NULL});
    for (uint32_t i = 0; i < count; i++) {
        if (folders[i] == NULL) {
            return api_return(slc_fail(err, SLC_ERR_USAGE, "folders[%u] is NULL", i), err, ret_err);
        }
    }
    return api_return(compare(&request, options, run, err), err, ret_err);
}
