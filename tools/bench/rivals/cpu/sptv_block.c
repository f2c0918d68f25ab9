/*
 * See tools/bench/rivals/cpu/sptv_block.h. Compiled once, for every processor: what the loops wait
 * for is one number of the vector after the other, and wider registers gained nothing (AVX-512,
 * Xeon at 2.8 GHz, fibers of 1 to 200 nonzeros: within 10 % of 0.8 ns a nonzero, and gathers took
 * twice the time).
 */
#include "tools/bench/rivals/cpu/sptv_block.h"

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
#include "tools/bench/rivals/cpu/sptv_block_tmpl.h"
#undef SPTV_TYPE
#undef INDEX

#define SPTV_TYPE f32_u32
#define INDEX     uint32_t
#include "tools/bench/rivals/cpu/sptv_block_tmpl.h"
#undef SPTV_TYPE
#undef ELEMENT

#define SPTV_TYPE f64_u32
#define ELEMENT   double
#include "tools/bench/rivals/cpu/sptv_block_tmpl.h"
#undef SPTV_TYPE
#undef INDEX

#define SPTV_TYPE f64_u16
#define INDEX     uint16_t
#include "tools/bench/rivals/cpu/sptv_block_tmpl.h"
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
