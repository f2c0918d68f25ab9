/* Implements the common parts of dense algebra: scratch, division of rows, panels in f64. */
#include "cpu/dense/dense.h"

#include "base/memory/checked.h"
#include "base/memory/limits.h"
#include "cpu/dense/dense_state.h"
#include "cpu/kernel/dense_kernels.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#ifdef SLC_HAVE_OPENBLAS
#include <cblas.h>

/* OpenBLAS's fork handler, which ends the threads of OpenBLAS. The symbol is weak, because the
 * system may replace OpenBLAS with a BLAS that lacks this function. */
extern int blas_thread_shutdown_(void) __attribute__((weak));

/* Workers call BLAS concurrently, so BLAS itself must use only the calling thread. If the number of
 * threads is already 1, it is not set again, because setting it would restart the threads that
 * slc_dense_end_blas_threads ended. */
static void limit_blas_threads(void)
{
    if (openblas_get_num_threads() != 1) {
        openblas_set_num_threads(1);
    }
}

void slc_dense_end_blas_threads(void)
{
    limit_blas_threads();
    if (blas_thread_shutdown_ != NULL) {
        (void)blas_thread_shutdown_();
    }
}

/* Bytes of a buffer of OpenBLAS. OpenBLAS 0.3.21 on x86-64 requests 128 MiB plus a page and a
 * header, first with mmap and, if mmap fails, with malloc. */
static const uint64_t blas_buffer_bytes = UINT64_C(129) << 20;

enum slc_status slc_dense_check_blas(unsigned workers, struct slc_error *err)
{
    static _Atomic unsigned found;
    const size_t bytes = (size_t)(workers * blas_buffer_bytes);
    void *address;

    if (workers <= atomic_load(&found)) {
        return SLC_OK;
    }
    address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (address == MAP_FAILED) {
        return slc_fail_field(
            err, SLC_ERR_MEMORY, SLC_FIELD_THREADS,
            "OpenBLAS needs %" PRIu64
            " MiB of address space in addition to all other memory, for %u threads: raise the "
            "limit (ulimit -v, h_vmem of a queue) or use fewer threads",
            (uint64_t)bytes >> 20, workers);
    }
    (void)munmap(address, bytes);
    atomic_store(&found, workers);
    return SLC_OK;
}

const char *slc_dense_library(void)
{
    return openblas_get_config();
}
#else
enum slc_status slc_dense_check_blas(unsigned workers, struct slc_error *err)
{
    (void)workers;
    (void)err;
    return SLC_OK;
}

static void limit_blas_threads(void)
{
}

const char *slc_dense_library(void)
{
    return "";
}

void slc_dense_end_blas_threads(void)
{
}
#endif

struct slc_row_cut slc_row_cut(uint64_t rows, uint64_t panel_rows, uint64_t groups_max)
{
    const uint64_t panels = slc_div_up_u64(rows, panel_rows);
    struct slc_row_cut cut = {rows, panel_rows, panel_rows, 0};

    if (panels > 0) {
        cut.group_rows = slc_div_up_u64(panels, slc_min_u64(panels, groups_max)) * panel_rows;
        cut.groups = slc_div_up_u64(rows, cut.group_rows);
    }
    return cut;
}

uint64_t slc_panel_rows(uint32_t cols)
{
    return slc_min_u64(SLC_PANEL_ELEMENTS / cols, SLC_PANEL_ROWS);
}

/* Numbers of elements of the three areas of the scratch. areas_of returns false if an argument is
 * out of range. */
struct areas {
    uint64_t grams, columns, panel, total;
};

static bool areas_of(unsigned workers, uint32_t rank_max, uint64_t rows_max, struct areas *areas)
{
    /* The small kernels (dense_kernels.h) pad rows to whole vectors. */
    const uint64_t width = slc_block_width(rank_max);
    const uint64_t square = width * width;
    const uint64_t groups = slc_min_u64(slc_div_up_u64(rows_max, SLC_GRAM_ROWS), SLC_DENSE_GROUPS);
    uint64_t all_rows;

    if (rank_max < 1 || rank_max > SLC_MAX_RANK || workers < 1 || workers > SLC_MAX_THREADS) {
        return false;
    }
    if (!slc_mul_u64(rows_max, rank_max, &all_rows)) {
        all_rows = UINT64_MAX;
    }
    areas->grams = slc_max_u64(square, slc_min_u64(SLC_GRAM_ELEMENTS, groups * square));
    areas->columns = SLC_COLUMN_ELEMENTS * width;
    /* The panels of a matrix with rank_max columns are the largest. A panel is at most as large as
     * its matrix. */
    areas->panel = slc_min_u64((uint64_t)SLC_PANEL_ROWS * rank_max, SLC_PANEL_ELEMENTS);
    areas->panel = slc_min_u64(areas->panel, all_rows);
    /* Panels start on cache lines, like the other areas. */
    areas->panel = (areas->panel + 7) / 8 * 8;
    areas->total = areas->grams + areas->columns + 2 * workers * areas->panel;
    return true;
}

uint64_t slc_dense_memory_bytes(unsigned workers, uint32_t rank_max, uint64_t rows_max)
{
    struct areas areas;

    if (!areas_of(workers, rank_max, rows_max, &areas)) {
        return UINT64_MAX;
    }
    return slc_buffer_footprint(areas.total * sizeof(double), SLC_PAGES_SMALL) +
           sizeof(struct slc_dense);
}

enum slc_status slc_dense_create(unsigned workers,
                                 uint32_t rank_max,
                                 uint64_t rows_max,
                                 struct slc_dense **dense,
                                 struct slc_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct areas areas;

    *dense = NULL;
    if (!areas_of(workers, rank_max, rows_max, &areas)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "dense algebra for rank %u on %u threads is not possible: the rank must be "
                        "1 to %d and the number of threads 1 to %d",
                        rank_max, workers, SLC_MAX_RANK, SLC_MAX_THREADS);
    }
    (void)pthread_once(&once, limit_blas_threads);
    SLC_TRY(slc_dense_check_blas(workers, err));
    struct slc_dense *made = slc_calloc(1, sizeof *made);
    SLC_TRY(slc_check_memory(made != NULL, err, "for the state of dense algebra"));
    enum slc_status status =
        slc_buffer_create(&made->buffer, areas.total * sizeof(double), SLC_PAGES_SMALL, err);
    if (status != SLC_OK) {
        slc_free(made);
        return status;
    }
    made->workers = workers;
    made->rank_max = rank_max;
    made->rows_max = rows_max;
    made->grams = made->buffer.data;
    made->columns = made->grams + areas.grams;
    made->panels = made->columns + areas.columns;
    made->panel_elements = areas.panel;
    *dense = made;
    return SLC_OK;
}

void slc_dense_destroy(struct slc_dense *dense)
{
    if (dense != NULL) {
        slc_buffer_destroy(&dense->buffer);
        slc_free(dense);
    }
}

enum slc_status slc_dense_check(const struct slc_dense *dense,
                                const struct slc_matrix *matrix,
                                struct slc_error *err)
{
    if (matrix->cols < 1 || matrix->cols > dense->rank_max || matrix->rows > dense->rows_max) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "a matrix of %llu x %u exceeds the maximum of %llu x %u for which scratch "
                        "was allocated",
                        (unsigned long long)matrix->rows, matrix->cols,
                        (unsigned long long)dense->rows_max, dense->rank_max);
    }
    return SLC_OK;
}

void slc_dense_load(const struct slc_matrix *matrix,
                    uint64_t begin,
                    uint64_t end,
                    uint32_t column,
                    uint32_t cols,
                    double *to)
{
    for (uint64_t i = begin; i < end; i++, to += cols) {
        if (matrix->type == SLC_F64) {
            memcpy(to, slc_matrix_row_f64(matrix, i) + column, cols * sizeof *to);
        } else {
            const float *from = slc_matrix_row_f32(matrix, i) + column;
            for (uint32_t r = 0; r < cols; r++) {
                to[r] = (double)from[r];
            }
        }
    }
}

void slc_dense_store(struct slc_matrix *matrix, uint64_t begin, uint64_t end, const double *from)
{
    const uint32_t cols = matrix->cols;

    for (uint64_t i = begin; i < end; i++, from += cols) {
        if (matrix->type == SLC_F64) {
            memcpy(slc_matrix_row_f64(matrix, i), from, cols * sizeof *from);
        } else {
            float *to = slc_matrix_row_f32(matrix, i);
            for (uint32_t r = 0; r < cols; r++) {
                to[r] = (float)from[r];
            }
        }
    }
}
