/*
 * Sums of f64 that do not depend on any order: fixed point in two 64-bit words per sum, updated by
 * integer atomics. Private to gpu/.
 *
 * Each column has a bound that no sum of magnitudes exceeds. With E the exponent of the next power
 * of two, an addend is split exactly into a multiple of 2^(E - 62) and a rest, which is rounded to
 * a multiple of 2^(E - 93): two integers. Sums of integers are the same in any order, on any number
 * of devices; neither word overflows for up to 2^31 addends, and the rounding of each is 93 bits
 * below the bound. At the end both words become one f64, rounded once. Sources of the idea:
 * [Kulisch1986], sums in a fixed-point register; [Demmel2015], addends cut at positions that depend
 * only on a bound.
 *
 * Non-finite values: a whole column becomes NaN if one of its factors has a non-finite number in
 * it, or if an addend is not finite or exceeds the bound. A sum beyond f64 becomes infinite.
 * Columns bounded below 2^-900 keep the part above 2^-993. A bound that is too small cannot be
 * detected from the sums, which may have wrapped; mttkrp.h has the check.
 */
#ifndef SLC_GPU_EXACT_SUM_H
#define SLC_GPU_EXACT_SUM_H

#include "gpu/cuda/batch.h"

#include <math.h>

extern "C" {
#include "base/matrix.h"
}

/* largest[r] = the largest magnitude of column r, NaN if one of its numbers is NaN. `largest` is in
 * the device's memory. Cost: one read of the matrix. */
cudaError_t slc_exact_sum_largest(const struct slc_gpu_matrix *matrix,
                                  enum slc_value_type type,
                                  double *largest,
                                  cudaStream_t stream);

/*
 * Clears the sums, with the bounds magnitude * product over m != mode of largest[m * rank + r].
 * `magnitude`: at least the sum of magnitudes of the multipliers of the factors' products (struct
 * slc_device_job). `largest`: order x rank, in the device's memory, from slc_exact_sum_largest;
 * that of `mode` is not read.
 */
cudaError_t slc_exact_sum_begin(const struct slc_exact_sum *sum,
                                uint64_t rows,
                                uint32_t rank,
                                const double *largest,
                                unsigned order,
                                unsigned mode,
                                double magnitude,
                                cudaStream_t stream);

/* Adds `words` words of another device's sum, which began with the same bounds. */
cudaError_t slc_exact_sum_add(unsigned long long *to,
                              const unsigned long long *from,
                              uint64_t words,
                              cudaStream_t stream);

/* output = the sums of rows [first, first + output->rows), padding unchanged. */
cudaError_t slc_exact_sum_finish(const struct slc_exact_sum *sum,
                                 uint64_t rows,
                                 uint64_t first,
                                 const struct slc_gpu_matrix *output,
                                 cudaStream_t stream);

/* ---- device code */

/* Splits an addend into words. Returns false if it is not finite or exceeds the bound by a factor
 * of four, which allows for rounding of partial sums. */
__device__ static inline bool
slc_exact_split(double addend, double scale, long long *high, long long *low)
{
    const double scaled = addend * scale;
    const double whole = rint(scaled);

    if (!(fabs(scaled) <= 0x1p62)) {
        return false;
    }
    *high = (long long)whole;
    *low = (long long)rint((scaled - whole) * 0x1p31);
    return true;
}

#endif
