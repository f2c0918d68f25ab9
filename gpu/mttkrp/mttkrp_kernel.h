/* The MTTKRP kernel, which mttkrp.cu outlines. Three files include this header, so that they are
 * compiled in parallel: for ordinary sums, for exact sums and for the variants that benchmarks
 * compare.
 *
 * Decoding, sorting and computing are separate stages that communicate through shared memory. A
 * kernel for several right-hand sides could decode once, and then sort and compute for each
 * right-hand side. */
#ifndef SLC_GPU_MTTKRP_KERNEL_H
#define SLC_GPU_MTTKRP_KERNEL_H

#include "gpu/decode/decode.h"
#include "gpu/decode/transcode.h"
#include "gpu/mttkrp/mttkrp_compute.h"

/* Sets the pointers into shared memory to the positions that the plan assigns. */
__device__ static inline void slc_mttkrp_lay_out(const struct slc_gpu_mttkrp *job,
                                                 const struct slc_gpu_mttkrp_plan *plan,
                                                 unsigned char *shared,
                                                 struct slc_mttkrp_chunk *chunk)
{
    chunk->offsets = reinterpret_cast<uint32_t *>(shared);
    chunk->stride = plan->chunk_runs * SLC_RUN_NNZ;
    chunk->values = reinterpret_cast<double *>(shared + plan->values_at);
    chunk->corner = reinterpret_cast<uint64_t *>(shared + plan->corner_at);
    chunk->sort.rows = chunk->offsets + (size_t)job->mode * chunk->stride;
    chunk->sort.counters = reinterpret_cast<uint4 *>(shared + plan->work_at);
    chunk->sort.warp_sums = reinterpret_cast<uint32_t *>(shared + plan->sums_at);
}

/* Adds the squares of the values of a run that the warp decoded. The bound of exact sums is derived
 * from the sum of squares in the file; the host checks the sum of squares in the file against the
 * sum that the kernels compute here. */
__device__ static inline void
slc_mttkrp_add_squares(const double *values, uint32_t count, struct slc_gpu_fault *fault)
{
    double sum = 0;

    __syncwarp(); /* make the values of other warp lanes visible */
    for (uint32_t i = threadIdx.x % SLC_WARP; i < count; i += SLC_WARP) {
        sum += values[i] * values[i];
    }
    for (int apart = SLC_WARP / 2; apart > 0; apart /= 2) {
        sum += __shfl_xor_sync(SLC_ALL_LANES, sum, apart);
    }
    if (threadIdx.x % SLC_WARP == 0) {
        atomicAdd(&fault->squares, sum);
    }
}

/* Sets the number of nonzeros of the chunk whose first run is `first`, and the arguments of its
 * sort. */
__device__ static inline void slc_mttkrp_begin_chunk(const struct slc_gpu_mttkrp *job,
                                                     const struct slc_gpu_batch *batch,
                                                     const struct slc_gpu_mttkrp_plan *plan,
                                                     const struct slc_encoded_tile *tile,
                                                     uint32_t first,
                                                     struct slc_mttkrp_chunk *chunk)
{
    const uint32_t left = tile->nnz - first * SLC_RUN_NNZ;
    const uint32_t most = batch->chunk_runs * SLC_RUN_NNZ;
    const uint32_t extent = tile->extent[job->mode];

    chunk->sort.nnz = left < most ? left : most;
    chunk->sort.buckets = SLC_MTTKRP_LEAST_BUCKETS;
    while (chunk->sort.buckets < plan->buckets && chunk->sort.buckets <= extent) {
        chunk->sort.buckets *= 2;
    }
    if (threadIdx.x < job->order) {
        chunk->corner[threadIdx.x] = tile->corner[threadIdx.x];
    }
}

/* Decodes the chunk's runs, starting at run `first` of the tile. If there are twice or four times
 * as many warps as runs, several warps decode parts of the same run. */
template <bool exact_sums>
__device__ static inline void slc_mttkrp_decode(const struct slc_encoded_layout *layout,
                                                const struct slc_gpu_tile *tile,
                                                uint32_t first,
                                                struct slc_gpu_fault *fault,
                                                const struct slc_mttkrp_chunk *chunk)
{
    const uint32_t warp = threadIdx.x / SLC_WARP;
    const uint32_t parts =
        slc_least(SLC_MTTKRP_WARPS * SLC_RUN_NNZ / chunk->stride, SLC_RUN_NNZ / SLC_GROUP_NNZ);
    const uint32_t run = warp / parts, begin = run * SLC_RUN_NNZ;
    const uint32_t part_nnz = SLC_RUN_NNZ / parts, from = warp % parts * part_nnz;
    const struct slc_run_part part = {from, from + part_nnz};
    struct slc_decode_scratch *scratch =
        reinterpret_cast<struct slc_decode_scratch *>(chunk->sort.counters);

    if (begin < chunk->sort.nnz) {
        const uint32_t count = slc_decode_part<double>(layout, tile, first + run, part,
                                                       scratch + warp, chunk->offsets + begin,
                                                       chunk->stride, chunk->values + begin, fault);

        if (exact_sums) {
            slc_mttkrp_add_squares(chunk->values + begin + from, count, fault);
        }
    }
}

/* Sorts a chunk by output row. The caller synchronizes the thread block before and after. */
__device__ static inline void slc_mttkrp_sort_chunk(const struct slc_gpu_mttkrp *job,
                                                    const struct slc_mttkrp_chunk *chunk)
{
    struct slc_mttkrp_places places = {};

    slc_mttkrp_group(&chunk->sort, &places);
    SLC_ROLL
    for (unsigned n = 0; n < job->order; n++) {
        slc_mttkrp_move(chunk->offsets + (size_t)n * chunk->stride, &places);
    }
    slc_mttkrp_move(chunk->values, &places);
}

/* Adds the products of a batch to the output. If `transcoded`, tiles are read from
 * batch.transcoded. Thread blocks process chunks at a stride, so that concurrent thread blocks read
 * neighbouring rows of the factors and share them in the second-level cache. */
template <typename F, bool exact_sums, bool transcoded>
__global__ static void __launch_bounds__(SLC_MTTKRP_THREADS,
                                         exact_sums && sizeof(F) < sizeof(double) ? 1 : 2)
    mttkrp_kernel(struct slc_gpu_mttkrp job,
                  struct slc_gpu_batch batch,
                  struct slc_gpu_mttkrp_plan plan)
{
    SLC_DYNAMIC_SHARED(unsigned char, shared);
    struct slc_mttkrp_chunk chunk;
    uint32_t tile = slc_gpu_tile_of_chunk(&batch, blockIdx.x);

    slc_mttkrp_lay_out(&job, &plan, shared, &chunk);
    for (uint32_t c = blockIdx.x; c < batch.chunk_count; c += gridDim.x) {
        while (c >= batch.chunk_begin[tile + 1]) {
            tile++;
        }
        const uint32_t run = (c - batch.chunk_begin[tile]) * batch.chunk_runs;

        slc_mttkrp_begin_chunk(&job, &batch, &plan, &batch.tiles[tile].tile, run, &chunk);
        if constexpr (transcoded) {
            slc_transcoded_read(batch.transcoded + tile, job.order, run * SLC_RUN_NNZ,
                                chunk.sort.nnz, SLC_MTTKRP_THREADS, chunk.offsets, chunk.stride,
                                chunk.values);
        } else {
            slc_mttkrp_decode<exact_sums>(batch.layout, batch.tiles + tile, run, batch.fault,
                                          &chunk);
        }
        __syncthreads(); /* also needed because the counters reuse the scratch of decoding */
        slc_mttkrp_sort_chunk(&job, &chunk);
        SLC_PLANT(mttkrp_chunk_not_sorted, __syncthreads());
        slc_mttkrp_compute<F, exact_sums>(&job, &chunk);
        /* The next chunk uses the same memory. */
        SLC_PLANT(mttkrp_chunk_overwritten, __syncthreads());
    }
}

template <typename F, bool exact_sums, bool transcoded>
static cudaError_t slc_mttkrp_launch(const struct slc_gpu_mttkrp *job,
                                     const struct slc_gpu_batch *batch,
                                     const struct slc_gpu_machine *machine,
                                     const struct slc_gpu_mttkrp_plan *plan,
                                     cudaStream_t stream)
{
    const uint32_t most = machine->multiprocessors * plan->blocks_each * batch->waves;
    const dim3 grid(batch->chunk_count < most ? batch->chunk_count : most);
    /* Set the limit to the maximum for the machine, not to the bytes of this plan, because other
     * threads may launch the kernel at the same time with other plans. */
    cudaError_t error = cudaFuncSetAttribute(mttkrp_kernel<F, exact_sums, transcoded>,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             (int)machine->shared_bytes);

    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute(mttkrp_kernel<F, exact_sums, transcoded>,
                                     cudaFuncAttributePreferredSharedMemoryCarveout,
                                     (int)slc_gpu_mttkrp_carveout(plan, machine));
    }
    return error != cudaSuccess ? error
                                : slc_launch(mttkrp_kernel<F, exact_sums, transcoded>, grid,
                                             dim3(SLC_MTTKRP_THREADS), plan->shared_bytes, stream,
                                             *job, *batch, *plan);
}

#endif
