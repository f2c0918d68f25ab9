/* Implements GenTen's kernels (baselines.h): the shape of their grid, GenTen's TinyVec (a block of
 * columns in the registers of a vector of threads), the kernel that iterates over blocks of
 * columns, and the three methods of GenTen. */
#include "tools/bench/rivals/gpu/baseline.h"

enum {
    SLC_GENTEN_TEAM = 128, /* threads per block: team_size * vector_size in the paper's table 3 */
    SLC_GENTEN_TILE = 128  /* consecutive nonzeros per team member: NZPTM in the paper's figure 1 */
};

/* Returns the number of thread blocks per multiprocessor for which the compiler must leave enough
 * registers. `panel` is the number of columns per thread. Without this bound, nvcc 13 assumes more
 * blocks and spills registers. */
constexpr unsigned slc_genten_teams(int panel)
{
    return panel < 4 ? 8 : 7;
}

/* Arguments of a launch. A team, which is a thread block, has SLC_GENTEN_TEAM / vector members; a
 * member is `vector` threads. */
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

/* The nonzeros of the team member that this thread belongs to; there are none if begin >= end. */
struct slc_genten_range {
    uint64_t begin, end;
};

__device__ static inline struct slc_genten_range slc_genten_range_of(uint64_t nnz)
{
    const uint64_t begin =
        (static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y) * SLC_GENTEN_TILE;

    return {begin, begin + SLC_GENTEN_TILE < nnz ? begin + SLC_GENTEN_TILE : nnz};
}

/* The columns of a thread in a block of panel * vector columns: first + k * vector for k below
 * `panel`, with one register each. As in TinyVec, the sizes are constants. Only in the last block
 * of columns (`whole` is false) are columns compared with the rank. */
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

/* Sets product to value times the factor rows that the coordinates select. */
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

/* Iterates over all blocks of columns. Method::add_columns<vector, panel, whole>(coo, job, first)
 * adds the nonzeros of a team member in the columns that start at `first`. */
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
static cudaError_t slc_genten_launch_blocks(const struct slc_genten_launch *with)
{
    return slc_launch(slc_genten_blocks<Method, vector, panel>, with->grid, with->block, 0,
                      with->stream, *with->coo, with->job);
}

/* Launches the kernel with the sizes of one column of table 4 of the paper. */
template <typename Method>
static cudaError_t slc_genten_dispatch(const struct slc_genten_launch *with)
{
    const uint32_t vector = with->blocking.vector;
    const uint32_t panel = with->blocking.columns / vector;

#define SLC_GENTEN_SIZES(V, P)                                                                     \
    if (vector == (V) && panel == (P)) {                                                           \
        return slc_genten_launch_blocks<Method, V, P>(with);                                       \
    }
    SLC_GENTEN_SIZES(1, 1)
    SLC_GENTEN_SIZES(2, 1)
    SLC_GENTEN_SIZES(2, 2)
    SLC_GENTEN_SIZES(4, 1)
    SLC_GENTEN_SIZES(4, 2)
    SLC_GENTEN_SIZES(8, 1)
    SLC_GENTEN_SIZES(8, 2)
    SLC_GENTEN_SIZES(8, 3)
    SLC_GENTEN_SIZES(8, 4)
    SLC_GENTEN_SIZES(16, 3)
    SLC_GENTEN_SIZES(16, 4)
    SLC_GENTEN_SIZES(32, 3)
    SLC_GENTEN_SIZES(32, 4)
#undef SLC_GENTEN_SIZES
    return cudaErrorInvalidValue;
}

/* Computes the job with a method, for the type of the factors. */
template <template <typename Element> class Method>
static cudaError_t slc_genten_run(enum slc_gpu_kernel kernel,
                                  const struct slc_gpu_coo *coo,
                                  const struct slc_gpu_mttkrp *job,
                                  cudaStream_t stream)
{
    const struct slc_genten_launch with = slc_genten_launch_of(kernel, coo, job, stream);

    return job->precision == SLC_F64 ? slc_genten_dispatch<Method<double>>(&with)
                                     : slc_genten_dispatch<Method<float>>(&with);
}

/* ---- genten-a, the portable loop: MTTKRP-A of figure 1 of the paper */

template <typename Element>
__global__ void __launch_bounds__(SLC_GENTEN_TEAM)
    slc_genten_each(const struct slc_gpu_coo coo, const struct slc_baseline_job job, uint32_t block)
{
    SLC_DYNAMIC_SHARED(double, shared);
    const struct slc_genten_range range = slc_genten_range_of(coo.nnz);
    /* A thread reads and writes only its own columns, so no thread waits for another. */
    double *product = shared + threadIdx.y * block;

    for (uint32_t first = 0; first < job.rank; first += block) {
        const uint32_t left = job.rank - first;
        const uint32_t width = left < block ? left : block;

        for (uint64_t i = range.begin; i < range.end; i++) {
            const uint32_t *coords = coo.coords + i * coo.order;
            const double value = slc_baseline_value(coo.type, coo.values, i);
            double *row = slc_baseline_row(&job, coords[job.mode]);

            for (uint32_t c = threadIdx.x; c < width; c += blockDim.x) {
                product[c] = value;
            }
            for (unsigned f = 0; f < job.others; f++) {
                for (uint32_t c = threadIdx.x; c < width; c += blockDim.x) {
                    product[c] *= static_cast<double>(
                        slc_baseline_element<Element>(&job, f, coords, first + c));
                }
            }
            for (uint32_t c = threadIdx.x; c < width; c += blockDim.x) {
                atomicAdd(row + first + c, product[c]);
            }
        }
    }
}

template <typename Element>
static cudaError_t
launch_each(const struct slc_gpu_coo *coo, const struct slc_gpu_mttkrp *job, cudaStream_t stream)
{
    const struct slc_genten_launch made =
        slc_genten_launch_of(SLC_GPU_GENTEN_EACH, coo, job, stream);
    const uint32_t columns = made.blocking.columns;

    return slc_launch(slc_genten_each<Element>, made.grid, made.block,
                      made.block.y * columns * sizeof(double), stream, *coo, made.job, columns);
}

cudaError_t slc_baseline_genten_each(const struct slc_gpu_coo *coo,
                                     const struct slc_gpu_mttkrp *job,
                                     cudaStream_t stream)
{
    return SLC_BASELINE_BY_PRECISION(job, launch_each, coo, job, stream);
}

/* ---- genten-b, products in registers: MTTKRP-B of figure 3 */

template <typename Element> struct slc_genten_tiles {
    template <int vector, int panel, bool whole>
    __device__ static inline void
    add_columns(const struct slc_gpu_coo *coo, const struct slc_baseline_job *job, uint32_t first)
    {
        const struct slc_genten_range range = slc_genten_range_of(coo->nnz);
        slc_genten_vec<vector, panel, whole> product;

        product.first = first + threadIdx.x;
        product.rank = job->rank;
        for (uint64_t i = range.begin; i < range.end; i++) {
            const uint32_t *coords = coo->coords + i * coo->order;

            slc_genten_product<Element>(job, coords, slc_baseline_value(coo->type, coo->values, i),
                                        &product);
            product.add_to(slc_baseline_row(job, coords[job->mode]), true);
        }
    }
};

cudaError_t slc_baseline_genten_tiles(const struct slc_gpu_coo *coo,
                                      const struct slc_gpu_mttkrp *job,
                                      cudaStream_t stream)
{
    return slc_genten_run<slc_genten_tiles>(SLC_GPU_GENTEN_TILES, coo, job, stream);
}

/* ---- genten-c, permuted traversal: MTTKRP-C of figure 4 */

/* The method genten-c. The nonzeros of a team member are in the order of output rows. Only the
 * first and the last of these rows can be shared with other members; the rows in between are
 * updated without atomics. */
template <typename Element> struct slc_genten_permuted {
    template <int vector, int panel, bool whole>
    __device__ static inline void
    add_columns(const struct slc_gpu_coo *coo, const struct slc_baseline_job *job, uint32_t column)
    {
        const struct slc_genten_range range = slc_genten_range_of(coo->nnz);
        const uint32_t *order = coo->permutation[job->mode];
        slc_genten_vec<vector, panel, whole> sum, product;
        uint32_t first, row;

        if (range.begin >= range.end) {
            return;
        }
        product.first = sum.first = column + threadIdx.x;
        product.rank = sum.rank = job->rank;
        sum.fill(0);
        first = coo->coords[static_cast<uint64_t>(order[range.begin]) * coo->order + job->mode];
        row = first;
        for (uint64_t k = range.begin; k < range.end; k++) {
            const uint64_t i = order[k];
            const uint32_t *coords = coo->coords + i * coo->order;
            const double value = slc_baseline_value(coo->type, coo->values, i);

            if (coords[job->mode] != row) {
                sum.add_to(slc_baseline_row(job, row), row == first);
                row = coords[job->mode];
                sum.fill(0);
            }
            slc_genten_product<Element>(job, coords, value, &product);
            sum.add(product);
        }
        sum.add_to(slc_baseline_row(job, row), true);
    }
};

cudaError_t slc_baseline_genten_permuted(const struct slc_gpu_coo *coo,
                                         const struct slc_gpu_mttkrp *job,
                                         cudaStream_t stream)
{
    return slc_genten_run<slc_genten_permuted>(SLC_GPU_GENTEN_PERMUTED, coo, job, stream);
}
