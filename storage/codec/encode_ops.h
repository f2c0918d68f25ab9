/* Inner loops of encoding, one table per instruction set, like the tables of decoding
 * (storage/codec/decode_ops.h). All tables produce the same bits. */
#ifndef SLC_STORAGE_ENCODE_OPS_H
#define SLC_STORAGE_ENCODE_OPS_H

#include "storage/codec/codec.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Properties of a tile's values, found in one pass. */
struct slc_value_survey {
    double squares;   /* sum of squares in key order, with one accumulator */
    uint64_t content; /* sum of slc_content_term over the nonzeros */
    double low, high; /* smallest and largest value */
    bool all_f32;     /* every value is exactly representable as a float */
    bool all_integer; /* every value is an integer of magnitude <= 2^53 */
};

struct slc_encode_ops {
    const char *name;

    /* Surveys all nonzeros of a tile. */
    void (*survey)(const struct slc_tile_source *source, struct slc_value_survey *survey);

    /* Computes above[i] = values[i] - low for integers of magnitude <= 2^53. */
    void (*above)(const double *values, uint32_t count, int64_t low, uint64_t *above);

    /* Returns the largest bit length of `count` (at most SLC_GROUP_NNZ) values. For every w below
     * this length, sets longer[w] to the number of values with more than w bits. `longer` has 64
     * elements. */
    unsigned (*longer)(const uint64_t *values, uint32_t count, uint8_t *longer);
};

/* NULL until its first use; all threads that find NULL here choose the same table. */
extern _Atomic(const struct slc_encode_ops *) slc_encode_ops_chosen;
const struct slc_encode_ops *slc_encode_ops_choose(void);

/* Returns the table in use. Threads: any. */
static inline const struct slc_encode_ops *slc_encode_ops(void)
{
    const struct slc_encode_ops *ops =
        atomic_load_explicit(&slc_encode_ops_chosen, memory_order_relaxed);

    return ops != NULL ? ops : slc_encode_ops_choose();
}

/* Each function returns its table, or NULL if the machine or the build lacks the instructions. */
const struct slc_encode_ops *slc_encode_ops_portable(void);
const struct slc_encode_ops *slc_encode_ops_avx512(void);

#endif
