/* Adds single nonzeros to a survey. The portable table of encoding loops uses these functions for
 * all nonzeros; the other tables use them for remainders. */
#ifndef SLC_STORAGE_ENCODE_LOOPS_H
#define SLC_STORAGE_ENCODE_LOOPS_H

#include "base/hash.h"
#include "base/memory/bytes.h"
#include "storage/codec/encode_ops.h"

#include <assert.h>
#include <math.h>

/* Returns the survey of an empty tile. */
static inline struct slc_value_survey slc_survey_none(void)
{
    return (struct slc_value_survey){
        .low = INFINITY, .high = -INFINITY, .all_f32 = true, .all_integer = true};
}

static inline bool slc_survey_is_integer(double value)
{
    /* Compare with 2^53 first, because converting an out-of-range value is undefined. */
    return value >= -9007199254740992.0 && value <= 9007199254740992.0 &&
           (double)(int64_t)value == value;
}

/* Adds nonzeros begin .. end - 1 to a survey. */
static inline void slc_survey_add(const struct slc_tile_source *source,
                                  uint32_t begin,
                                  uint32_t end,
                                  struct slc_value_survey *survey)
{
    for (uint32_t i = begin; i < end; i++) {
        double value = source->values[i];
        uint64_t hi = source->key_hi == NULL ? source->upper : source->key_hi[i];

        assert(value != 0 || !signbit(value));
        survey->squares += value * value;
        survey->content += slc_content_term(source->key_lo[i], hi, slc_bits_f64(value));
        survey->low = value < survey->low ? value : survey->low;
        survey->high = value > survey->high ? value : survey->high;
        survey->all_f32 &= (double)(float)value == value;
        survey->all_integer &= slc_survey_is_integer(value);
    }
}

#endif
