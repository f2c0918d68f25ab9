/*
 * Multiplies the nonzeros of a chunk, decoded and sorted by output row, by the rows of the factors
 * and adds them up. Device code, included by kernels.
 *
 * Groups of lanes take equal shares of the nonzeros. A lane has 16 bytes of a row of every factor,
 * so that a group has as many lanes as a row has 16 bytes, and wider rows are taken in panels of 32
 * lanes. Products are added up in registers while the output row stays the same, and a segment's
 * sum goes where mttkrp_sums.h puts it.
 */
#ifndef SLC_GPU_MTTKRP_COMPUTE_H
#define SLC_GPU_MTTKRP_COMPUTE_H

#include "gpu/mttkrp_sums.h"

/* Nonzeros whose rows are on their way together, per lane. */
enum { SLC_MTTKRP_STEP = 4 };
/* Other modes up to which there is code for each number of them. */
enum { SLC_MTTKRP_FIXED_OTHERS = 3 };

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

/*
 * Adds a nonzero of output row `row` to the lane's sum, or to that of the next segment where the
 * row is another.
 */
template <typename F, typename T, bool exact_sums>
__device__ static inline void slc_mttkrp_add(const slc_mttkrp_lane<F, T, exact_sums> *lane,
                                             uint32_t row,
                                             const T (&product)[slc_mttkrp_width<F>],
                                             const F (&last)[slc_mttkrp_width<F>],
                                             slc_mttkrp_segment<T, slc_mttkrp_width<F>> *segment)
{
    constexpr int width = slc_mttkrp_width<F>;
    const slc_mttkrp_chunk<T> *chunk = lane->chunk;

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
        segment->sum[c] = slc_mttkrp_fused(product[c], (T)last[c], segment->sum[c]);
    }
}

/* Nonzeros [begin, end) of the order of rows, whole steps. others 0: any number of modes. */
template <typename F, typename T, bool exact_sums, int others>
__device__ static inline void slc_mttkrp_steps(const slc_mttkrp_lane<F, T, exact_sums> *lane,
                                               uint32_t begin,
                                               uint32_t end,
                                               slc_mttkrp_segment<T, slc_mttkrp_width<F>> *segment)
{
    constexpr int width = slc_mttkrp_width<F>;
    const slc_mttkrp_chunk<T> *chunk = lane->chunk;
    /* Of one other mode both are 1. NOLINTNEXTLINE(bugprone-branch-clone) */
    slc_mttkrp_rows<F, others == 0 ? 1 : others> rows = {};

    SLC_UNROLL
    for (int o = 0; o < others; o++) {
        const unsigned m = (unsigned)o + ((unsigned)o >= lane->job->mode);

        rows.corner[o] = slc_mttkrp_corner(lane, m);
        rows.offsets[o] = chunk->offsets + (size_t)m * chunk->stride;
    }
    rows.pitch = lane->job->factor[lane->job->mode == 0].pitch;
    for (uint32_t k = begin; k < end; k += SLC_MTTKRP_STEP) {
        const ushort4 four = *reinterpret_cast<const ushort4 *>(chunk->sort.sorted + k);
        const uint32_t at[SLC_MTTKRP_STEP] = {four.x, four.y, four.z, four.w};
        T product[SLC_MTTKRP_STEP][width];
        F last[SLC_MTTKRP_STEP][width];

        if constexpr (others == 0) {
            slc_mttkrp_products_any(lane, at, product, last);
        } else {
            slc_mttkrp_products(lane, &rows, at, product, last);
        }
        SLC_UNROLL
        for (int u = 0; u < SLC_MTTKRP_STEP; u++) {
            slc_mttkrp_add(lane, chunk->sort.rows[at[u]], product[u], last[u], segment);
        }
    }
}

/*
 * A nonzero by itself, of which a chunk has three at most: code for any number of modes. It is
 * multiplied and rounded as in a step.
 */
template <typename F, typename T, bool exact_sums>
__device__ static inline void slc_mttkrp_single(const slc_mttkrp_lane<F, T, exact_sums> *lane,
                                                uint32_t at,
                                                slc_mttkrp_segment<T, slc_mttkrp_width<F>> *segment)
{
    constexpr int width = slc_mttkrp_width<F>;
    const unsigned order = lane->job->order;
    const unsigned last_mode = lane->job->mode == order - 1 ? order - 2 : order - 1;
    const bool fixed = order >= 2 && order <= SLC_MTTKRP_FIXED_OTHERS + 1;
    T product[width];
    F last[width];

    SLC_UNROLL
    for (int c = 0; c < width; c++) {
        product[c] = lane->chunk->values[at];
        last[c] = 1;
    }
    SLC_ROLL
    for (unsigned mode = 0; mode < order; mode++) {
        const uint32_t places[1] = {at};
        F row[1][width];

        slc_mttkrp_load_mode(lane, mode, places, row);
        SLC_UNROLL
        for (int c = 0; c < width; c++) {
            if (fixed && mode == last_mode) {
                last[c] = row[0][c];
            } else {
                product[c] *= row[0][c];
            }
        }
    }
    slc_mttkrp_add(lane, lane->chunk->sort.rows[at], product, last, segment);
}

/* Nonzeros [begin, end) of the order of rows, at least one; `begin` a multiple of the step. */
template <typename F, typename T, bool exact_sums>
__device__ static inline void
slc_mttkrp_share(const slc_mttkrp_lane<F, T, exact_sums> *lane, uint32_t begin, uint32_t end)
{
    const slc_mttkrp_chunk<T> *chunk = lane->chunk;
    const uint32_t *row_of = chunk->sort.rows;
    const uint16_t *sorted = chunk->sort.sorted;
    const uint32_t whole = end / SLC_MTTKRP_STEP * SLC_MTTKRP_STEP;
    slc_mttkrp_segment<T, slc_mttkrp_width<F>> segment = {};

    segment.row = row_of[sorted[begin]];
    segment.alone = chunk->single && (begin == 0 || row_of[sorted[begin - 1]] != segment.row);
    switch (lane->job->order) {
    case 2:
        slc_mttkrp_steps<F, T, exact_sums, 1>(lane, begin, whole, &segment);
        break;
    case 3:
        slc_mttkrp_steps<F, T, exact_sums, 2>(lane, begin, whole, &segment);
        break;
    case 4:
        slc_mttkrp_steps<F, T, exact_sums, 3>(lane, begin, whole, &segment);
        break;
    default:
        slc_mttkrp_steps<F, T, exact_sums, 0>(lane, begin, whole, &segment);
    }
    SLC_ROLL
    for (uint32_t k = whole; k < end; k++) {
        slc_mttkrp_single(lane, sorted[k], &segment);
    }
    segment.alone = segment.alone && (end == chunk->sort.nnz || row_of[sorted[end]] != segment.row);
    slc_mttkrp_add_segment<T, exact_sums, slc_mttkrp_width<F>>(
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
        slc_mttkrp_share(&lane, begin, end);
    }
}

#endif
