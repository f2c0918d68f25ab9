/*
 * MTTKRP of encoded blocks: M(i, r) = sum of x * product over m != mode of A(m)(i_m, r) (KB section
 * 2.6), for all nonzeros x of a batch.
 *
 * A persistent grid; every thread block takes a contiguous range of the batch's chunks, whose
 * nonzeros share rows of the factors with their neighbours. Per chunk its warps decode a run each
 * into shared memory; the nonzeros are sorted by output row (mttkrp_group.h); then groups of lanes
 * take equal shares of them. A lane has 16 bytes of a row of every factor, so that a group has as
 * many lanes as a row has 16 bytes, and wider rows are taken in panels of 32 lanes. Products are
 * added up in registers while the output row stays the same, and a segment's sum goes where
 * mttkrp_sums.h puts it.
 *
 * Cuts of chunks and shares depend on the tile, the rank and the types alone, and so do the sums of
 * segments: with exact sums the bits of the result depend on nothing else.
 */
#include "gpu/decode.h"
#include "gpu/mttkrp_sums.h"

/* Nonzeros whose rows are on their way together, per lane. */
enum { SLC_MTTKRP_STEP = 4 };

/* What a thread block knows of its chunk. T: of values, products and sums. */
template <typename T> struct slc_mttkrp_chunk {
    uint32_t *offsets; /* of mode n from n * stride on */
    uint32_t stride;
    T *values;
    const struct slc_gpu_tile *tile;
    struct slc_mttkrp_sort sort;
    bool single; /* no two rows of the tile share a bucket: each has one segment */
};

/* What a lane computes with. F: of factors. */
template <typename F, typename T, bool exact_sums> struct slc_mttkrp_lane {
    const struct slc_gpu_mttkrp *job;
    const slc_mttkrp_chunk<T> *chunk;
    const slc_mttkrp_sums<T, exact_sums> *sums;
    uint32_t column; /* the first of its columns */
};

/* Columns of 16 bytes. */
template <typename F> static constexpr int slc_mttkrp_width = 16 / sizeof(F);

/* The sum that a lane is at. */
template <typename T, int width> struct slc_mttkrp_segment {
    T sum[width];
    uint32_t row; /* offset from the tile's corner */
    bool alone;   /* the chunk has no other segment of this row */
};

/* A lane's columns of the factors' rows, for a fixed number of other modes. */
template <typename F, int others> struct slc_mttkrp_rows {
    const F *corner[others]; /* in the row of the tile's corner */
    const uint32_t *offsets[others];
    uint32_t pitch;
};

/* 16 bytes that no kernel writes meanwhile. */
__device__ static inline void slc_mttkrp_load(const float *from, float (&to)[4])
{
    const float4 row = __ldg(reinterpret_cast<const float4 *>(from));

    to[0] = row.x;
    to[1] = row.y;
    to[2] = row.z;
    to[3] = row.w;
}

__device__ static inline void slc_mttkrp_load(const double *from, double (&to)[2])
{
    const double2 row = __ldg(reinterpret_cast<const double2 *>(from));

    to[0] = row.x;
    to[1] = row.y;
}

/* Fused by name, so that every device, and none, has the same bits. */
__device__ static inline float slc_mttkrp_fused(float a, float b, float sum)
{
    return fmaf(a, b, sum);
}

__device__ static inline double slc_mttkrp_fused(double a, double b, double sum)
{
    return fma(a, b, sum);
}

template <typename F, typename T, bool exact_sums>
__device__ static inline const F *slc_mttkrp_corner(const slc_mttkrp_lane<F, T, exact_sums> *lane,
                                                    unsigned mode)
{
    const struct slc_gpu_matrix *factor = &lane->job->factor[mode];

    return static_cast<const F *>(factor->data) +
           lane->chunk->tile->tile.corner[mode] * factor->pitch + lane->column;
}

/*
 * Of `count` nonzeros the products of their values and of the rows of all other modes but the last,
 * and the rows of that: the last product is fused with adding it up. Offsets are below 2^32 and
 * pitches below 2^16: 64 bits hold their product.
 */
template <typename F, typename T, bool exact_sums, int others, int count>
__device__ static inline void slc_mttkrp_products(const slc_mttkrp_lane<F, T, exact_sums> *lane,
                                                  const slc_mttkrp_rows<F, others> *rows,
                                                  const uint32_t (&at)[count],
                                                  T (&product)[count][slc_mttkrp_width<F>],
                                                  F (&last)[count][slc_mttkrp_width<F>])
{
    constexpr int width = slc_mttkrp_width<F>;
    F row[others][count][width];

    SLC_UNROLL
    for (int m = 0; m < others; m++) {
        SLC_UNROLL
        for (int u = 0; u < count; u++) {
            slc_mttkrp_load(rows->corner[m] + (uint64_t)rows->offsets[m][at[u]] * rows->pitch,
                            row[m][u]);
        }
    }
    SLC_UNROLL
    for (int u = 0; u < count; u++) {
        const T value = lane->chunk->values[at[u]];

        SLC_UNROLL
        for (int c = 0; c < width; c++) {
            product[u][c] = value;
            SLC_UNROLL
            for (int m = 0; m + 1 < others; m++) {
                product[u][c] *= row[m][u][c];
            }
            last[u][c] = row[others - 1][u][c];
        }
    }
}

/* The rows of one mode, or ones where it is that of the output. */
template <typename F, typename T, bool exact_sums, int count>
__device__ static inline void slc_mttkrp_load_mode(const slc_mttkrp_lane<F, T, exact_sums> *lane,
                                                   unsigned mode,
                                                   const uint32_t (&at)[count],
                                                   F (&row)[count][slc_mttkrp_width<F>])
{
    const uint32_t *offsets = lane->chunk->offsets + (size_t)mode * lane->chunk->stride;
    const uint32_t pitch = lane->job->factor[mode].pitch;
    const F *corner = mode == lane->job->mode ? NULL : slc_mttkrp_corner(lane, mode);

    SLC_UNROLL
    for (int u = 0; u < count; u++) {
        SLC_UNROLL
        for (int c = 0; c < slc_mttkrp_width<F>; c++) {
            row[u][c] = 1;
        }
        if (corner != NULL) {
            slc_mttkrp_load(corner + (uint64_t)offsets[at[u]] * pitch, row[u]);
        }
    }
}

/*
 * The same for any number of modes, one or two at a time: more rows on their way would need more
 * registers than two blocks of a multiprocessor have.
 */
template <typename F, typename T, bool exact_sums, int count>
__device__ static inline void slc_mttkrp_products_any(const slc_mttkrp_lane<F, T, exact_sums> *lane,
                                                      const uint32_t (&at)[count],
                                                      T (&product)[count][slc_mttkrp_width<F>],
                                                      F (&last)[count][slc_mttkrp_width<F>])
{
    constexpr int width = slc_mttkrp_width<F>;
    constexpr int together = sizeof(F) < sizeof(T) ? 1 : 2;
    const unsigned order = lane->job->order;

    SLC_UNROLL
    for (int u = 0; u < count; u++) {
        SLC_UNROLL
        for (int c = 0; c < width; c++) {
            product[u][c] = lane->chunk->values[at[u]];
            last[u][c] = 1;
        }
    }
    SLC_ROLL
    for (unsigned first = 0; first < order; first += together) {
        F row[together][count][width];

        SLC_UNROLL
        for (int m = 0; m < together; m++) {
            const unsigned mode = first + (unsigned)m;

            /* Beyond the last mode ones, as for the output's. */
            slc_mttkrp_load_mode(lane, mode < order ? mode : lane->job->mode, at, row[m]);
        }
        SLC_UNROLL
        for (int u = 0; u < count; u++) {
            SLC_UNROLL
            for (int c = 0; c < width; c++) {
                SLC_UNROLL
                for (int m = 0; m < together; m++) {
                    product[u][c] *= row[m][u][c];
                }
            }
        }
    }
}

/* Takes `count` nonzeros, in the order of their rows. others 0: any number of modes. */
template <typename F, typename T, bool exact_sums, int others, int count>
__device__ static inline void
slc_mttkrp_step(const slc_mttkrp_lane<F, T, exact_sums> *lane,
                const slc_mttkrp_rows<F, others == 0 ? 1 : others> *rows,
                const uint32_t (&at)[count],
                slc_mttkrp_segment<T, slc_mttkrp_width<F>> *segment)
{
    constexpr int width = slc_mttkrp_width<F>;
    const slc_mttkrp_chunk<T> *chunk = lane->chunk;
    T product[count][width];
    F last[count][width];

    if constexpr (others == 0) {
        slc_mttkrp_products_any<F, T, exact_sums, count>(lane, at, product, last);
    } else {
        slc_mttkrp_products<F, T, exact_sums, others, count>(lane, rows, at, product, last);
    }
    SLC_UNROLL
    for (int u = 0; u < count; u++) {
        const uint32_t row = chunk->sort.rows[at[u]];

        if (row != segment->row) {
            slc_mttkrp_add_segment<T, exact_sums, width>(
                lane->sums, chunk->tile->tile.corner[lane->job->mode] + segment->row, lane->column,
                segment->sum, segment->alone);
            segment->row = row;
            segment->alone = chunk->single;
            SLC_UNROLL
            for (int c = 0; c < width; c++) {
                segment->sum[c] = 0;
            }
        }
        SLC_UNROLL
        for (int c = 0; c < width; c++) {
            segment->sum[c] = slc_mttkrp_fused(product[u][c], (T)last[u][c], segment->sum[c]);
        }
    }
}

/* Nonzeros [begin, end) of the order of rows, at least one; `begin` a multiple of the step. */
template <typename F, typename T, bool exact_sums, int others>
__device__ static inline void
slc_mttkrp_share(const slc_mttkrp_lane<F, T, exact_sums> *lane, uint32_t begin, uint32_t end)
{
    constexpr int width = slc_mttkrp_width<F>;
    const slc_mttkrp_chunk<T> *chunk = lane->chunk;
    const uint32_t *row_of = chunk->sort.rows;
    const uint16_t *sorted = chunk->sort.sorted;
    slc_mttkrp_rows<F, others == 0 ? 1 : others> rows = {};
    slc_mttkrp_segment<T, width> segment = {};
    uint32_t k = begin;

    SLC_UNROLL
    for (int o = 0; o < others; o++) {
        const unsigned m = (unsigned)o + ((unsigned)o >= lane->job->mode);

        rows.corner[o] = slc_mttkrp_corner(lane, m);
        rows.offsets[o] = chunk->offsets + (size_t)m * chunk->stride;
    }
    rows.pitch = lane->job->factor[lane->job->mode == 0].pitch;
    segment.row = row_of[sorted[begin]];
    segment.alone = chunk->single && (begin == 0 || row_of[sorted[begin - 1]] != segment.row);
    for (; k + SLC_MTTKRP_STEP <= end; k += SLC_MTTKRP_STEP) {
        const ushort4 four = *reinterpret_cast<const ushort4 *>(sorted + k);
        const uint32_t at[SLC_MTTKRP_STEP] = {four.x, four.y, four.z, four.w};

        slc_mttkrp_step<F, T, exact_sums, others, SLC_MTTKRP_STEP>(lane, &rows, at, &segment);
    }
    for (; k < end; k++) {
        const uint32_t at[1] = {sorted[k]};

        slc_mttkrp_step<F, T, exact_sums, others, 1>(lane, &rows, at, &segment);
    }
    segment.alone = segment.alone && (end == chunk->sort.nnz || row_of[sorted[end]] != segment.row);
    slc_mttkrp_add_segment<T, exact_sums, width>(
        lane->sums, chunk->tile->tile.corner[lane->job->mode] + segment.row, lane->column,
        segment.sum, segment.alone);
}

/* All of a sorted chunk. */
template <typename F, typename T, bool exact_sums>
__device__ static inline void slc_mttkrp_compute(const struct slc_gpu_mttkrp *job,
                                                 const slc_mttkrp_chunk<T> *chunk,
                                                 const slc_mttkrp_sums<T, exact_sums> *sums)
{
    constexpr uint32_t width = slc_mttkrp_width<F>;
    const uint32_t nnz = chunk->sort.nnz;

    for (uint32_t panel = 0; panel < job->rank; panel += SLC_WARP * width) {
        const uint32_t needed = (job->rank - panel + width - 1) / width;
        /* Lanes of a row, a power of two: 32 >> spare. */
        const int spare = needed >= SLC_WARP ? 0 : __clz((needed - 1) | 0) - 27;
        const uint32_t lanes = (uint32_t)SLC_WARP >> (needed == 1 ? 5 : spare);
        const uint32_t groups = SLC_MTTKRP_THREADS / lanes;
        const uint32_t share =
            ((nnz + groups - 1) / groups + SLC_MTTKRP_STEP - 1) / SLC_MTTKRP_STEP * SLC_MTTKRP_STEP;
        const uint32_t begin = threadIdx.x / lanes * share;
        const uint32_t end = begin + share < nnz ? begin + share : nnz;
        const slc_mttkrp_lane<F, T, exact_sums> lane = {job, chunk, sums,
                                                        panel + threadIdx.x % lanes * width};

        if (begin >= end || lane.column >= job->rank) {
            continue;
        }
        switch (job->order) {
        case 2:
            slc_mttkrp_share<F, T, exact_sums, 1>(&lane, begin, end);
            break;
        case 3:
            slc_mttkrp_share<F, T, exact_sums, 2>(&lane, begin, end);
            break;
        case 4:
            slc_mttkrp_share<F, T, exact_sums, 3>(&lane, begin, end);
            break;
        default:
            slc_mttkrp_share<F, T, exact_sums, 0>(&lane, begin, end);
        }
    }
}

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

uint32_t slc_gpu_mttkrp_chunk_runs(const struct slc_gpu_mttkrp *job,
                                   const struct slc_gpu_machine *machine)
{
    struct slc_gpu_mttkrp_plan plan;

    return slc_gpu_mttkrp_plan(job, machine, &plan) ? plan.chunk_runs : 0;
}

template <typename F, typename T, bool exact_sums>
static cudaError_t launch(const struct slc_gpu_mttkrp *job,
                          const struct slc_gpu_batch *batch,
                          const struct slc_gpu_machine *machine,
                          const struct slc_gpu_mttkrp_plan *plan,
                          cudaStream_t stream)
{
    const uint32_t most = machine->multiprocessors * plan->blocks_each;
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

template <typename F, typename T>
static cudaError_t launch_exact_or_not(const struct slc_gpu_mttkrp *job,
                                       const struct slc_gpu_batch *batch,
                                       const struct slc_gpu_machine *machine,
                                       const struct slc_gpu_mttkrp_plan *plan,
                                       cudaStream_t stream)
{
    return job->exact.words != NULL ? launch<F, T, true>(job, batch, machine, plan, stream)
                                    : launch<F, T, false>(job, batch, machine, plan, stream);
}

cudaError_t slc_gpu_mttkrp_batch(const struct slc_gpu_mttkrp *job,
                                 const struct slc_gpu_batch *batch,
                                 const struct slc_gpu_machine *machine,
                                 cudaStream_t stream)
{
    struct slc_gpu_mttkrp_plan plan;

    if (batch->chunk_count == 0) {
        return cudaSuccess;
    }
    if (!slc_gpu_mttkrp_plan(job, machine, &plan) || batch->chunk_runs != plan.chunk_runs) {
        return cudaErrorInvalidValue;
    }
    switch (job->arithmetic) {
    case SLC_ARITHMETIC_F64:
        return launch_exact_or_not<double, double>(job, batch, machine, &plan, stream);
    case SLC_ARITHMETIC_F32:
        return launch_exact_or_not<float, float>(job, batch, machine, &plan, stream);
    case SLC_ARITHMETIC_MIXED:
        break;
    }
    return launch_exact_or_not<float, double>(job, batch, machine, &plan, stream);
}
