/* The product of a CSR matrix, whose rows are fibers, and a vector by cuSPARSE, in f64. */
#ifndef SLC_GPU_CUSPARSE_H
#define SLC_GPU_CUSPARSE_H

#include "tools/bench/rivals/gpu/fibers.h"

struct slc_cusparse;

/* Prepares products of a CSR matrix and `vector` by algorithm 1 or 2 of the library, with the
 * result in `sums`. The rows of the matrix are the fibers, and it has `length` columns. Borrows
 * fibers, vector and sums. The caller must call slc_cusparse_destroy, which accepts NULL. Errors:
 * SLC_ERR_UNSUPPORTED without the library or for f32 values; SLC_ERR_MEMORY; SLC_ERR_SYSTEM if the
 * library fails. */
enum slc_status slc_cusparse_create(const struct slc_gpu_fibers *fibers,
                                    uint64_t length,
                                    double *vector,
                                    double *sums,
                                    unsigned algorithm,
                                    cudaStream_t stream,
                                    struct slc_cusparse **result,
                                    struct slc_error *err) SLC_NODISCARD;
/* Enqueues one product on the stream. */
enum slc_status slc_cusparse_multiply(struct slc_cusparse *cusparse,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_cusparse_destroy(struct slc_cusparse *cusparse);

#endif
