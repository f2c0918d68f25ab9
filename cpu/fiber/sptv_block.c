/* Inner loops of SpTV. They are compiled once per architecture, without special instruction sets.
 * The loops wait for single elements of the vector, so wider registers do not help: with AVX-512
 * (Xeon at 2.8 GHz, fibers of 1 to 200 nonzeros), the time stayed within 10 % of 0.8 ns per
 * nonzero, and with gather instructions it doubled. */
#include "cpu/fiber/sptv_block.h"

#define SPTV_PASTE(name, type)  sptv_##name##_##type
#define SPTV_EXPAND(name, type) SPTV_PASTE(name, type)
#define SPTV(name)              SPTV_EXPAND(name, SPTV_TYPE)

static inline double sptv_tree(const double sums[SLC_SPTV_LANES])
{
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
           ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

#define SPTV_TYPE f32_u16
#define ELEMENT   float
#define INDEX     uint16_t
#include "cpu/fiber/sptv_block_tmpl.h"
#undef SPTV_TYPE
#undef INDEX

#define SPTV_TYPE f32_u32
#define INDEX     uint32_t
#include "cpu/fiber/sptv_block_tmpl.h"
#undef SPTV_TYPE
#undef ELEMENT

#define SPTV_TYPE f64_u32
#define ELEMENT   double
#include "cpu/fiber/sptv_block_tmpl.h"
#undef SPTV_TYPE
#undef INDEX

#define SPTV_TYPE f64_u16
#define INDEX     uint16_t
#include "cpu/fiber/sptv_block_tmpl.h"
#undef SPTV_TYPE
#undef INDEX
#undef ELEMENT

void slc_sptv_block(enum slc_value_type value_type,
                    unsigned index_bytes,
                    const struct slc_sptv_span *span)
{
    if (value_type == SLC_F32) {
        (index_bytes == 2 ? sptv_block_f32_u16 : sptv_block_f32_u32)(span);
    } else {
        (index_bytes == 2 ? sptv_block_f64_u16 : sptv_block_f64_u32)(span);
    }
}

/* ---- few nonzeros */

/* Largest number of nonzeros for which the list is used. The ratio of the time of blocks to the
 * time of the list is 1.2 to 2 up to 128 nonzeros, and 0.5 to 1.0 from 1024 nonzeros on (Xeon
 * at 2.8 GHz, fibers of 1 to 10 nonzeros, one thread). */
enum { FEW_NNZ = 256 };

static uint64_t length_of(const struct slc_sptv_source *source, uint64_t fiber)
{
    return source->begin[fiber + 1] - source->begin[fiber];
}

/* The list is not used for long fibers, which blocks process faster, nor for empty fibers, whose
 * sums it would not set. */
bool slc_sptv_few_pays(const struct slc_sptv_source *source)
{
    if (source->begin[source->fibers] > FEW_NNZ) {
        return false;
    }
    for (uint64_t f = 0; f < source->fibers; f++) {
        if (length_of(source, f) == 0 || length_of(source, f) > SLC_SPTV_SHORT_NNZ) {
            return false;
        }
    }
    return source->fibers > 0;
}

/* Cost: as many sweeps over all fibers as the longest fiber has nonzeros. */
enum slc_status slc_sptv_few_create(struct slc_sptv_few *few,
                                    const struct slc_sptv_source *source,
                                    struct slc_error *err)
{
    const uint64_t nnz = source->begin[source->fibers];
    const uint64_t more = nnz - source->fibers;
    const enum slc_status status = slc_buffer_create(
        &few->memory, nnz * (sizeof(double) + sizeof(uint32_t)) + more * sizeof(uint32_t),
        SLC_PAGES_SMALL, err);
    double *values = few->memory.data;
    uint32_t *index = (uint32_t *)(void *)(values + nnz);
    uint32_t *row = index + nnz;
    uint64_t at = 0;

    SLC_TRY(status);
    few->fibers = source->fibers;
    few->more = more;
    few->values = values;
    few->index = index;
    few->row = row;
    for (uint64_t level = 0; at < nnz; level++) {
        for (uint64_t f = 0; f < source->fibers; f++) {
            if (length_of(source, f) > level) {
                values[at] = source->values[source->begin[f] + level];
                index[at] = source->index[source->begin[f] + level];
                if (level > 0) {
                    row[at - source->fibers] = (uint32_t)f;
                }
                at++;
            }
        }
    }
    return SLC_OK;
}

void slc_sptv_few_destroy(struct slc_sptv_few *few)
{
    slc_buffer_destroy(&few->memory);
    *few = (struct slc_sptv_few){.fibers = 0};
}

void slc_sptv_few_multiply(const struct slc_sptv_few *few, const double *vector, double *sums)
{
    const uint64_t fibers = few->fibers;
    const double *values = few->values + fibers;
    const uint32_t *index = few->index + fibers;

    for (uint64_t f = 0; f < fibers; f++) {
        /* Like blocks, this adds to 0, which turns -0 into +0. */
        sums[f] = 0.0 + few->values[f] * vector[few->index[f]];
    }
    for (uint64_t i = 0; i < few->more; i++) {
        sums[few->row[i]] += values[i] * vector[index[i]];
    }
}
