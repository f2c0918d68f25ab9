/*
 * Gram matrices: A^T A in f64.
 *
 * The columns are cut into strips of 64, the upper triangle of the result into tiles of a strip by
 * a strip, a tile into squares of 4 x 4, each of which a thread has in registers. Of tiles on the
 * diagonal the squares below it are left out, and where a block has threads for several times a
 * tile's squares, so many slices of threads take the rows in turn. A block makes one tile over one
 * group of rows, which it brings to shared memory stage by stage, in f64. Another kernel puts
 * groups together in their order.
 */
#include "gpu/dense.h"

#include "gpu/dense_groups.h"

enum {
    SQUARE = 4,
    SQUARE_ELEMENTS = SQUARE * SQUARE,
    STRIP = 64,
    STRIP_SQUARES = STRIP / SQUARE,
    GRAM_THREADS = STRIP_SQUARES * STRIP_SQUARES,
    /* Of a strip, in shared memory at a time: 16 KiB, and as much of another strip. */
    STAGE_ELEMENTS = 2048,
    /* Loads of a thread under way at a time: 32 KiB of a multiprocessor with four blocks. */
    LOADS = 4,
    /* Rows of a group are some times so many: a stage of the lowest ranks. */
    GROUP_UNIT = STAGE_ELEMENTS / SQUARE,
    /* Groups times tiles: two for each place for a block on the largest devices. */
    PIECES_MAX = 1024
};
static_assert(GRAM_THREADS * SQUARE_ELEMENTS == 2 * STAGE_ELEMENTS, "slices meet in the stage");

/* How the result is cut. */
struct tiles {
    uint32_t width; /* of a strip: the rank rounded up to squares, at most STRIP */
    uint32_t strips, count;
    uint32_t elements; /* of a tile, square by square */
};

static struct tiles tiles_of(uint32_t rank)
{
    struct tiles tiles;

    tiles.strips = (rank + STRIP - 1) / STRIP;
    tiles.count = tiles.strips * (tiles.strips + 1) / 2;
    if (tiles.strips > 1) {
        tiles.width = STRIP;
        tiles.elements = STRIP * STRIP;
    } else {
        const uint32_t squares = (rank + SQUARE - 1) / SQUARE;

        tiles.width = squares * SQUARE;
        tiles.elements = squares * (squares + 1) / 2 * SQUARE_ELEMENTS;
    }
    return tiles;
}

static uint32_t groups_max(const struct tiles *tiles)
{
    return tiles->count < PIECES_MAX ? PIECES_MAX / tiles->count : 1;
}

uint64_t slc_gpu_gram_scratch_bytes(uint64_t rows, uint32_t rank)
{
    const struct tiles tiles = tiles_of(rank);

    return slc_gpu_groups_most(rows, GROUP_UNIT, groups_max(&tiles)) * tiles.count *
           tiles.elements * sizeof(double);
}

struct gram_job {
    uint32_t cols, pitch;
    struct tiles tiles;
    struct slc_gpu_row_cut cut;
    double *partial; /* of a group: its tiles */
};

/* The pair with number `pair` of the upper triangle of `side` by `side`, counted row by row. */
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

/* A tile: its strips and its squares. */
struct tile {
    uint32_t left, right; /* strips */
    uint32_t squares;
};

__device__ static inline struct tile find_tile(const struct tiles *tiles, uint32_t number)
{
    const uint32_t side = tiles->width / SQUARE;
    struct tile tile;

    find_pair(number, tiles->strips, &tile.left, &tile.right);
    tile.squares = tile.left == tile.right ? side * (side + 1) / 2 : side * side;
    return tile;
}

/* Where square `square` of a tile is, in squares. */
__device__ static inline void find_square(const struct tiles *tiles,
                                          const struct tile *tile,
                                          uint32_t square,
                                          uint32_t *row,
                                          uint32_t *column)
{
    if (tile->left == tile->right) {
        find_pair(square, tiles->width / SQUARE, row, column);
    } else {
        *row = square / STRIP_SQUARES;
        *column = square % STRIP_SQUARES;
    }
}

/* ---- stages */

/*
 * `rows` rows of a strip. The left halves of a row's squares come before the right ones: threads
 * that read neighbouring squares then use all banks.
 */
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
        const uint32_t column = strip * STRIP + c;
        const uint32_t at = c / 2 % 2 * (width / 2) + c / SQUARE * 2 + c % 2;

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

/* A row's four numbers of a square. */
__device__ static inline void load_four(const double *row, uint32_t width, double (&to)[SQUARE])
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
                                           double (&sums)[SQUARE_ELEMENTS])
{
    double a[SQUARE], b[SQUARE];

    load_four(left, width, a);
    load_four(right, width, b);
    for (int i = 0; i < SQUARE_ELEMENTS; i++) {
        sums[i] = fma(a[i / SQUARE], b[i % SQUARE], sums[i]);
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
    const unsigned stage_rows = STAGE_ELEMENTS / width;
    const double *right = shared + (tile.left == tile.right ? 0 : STAGE_ELEMENTS);
    const uint64_t begin = blockIdx.x * job.cut.group_rows;
    const uint64_t end =
        begin + job.cut.group_rows < job.cut.rows ? begin + job.cut.group_rows : job.cut.rows;
    double *partial =
        job.partial + ((uint64_t)blockIdx.x * job.tiles.count + blockIdx.y) * job.tiles.elements;
    double sums[SQUARE_ELEMENTS] = {};
    uint32_t i, j;

    find_square(&job.tiles, &tile, threadIdx.x % tile.squares, &i, &j);
    for (uint64_t row = begin; row < end; row += stage_rows) {
        const unsigned rows = end - row < stage_rows ? (unsigned)(end - row) : stage_rows;

        SLC_PLANT(gram_stage_overwritten, __syncthreads());
        load_stage(&job, data, row, rows, tile.left, shared);
        if (tile.left != tile.right) {
            load_stage(&job, data, row, rows, tile.right, shared + STAGE_ELEMENTS);
        }
        SLC_PLANT(gram_stage_unfinished, __syncthreads());
        for (unsigned r = slice; slice < slices && r < rows; r += slices) {
            add_products(shared + r * width + 2 * i, right + r * width + 2 * j, width, sums);
        }
    }
    __syncthreads();
    for (int e = 0; slice < slices && e < SQUARE_ELEMENTS; e++) {
        shared[threadIdx.x * SQUARE_ELEMENTS + e] = sums[e];
    }
    __syncthreads();
    for (unsigned e = threadIdx.x; e < tile.squares * SQUARE_ELEMENTS; e += GRAM_THREADS) {
        double sum = 0.0;

        for (unsigned s = 0; s < slices; s++) {
            sum += shared[s * tile.squares * SQUARE_ELEMENTS + e];
        }
        partial[e] = sum;
    }
}

__global__ static void __launch_bounds__(SLC_GROUP_THREADS_MAX)
    put_gram_together(struct gram_job job, double *gram)
{
    const struct tile tile = find_tile(&job.tiles, blockIdx.y);
    const uint32_t e = blockIdx.x * SLC_WARP + threadIdx.x % SLC_WARP;
    const bool inside = e < tile.squares * SQUARE_ELEMENTS;
    const double sum =
        slc_put_together(job.partial + (uint64_t)blockIdx.y * job.tiles.elements + (inside ? e : 0),
                         (uint64_t)job.tiles.count * job.tiles.elements, job.cut.groups, false);
    uint32_t i, j;

    if (threadIdx.x >= SLC_WARP || !inside) {
        return;
    }
    find_square(&job.tiles, &tile, e / SQUARE_ELEMENTS, &i, &j);
    i = tile.left * STRIP + i * SQUARE + e % SQUARE_ELEMENTS / SQUARE;
    j = tile.right * STRIP + j * SQUARE + e % SQUARE;
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
    job.tiles = tiles_of(matrix->cols);
    job.cut = slc_gpu_row_cut(matrix->rows, GROUP_UNIT, groups_max(&job.tiles));
    job.partial = static_cast<double *>(scratch);

    const dim3 grid(job.cut.groups, job.tiles.count);
    const unsigned threads = slc_group_threads(job.cut.groups);
    const size_t shared_bytes = 2 * STAGE_ELEMENTS * sizeof(double);

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
    return slc_launch(put_gram_together,
                      dim3((job.tiles.elements + SLC_WARP - 1) / SLC_WARP, job.tiles.count),
                      threads, threads * sizeof(double), stream, job, gram);
}
