/*
 * Inner loops of encoding, one table per instruction set, like the tables of decoding
 * (storage/codec/decode_ops.h). All tables produce the same bits.
 */
#ifndef SLC_STORAGE_ENCODE_OPS_H
#define SLC_STORAGE_ENCODE_OPS_H

#include "storage/codec/codec.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Properties of a tile's values, found in one pass. */
struct slc_value_survey {
    double squares;   /* sum of squares in key order, one accumulator */
    uint64_t content; /* sum of slc_content_term */
    double low, high; /* smallest and largest value */
    bool all_f32;     /* every value is exactly representable as a float */
    bool all_integer; /* every value is an integer of magnitude <= 2^53 */
};

struct slc_encode_ops {
    const char *name;

    /* Surveys all nonzeros of a tile. */
    void (*survey)(const struct slc_tile_source *source, struct slc_value_survey *survey);

    /* above[i] = values[i] - low, for integers of magnitude <= 2^53. */
    void (*above)(const double *values, uint32_t count, int64_t low, uint64_t *above);

    /*
     * longer[w] = number of the `count` (at most SLC_GROUP_NNZ) values with more than w bits, for
     * every w below the largest bit length, which is returned. `longer` holds 64 elements.
     */
    unsigned (*longer)(const uint64_t *values, uint32_t count, uint8_t *longer);
};

/* NULL until first used; all threads that find it NULL choose the same table. */
extern _Atomic(const struct slc_encode_ops *) slc_encode_ops_chosen;
const struct slc_encode_ops *slc_encode_ops_choose(void);

/* The table in use; threads may call it at any time. */
static inline const struct slc_encode_ops *slc_encode_ops(void)
{
    const struct slc_encode_ops *ops =
        atomic_load_explicit(&slc_encode_ops_chosen, memory_order_relaxed);

    return ops != NULL ? ops : slc_encode_ops_choose();
}

/* NULL if the machine or the build lacks the instructions. */
const struct slc_encode_ops *slc_encode_ops_portable(void);
const struct slc_encode_ops *slc_encode_ops_avx512(void);

#endif
