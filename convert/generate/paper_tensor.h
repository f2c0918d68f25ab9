/* The tensors of five papers ([Nguyen2022], [Wijeratne2025], [Phipps2019], [SPTV], [XPLAT]), and
 * stand-ins for them: random tensors with their order, mode sizes, number of nonzeros and skew.
 *
 * A stand-in is not the tensor. The papers print no coordinates, and of the skew only the number of
 * nonempty fibers of one mode, for nine tensors. These stand-ins have this number of fibers, of
 * equal length, at random places (SLC_DIST_FIBERS). Independent Zipf-distributed indices with as
 * few fibers would need exponents of 1.0 to 1.7, and would repeat most coordinates. The stand-ins
 * of all other tensors draw indices from shuffled Zipf distributions. Their exponent is the largest
 * multiple of 0.1, up to 1 (Zipf's law), with which at least 95 % of the drawn coordinates are
 * distinct. */
#ifndef SLC_CONVERT_PAPER_TENSOR_H
#define SLC_CONVERT_PAPER_TENSOR_H

#include "convert/generate/generate.h"

#include <stdint.h>

enum { SLC_PAPER_ORDER_MAX = 5 };

struct slc_paper_tensor {
    const char *name;
    const char *source; /* the paper and the table with the numbers */
    unsigned order;
    uint64_t dims[SLC_PAPER_ORDER_MAX];
    uint64_t nnz;
    double zipf_exponent; /* 0: uniform, or fibers */
    unsigned fiber_mode;  /* mode of `fibers`, from 1; 0: the number of fibers is not printed */
    uint64_t fibers;
};

enum { SLC_PAPER_TENSORS = 24 };
extern const struct slc_paper_tensor slc_paper_tensors[SLC_PAPER_TENSORS];
/* The names of the tensors, in the order of slc_paper_tensors, and NULL. */
extern const char *const slc_paper_tensor_names[SLC_PAPER_TENSORS + 1];

/* Returns the tensor of this name, or NULL. */
const struct slc_paper_tensor *slc_paper_tensor_find(const char *name);

/* Sets order, dims, nnz and distribution of `options` to those of the stand-in. `scale`, above 0
 * and at most 1, is the factor of the numbers of nonzeros and of fibers. The mode sizes shrink so
 * that the share of nonzero cells stays the same: all by the same factor, but no mode below 16 (a
 * smaller mode keeps its size). */
void slc_paper_tensor_options(const struct slc_paper_tensor *tensor,
                              double scale,
                              struct slc_generate_options *options);

#endif
