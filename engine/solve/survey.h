/* Reads all values of a store once, before a decomposition that depends on them: checks that its
 * loss accepts every value, and computes sums of values. */
#ifndef SLC_ENGINE_SURVEY_H
#define SLC_ENGINE_SURVEY_H

#include "base/error/error.h"
#include "base/loss.h"
#include "engine/stream/stream.h"
#include "storage/manifest/store.h"

#include <stdint.h>

/* Sums are integers: multiples of a fraction of the largest possible value. So they do not depend
 * on the order in which values are added. */
struct slc_survey {
    enum slc_loss loss;
    uint64_t count; /* nonzeros in the sums */
    double value_unit, entropy_unit;
    __extension__ __int128 values, entropies;
};

/* Computes the survey in one pass over number `layout` of the stream's layouts. Memory: a few
 * numbers. Order: the same bits for any layout and number of threads. Errors: SLC_ERR_INPUT, with
 * the indices in the order of the input, if the loss does not accept a value (the nonzero with the
 * smallest indices is named); SLC_ERR_INTERRUPTED; those of the pass. */
enum slc_status slc_survey_store(const struct slc_store *store,
                                 struct slc_stream *stream,
                                 unsigned layout,
                                 enum slc_loss loss,
                                 const volatile int *stop,
                                 struct slc_survey *survey,
                                 struct slc_error *err) SLC_NODISCARD;

/* Removes a value from the sums. */
void slc_survey_remove(struct slc_survey *survey, double value);

/* slc_survey_sum returns the sum of the values. slc_survey_entropy returns the sum over the values
 * x > 0 of x log x (loss poisson) or log x (gamma), or 0 (other losses). Accuracy: a value is
 * rounded to about 2^-60 of the norm of the tensor. */
double slc_survey_sum(const struct slc_survey *survey);
double slc_survey_entropy(const struct slc_survey *survey);

#endif
