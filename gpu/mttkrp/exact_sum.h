/* Sums of f64 that do not depend on the order of additions. A sum is a fixed-point number in two
 * 64-bit words, updated by integer atomics. Private to gpu/.
 *
 * Each column has a bound that the sum of the magnitudes of its addends does not exceed. Let 2^E be
 * the smallest power of two greater than twice the bound. An addend is split exactly into a
 * multiple of 2^(E - 62) and a rest, and the rest is rounded to a multiple of 2^(E - 93). Both
 * parts are added as integers, so sums are the same in any order and on any number of devices.
 * Neither word overflows for up to 2^31 addends. At the end, both words are converted to one f64,
 * rounded once. Sources of the idea: [Kulisch1986], sums in a fixed-point register; [Demmel2015],
 * addends cut at positions that depend only on a bound.
 *
 * Non-finite values: a whole column becomes NaN if that column of a factor has a non-finite number,
 * or if an addend is not finite or exceeds 2^E. A sum too large for f64 becomes infinite. E is at
 * least -900, so that addends are rounded to multiples of at least 2^-993. If the bound is too
 * small, a sum may wrap, which is not visible in the sum; slc_mttkrp_add_squares (mttkrp_kernel.h)
 * is the check for this. */
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

/* Clears the sums and sets the bound of each column r to magnitude * product over m != mode of
 * largest[m * rank + r]. `magnitude` is at least the sum of the magnitudes of the values of the
 * nonzeros (struct slc_device_job). `largest` has order x rank numbers from slc_exact_sum_largest,
 * in device memory; the numbers of `mode` are not read. */
cudaError_t slc_exact_sum_begin(const struct slc_exact_sum *sum,
                                uint64_t rows,
                                uint32_t rank,
                                const double *largest,
                                unsigned order,
                                unsigned mode,
                                double magnitude,
                                cudaStream_t stream);

/* Adds `words` words of another device's sums at `from` to the sums at `to`. Needs: the bounds of
 * slc_exact_sum_begin were the same on both devices. */
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

/* Splits an addend into two words. Returns false if the addend is not finite or exceeds 2^E. 2^E is
 * two to four times the column's bound, which leaves a margin for rounding of partial sums. */
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
