/* Computes Gram matrices A^T A in f64.
 *
 * The columns of A are cut into strips of 64. The upper triangle of the result is cut into tiles of
 * one strip by one strip, and each tile into squares of 4 x 4, each in the registers of a thread.
 * Tiles on the diagonal skip the squares below the diagonal. A thread block computes one tile over
 * one group of rows. The rows are loaded into shared memory as f64, one stage at a time. If the
 * thread block has several times more threads than the tile has squares, the rows are divided among
 * slices of threads. Another kernel adds the results of the groups in order. */
#include "gpu/dense/dense.h"

#include "gpu/dense/dense_groups.h"

enum {
    STRIP_SQUARES = SLC_GRAM_STRIP / SLC_GRAM_SQUARE,
    GRAM_THREADS = STRIP_SQUARES * STRIP_SQUARES,
    /* Loads in flight per thread; with four thread blocks, 32 KiB per multiprocessor are in
     * flight. */
    LOADS = 4
};
static_assert(GRAM_THREADS * SLC_GRAM_SQUARE_ELEMENTS == 2 * SLC_GRAM_STAGE_ELEMENTS,
              "slices meet in the stage");

struct gram_job {
    uint32_t cols, pitch;
    struct slc_gpu_gram_tiles tiles;
    struct slc_gpu_row_cut cut;
    double *partial; /* the tiles of each group, before the groups are added */
};

/* Sets *first and *second to the row and column of element `pair` of the upper triangle of a `side`
 * by `side` matrix. Elements are numbered row by row. */
__device__ static inline void
find_pair(uint32_t pair, uint32_t side, uint32_t *first, uint32_t *second)
{
    uint32_t row = 0;

    for (; pair >= side - row; row++) {
        pair -= side - row;
    }
    *first = row;
    *second = row + pair;
}

/* A tile: its two strips and the number of its squares. */
struct tile {
    uint32_t left, right; /* strips */
    uint32_t squares;
};

__device__ static inline struct tile find_tile(const struct slc_gpu_gram_tiles *tiles,
                                               uint32_t number)
{
    const uint32_t side = tiles->width / SLC_GRAM_SQUARE;
    struct tile tile;

    find_pair(number, tiles->strips, &tile.left, &tile.right);
    tile.squares = tile.left == tile.right ? side * (side + 1) / 2 : side * side;
    return tile;
}

/* Sets *row and *column to the position of square `square` in a tile, in units of squares. */
__device__ static inline void find_square(const struct slc_gpu_gram_tiles *tiles,
                                          const struct tile *tile,
                                          uint32_t square,
                                          uint32_t *row,
                                          uint32_t *column)
{
    if (tile->left == tile->right) {
        find_pair(square, tiles->width / SLC_GRAM_SQUARE, row, column);
    } else {
        *row = square / STRIP_SQUARES;
        *column = square % STRIP_SQUARES;
    }
}

/* ---- stages */

/* Loads `rows` rows of a strip into shared memory. In each row, the left halves of all squares
 * precede the right halves, so that threads that read neighbouring squares use all banks. */
template <typename T>
__device__ static inline void load_stage(const struct gram_job *job,
                                         const T *data,
                                         uint64_t row,
                                         unsigned rows,
                                         uint32_t strip,
                                         double *stage)
{
    const uint32_t width = job->tiles.width;
    const unsigned lanes = slc_lanes_of_row(width), step = GRAM_THREADS / lanes;

    for (uint32_t c = threadIdx.x % lanes; c < width; c += lanes) {
        const uint32_t column = strip * SLC_GRAM_STRIP + c;
        const uint32_t at = c / 2 % 2 * (width / 2) + c / SLC_GRAM_SQUARE * 2 + c % 2;

        for (unsigned first = threadIdx.x / lanes; first < rows; first += LOADS * step) {
            T loaded[LOADS];

            for (int i = 0; i < LOADS; i++) {
                const unsigned r = first + (unsigned)i * step;

                loaded[i] =
                    r < rows && column < job->cols ? data[(row + r) * job->pitch + column] : T(0);
            }
            for (int i = 0; i < LOADS; i++) {
                const unsigned r = first + (unsigned)i * step;

                if (r < rows) {
                    stage[r * width + at] = (double)loaded[i];
                }
            }
        }
    }
}

/* Loads the four numbers of one row of a square. */
__device__ static inline void
load_four(const double *row, uint32_t width, double (&to)[SLC_GRAM_SQUARE])
{
    const double2 low = *reinterpret_cast<const double2 *>(row);
    const double2 high = *reinterpret_cast<const double2 *>(row + width / 2);

    to[0] = low.x;
    to[1] = low.y;
    to[2] = high.x;
    to[3] = high.y;
}

__device__ static inline void add_products(const double *left,
                                           const double *right,
                                           uint32_t width,
                                           double (&sums)[SLC_GRAM_SQUARE_ELEMENTS])
{
    double a[SLC_GRAM_SQUARE], b[SLC_GRAM_SQUARE];

    load_four(left, width, a);
    load_four(right, width, b);
    for (int i = 0; i < SLC_GRAM_SQUARE_ELEMENTS; i++) {
        sums[i] = fma(a[i / SLC_GRAM_SQUARE], b[i % SLC_GRAM_SQUARE], sums[i]);
    }
}

template <typename T>
__global__ static void __launch_bounds__(GRAM_THREADS)
    gram_groups(struct gram_job job, const T *data)
{
    SLC_DYNAMIC_SHARED(double, shared);
    const struct tile tile = find_tile(&job.tiles, blockIdx.y);
    const uint32_t width = job.tiles.width;
    const unsigned slices = GRAM_THREADS / tile.squares, slice = threadIdx.x / tile.squares;
    const unsigned stage_rows = SLC_GRAM_STAGE_ELEMENTS / width;
    const double *right = shared + (tile.left == tile.right ? 0 : SLC_GRAM_STAGE_ELEMENTS);
    const uint64_t begin = blockIdx.x * job.cut.group_rows;
    const uint64_t end =
        begin + job.cut.group_rows < job.cut.rows ? begin + job.cut.group_rows : job.cut.rows;
    double *partial =
        job.partial + ((uint64_t)blockIdx.x * job.tiles.count + blockIdx.y) * job.tiles.elements;
    double sums[SLC_GRAM_SQUARE_ELEMENTS] = {};
    uint32_t i, j;

    find_square(&job.tiles, &tile, threadIdx.x % tile.squares, &i, &j);
    for (uint64_t row = begin; row < end; row += stage_rows) {
        const unsigned rows = end - row < stage_rows ? (unsigned)(end - row) : stage_rows;

        SLC_PLANT(gram_stage_overwritten, __syncthreads());
        load_stage(&job, data, row, rows, tile.left, shared);
        if (tile.left != tile.right) {
            load_stage(&job, data, row, rows, tile.right, shared + SLC_GRAM_STAGE_ELEMENTS);
        }
        SLC_PLANT(gram_stage_unsynced, __syncthreads());
        for (unsigned r = slice; slice < slices && r < rows; r += slices) {
            add_products(shared + r * width + 2 * i, right + r * width + 2 * j, width, sums);
        }
    }
    __syncthreads();
    for (int e = 0; slice < slices && e < SLC_GRAM_SQUARE_ELEMENTS; e++) {
        shared[threadIdx.x * SLC_GRAM_SQUARE_ELEMENTS + e] = sums[e];
    }
    __syncthreads();
    for (unsigned e = threadIdx.x; e < tile.squares * SLC_GRAM_SQUARE_ELEMENTS; e += GRAM_THREADS) {
        double sum = 0.0;

        for (unsigned s = 0; s < slices; s++) {
            sum += shared[s * tile.squares * SLC_GRAM_SQUARE_ELEMENTS + e];
        }
        partial[e] = sum;
    }
}

__global__ static void __launch_bounds__(SLC_GROUP_THREADS_MAX)
    reduce_gram(struct gram_job job, double *gram)
{
    const struct tile tile = find_tile(&job.tiles, blockIdx.y);
    const uint32_t e = blockIdx.x * SLC_WARP + threadIdx.x % SLC_WARP;
    const bool inside = e < tile.squares * SLC_GRAM_SQUARE_ELEMENTS;
    const double sum = slc_reduce_groups(
        job.partial + (uint64_t)blockIdx.y * job.tiles.elements + (inside ? e : 0),
        (uint64_t)job.tiles.count * job.tiles.elements, job.cut.groups, false);
    uint32_t i, j;

    if (threadIdx.x >= SLC_WARP || !inside) {
        return;
    }
    find_square(&job.tiles, &tile, e / SLC_GRAM_SQUARE_ELEMENTS, &i, &j);
    i = tile.left * SLC_GRAM_STRIP + i * SLC_GRAM_SQUARE +
        e % SLC_GRAM_SQUARE_ELEMENTS / SLC_GRAM_SQUARE;
    j = tile.right * SLC_GRAM_STRIP + j * SLC_GRAM_SQUARE + e % SLC_GRAM_SQUARE;
    if (i <= j && j < job.cols) {
        gram[(uint64_t)i * job.cols + j] = sum;
        gram[(uint64_t)j * job.cols + i] = sum;
    }
}

cudaError_t slc_gpu_dense_gram(const struct slc_gpu_matrix *matrix,
                               enum slc_value_type type,
                               double *gram,
                               void *scratch,
                               cudaStream_t stream)
{
    struct gram_job job = {};
    cudaError_t error = cudaSuccess;

    job.cols = matrix->cols;
    job.pitch = matrix->pitch;
    job.tiles = slc_gpu_gram_tiles(matrix->cols);
    job.cut =
        slc_gpu_row_cut(matrix->rows, SLC_GRAM_GROUP_UNIT, slc_gpu_gram_groups_max(&job.tiles));
    job.partial = static_cast<double *>(scratch);

    const dim3 grid(job.cut.groups, job.tiles.count);
    const unsigned threads = slc_group_threads(job.cut.groups);
    const size_t shared_bytes = 2 * SLC_GRAM_STAGE_ELEMENTS * sizeof(double);

    if (job.cut.groups > 0 && type == SLC_F64) {
        error = slc_launch(gram_groups<double>, grid, GRAM_THREADS, shared_bytes, stream, job,
                           static_cast<const double *>(matrix->data));
    } else if (job.cut.groups > 0) {
        error = slc_launch(gram_groups<float>, grid, GRAM_THREADS, shared_bytes, stream, job,
                           static_cast<const float *>(matrix->data));
    }
    if (error != cudaSuccess) {
        return error;
    }
    return slc_launch(reduce_gram,
                      dim3((job.tiles.elements + SLC_WARP - 1) / SLC_WARP, job.tiles.count),
                      threads, threads * sizeof(double), stream, job, gram);
}
