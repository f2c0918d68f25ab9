/*
 * cuSPARSE's product of a matrix in CSR with a vector, f64: what sparse tensor times vector is
 * measured beside. Private to gpu/.
 *
 * The library is opened when it is asked for, and only then; nothing but this benchmark needs it.
 */
#ifndef SLC_GPU_CUSPARSE_H
#define SLC_GPU_CUSPARSE_H

#include "tools/bench/rivals/gpu/fibers.h"

struct slc_cusparse;

/*
 * Prepares products of the fibers, rows of a matrix with `length` columns, with `vector` into
 * `sums`, by algorithm 1 or 2 of the library for CSR. Borrows all of them. Owns:
 * slc_cusparse_destroy, which takes NULL. Errors: SLC_ERR_UNSUPPORTED where there is no library or
 * values are f32; SLC_ERR_MEMORY; SLC_ERR_SYSTEM for one that fails.
 */
enum slc_status slc_cusparse_create(const struct slc_gpu_fibers *fibers,
                                    uint64_t length,
                                    double *vector,
                                    double *sums,
                                    unsigned algorithm,
                                    cudaStream_t stream,
                                    struct slc_cusparse **cusparse,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_cusparse_destroy(struct slc_cusparse *cusparse);

/* One product, enqueued on the stream. */
enum slc_status slc_cusparse_multiply(struct slc_cusparse *cusparse,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
