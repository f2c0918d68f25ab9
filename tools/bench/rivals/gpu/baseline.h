/* Device code that the kernels of baselines.h have in common: the job as their kernels read it, and
 * the product of one nonzero. Factors are f32 or f64 (Element); products, sums and the output are
 * f64. */
#ifndef SLC_GPU_BASELINE_H
#define SLC_GPU_BASELINE_H

#include "tools/bench/rivals/gpu/baselines.h"

/* The job of a kernel, without the factor of the output mode, which no kernel reads. */
struct slc_baseline_job {
    unsigned mode, others; /* output mode, and number of the other modes */
    uint32_t rank, pitch;  /* rank of the factors; pitch of the output */
    void *output;
    uint8_t mode_of[SLC_MAX_ORDER]; /* mode of each factor */
    const void *factor[SLC_MAX_ORDER];
    uint32_t factor_pitch[SLC_MAX_ORDER];
};

static inline struct slc_baseline_job slc_baseline_job_of(const struct slc_gpu_mttkrp *job)
{
    struct slc_baseline_job made = {};

    made.mode = job->mode;
    made.rank = job->rank;
    made.pitch = job->output.pitch;
    made.output = job->output.data;
    for (unsigned m = 0; m < job->order; m++) {
        if (m != job->mode) {
            made.mode_of[made.others] = static_cast<uint8_t>(m);
            made.factor[made.others] = job->factor[m].data;
            made.factor_pitch[made.others++] = job->factor[m].pitch;
        }
    }
    return made;
}

/* Returns the value of nonzero i, of type `type`. All threads of a warp take the same branch. */
__device__ static inline double
slc_baseline_value(enum slc_value_type type, const void *values, uint64_t i)
{
    return type == SLC_F32 ? static_cast<double>(static_cast<const float *>(values)[i])
                           : static_cast<double>(static_cast<const double *>(values)[i]);
}

/* Returns element `column` of the row of factor f that the coordinates select. */
template <typename Element>
__device__ static inline Element slc_baseline_element(const struct slc_baseline_job *job,
                                                      unsigned f,
                                                      const uint32_t *coords,
                                                      uint32_t column)
{
    const Element *factor = static_cast<const Element *>(job->factor[f]);

    return factor[static_cast<uint64_t>(coords[job->mode_of[f]]) * job->factor_pitch[f] + column];
}

/* Returns `value` times element `column` of each factor row that the coordinates select. If the
 * number of factors is the constant `factors`, all elements are loaded before the first
 * multiplication; 0 means any number of factors. */
template <typename Element, unsigned factors = 0>
__device__ static inline double slc_baseline_product(const struct slc_baseline_job *job,
                                                     const uint32_t *coords,
                                                     double value,
                                                     uint32_t column)
{
    for (unsigned f = 0; f < (factors > 0 ? factors : job->others); f++) {
        value *= static_cast<double>(slc_baseline_element<Element>(job, f, coords, column));
    }
    return value;
}

__device__ static inline double *slc_baseline_row(const struct slc_baseline_job *job, uint32_t row)
{
    return static_cast<double *>(job->output) + static_cast<uint64_t>(row) * job->pitch;
}

/* Threads per block for kernels whose paper does not specify this number. */
enum { SLC_BASELINE_THREADS = 256 };

/* Returns the shape of a thread block that consists of vectors of threads. The number of threads of
 * a vector is a power of two: at least one thread per column, but at most a warp. */
static inline dim3 slc_baseline_block(uint32_t rank)
{
    uint32_t vector = 1;

    while (vector < rank && vector < SLC_WARP) {
        vector *= 2;
    }
    return dim3(vector, SLC_BASELINE_THREADS / vector);
}

/* Launches a kernel over fibers with one vector of threads for each of `count` items. */
template <typename Kernel>
static inline cudaError_t slc_baseline_launch_vectors(Kernel kernel,
                                                      uint64_t count,
                                                      const struct slc_gpu_fibers *fibers,
                                                      const struct slc_gpu_mttkrp *job,
                                                      cudaStream_t stream)
{
    const dim3 block = slc_baseline_block(job->rank);
    const uint64_t blocks = (count + block.y - 1) / block.y;

    return slc_launch(kernel, dim3(static_cast<unsigned>(blocks)), block, 0, stream, *fibers,
                      slc_baseline_job_of(job));
}

/* Calls function<F>(arguments), where F is the type of the factors of the job. */
#define SLC_BASELINE_BY_PRECISION(job, function, ...)                                              \
    ((job)->precision == SLC_F64 ? function<double>(__VA_ARGS__) : function<float>(__VA_ARGS__))

/* `count` copies of an output, each with `elements` numbers. */
struct slc_baseline_copies {
    void *data;
    uint32_t count;
    uint64_t elements;
};

/* Returns the bytes of shared memory of a BLCO work-group without a stash: the upper bits of its
 * block, and one tile per warp. */
static inline size_t slc_baseline_blco_shared_bytes(unsigned order, uint32_t threads)
{
    return threads * (sizeof(double) + order * sizeof(uint32_t)) + order * sizeof(uint32_t);
}

/* Arguments of one of BLCO's kernels. All options are set (none is 0). */
struct slc_baseline_blco_run {
    enum slc_gpu_kernel chosen;
    const struct slc_gpu_mttkrp *job;
    const struct slc_gpu_lists_options *options;
    struct slc_baseline_copies copies; /* for kernels with a stash; merged afterwards */
};

/* Launch the kernels of baselines.h, for at least one nonzero. For BLCO's kernels, `context` is a
 * struct slc_baseline_blco_run. */
slc_gpu_blco_launch slc_baseline_blco;
/* Adds all copies to the output. */
cudaError_t slc_baseline_blco_merge(const struct slc_gpu_mttkrp *job,
                                    const struct slc_baseline_copies *copies,
                                    cudaStream_t stream);
cudaError_t slc_baseline_amped(const struct slc_gpu_coo *coo,
                               const struct slc_gpu_mttkrp *job,
                               const struct slc_gpu_machine *machine,
                               cudaStream_t stream);
typedef cudaError_t slc_baseline_genten_fn(const struct slc_gpu_coo *coo,
                                           const struct slc_gpu_mttkrp *job,
                                           cudaStream_t stream);
slc_baseline_genten_fn slc_baseline_genten_each, slc_baseline_genten_tiles,
    slc_baseline_genten_permuted;
typedef cudaError_t slc_baseline_fiber_fn(const struct slc_gpu_fibers *fibers,
                                          const struct slc_gpu_mttkrp *job,
                                          cudaStream_t stream);
slc_baseline_fiber_fn slc_baseline_atomic_fiber, slc_baseline_atomic_nonzero;

#endif
