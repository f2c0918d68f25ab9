/* Computes the values of a model at coordinates in memory. */
#include "engine/product/predict/predict.h"

#include "base/error/stop.h"
#include "base/memory/checked.h"
#include "base/thread/team.h"

#include <inttypes.h>

enum {
    GRAIN = 1024,
    /* Number of coordinates between two checks for a stop request, a few milliseconds of work. */
    BATCH = 1 << 18
};

struct values {
    const struct slc_model_view *model;
    const uint64_t *const *coords;
    double *values;
    uint64_t first; /* first coordinate of the batch */
};

static enum slc_status check_indices(const struct slc_model_view *model,
                                     uint64_t count,
                                     const uint64_t *const *coords,
                                     struct slc_error *err)
{
    for (unsigned n = 0; n < model->order; n++) {
        for (uint64_t i = 0; i < count; i++) {
            if (coords[n][i] >= model->factors[n]->rows) {
                return slc_fail(
                    err, SLC_ERR_INPUT,
                    "entry %" PRIu64 ": index %" PRIu64
                    " of mode %u is out of range: the mode size of the model is %" PRIu64
                    " (entries, indices and modes start at 0)",
                    i, coords[n][i], n, model->factors[n]->rows);
            }
        }
    }
    return SLC_OK;
}

static void compute_values(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    const struct values *values = context;
    uint64_t index[SLC_MAX_ORDER];

    (void)worker;
    for (uint64_t i = values->first + begin; i < values->first + end; i++) {
        for (unsigned n = 0; n < values->model->order; n++) {
            index[n] = values->coords[n][i];
        }
        values->values[i] =
            slc_loss_mean(values->model->loss, slc_model_value(values->model, index));
    }
}

enum slc_status slc_predict_values(const struct slc_model_view *model,
                                   uint64_t count,
                                   const uint64_t *const *coords,
                                   unsigned threads,
                                   const volatile int *flag,
                                   double *values,
                                   struct slc_error *err)
{
    const struct slc_stop stop = {.flag = flag};
    struct values batch = {.model = model, .coords = coords, .values = values};

    SLC_TRY(check_indices(model, count, coords, err));
    for (; batch.first < count; batch.first += BATCH) {
        SLC_TRY(slc_stop_wanted(&stop)
                    ? slc_fail(err, SLC_ERR_INTERRUPTED, "stopped before its end")
                    : slc_team_for(threads, slc_min_u64(BATCH, count - batch.first), GRAIN,
                                   compute_values, &batch, err));
    }
    return SLC_OK;
}
