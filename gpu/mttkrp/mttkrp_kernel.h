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
template <bool exact_sums>
__device__ static inline void slc_mttkrp_lay_out(const struct slc_gpu_mttkrp *job,
                                                 const struct slc_gpu_mttkrp_plan *plan,
                                                 unsigned char *shared,
                                                 struct slc_mttkrp_chunk *chunk,
                                                 slc_mttkrp_sums<exact_sums> *sums)
{
    chunk->offsets = reinterpret_cast<uint32_t *>(shared);
    chunk->stride = plan->chunk_runs * SLC_RUN_NNZ;
    chunk->values = reinterpret_cast<double *>(shared + plan->values_at);
    chunk->corner = reinterpret_cast<uint64_t *>(shared + plan->corner_at);
    chunk->sort.rows = chunk->offsets + (size_t)job->mode * chunk->stride;
    chunk->sort.counters = reinterpret_cast<uint4 *>(shared + plan->work_at);
    chunk->sort.warp_sums = reinterpret_cast<uint32_t *>(shared + plan->tags_at) - SLC_MTTKRP_WARPS;
    sums->output = static_cast<double *>(job->output.data);
    sums->rows = job->output.rows;
    sums->pitch = job->output.pitch;
    sums->exact = job->exact;
    sums->rank = job->rank;
    sums->stash_rows = plan->stash_rows;
    sums->whole = plan->whole;
    sums->stash = reinterpret_cast<double *>(shared + plan->stash_at);
    sums->stash_words = reinterpret_cast<unsigned long long *>(shared + plan->stash_at);
    sums->tags = reinterpret_cast<uint64_t *>(shared + plan->tags_at);
    sums->candidates = reinterpret_cast<uint32_t *>(sums->tags + SLC_MTTKRP_MOST_STASHED);
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

/* Addresses of the descriptions of tile and layout, in global or shared memory. */
struct slc_mttkrp_fields {
    const struct slc_encoded_layout *layout;
    const struct slc_gpu_tile *tile;
};

/* Copies of the descriptions of tile and layout in shared memory, for SLC_MTTKRP_SHARED_FIELDS. */
struct slc_mttkrp_copied_fields {
    struct slc_encoded_layout layout;
    struct slc_gpu_tile tile;
};

/* Copies `bytes` bytes, a multiple of 4, with all threads of the thread block. */
__device__ static inline void slc_mttkrp_copy_words(void *to, const void *from, size_t bytes)
{
    for (size_t i = threadIdx.x; i < bytes / 4; i += SLC_MTTKRP_THREADS) {
        static_cast<uint32_t *>(to)[i] = __ldg(static_cast<const uint32_t *>(from) + i);
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
    chunk->single = extent < chunk->sort.buckets;
    if (threadIdx.x < job->order) {
        chunk->corner[threadIdx.x] = tile->corner[threadIdx.x];
    }
}

/* Decodes the chunk's runs, one per warp, starting at run `first` of the tile. */
template <bool exact_sums>
__device__ static inline void slc_mttkrp_decode(const struct slc_mttkrp_fields *fields,
                                                uint32_t first,
                                                struct slc_gpu_fault *fault,
                                                const struct slc_mttkrp_chunk *chunk)
{
    const uint32_t warp = threadIdx.x / SLC_WARP;
    const uint32_t begin = warp * SLC_RUN_NNZ;
    struct slc_decode_scratch *scratch =
        reinterpret_cast<struct slc_decode_scratch *>(chunk->sort.counters);

    if (begin < chunk->sort.nnz) {
        const uint32_t count = slc_decode_run<double>(fields->layout, fields->tile, first + warp,
                                                      scratch + warp, chunk->offsets + begin,
                                                      chunk->stride, chunk->values + begin, fault);

        if (exact_sums) {
            slc_mttkrp_add_squares(chunk->values + begin, count, fault);
        }
    }
}

/* Sorts a chunk by output row. The caller synchronizes the thread block before and after. */
template <bool exact_sums, unsigned flags>
__device__ static inline void slc_mttkrp_sort_chunk(const struct slc_gpu_mttkrp *job,
                                                    const struct slc_gpu_mttkrp_plan *plan,
                                                    const struct slc_mttkrp_chunk *chunk,
                                                    const slc_mttkrp_sums<exact_sums> *sums)
{
    struct slc_mttkrp_places places = {};

    slc_mttkrp_group(&chunk->sort, &places);
    SLC_ROLL
    for (unsigned n = 0; n < job->order; n++) {
        slc_mttkrp_move(chunk->offsets + (size_t)n * chunk->stride, &places);
    }
    slc_mttkrp_move(chunk->values, &places);
    if constexpr ((flags & SLC_MTTKRP_WITHOUT_STASH) == 0) {
        if (plan->stash_rows != 0 && !plan->whole) {
            __syncthreads();
            slc_mttkrp_stash_hot(sums, &chunk->sort, chunk->corner[job->mode]);
        }
    }
}

/* Computes a batch. `flags` is the set of enum slc_gpu_mttkrp_flag for which the kernel is
 * compiled. */
template <typename F, bool exact_sums, unsigned flags>
__global__ static void __launch_bounds__(SLC_MTTKRP_THREADS,
                                         (flags & SLC_MTTKRP_THREE_BLOCKS) != 0     ? 3
                                         : exact_sums && sizeof(F) < sizeof(double) ? 1
                                                                                    : 2)
    mttkrp_kernel(struct slc_gpu_mttkrp job,
                  struct slc_gpu_batch batch,
                  struct slc_gpu_mttkrp_plan plan)
{
    SLC_DYNAMIC_SHARED(unsigned char, shared);
    const uint32_t step = plan.interleaved ? gridDim.x : 1;
    const uint32_t first = plan.interleaved
                               ? blockIdx.x
                               : (uint32_t)((uint64_t)batch.chunk_count * blockIdx.x / gridDim.x);
    const uint32_t end =
        plan.interleaved ? batch.chunk_count
                         : (uint32_t)((uint64_t)batch.chunk_count * (blockIdx.x + 1) / gridDim.x);
    struct slc_mttkrp_fields fields = {batch.layout, NULL};
    struct slc_mttkrp_chunk chunk;
    slc_mttkrp_sums<exact_sums> sums;
    uint32_t tile = slc_gpu_tile_of_chunk(&batch, first);

    slc_mttkrp_lay_out(&job, &plan, shared, &chunk, &sums);
    slc_mttkrp_sums_begin(&sums);
    if constexpr ((flags & SLC_MTTKRP_SHARED_FIELDS) != 0) {
        auto *copied = reinterpret_cast<struct slc_mttkrp_copied_fields *>(shared + plan.fields_at);

        slc_mttkrp_copy_words(&copied->layout, batch.layout, sizeof copied->layout);
        fields = {&copied->layout, &copied->tile};
    }
    for (uint32_t c = first; c < end; c += step) {
        while (c >= batch.chunk_begin[tile + 1]) {
            tile++;
        }
        const uint32_t run = (c - batch.chunk_begin[tile]) * batch.chunk_runs;

        if constexpr ((flags & SLC_MTTKRP_SHARED_FIELDS) != 0) {
            auto *copied =
                reinterpret_cast<struct slc_mttkrp_copied_fields *>(shared + plan.fields_at);

            slc_mttkrp_copy_words(&copied->tile, batch.tiles + tile, sizeof copied->tile);
            __syncthreads();
        } else {
            fields.tile = batch.tiles + tile;
        }
        slc_mttkrp_begin_chunk(&job, &batch, &plan, &fields.tile->tile, run, &chunk);
        if constexpr ((flags & SLC_MTTKRP_TRANSCODED) != 0) {
            slc_transcoded_read(batch.transcoded + tile, job.order, run * SLC_RUN_NNZ,
                                chunk.sort.nnz, SLC_MTTKRP_THREADS, chunk.offsets, chunk.stride,
                                chunk.values);
        } else {
            slc_mttkrp_decode<exact_sums>(&fields, run, batch.fault, &chunk);
        }
        __syncthreads(); /* also needed because the counters reuse the scratch of decoding */
        slc_mttkrp_sort_chunk<exact_sums, flags>(&job, &plan, &chunk, &sums);
        SLC_PLANT(mttkrp_chunk_not_sorted, __syncthreads());
        slc_mttkrp_compute<F, exact_sums, flags>(&job, &chunk, &sums);
        /* The next chunk, or the addition of the stash at the end, uses the same memory. */
        SLC_PLANT(mttkrp_chunk_overwritten, __syncthreads());
    }
    slc_mttkrp_sums_end(&sums);
}

template <typename F, bool exact_sums, unsigned flags = 0>
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
    cudaError_t error = cudaFuncSetAttribute(mttkrp_kernel<F, exact_sums, flags>,
                                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             (int)machine->shared_bytes);

    if (error == cudaSuccess) {
        error = cudaFuncSetAttribute(mttkrp_kernel<F, exact_sums, flags>,
                                     cudaFuncAttributePreferredSharedMemoryCarveout,
                                     (int)slc_gpu_mttkrp_carveout(plan, machine));
    }
    return error != cudaSuccess
               ? error
               : slc_launch(mttkrp_kernel<F, exact_sums, flags>, grid, dim3(SLC_MTTKRP_THREADS),
                            plan->shared_bytes, stream, *job, *batch, *plan);
}

#endif
