/*
 * Sums of f64 that do not depend on any order: fixed point in two 64-bit words per sum, added to
 * by integer atomics. Private to gpu/.
 *
 * Of every column a bound is known that no sum of magnitudes exceeds. With E the exponent of the
 * power of two above it, an addend is split exactly into a multiple of 2^(E - 62) and a rest, which
 * is rounded to a multiple of 2^(E - 93): two integers. Integers add up the same in any order, on
 * any number of devices; neither word overflows for up to 2^31 addends, and what is lost of each
 * lies 93 bits below the bound. At the end both become one f64, rounded once.
 * Sources of the idea: Kulisch and Miranker, "The arithmetic of the digital computer" (SIAM Review
 * 1986): sums in a fixed-point register; Demmel and Nguyen, "Parallel reproducible summation"
 * (IEEE Trans. Computers 2015): addends cut at places that depend on a bound alone.
 *
 * What is not finite: a column one of whose factors has a number that is not becomes NaN, whole, as
 * does one to which something was added that is not finite or beyond the bound. A sum beyond f64
 * becomes infinite. Columns bounded below 2^-900 keep what lies above 2^-993. Of a bound that is
 * too small no sum can tell, for it may have wrapped: mttkrp.h has what to check it with.
 */
#ifndef SLC_GPU_EXACT_SUM_H
#define SLC_GPU_EXACT_SUM_H

#include "gpu/cuda/batch.h"

#include <math.h>

extern "C" {
#include "base/matrix.h"
}

/*
 * largest[r] = the largest magnitude of column r, NaN where one of its numbers is NaN. `largest`
 * lies in the device's memory. Cost: one read of the matrix.
 */
cudaError_t slc_exact_sum_largest(const struct slc_gpu_matrix *matrix,
                                  enum slc_value_type type,
                                  double *largest,
                                  cudaStream_t stream);

/*
 * Begins with zeros, bounded by magnitude * product over m != mode of largest[m * rank + r].
 * `magnitude`: at least the sum of magnitudes of what the factors' products are multiplied with
 * (struct slc_device_job). `largest`: order x rank, in the device's memory, by
 * slc_exact_sum_largest; that of `mode` is not read.
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

/* output = the sums of rows [first, first + output->rows), padding untouched. */
cudaError_t slc_exact_sum_finish(const struct slc_exact_sum *sum,
                                 uint64_t rows,
                                 uint64_t first,
                                 const struct slc_gpu_matrix *output,
                                 cudaStream_t stream);

/* ---- device code */

/*
 * An addend as words. False where it is not finite or beyond the bound, by four times: partial sums
 * are rounded ones.
 */
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
