/* Updates a factor: computes X = M D V^-1 E row by row, and for each column of X its largest
 * magnitude and its inner product with the same column of M.
 *
 * A warp processes a group of rows, one panel of 64 rows at a time. The panel is stored column by
 * column as f64, in shared memory, or in scratch if the rank is too high. Each warp lane solves two
 * rows independently, 8 columns at a time: it first multiplies the previous columns by a strip of
 * the triangle, and then solves the 8 columns among themselves. The strip is the same for all warp
 * lanes and stays in the first-level cache. Warp lanes load and store rows together; while solving,
 * they do not communicate. With one row per warp lane instead of two, loads of the triangle would
 * limit the speed.
 *
 * If V is singular, the update is a product, X = M F: half of the panel has the rows of M, the
 * other half the rows of X. */
#include "gpu/dense/dense.h"

#include "gpu/dense/dense_groups.h"

enum {
    BLOCK_COLUMNS = 8,
    /* Loads in flight per warp lane; 12 warps with 8 * 256 bytes in flight each hide the latency of
     * memory. */
    LOADS = 8,
    /* Limit of a grid's third dimension (CUDA). */
    GRID_DEPTH_MAX = 65535
};
static_assert(LOADS * (SLC_WARP / 8) <= SLC_WARP, "half a panel is loaded in whole rounds");

struct update_job {
    const double *forward, *backward, *forward_inverse, *backward_inverse;
    uint32_t rank, width;
    bool singular;
    uint32_t mttkrp_pitch, mttkrp_split, factor_pitch;
    const struct slc_row_span *units; /* NULL if all rows are one unit */
    uint32_t unit_count;
    struct slc_gpu_row_cut cut; /* cut of the longest unit; shorter units have fewer groups */
    double *largest, *inner;    /* each has slc_gpu_update_columns(rank) elements per group */
    double *panels;             /* NULL if panels are in shared memory */
};

/* ---- a panel */

/* Returns the address of a column in row 0 of M. */
__device__ static inline const double *
mttkrp_column(const struct update_job *job, const double *mttkrp, uint32_t column)
{
    return mttkrp + slc_gpu_place_of_column(job->rank, job->mttkrp_split, column);
}

/* Loads rows [row, row + valid) as f64, column by column. Sets the other rows and columns of the
 * panel to zero. */
__device__ static inline void load_panel(const struct update_job *job,
                                         const double *mttkrp,
                                         uint64_t row,
                                         unsigned valid,
                                         unsigned rows,
                                         double *panel)
{
    const unsigned lanes = slc_lanes_of_row(job->rank), step = SLC_WARP / lanes;

    for (uint32_t c = threadIdx.x % lanes; c < job->width; c += lanes) {
        const double *column = mttkrp_column(job, mttkrp, c);

        for (unsigned first = threadIdx.x / lanes; first < rows; first += LOADS * step) {
            double loaded[LOADS];

            for (int i = 0; i < LOADS; i++) {
                const unsigned r = first + (unsigned)i * step;

                loaded[i] =
                    r < valid && c < job->rank ? column[(row + r) * job->mttkrp_pitch] : 0.0;
            }
            for (int i = 0; i < LOADS; i++) {
                panel[c * SLC_UPDATE_PANEL_PITCH + first + (unsigned)i * step] = loaded[i];
            }
        }
    }
}

/* Stores solved rows, rounded to the type of the factor, and includes them in the column results.
 * The solved rows begin at `solved`, which points into the panel. `first` is true for the first
 * panel of the group. */
template <typename X>
__device__ static inline void store_panel(const struct update_job *job,
                                          const double *mttkrp,
                                          X *factor,
                                          uint64_t row,
                                          unsigned valid,
                                          const double *solved,
                                          uint32_t group,
                                          bool first)
{
    const unsigned lanes = slc_lanes_of_row(job->rank), step = SLC_WARP / lanes;

    for (uint32_t c = threadIdx.x % lanes; c < job->rank; c += lanes) {
        const uint64_t column = (uint64_t)group * slc_gpu_update_columns(job->rank) +
                                (lanes < SLC_WARP ? threadIdx.x : c);
        const double *from = mttkrp_column(job, mttkrp, c);
        double largest = first ? 0.0 : job->largest[column];
        double inner = first ? 0.0 : job->inner[column];

        for (unsigned start = threadIdx.x / lanes; start < valid; start += LOADS * step) {
            double loaded[LOADS];

            for (int i = 0; i < LOADS; i++) {
                const unsigned r = start + (unsigned)i * step;

                loaded[i] = r < valid ? from[(row + r) * job->mttkrp_pitch] : 0.0;
            }
            for (int i = 0; i < LOADS; i++) {
                const unsigned r = start + (unsigned)i * step;

                if (r < valid) {
                    const X rounded = (X)solved[c * SLC_UPDATE_PANEL_PITCH + r];
                    const double x = (double)rounded;

                    factor[(row + r) * job->factor_pitch + c] = rounded;
                    largest = fabs(x) > largest ? fabs(x) : largest;
                    inner = fma(loaded[i], x, inner);
                }
            }
        }
        job->largest[column] = largest;
        job->inner[column] = inner;
    }
}

/* ---- solving */

/* Adds the sum over k < count of w(k, j) * matrix(k, i) to sums[j][i]. Row j of a warp lane is 32
 * rows after its row j - 1. */
template <int rows>
__device__ static inline void gather(const double *w,
                                     const double *matrix,
                                     uint32_t width,
                                     uint32_t count,
                                     double (&sums)[rows][BLOCK_COLUMNS])
{
    for (uint32_t k = 0; k < count; k++, w += SLC_UPDATE_PANEL_PITCH, matrix += width) {
        const double2 *pairs = reinterpret_cast<const double2 *>(matrix);
        double strip[BLOCK_COLUMNS];

        for (int i = 0; i < BLOCK_COLUMNS / 2; i++) {
            const double2 pair = __ldg(pairs + i);

            strip[2 * i] = pair.x;
            strip[2 * i + 1] = pair.y;
        }
        for (int j = 0; j < rows; j++) {
            const double known = w[j * SLC_WARP];

            for (int i = 0; i < BLOCK_COLUMNS; i++) {
                sums[j][i] = fma(known, strip[i], sums[j][i]);
            }
        }
    }
}

/* Solves the columns of a warp lane's rows, from first to last if `down`, otherwise from last to
 * first. For each column, subtracts the solved columns, each times its element of `matrix`, and
 * divides the difference by the diagonal element. */
template <bool down>
__device__ static inline void
substitute(double *w, const double *matrix, const double *inverse, uint32_t width)
{
    for (uint32_t done = 0; done < width; done += BLOCK_COLUMNS) {
        const uint32_t column = down ? done : width - done - BLOCK_COLUMNS;
        const uint32_t known = down ? 0 : column + BLOCK_COLUMNS;
        double sums[SLC_UPDATE_LANE_ROWS][BLOCK_COLUMNS] = {};

        gather<SLC_UPDATE_LANE_ROWS>(w + known * SLC_UPDATE_PANEL_PITCH,
                                     matrix + (uint64_t)known * width + column, width, done, sums);
        for (int step = 0; step < BLOCK_COLUMNS; step++) {
            const int i = down ? step : BLOCK_COLUMNS - 1 - step;
            const double *strip = matrix + (uint64_t)(column + i) * width + column;
            const double over = __ldg(inverse + column + i);

            for (int j = 0; j < SLC_UPDATE_LANE_ROWS; j++) {
                double *element = w + (column + i) * SLC_UPDATE_PANEL_PITCH + j * SLC_WARP;
                const double x = (*element - sums[j][i]) * over;

                *element = x;
                for (int l = 0; l < BLOCK_COLUMNS; l++) {
                    if (down ? l > i : l < i) {
                        sums[j][l] = fma(x, __ldg(strip + l), sums[j][l]);
                    }
                }
            }
        }
    }
}

/* Multiplies a warp lane's row by the matrix and stores the product 32 rows after the warp lane's
 * row. */
__device__ static inline void multiply(double *w, const double *matrix, uint32_t width)
{
    for (uint32_t column = 0; column < width; column += BLOCK_COLUMNS) {
        double sums[1][BLOCK_COLUMNS] = {};

        gather<1>(w, matrix + column, width, width, sums);
        for (int i = 0; i < BLOCK_COLUMNS; i++) {
            w[(column + i) * SLC_UPDATE_PANEL_PITCH + SLC_WARP] = sums[0][i];
        }
    }
}

__device__ static inline struct slc_row_span unit_rows(const struct update_job *job, uint32_t unit)
{
    const struct slc_row_span all = {0, job->cut.rows};

    return job->units == nullptr ? all : job->units[unit];
}

/* Updates groups of rows. A thread block consists of one warp. */
template <typename X>
__global__ static void __launch_bounds__(SLC_WARP)
    update_groups(struct update_job job, const double *mttkrp, X *factor)
{
    SLC_DYNAMIC_SHARED(double, shared);
    double *panel = job.panels == nullptr
                        ? shared
                        : job.panels + (uint64_t)blockIdx.x * SLC_UPDATE_PANEL_PITCH * job.width;
    double *mine = panel + threadIdx.x;
    const unsigned rows = job.singular ? (unsigned)SLC_WARP : (unsigned)SLC_UPDATE_PANEL_ROWS;

    for (uint32_t group = blockIdx.x; group < job.unit_count * job.cut.groups; group += gridDim.x) {
        const struct slc_row_span unit = unit_rows(&job, group / job.cut.groups);
        const uint64_t begin = unit.first + group % job.cut.groups * job.cut.group_rows;
        const uint64_t end =
            begin + job.cut.group_rows < unit.end ? begin + job.cut.group_rows : unit.end;

        for (uint64_t row = begin; row < end; row += rows) {
            const unsigned valid = end - row < rows ? (unsigned)(end - row) : rows;

            load_panel(&job, mttkrp, row, valid, rows, panel);
            SLC_PLANT(update_panel_unsynced, __syncwarp());
            if (job.singular) {
                multiply(mine, job.forward, job.width);
            } else {
                substitute<true>(mine, job.forward, job.forward_inverse, job.width);
                substitute<false>(mine, job.backward, job.backward_inverse, job.width);
            }
            SLC_PLANT(update_rows_unsolved, __syncwarp());
            store_panel(&job, mttkrp, factor, row, valid, panel + (job.singular ? SLC_WARP : 0),
                        group, row == begin);
            __syncwarp();
        }
    }
}

/* Reduces the column results of the groups of each unit. If several warp lanes share a column, each
 * of the `shares` results of a group counts as a group. */
__global__ static void __launch_bounds__(SLC_GROUP_THREADS_MAX)
    reduce_columns(struct update_job job, uint32_t shares, double *columns)
{
    const uint32_t column = blockIdx.x * SLC_WARP + threadIdx.x % SLC_WARP;
    const bool is_inner = blockIdx.y == 1;
    const uint64_t stride = slc_gpu_update_columns(job.rank) / shares;

    for (uint32_t unit = blockIdx.z; unit < job.unit_count; unit += gridDim.z) {
        const struct slc_row_span rows = unit_rows(&job, unit);
        const uint64_t groups =
            (rows.end - rows.first + job.cut.group_rows - 1) / job.cut.group_rows;
        const double *from = (is_inner ? job.inner : job.largest) +
                             unit * (uint64_t)job.cut.groups * slc_gpu_update_columns(job.rank) +
                             (column < job.rank ? column : 0);
        const double result = slc_reduce_groups(from, stride, (uint32_t)groups * shares, !is_inner);

        if (threadIdx.x < SLC_WARP && column < job.rank) {
            columns[unit * 2 * (uint64_t)job.rank + (is_inner ? job.rank : 0) + column] = result;
        }
        __syncthreads();
    }
}

template <typename X>
static cudaError_t launch_groups(const struct update_job *job,
                                 const void *mttkrp,
                                 void *factor,
                                 uint64_t panels,
                                 cudaStream_t stream)
{
    const size_t shared_bytes =
        panels == 0 ? (size_t)SLC_UPDATE_PANEL_PITCH * job->width * sizeof(double) : 0;
    const uint64_t groups = (uint64_t)job->unit_count * job->cut.groups;
    const unsigned grid = (unsigned)(panels == 0 ? groups : slc_min_u64(panels, groups));

    return slc_launch(update_groups<X>, grid, SLC_WARP, shared_bytes, stream, *job,
                      static_cast<const double *>(mttkrp), static_cast<X *>(factor));
}

/* Returns a job in which all members that do not depend on units or scratch are set. */
static struct update_job job_of(const struct slc_gpu_solver *solver,
                                const struct slc_gpu_matrix *mttkrp,
                                const struct slc_gpu_matrix *factor)
{
    const uint64_t square =
        (uint64_t)slc_gpu_solver_width(solver->rank) * slc_gpu_solver_width(solver->rank);
    struct update_job job = {};

    job.forward = solver->packed;
    job.backward = job.forward + square;
    job.forward_inverse = job.backward + square;
    job.backward_inverse = job.forward_inverse + slc_gpu_solver_width(solver->rank);
    job.rank = solver->rank;
    job.width = slc_gpu_solver_width(solver->rank);
    job.singular = solver->singular;
    job.mttkrp_pitch = mttkrp->pitch;
    job.mttkrp_split = mttkrp->split;
    job.factor_pitch = factor->pitch;
    return job;
}

/* Solves the units of a job and reduces their column results. */
static cudaError_t run_update(struct update_job *job,
                              enum slc_value_type precision,
                              const struct slc_gpu_matrix *mttkrp,
                              const struct slc_gpu_matrix *factor,
                              double *columns,
                              void *scratch,
                              cudaStream_t stream)
{
    const uint64_t elements =
        (uint64_t)job->unit_count * job->cut.groups * slc_gpu_update_columns(job->rank);
    const uint64_t panels = slc_gpu_update_panels_most(mttkrp->rows, job->rank);
    const uint32_t shares = SLC_WARP / slc_lanes_of_row(job->rank);
    const unsigned threads = slc_group_threads(job->cut.groups * shares);
    const dim3 grid((job->rank + SLC_WARP - 1) / SLC_WARP, 2,
                    (unsigned)slc_min_u64(job->unit_count, GRID_DEPTH_MAX));
    cudaError_t error = cudaSuccess;

    job->largest = static_cast<double *>(scratch);
    job->inner = job->largest + elements;
    job->panels = panels == 0 ? nullptr : job->inner + elements;
    if (job->cut.groups > 0 && precision == SLC_F64) {
        error = launch_groups<double>(job, mttkrp->data, factor->data, panels, stream);
    } else if (job->cut.groups > 0) {
        error = launch_groups<float>(job, mttkrp->data, factor->data, panels, stream);
    }
    if (error != cudaSuccess) {
        return error;
    }
    return slc_launch(reduce_columns, grid, threads, threads * sizeof(double), stream, *job, shares,
                      columns);
}

cudaError_t slc_gpu_dense_update(const struct slc_gpu_solver *solver,
                                 enum slc_value_type precision,
                                 const struct slc_gpu_matrix *mttkrp,
                                 const struct slc_gpu_matrix *factor,
                                 double *columns,
                                 void *scratch,
                                 cudaStream_t stream)
{
    struct update_job job = job_of(solver, mttkrp, factor);

    job.unit_count = 1;
    job.cut = slc_gpu_row_cut(mttkrp->rows, SLC_UPDATE_PANEL_ROWS,
                              slc_gpu_update_groups_max(solver->rank));
    return run_update(&job, precision, mttkrp, factor, columns, scratch, stream);
}

cudaError_t slc_gpu_dense_update_units(const struct slc_gpu_solver *solver,
                                       enum slc_value_type precision,
                                       const struct slc_gpu_matrix *mttkrp,
                                       const struct slc_gpu_matrix *factor,
                                       const struct slc_gpu_units *units,
                                       double *columns,
                                       void *scratch,
                                       cudaStream_t stream)
{
    const uint32_t rank = solver->rank;
    const uint64_t groups =
        slc_gpu_groups_most(mttkrp->rows, SLC_UPDATE_PANEL_ROWS, slc_gpu_update_groups_max(rank));
    struct update_job job = job_of(solver, mttkrp, factor);
    cudaError_t error = cudaSuccess;
    uint32_t step;

    job.cut = slc_gpu_row_cut(slc_min_u64(units->rows_most, mttkrp->rows), SLC_UPDATE_PANEL_ROWS,
                              slc_gpu_update_groups_max(rank));
    /* Number of units whose groups fit in scratch at the same time; this number suffices to fill
     * the device. */
    step = job.cut.groups > 0 ? (uint32_t)(groups / job.cut.groups) : units->count;
    for (uint32_t first = 0; first < units->count && error == cudaSuccess; first += step) {
        job.units = units->rows + first;
        job.unit_count = units->count - first < step ? units->count - first : step;
        error = run_update(&job, precision, mttkrp, factor, columns + first * 2 * (uint64_t)rank,
                           scratch, stream);
    }
    return error;
}
