/*
 * Sums of f64 that do not depend on any order: fixed point in two 64-bit words per sum, updated by
 * integer atomics. Private to gpu/.
 *
 * Each column has a bound that no sum of magnitudes exceeds. Let 2^E be the smallest power of two
 * above twice the bound. An addend is split exactly into a multiple of 2^(E - 62) and a rest, and
 * the rest is rounded to a multiple of 2^(E - 93). Both parts are added as integers, so sums are
 * the same in any order and on any number of devices. Neither word overflows for up to 2^31
 * addends, and each addend is rounded 93 bits below the bound. At the end, both words are converted
 * to one f64, rounded once. Sources of the idea: [Kulisch1986], sums in a fixed-point register;
 * [Demmel2015], addends cut at positions that depend only on a bound.
 *
 * Non-finite values: a whole column becomes NaN if that column of a factor has a non-finite number,
 * or if an addend is not finite or exceeds the bound. A sum too large for f64 becomes infinite. In
 * columns whose bound is below 2^-900, addends are rounded to multiples of 2^-993. If the bound is
 * too small, the sums may have wrapped, and do not show it; mttkrp.h describes the check.
 */
#ifndef SLC_GPU_EXACT_SUM_H
#define SLC_GPU_EXACT_SUM_H

#include "gpu/cuda/batch.h"

#include <math.h>

extern "C" {
#include "base/matrix.h"
}

/* Sets largest[r] to the largest magnitude in column r, or NaN if the column contains NaN.
 * `largest` is in device memory. Cost: one read of the matrix. */
cudaError_t slc_exact_sum_largest(const struct slc_gpu_matrix *matrix,
                                  enum slc_value_type type,
                                  double *largest,
                                  cudaStream_t stream);

/*
 * Clears the sums and sets the bound of each column r to magnitude * product over m != mode of
 * largest[m * rank + r]. `magnitude`: at least the sum of the magnitudes of the numbers by which
 * the products of factor rows are multiplied (struct slc_device_job). `largest`: order x rank
 * numbers from slc_exact_sum_largest, in device memory; those of `mode` are not read.
 */
cudaError_t slc_exact_sum_begin(const struct slc_exact_sum *sum,
                                uint64_t rows,
                                uint32_t rank,
                                const double *largest,
                                unsigned order,
                                unsigned mode,
                                double magnitude,
                                cudaStream_t stream);

/* Adds `words` words of another device's sum, which must have begun with the same bounds. */
cudaError_t slc_exact_sum_add(unsigned long long *to,
                              const unsigned long long *from,
                              uint64_t words,
                              cudaStream_t stream);

/* Sets `output` to the sums of rows [first, first + output->rows). Leaves padding unchanged. */
cudaError_t slc_exact_sum_finish(const struct slc_exact_sum *sum,
                                 uint64_t rows,
                                 uint64_t first,
                                 const struct slc_gpu_matrix *output,
                                 cudaStream_t stream);

/* ---- device code */

/* Splits an addend into words. Returns false if the addend is not finite or exceeds 2^E, which is
 * two to four times the bound; the factor allows for rounding of partial sums. */
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
