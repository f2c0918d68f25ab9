/* Options of the kernels over lists. */
#ifndef SLC_GPU_LISTS_OPTIONS_H
#define SLC_GPU_LISTS_OPTIONS_H

#include <stdint.h>

/* Options of the kernels, which tools/bench/rivals/gpu/baselines.h describes; 0: the default. */
struct slc_gpu_lists_options {
    uint32_t coarsening; /* nonzeros per thread of BLCO: 1, with a stash 2 */
    uint32_t work_group; /* threads, a multiple of 32 up to 512: 256; of blco-code always 32 */
    uint32_t stash_rows; /* all rows of the mode, of blco-code 4; fewer if memory is too small */
    uint32_t copies;     /* of the output, with a stash: one per graphics processing cluster */
    uint32_t index_bits; /* of BLCO's form, up to 64: 64 */
    uint32_t queues;     /* of blco-queues, 2 to 8: 8 */
    uint64_t block_nnz;  /* nonzeros of a block of BLCO, at most: 2^27, of blco-queues what fits */
    uint64_t partition_rows; /* rows of AMPED's partitions, the number of devices: 1 */
    unsigned fiber_mode;     /* whose fibers atomic-fiber and atomic-nonzero take, from 0 */
};

#endif
