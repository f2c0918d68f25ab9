/* A kernel of sptv_block.h. sptv_block.c includes this file and defines ELEMENT, INDEX and
 * SPTV(name), which makes a name from `name` and the two types.
 *
 * Eight fibers, padded to the same length, are processed in parallel, so that no branch depends on
 * the length of a single fiber. This helps because many fibers have only one or two nonzeros. */

/* Computes one step: multiplies value k by the vector element at index k and adds the product to
 * sums[k], for all k. */
static inline __attribute__((always_inline)) void SPTV(step)(const ELEMENT *values,
                                                             const INDEX *index,
                                                             const double *vector,
                                                             double sums[SLC_SPTV_LANES])
{
    for (unsigned k = 0; k < SLC_SPTV_LANES; k++) {
        sums[k] += (double)values[k] * vector[index[k]];
    }
}

/* Computes a group of fibers, in `length` steps. */
static inline __attribute__((always_inline)) void SPTV(group)(const ELEMENT *values,
                                                              const INDEX *index,
                                                              const double *vector,
                                                              uint32_t length,
                                                              double sums[SLC_SPTV_LANES])
{
    for (unsigned k = 0; k < SLC_SPTV_LANES; k++) {
        sums[k] = 0;
    }
    for (uint32_t i = 0; i < length; i++) {
        SPTV(step)
        (values + (uint64_t)i * SLC_SPTV_LANES, index + (uint64_t)i * SLC_SPTV_LANES, vector, sums);
    }
}

static void SPTV(block)(const struct slc_sptv_span *span)
{
    const INDEX *index = span->index;
    const ELEMENT *values = span->values;
    const uint16_t *place = span->place;
    const double *vector = span->vector;
    double *output = span->sums;
    double sums[SLC_SPTV_LANES];
    uint32_t c = 0;

    for (; c < span->class_count; c++) {
        const uint32_t length = span->classes[c].length;
        const uint64_t step = (uint64_t)length * SLC_SPTV_LANES;

        for (uint32_t g = 0; g < span->classes[c].groups; g++) {
            SPTV(group)(values, index, vector, length, sums);
            for (unsigned k = 0; k < SLC_SPTV_LANES; k++) {
                output[place[k]] = sums[k];
            }
            values += step;
            index += step;
            place += SLC_SPTV_LANES;
        }
    }
    if (span->last_lanes > 0) {
        const uint32_t length = span->classes[c].length;

        SPTV(group)(values, index, vector, length, sums);
        for (uint32_t k = 0; k < span->last_lanes; k++) {
            output[place[k]] = sums[k];
        }
        values += (uint64_t)length * SLC_SPTV_LANES;
        index += (uint64_t)length * SLC_SPTV_LANES;
        place += span->last_lanes;
        c++;
    }
    for (uint32_t i = 0; i < span->alone_count; i++, c++) {
        const uint32_t length = span->classes[c].length;

        SPTV(group)(values, index, vector, length, sums);
        output[*place++] = sptv_tree(sums);
        values += (uint64_t)length * SLC_SPTV_LANES;
        index += (uint64_t)length * SLC_SPTV_LANES;
    }
}
