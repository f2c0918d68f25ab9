/*
 * Sparse tensor times vector on the device, from fibers in its memory. Private to gpu/.
 *
 *     y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n)
 *
 * as tools/bench/rivals/cpu/sptv.h computes it, after SPTV (fibers.h). A warp takes a group of
 * fibers (fiber_groups.h): 32 fibers at a time, a lane for each; their nonzeros, 32 at a time, a
 * lane for each of those, whose products are added up within fibers by a scan across lanes. Then a
 * lane stores its fiber's sum, next to its neighbours'. Values and indices are read once, side by
 * side.
 *
 * What SPTV 6.2 measures one by one are switches: fibers that are empty may be there or not
 * (slc_gpu_fibers_create_all), and indices that never occur kept or dropped, with the vector
 * shortened to match (3.2).
 *
 * Order: that of the groups (fiber_groups.h): the same bits every time. All in f64.
 */
#ifndef SLC_GPU_SPTV_H
#define SLC_GPU_SPTV_H

#include "tools/bench/rivals/gpu/fiber_groups.h"

struct slc_gpu_sptv_options {
    bool drop_unused;     /* indices that never occur */
    uint32_t group_items; /* nonzeros and ends of fibers of a group; 0: by the machine */
};

/* Borrows the fibers. */
struct slc_gpu_sptv {
    const struct slc_gpu_fibers *fibers;
    struct slc_fiber_groups groups;
    double *carries; /* of each group */
    bool drop_unused;
    /* Where unused indices are dropped: */
    uint32_t *index; /* per nonzero, in the short vector */
    uint32_t *used;  /* of each index of the short vector the original one */
    uint32_t used_count;
    double *short_vector;
};

/*
 * Makes room for products of `fibers`. Needs: all-zero. Owns: slc_gpu_sptv_destroy, also after an
 * error.
 */
cudaError_t slc_gpu_sptv_create(struct slc_gpu_sptv *sptv,
                                const struct slc_gpu_fibers *fibers,
                                const struct slc_gpu_sptv_options *options,
                                const struct slc_gpu_machine *machine);
/*
 * Prepares products of what the fibers are now with vectors of `length` numbers: again whenever
 * others have been found. Unused indices are dropped on the host. Errors: cudaErrorInvalidValue for
 * an index that is not below `length`, where unused ones are dropped; cudaErrorMemoryAllocation,
 * also for the host's memory.
 */
cudaError_t slc_gpu_sptv_prepare(struct slc_gpu_sptv *sptv, uint64_t length, cudaStream_t stream);
/* Takes an all-zero struct. */
void slc_gpu_sptv_destroy(struct slc_gpu_sptv *sptv);

/* sums[f] of every fiber; both in the device's memory. */
cudaError_t slc_gpu_sptv_multiply(const struct slc_gpu_sptv *sptv,
                                  const double *vector,
                                  double *sums,
                                  cudaStream_t stream);

/* What a product has to move: fibers, the vector and the sums once. */
uint64_t slc_gpu_sptv_bytes(const struct slc_gpu_sptv *sptv, uint64_t length);

#endif
