/* Reference kernels: simple serial implementations on coordinate lists, written to be read, not to
 * be fast. Tests compare every tuned kernel of every backend with these kernels. */
#ifndef SLC_CPU_REFERENCE_H
#define SLC_CPU_REFERENCE_H

#include "base/matrix.h"
#include "base/memory/limits.h"

#include <stdint.h>

/* A coordinate list. coords[m][i] is the coordinate in mode m of nonzero i. Borrowed. */
struct slc_coo_view {
    unsigned order;
    uint64_t nnz;
    const uint64_t *coords[SLC_MAX_ORDER];
    const double *values;
};

/* Computes the MTTKRP M(i, r) = sum of (x * product of A(m)(i_m, r) over m != mode) over the
 * nonzeros x with coordinate i in `mode` ([Kolda2009] section 2.6). Factors may have either type
 * and are read as f64. Overwrites `output` (output_rows x rank, row-major, contiguous, f64). Order:
 * sums add in the order of the list. */
void slc_reference_mttkrp(const struct slc_coo_view *tensor,
                          const struct slc_matrix *const *factors,
                          unsigned mode,
                          uint64_t output_rows,
                          uint32_t rank,
                          double *output);

/* Computes the same sums with |x| and |A|: the scale for relative errors of sums with
 * cancellation. */
void slc_reference_mttkrp_magnitude(const struct slc_coo_view *tensor,
                                    const struct slc_matrix *const *factors,
                                    unsigned mode,
                                    uint64_t output_rows,
                                    uint32_t rank,
                                    double *output);

#endif
