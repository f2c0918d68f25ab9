/*
 * The kernel of MTTKRP: see mttkrp.cu. Included by one file for each kind of sums, ordinary and
 * exact: they are compiled side by side.
 */
#ifndef SLC_GPU_MTTKRP_KERNEL_H
#define SLC_GPU_MTTKRP_KERNEL_H

#include "gpu/decode.h"
#include "gpu/mttkrp_compute.h"

/* Shared memory as the plan lays it out. */
template <typename T, bool exact_sums>
__device__ static inline void slc_mttkrp_lay_out(const struct slc_gpu_mttkrp *job,
                                                 const struct slc_gpu_mttkrp_plan *plan,
                                                 unsigned char *shared,
                                                 slc_mttkrp_chunk<T> *chunk,
                                                 slc_mttkrp_sums<T, exact_sums> *sums)
{
    chunk->offsets = reinterpret_cast<uint32_t *>(shared);
    chunk->stride = plan->chunk_runs * SLC_RUN_NNZ;
    chunk->values = reinterpret_cast<T *>(shared + plan->values_at);
    chunk->sort.rows = chunk->offsets + (size_t)job->mode * chunk->stride;
    chunk->sort.sorted = reinterpret_cast<uint16_t *>(shared + plan->sorted_at);
    chunk->sort.counters = reinterpret_cast<uint4 *>(shared + plan->work_at);
    chunk->sort.warp_sums = reinterpret_cast<uint32_t *>(shared + plan->tags_at) - SLC_MTTKRP_WARPS;
    sums->output = static_cast<T *>(job->output.data);
    sums->rows = job->output.rows;
    sums->pitch = job->output.pitch;
    sums->exact = job->exact;
    sums->rank = job->rank;
    sums->stash_rows = plan->stash_rows;
    sums->whole = plan->whole;
    sums->stash = reinterpret_cast<T *>(shared + plan->stash_at);
    sums->stash_words = reinterpret_cast<unsigned long long *>(shared + plan->stash_at);
    sums->tags = reinterpret_cast<uint64_t *>(shared + plan->tags_at);
    sums->wanted = reinterpret_cast<uint32_t *>(sums->tags + SLC_MTTKRP_MOST_STASHED);
}

/*
 * Adds up the squares of a run that the warp has decoded: what exact sums are bounded by follows
 * from a sum of squares that the file tells, and is checked with that of what was computed from.
 */
template <typename T>
__device__ static inline void
slc_mttkrp_add_squares(const T *values, uint32_t count, struct slc_gpu_fault *fault)
{
    double sum = 0;

    __syncwarp(); /* lanes have written what others read */
    for (uint32_t i = threadIdx.x % SLC_WARP; i < count; i += SLC_WARP) {
        sum += (double)values[i] * (double)values[i];
    }
    for (int apart = SLC_WARP / 2; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(SLC_ALL_LANES, sum, apart);
    }
    if (threadIdx.x % SLC_WARP == 0) {
        atomicAdd(&fault->squares, sum);
    }
}

/* Decodes runs [first, first + plan's) of the tile, as far as it has them, a warp each. */
template <typename T, bool exact_sums>
__device__ static inline void slc_mttkrp_decode(const struct slc_gpu_mttkrp *job,
                                                const struct slc_gpu_batch *batch,
                                                const struct slc_gpu_mttkrp_plan *plan,
                                                uint32_t first,
                                                slc_mttkrp_chunk<T> *chunk)
{
    const struct slc_encoded_tile *tile = &chunk->tile->tile;
    const uint32_t left = tile->nnz - first * SLC_RUN_NNZ;
    const uint32_t most = batch->chunk_runs * SLC_RUN_NNZ;
    const uint32_t warp = threadIdx.x / SLC_WARP;
    const uint32_t begin = warp * SLC_RUN_NNZ;
    struct slc_decode_scratch *scratch =
        reinterpret_cast<struct slc_decode_scratch *>(chunk->sort.counters);

    chunk->sort.nnz = left < most ? left : most;
    chunk->sort.buckets = SLC_MTTKRP_LEAST_BUCKETS;
    while (chunk->sort.buckets < plan->buckets && chunk->sort.buckets <= tile->extent[job->mode]) {
        chunk->sort.buckets *= 2;
    }
    chunk->single = tile->extent[job->mode] < chunk->sort.buckets;
    if (begin < chunk->sort.nnz) {
        const uint32_t count = slc_decode_run<T>(
            batch->layout, chunk->tile, first + warp, scratch + warp, chunk->offsets + begin,
            chunk->stride, chunk->values + begin, batch->fault);

        if (exact_sums) {
            slc_mttkrp_add_squares(chunk->values + begin, count, batch->fault);
        }
    }
}

template <typename F, typename T, bool exact_sums>
__global__ static void __launch_bounds__(SLC_MTTKRP_THREADS,
                                         exact_sums && sizeof(F) < sizeof(T) ? 1 : 2)
    mttkrp_kernel(struct slc_gpu_mttkrp job,
                  struct slc_gpu_batch batch,
                  struct slc_gpu_mttkrp_plan plan)
{
    SLC_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t first = (uint32_t)((uint64_t)batch.chunk_count * blockIdx.x / gridDim.x);
    const uint32_t end = (uint32_t)((uint64_t)batch.chunk_count * (blockIdx.x + 1) / gridDim.x);
    slc_mttkrp_chunk<T> chunk;
    slc_mttkrp_sums<T, exact_sums> sums;
    uint32_t tile = slc_gpu_tile_of_chunk(&batch, first);

    slc_mttkrp_lay_out(&job, &plan, shared, &chunk, &sums);
    slc_mttkrp_sums_begin(&sums);
    for (uint32_t c = first; c < end; c++) {
        while (c >= batch.chunk_begin[tile + 1]) {
            tile++;
        }
        chunk.tile = batch.tiles + tile;
        slc_mttkrp_decode<T, exact_sums>(&job, &batch, &plan,
                                         (c - batch.chunk_begin[tile]) * batch.chunk_runs, &chunk);
        __syncthreads(); /* also because counters take the place of the scratch of decoding */
        slc_mttkrp_group(&chunk.sort);
        SLC_PLANT(mttkrp_chunk_not_sorted, __syncthreads());
        if (plan.stash_rows != 0 && !plan.whole) {
            slc_mttkrp_stash_hot(&sums, &chunk.sort, chunk.tile->tile.corner[job.mode]);
            __syncthreads();
        }
        slc_mttkrp_compute<F, T, exact_sums>(&job, &chunk, &sums);
        /* The next chunk, or the flush, is in the same memory. */
        SLC_PLANT(mttkrp_chunk_overwritten, __syncthreads());
    }
    slc_mttkrp_sums_end(&sums);
}

template <typename F, typename T, bool exact_sums>
static cudaError_t slc_mttkrp_launch(const struct slc_gpu_mttkrp *job,
                                     const struct slc_gpu_batch *batch,
                                     const struct slc_gpu_machine *machine,
                                     const struct slc_gpu_mttkrp_plan *plan,
                                     cudaStream_t stream)
{
    const uint32_t most = machine->multiprocessors * plan->blocks_each * batch->waves;
    const dim3 grid(batch->chunk_count < most ? batch->chunk_count : most);
    /* Blocks of 1 KiB more than they ask for have to fit; what is left is cache for the factors. */
    const uint32_t percent =
        (plan->blocks_each * (plan->shared_bytes + 1024) * 100 + machine->shared_bytes + 1023) /
        (machine->shared_bytes + 1024);
    /* The limit is the kernel's, whoever launches it: not this plan's, for others launch meanwhile.
     */
    cudaError_t error = cudaFuncSetAttribute(mttkrp_kernel<F, T, exact_sums>,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             (int)machine->shared_bytes);

    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute(mttkrp_kernel<F, T, exact_sums>,
                                     cudaFuncAttributePreferredSharedMemoryCarveout,
                                     (int)(percent < 100 ? percent : 100));
    }
    return error != cudaSuccess
               ? error
               : slc_launch(mttkrp_kernel<F, T, exact_sums>, grid, dim3(SLC_MTTKRP_THREADS),
                            plan->shared_bytes, stream, *job, *batch, *plan);
}

#endif
