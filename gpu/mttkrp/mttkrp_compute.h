/* Multiplies the nonzeros of a chunk by the rows of the factors and adds the products. The nonzeros
 * have been decoded and sorted by output row. Device code, included by kernels.
 *
 * Groups of warp lanes process equal shares of the nonzeros. A group has one warp lane per 16 bytes
 * of a factor row. Rows that need more than 32 warp lanes are processed in panels. Products with
 * the same output row (a segment) are added in registers; the sum of the segment is then added to
 * global memory, as f64 or as exact words.
 *
 * Cost per warp lane for f64, rank 32 and three modes: four nonzeros need five 16-byte loads from
 * shared memory, eight 16-byte loads from the factors, and 16 multiplications, half of which are
 * fused with additions. Each segment then needs one atomic addition per number. */
#ifndef SLC_GPU_MTTKRP_COMPUTE_H
#define SLC_GPU_MTTKRP_COMPUTE_H

#include "gpu/mttkrp/mttkrp_group.h"

/* Number of nonzeros whose rows a warp lane loads together. */
enum { SLC_MTTKRP_STEP = 4 };
/* Largest number of modes other than the output's for which there is specialized code. */
enum { SLC_MTTKRP_FIXED_OTHERS = 3 };

/* A thread block's chunk, in shared memory. */
struct slc_mttkrp_chunk {
    uint32_t *offsets; /* offsets of mode n begin at n * stride */
    uint32_t stride;
    double *values;
    uint64_t *corner; /* the tile's corner in each mode */
    struct slc_mttkrp_sort sort;
};

/* Destination of a warp lane's sums. */
struct slc_mttkrp_target {
    const uint64_t *corner; /* the output row at offset 0; in shared memory */
    uint32_t column;        /* the first column of the warp lane */
    /* distance from one of the warp lane's columns to the next in the output
     * (slc_gpu_place_of_column) */
    uint32_t apart;
    double *output; /* the first column in row *corner; not used with exact sums */
};

/* Arguments of a warp lane. `F` is the type of the factors. If `exact_sums`, sums are exact words
 * (exact_sum.h). exact_sums is a template parameter because a loop with f64 and exact sums would
 * need more registers. */
template <typename F, bool exact_sums> struct slc_mttkrp_lane {
    const struct slc_gpu_mttkrp *job;
    const struct slc_mttkrp_chunk *chunk;
    struct slc_mttkrp_target target;
};

/* Number of columns in 16 bytes. */
template <typename F> static constexpr int slc_mttkrp_width = 16 / sizeof(F);

/* The current segment of a warp lane and its sum. */
template <int width> struct slc_mttkrp_segment {
    double sum[width];
    uint32_t row; /* offset from the tile's corner */
};

/* Location of a warp lane's columns in the rows of the factors, for a fixed number of other
 * modes. */
template <typename F, int others> struct slc_mttkrp_rows {
    const char *corner[others]; /* address of the columns in the row of the tile's corner */
    const uint32_t *offsets[others];
    uint32_t pitch_bytes;
};

/* Loads 16 bytes that no kernel writes at the same time. */
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

/* Loads `count` (1, 2 or 4) neighbouring numbers from shared memory, up to 16 bytes at a time. */
template <int count>
__device__ static inline void slc_mttkrp_load_shared(const uint32_t *from, uint32_t (&to)[count])
{
    if constexpr (count == 4) {
        const uint4 four = *reinterpret_cast<const uint4 *>(from);

        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    } else {
        for (int u = 0; u < count; u++) {
            to[u] = from[u];
        }
    }
}

template <int count>
__device__ static inline void slc_mttkrp_load_shared(const double *from, double (&to)[count])
{
    if constexpr (count == 4) {
        const double2 low = *reinterpret_cast<const double2 *>(from);
        const double2 high = *reinterpret_cast<const double2 *>(from + 2);

        to[0] = low.x;
        to[1] = low.y;
        to[2] = high.x;
        to[3] = high.y;
    } else {
        for (int u = 0; u < count; u++) {
            to[u] = from[u];
        }
    }
}

/* Returns a * b + sum, explicitly fused, so that every device and the host compute the same
 * bits. */
__device__ static inline double slc_mttkrp_fused(double a, double b, double sum)
{
    return fma(a, b, sum);
}

template <typename F, bool exact_sums>
__device__ static inline const F *slc_mttkrp_corner(const slc_mttkrp_lane<F, exact_sums> *lane,
                                                    unsigned mode)
{
    const struct slc_gpu_matrix *factor = &lane->job->factor[mode];

    return static_cast<const F *>(factor->data) + lane->chunk->corner[mode] * factor->pitch +
           lane->target.column;
}

/* Values of `count` nonzeros that are loaded together, and the warp lane's columns of their factor
 * rows. */
template <typename F, int others, int count> struct slc_mttkrp_fetched {
    F row[others][count][slc_mttkrp_width<F>];
    double value[count];
};

/* Loads values and factor rows of nonzeros k, k + 1, .. Offsets are less than 2^32 and rows are
 * shorter than 2^20 bytes, so their product fits in 64 bits. */
template <typename F, bool exact_sums, int others, int count>
__device__ static inline void slc_mttkrp_fetch(const slc_mttkrp_lane<F, exact_sums> *lane,
                                               const slc_mttkrp_rows<F, others> *rows,
                                               uint32_t k,
                                               slc_mttkrp_fetched<F, others, count> *fetched)
{
    SLC_UNROLL
    for (int m = 0; m < others; m++) {
        uint32_t offset[count];

        slc_mttkrp_load_shared<count>(rows->offsets[m] + k, offset);
        SLC_UNROLL
        for (int u = 0; u < count; u++) {
            slc_mttkrp_load(reinterpret_cast<const F *>(rows->corner[m] +
                                                        (uint64_t)offset[u] * rows->pitch_bytes),
                            fetched->row[m][u]);
        }
    }
    slc_mttkrp_load_shared<count>(lane->chunk->values + k, fetched->value);
}

/* Multiplies the value of nonzero u by the rows of all other modes except the last. Stores the row
 * of the last mode in `last`, because the caller fuses the multiplication by this row with the
 * addition. */
template <typename F, int others, int count>
__device__ static inline void
slc_mttkrp_product(const slc_mttkrp_fetched<F, others, count> *fetched,
                   int u,
                   double (&product)[slc_mttkrp_width<F>],
                   F (&last)[slc_mttkrp_width<F>])
{
    SLC_UNROLL
    for (int c = 0; c < slc_mttkrp_width<F>; c++) {
        product[c] = fetched->value[u];
        SLC_UNROLL
        for (int m = 0; m + 1 < others; m++) {
            product[c] *= fetched->row[m][u][c];
        }
        last[c] = fetched->row[others - 1][u][c];
    }
}

/* Loads the rows of one mode; for the mode of the output, stores ones instead. */
template <typename F, bool exact_sums, int count>
__device__ static inline void slc_mttkrp_load_mode(const slc_mttkrp_lane<F, exact_sums> *lane,
                                                   unsigned mode,
                                                   uint32_t k,
                                                   F (&row)[count][slc_mttkrp_width<F>])
{
    const uint32_t pitch = lane->job->factor[mode].pitch;
    const F *corner = mode == lane->job->mode ? NULL : slc_mttkrp_corner(lane, mode);
    uint32_t offset[count];

    slc_mttkrp_load_shared<count>(lane->chunk->offsets + (size_t)mode * lane->chunk->stride + k,
                                  offset);
    SLC_UNROLL
    for (int u = 0; u < count; u++) {
        SLC_UNROLL
        for (int c = 0; c < slc_mttkrp_width<F>; c++) {
            row[u][c] = 1;
        }
        if (corner != NULL) {
            slc_mttkrp_load(corner + (uint64_t)offset[u] * pitch, row[u]);
        }
    }
}

/* Computes the products of nonzeros k, k + 1, .. for any number of modes, one or two modes at a
 * time. More loads in flight would need more registers than are available with two thread blocks
 * per multiprocessor. */
template <typename F, bool exact_sums, int count>
__device__ static inline void slc_mttkrp_products_any(const slc_mttkrp_lane<F, exact_sums> *lane,
                                                      uint32_t k,
                                                      double (&product)[count][slc_mttkrp_width<F>],
                                                      F (&last)[count][slc_mttkrp_width<F>])
{
    constexpr int width = slc_mttkrp_width<F>;
    constexpr int together = sizeof(F) < sizeof(double) ? 1 : 2;
    const unsigned order = lane->job->order;
    double value[count];

    slc_mttkrp_load_shared<count>(lane->chunk->values + k, value);
    SLC_UNROLL
    for (int u = 0; u < count; u++) {
        SLC_UNROLL
        for (int c = 0; c < width; c++) {
            product[u][c] = value[u];
            last[u][c] = 1;
        }
    }
    SLC_ROLL
    for (unsigned first = 0; first < order; first += together) {
        F row[together][count][width];

        SLC_UNROLL
        for (int m = 0; m < together; m++) {
            const unsigned mode = first + (unsigned)m;

            /* If there are no more modes, load ones, as for the mode of the output. */
            slc_mttkrp_load_mode(lane, mode < order ? mode : lane->job->mode, k, row[m]);
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

/* Adds the sums of columns that exist, of row `row`, as exact words. If an addend cannot be added,
 * its column's word of refused additions is incremented instead. */
template <int width>
__device__ static inline void slc_mttkrp_add_exact(const struct slc_gpu_mttkrp *job,
                                                   uint64_t row,
                                                   uint32_t column,
                                                   const double (&sum)[width])
{
    unsigned long long *words = job->exact.words;
    unsigned long long *to = words + 2 * (row * job->rank + column);
    long long high[width] = {}, low[width] = {};

    SLC_UNROLL
    for (int c = 0; c < width; c++) {
        if (column + (uint32_t)c < job->rank &&
            !slc_exact_split(sum[c], job->exact.scale[column + c], &high[c], &low[c])) {
            atomicAdd(words + 2 * job->output.rows * job->rank + column + c, 1ULL);
        }
    }
    SLC_UNROLL
    for (int c = 0; c < width; c++) {
        if (column + (uint32_t)c < job->rank) {
            atomicAdd(to + 2 * c, (unsigned long long)high[c]);
            atomicAdd(to + 2 * c + 1, (unsigned long long)low[c]);
        }
    }
}

/* Adds a segment's sum to global memory, ignoring columns after the rank. `offset` is the row's
 * offset from the corner. */
template <typename F, bool exact_sums>
__device__ static inline void
slc_mttkrp_add_segment(const slc_mttkrp_lane<F, exact_sums> *lane,
                       const slc_mttkrp_segment<slc_mttkrp_width<F>> *segment)
{
    constexpr int width = slc_mttkrp_width<F>;
    const struct slc_mttkrp_target *target = &lane->target;

    if constexpr (exact_sums) {
        slc_mttkrp_add_exact<width>(lane->job, *target->corner + segment->row, target->column,
                                    segment->sum);
    } else {
        double *to = target->output + (uint64_t)segment->row * lane->job->output.pitch;

        SLC_UNROLL
        for (int c = 0; c < width; c++, to += target->apart) {
            if (target->column + (uint32_t)c < lane->job->rank) {
                slc_reduce_add(to, segment->sum[c]);
            }
        }
    }
}

/* Adds a nonzero of output row `row` to the warp lane's sum. If `row` is not the row of the
 * segment, first stores the segment's sum and starts the next segment. */
template <typename F, bool exact_sums>
__device__ static inline void slc_mttkrp_add(const slc_mttkrp_lane<F, exact_sums> *lane,
                                             uint32_t row,
                                             const double (&product)[slc_mttkrp_width<F>],
                                             const F (&last)[slc_mttkrp_width<F>],
                                             slc_mttkrp_segment<slc_mttkrp_width<F>> *segment)
{
    constexpr int width = slc_mttkrp_width<F>;

    if (row != segment->row) {
        slc_mttkrp_add_segment(lane, segment);
        segment->row = row;
        SLC_UNROLL
        for (int c = 0; c < width; c++) {
            segment->sum[c] = 0;
        }
    }
    SLC_UNROLL
    for (int c = 0; c < width; c++) {
        segment->sum[c] = slc_mttkrp_fused(product[c], (double)last[c], segment->sum[c]);
    }
}

/* Adds the products of nonzeros [begin, end) in sorted order; end - begin is a multiple of
 * SLC_MTTKRP_STEP. `others` is the number of modes other than the output's; 0 means any number. */
template <typename F, bool exact_sums, int others>
__device__ static inline void slc_mttkrp_steps(const slc_mttkrp_lane<F, exact_sums> *lane,
                                               uint32_t begin,
                                               uint32_t end,
                                               slc_mttkrp_segment<slc_mttkrp_width<F>> *segment)
{
    constexpr int width = slc_mttkrp_width<F>;
    constexpr int count = SLC_MTTKRP_STEP;
    const struct slc_mttkrp_chunk *chunk = lane->chunk;
    /* If others == 1, both branches of the conditional are 1.
     * NOLINTNEXTLINE(bugprone-branch-clone) */
    slc_mttkrp_rows<F, others == 0 ? 1 : others> rows = {};

    SLC_UNROLL
    for (int o = 0; o < others; o++) {
        const unsigned m = (unsigned)o + ((unsigned)o >= lane->job->mode);

        rows.corner[o] = reinterpret_cast<const char *>(slc_mttkrp_corner(lane, m));
        rows.offsets[o] = chunk->offsets + (size_t)m * chunk->stride;
    }
    rows.pitch_bytes = lane->job->factor[lane->job->mode == 0].pitch * (uint32_t)sizeof(F);
    SLC_ROLL
    for (uint32_t k = begin; k < end; k += count) {
        uint32_t row[count];

        if constexpr (others == 0) {
            double product[count][width];
            F last[count][width];

            slc_mttkrp_products_any(lane, k, product, last);
            slc_mttkrp_load_shared<count>(chunk->sort.rows + k, row);
            SLC_UNROLL
            for (int u = 0; u < count; u++) {
                slc_mttkrp_add<F, exact_sums>(lane, row[u], product[u], last[u], segment);
            }
        } else {
            slc_mttkrp_fetched<F, others, count> fetched;

            slc_mttkrp_fetch(lane, &rows, k, &fetched);
            slc_mttkrp_load_shared<count>(chunk->sort.rows + k, row);
            SLC_UNROLL
            for (int u = 0; u < count; u++) {
                double product[width];
                F last[width];

                slc_mttkrp_product(&fetched, u, product, last);
                slc_mttkrp_add<F, exact_sums>(lane, row[u], product, last, segment);
            }
        }
    }
}

/* Adds the product of one nonzero, for any number of modes, with the same rounding as a step. Used
 * for the at most three nonzeros of a chunk that follow the last whole step. */
template <typename F, bool exact_sums>
__device__ static inline void slc_mttkrp_single(const slc_mttkrp_lane<F, exact_sums> *lane,
                                                uint32_t k,
                                                slc_mttkrp_segment<slc_mttkrp_width<F>> *segment)
{
    constexpr int width = slc_mttkrp_width<F>;
    const unsigned order = lane->job->order;
    const unsigned last_mode = lane->job->mode == order - 1 ? order - 2 : order - 1;
    const bool fixed = order >= 2 && order <= SLC_MTTKRP_FIXED_OTHERS + 1;
    double product[width];
    F last[width];

    SLC_UNROLL
    for (int c = 0; c < width; c++) {
        product[c] = lane->chunk->values[k];
        last[c] = 1;
    }
    SLC_ROLL
    for (unsigned mode = 0; mode < order; mode++) {
        F row[1][width];

        slc_mttkrp_load_mode(lane, mode, k, row);
        SLC_UNROLL
        for (int c = 0; c < width; c++) {
            if (fixed && mode == last_mode) {
                last[c] = row[0][c];
            } else {
                product[c] *= row[0][c];
            }
        }
    }
    slc_mttkrp_add<F, exact_sums>(lane, lane->chunk->sort.rows[k], product, last, segment);
}

/* Adds the products of nonzeros [begin, end) in sorted order. Needs: at least one nonzero; `begin`
 * is a multiple of SLC_MTTKRP_STEP. */
template <typename F, bool exact_sums>
__device__ static inline void
slc_mttkrp_share(slc_mttkrp_lane<F, exact_sums> *lane, uint32_t begin, uint32_t end)
{
    const struct slc_mttkrp_chunk *chunk = lane->chunk;
    const uint32_t *rows = chunk->sort.rows;
    const uint32_t whole = end / SLC_MTTKRP_STEP * SLC_MTTKRP_STEP;
    slc_mttkrp_segment<slc_mttkrp_width<F>> segment = {};

    segment.row = rows[begin];
    switch (lane->job->order) {
    case 2:
        slc_mttkrp_steps<F, exact_sums, 1>(lane, begin, whole, &segment);
        break;
    case 3:
        slc_mttkrp_steps<F, exact_sums, 2>(lane, begin, whole, &segment);
        break;
    case 4:
        slc_mttkrp_steps<F, exact_sums, 3>(lane, begin, whole, &segment);
        break;
    default:
        slc_mttkrp_steps<F, exact_sums, 0>(lane, begin, whole, &segment);
    }
    SLC_ROLL
    for (uint32_t k = whole; k < end; k++) {
        slc_mttkrp_single<F, exact_sums>(lane, k, &segment);
    }
    slc_mttkrp_add_segment(lane, &segment);
}

/* Adds the products of a whole sorted chunk to the output. */
template <typename F, bool exact_sums>
__device__ static inline void slc_mttkrp_compute(const struct slc_gpu_mttkrp *job,
                                                 const struct slc_mttkrp_chunk *chunk)
{
    constexpr uint32_t width = slc_mttkrp_width<F>;
    const uint32_t nnz = chunk->sort.nnz;
    slc_mttkrp_lane<F, exact_sums> lane = {job, chunk, {}};

    lane.target.corner = chunk->corner + job->mode;
    for (uint32_t panel = 0; panel < job->rank; panel += SLC_WARP * width) {
        const uint32_t needed = (job->rank - panel + width - 1) / width;
        /* Number of warp lanes per row, a power of two: 32 >> spare. */
        const int spare = needed >= SLC_WARP ? 0 : __clz((needed - 1) | 0) - 27;
        const uint32_t lanes = (uint32_t)SLC_WARP >> (needed == 1 ? 5 : spare);
        const uint32_t groups = SLC_MTTKRP_THREADS / lanes;
        const uint32_t share =
            ((nnz + groups - 1) / groups + SLC_MTTKRP_STEP - 1) / SLC_MTTKRP_STEP * SLC_MTTKRP_STEP;
        const uint32_t begin = threadIdx.x / lanes * share;
        const uint32_t end = begin + share < nnz ? begin + share : nnz;
        const uint32_t column = panel + threadIdx.x % lanes * width;

        if (begin >= end || column >= job->rank) {
            continue;
        }
        lane.target.column = column;
        if constexpr (!exact_sums) {
            const uint32_t left = job->rank - panel;

            lane.target.apart = job->output.split > 1
                                    ? (left < SLC_WARP * width ? left : SLC_WARP * width) / width
                                    : 1;
            lane.target.output = static_cast<double *>(job->output.data) +
                                 *lane.target.corner * job->output.pitch +
                                 slc_gpu_place_of_column(job->rank, job->output.split, column);
        }
        slc_mttkrp_share<F, exact_sums>(&lane, begin, end);
    }
}

#endif
