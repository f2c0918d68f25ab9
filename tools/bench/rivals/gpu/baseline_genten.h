/*
 * What GenTen's kernels share: their grid, its TinyVec (a block of columns in the registers of a
 * vector of threads), and the kernel that computes block after block. Device code, included by the
 * kernels.
 */
#ifndef SLC_GPU_BASELINE_GENTEN_H
#define SLC_GPU_BASELINE_GENTEN_H

#include "tools/bench/rivals/gpu/baseline.h"

enum {
    SLC_GENTEN_TEAM = 128, /* threads of a thread block: team_size * vector_size of its table 3 */
    SLC_GENTEN_TILE = 128  /* consecutive nonzeros of a team member: NZPTM of its figure 1 */
};

/*
 * Blocks per multiprocessor for which registers are allotted, by columns of a thread: without this
 * bound nvcc 13 allots registers for more blocks and spills.
 */
constexpr unsigned slc_genten_teams(int panel)
{
    return panel < 4 ? 8 : 7;
}

/* The launch of a kernel: a team has SLC_GENTEN_TEAM / vector members. */
struct slc_genten_launch {
    const struct slc_gpu_coo *coo;
    struct slc_baseline_job job;
    struct slc_gpu_genten_blocking blocking;
    dim3 grid, block;
    cudaStream_t stream;
};

static inline struct slc_genten_launch slc_genten_launch_of(enum slc_gpu_kernel kernel,
                                                            const struct slc_gpu_coo *coo,
                                                            const struct slc_gpu_mttkrp *job,
                                                            cudaStream_t stream)
{
    const struct slc_gpu_genten_blocking blocking = slc_gpu_genten_blocking(kernel, job->rank);
    const uint32_t members = SLC_GENTEN_TEAM / blocking.vector;
    const uint64_t nonzeros = static_cast<uint64_t>(members) * SLC_GENTEN_TILE;

    return {coo,
            slc_baseline_job_of(job),
            blocking,
            dim3(static_cast<unsigned>((coo->nnz + nonzeros - 1) / nonzeros)),
            dim3(blocking.vector, members),
            stream};
}

/* Nonzeros of this thread's team member; begin >= end: none. */
struct slc_genten_range {
    uint64_t begin, end;
};

__device__ static inline struct slc_genten_range slc_genten_range_of(uint64_t nnz)
{
    const uint64_t begin =
        (static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y) * SLC_GENTEN_TILE;

    return {begin, begin + SLC_GENTEN_TILE < nnz ? begin + SLC_GENTEN_TILE : nnz};
}

/*
 * The columns first + k * vector, k below `panel`, of a block of panel * vector columns, one
 * register each. As in TinyVec the sizes are constants, and only the last block of columns is
 * compared with the rank (`whole` is false).
 */
template <int vector, int panel, bool whole> struct slc_genten_vec {
    uint32_t first, rank;
    double v[panel];

    __device__ inline bool has(int k) const
    {
        return whole || first + static_cast<uint32_t>(k) * vector < rank;
    }
    __device__ inline void fill(double value)
    {
        SLC_UNROLL
        for (int k = 0; k < panel; k++) {
            v[k] = value;
        }
    }
    template <typename Element> __device__ inline void multiply(const Element *row)
    {
        SLC_UNROLL
        for (int k = 0; k < panel; k++) {
            if (has(k)) {
                v[k] *= static_cast<double>(row[first + k * vector]);
            }
        }
    }
    __device__ inline void add(const slc_genten_vec &other)
    {
        SLC_UNROLL
        for (int k = 0; k < panel; k++) {
            v[k] += other.v[k];
        }
    }
    __device__ inline void add_to(double *row, bool atomic) const
    {
        SLC_UNROLL
        for (int k = 0; k < panel; k++) {
            double *to = row + first + k * vector;

            if (has(k) && atomic) {
                SLC_PLANT_OTHER(genten_plain_add, atomicAdd(to, v[k]), *to += v[k]);
            } else if (has(k)) {
                *to += v[k];
            }
        }
    }
};

/* product = value times the rows of the factors that the coordinates name. */
template <typename Element, typename Vec>
__device__ static inline void slc_genten_product(const struct slc_baseline_job *job,
                                                 const uint32_t *coords,
                                                 double value,
                                                 Vec *product)
{
    product->fill(value);
    for (unsigned f = 0; f < job->others; f++) {
        product->multiply(static_cast<const Element *>(job->factor[f]) +
                          static_cast<uint64_t>(coords[job->mode_of[f]]) * job->factor_pitch[f]);
    }
}

/*
 * All blocks of columns, one after the other. Method::add_columns<vector, panel, whole>(coo, job,
 * first) adds a team member's nonzeros in the columns from `first` on.
 */
template <typename Method, int vector, int panel>
__global__ void __launch_bounds__(SLC_GENTEN_TEAM, slc_genten_teams(panel))
    slc_genten_blocks(const struct slc_gpu_coo coo, const struct slc_baseline_job job)
{
    const uint32_t columns = vector * panel;
    uint32_t first = 0;

    for (; job.rank - first >= columns; first += columns) {
        Method::template add_columns<vector, panel, true>(&coo, &job, first);
    }
    if (first < job.rank) {
        Method::template add_columns<vector, panel, false>(&coo, &job, first);
    }
}

template <typename Method, int vector, int panel>
static inline cudaError_t slc_genten_launch_blocks(const struct slc_genten_launch *with)
{
    return slc_launch(slc_genten_blocks<Method, vector, panel>, with->grid, with->block, 0,
                      with->stream, *with->coo, with->job);
}

/* Launches the kernel with the sizes of one of the columns of GenTen's table 4. */
template <typename Method>
static inline cudaError_t slc_genten_dispatch(const struct slc_genten_launch *with)
{
    const uint32_t vector = with->blocking.vector;

    /* One number for each pair of sizes: the columns of a thread are below 8. */
    switch (vector * 8 + with->blocking.columns / vector) {
    case 1 * 8 + 1:
        return slc_genten_launch_blocks<Method, 1, 1>(with);
    case 2 * 8 + 1:
        return slc_genten_launch_blocks<Method, 2, 1>(with);
    case 2 * 8 + 2:
        return slc_genten_launch_blocks<Method, 2, 2>(with);
    case 4 * 8 + 1:
        return slc_genten_launch_blocks<Method, 4, 1>(with);
    case 4 * 8 + 2:
        return slc_genten_launch_blocks<Method, 4, 2>(with);
    case 8 * 8 + 1:
        return slc_genten_launch_blocks<Method, 8, 1>(with);
    case 8 * 8 + 2:
        return slc_genten_launch_blocks<Method, 8, 2>(with);
    case 8 * 8 + 3:
        return slc_genten_launch_blocks<Method, 8, 3>(with);
    case 8 * 8 + 4:
        return slc_genten_launch_blocks<Method, 8, 4>(with);
    case 16 * 8 + 3:
        return slc_genten_launch_blocks<Method, 16, 3>(with);
    case 16 * 8 + 4:
        return slc_genten_launch_blocks<Method, 16, 4>(with);
    case 32 * 8 + 3:
        return slc_genten_launch_blocks<Method, 32, 3>(with);
    case 32 * 8 + 4:
        return slc_genten_launch_blocks<Method, 32, 4>(with);
    default:
        return cudaErrorInvalidValue;
    }
}

/* Computes the job by a method for its type of factors. */
template <template <typename Element> class Method>
static inline cudaError_t slc_genten_run(enum slc_gpu_kernel kernel,
                                         const struct slc_gpu_coo *coo,
                                         const struct slc_gpu_mttkrp *job,
                                         cudaStream_t stream)
{
    const struct slc_genten_launch with = slc_genten_launch_of(kernel, coo, job, stream);

    return job->precision == SLC_F64 ? slc_genten_dispatch<Method<double>>(&with)
                                     : slc_genten_dispatch<Method<float>>(&with);
}

#endif
