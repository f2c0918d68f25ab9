/*
 * The oracle: naive serial implementations on coordinate lists, written to be read, not to be fast.
 * Every tuned kernel of every backend is checked against them.
 */
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

/*
 * Math: M(i, r) = sum over nonzeros x with coordinate i in `mode` of x * product over m != mode of
 * A(m)(i_m, r) ([Kolda2009] section 2.6). Factors of either type, read as f64; overwrites `output`
 * (dims[mode] x rank, row-major, contiguous, f64). Order: that of the list.
 */
void slc_reference_mttkrp(const struct slc_coo_view *tensor,
                          const struct slc_matrix *const *factors,
                          unsigned mode,
                          uint64_t output_rows,
                          uint32_t rank,
                          double *output);

/*
 * The same sums of |x| times the product of |A|: the scale for relative errors of sums with
 * cancellation.
 */
void slc_reference_mttkrp_magnitude(const struct slc_coo_view *tensor,
                                    const struct slc_matrix *const *factors,
                                    unsigned mode,
                                    uint64_t output_rows,
                                    uint32_t rank,
                                    double *output);

#endif
