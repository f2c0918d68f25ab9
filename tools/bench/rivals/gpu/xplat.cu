/* Implements the kernels of [XPLAT] section 3 (xplat.h). */
#include "tools/bench/rivals/gpu/xplat.h"

#include "gpu/cuda/staged_copy.h"
#include "tools/bench/rivals/gpu/baseline.h"

#include <string.h>

enum {
    /* Columns whose sums a thread of a row-centric kernel keeps in registers. A thread with up to
       FEW columns needs fewer registers, so that more threads run at the same time. */
    FEW = 8,
    MANY = 32
};

/* ---- the form */

/* Returns the device address of an array of `csf`, whose copy in device memory is at `memory`. */
template <typename T> static T *moved(const struct slc_csf *csf, void *memory, T *array)
{
    const ptrdiff_t offset = reinterpret_cast<const unsigned char *>(array) -
                             static_cast<const unsigned char *>(csf->memory.data);

    return array == nullptr ? nullptr
                            : reinterpret_cast<T *>(static_cast<unsigned char *>(memory) + offset);
}

static uint64_t array_bytes(const struct slc_csf *csf)
{
    const uint64_t numbers = csf->slices + 1 + (csf->order - 1) * csf->fibers + 1 + csf->nnz;

    return csf->nnz * slc_value_bytes(csf->type) + numbers * sizeof(uint32_t);
}

cudaError_t slc_gpu_csf_create(struct slc_gpu_csf *csf,
                               const struct slc_gpu_host_list *list,
                               const uint64_t *dims,
                               unsigned slice_mode,
                               cudaStream_t stream)
{
    const struct slc_csf_list from = {list->order,  dims,       list->nnz,
                                      list->coords, list->type, list->values};
    struct slc_csf host = {};
    const enum slc_status status = slc_csf_create_slices(&host, &from, slice_mode, nullptr);
    cudaError_t error = status == SLC_OK           ? cudaSuccess
                        : status == SLC_ERR_MEMORY ? cudaErrorMemoryAllocation
                                                   : cudaErrorInvalidValue;

    csf->bytes = array_bytes(&host);
    if (error == cudaSuccess) {
        error = slc_staged_create(&csf->memory, host.memory.data, csf->bytes, stream);
    }
    if (error == cudaSuccess) {
        csf->arrays = host;
        csf->arrays.memory = SLC_BUFFER_INIT;
        csf->arrays.slice_begin = moved(&host, csf->memory, host.slice_begin);
        csf->arrays.fiber_begin = moved(&host, csf->memory, host.fiber_begin);
        csf->arrays.index = moved(&host, csf->memory, host.index);
        csf->arrays.values = csf->memory;
        for (unsigned m = 0; m < host.order; m++) {
            csf->arrays.fiber_index[m] = moved(&host, csf->memory, host.fiber_index[m]);
        }
    }
    slc_csf_destroy(&host);
    return error;
}

void slc_gpu_csf_destroy(struct slc_gpu_csf *csf)
{
    (void)cudaFree(csf->memory);
    memset(csf, 0, sizeof *csf);
}

/* ---- TTM */

/* Listing 1: a thread computes an element of the output. */
template <typename Element>
__global__ static void __launch_bounds__(SLC_BASELINE_THREADS)
    slc_xplat_ttm_element(const struct slc_gpu_fibers fibers,
                          const struct slc_gpu_matrix matrix,
                          const struct slc_gpu_matrix rows)
{
    const uint64_t fiber = static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const uint32_t column = blockIdx.y * blockDim.x + threadIdx.x;
    const Element *from = static_cast<const Element *>(matrix.data) + column;
    double sum = 0;

    if (fiber >= fibers.count || column >= matrix.cols) {
        return;
    }
    for (uint32_t e = fibers.begin[fiber]; e < fibers.begin[fiber + 1]; e++) {
        sum += slc_baseline_value(fibers.type, fibers.values, e) *
               static_cast<double>(from[static_cast<uint64_t>(fibers.index[e]) * matrix.pitch]);
    }
    static_cast<double *>(rows.data)[fiber * rows.pitch + column] = sum;
}

/* Listing 2: a thread computes a row of the output, the one of its fiber. */
template <typename Element, uint32_t width>
__global__ static void __launch_bounds__(SLC_BASELINE_THREADS)
    slc_xplat_ttm_fiber(const struct slc_gpu_fibers fibers,
                        const struct slc_gpu_matrix matrix,
                        const struct slc_gpu_matrix rows)
{
    const uint64_t fiber = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;

    if (fiber >= fibers.count) {
        return;
    }
    double *to = static_cast<double *>(rows.data) + fiber * rows.pitch;

    for (uint32_t first = 0; first < matrix.cols; first += width) {
        double sum[width] = {};

        SLC_ROLL
        for (uint32_t e = fibers.begin[fiber]; e < fibers.begin[fiber + 1]; e++) {
            const double value = slc_baseline_value(fibers.type, fibers.values, e);
            const Element *row = static_cast<const Element *>(matrix.data) +
                                 static_cast<uint64_t>(fibers.index[e]) * matrix.pitch + first;

            SLC_UNROLL
            for (uint32_t c = 0; c < width; c++) {
                sum[c] += first + c < matrix.cols ? value * static_cast<double>(row[c]) : 0;
            }
        }
        SLC_UNROLL
        for (uint32_t c = 0; c < width; c++) {
            if (first + c < matrix.cols) {
                to[first + c] = sum[c];
            }
        }
    }
}

/* The grid of an element-centric kernel: a thread for each element of `rows` rows. */
static dim3 element_grid(uint64_t rows, uint32_t cols, dim3 block)
{
    return dim3(static_cast<unsigned>((rows + block.y - 1) / block.y),
                (cols + block.x - 1) / block.x);
}

/* The grid of a row-centric kernel: a thread for each row. */
static dim3 row_grid(uint64_t rows)
{
    return dim3(static_cast<unsigned>((rows + SLC_BASELINE_THREADS - 1) / SLC_BASELINE_THREADS));
}

template <typename Element>
static cudaError_t multiply(const struct slc_gpu_fibers *fibers,
                            bool elements,
                            const struct slc_gpu_matrix *matrix,
                            const struct slc_gpu_matrix *rows,
                            cudaStream_t stream)
{
    const dim3 block = slc_baseline_block(matrix->cols);

    if (elements) {
        return slc_launch(slc_xplat_ttm_element<Element>,
                          element_grid(fibers->count, matrix->cols, block), block, 0, stream,
                          *fibers, *matrix, *rows);
    }
    return slc_launch(matrix->cols <= FEW ? slc_xplat_ttm_fiber<Element, FEW>
                                          : slc_xplat_ttm_fiber<Element, MANY>,
                      row_grid(fibers->count), dim3(SLC_BASELINE_THREADS), 0, stream, *fibers,
                      *matrix, *rows);
}

cudaError_t slc_gpu_xplat_ttm(const struct slc_gpu_fibers *fibers,
                              bool elements,
                              enum slc_value_type precision,
                              const struct slc_gpu_matrix *matrix,
                              const struct slc_gpu_matrix *rows,
                              cudaStream_t stream)
{
    if (rows->rows < fibers->count || rows->cols != matrix->cols) {
        return cudaErrorInvalidValue;
    }
    if (fibers->count == 0) {
        return cudaSuccess;
    }
    return precision == SLC_F64 ? multiply<double>(fibers, elements, matrix, rows, stream)
                                : multiply<float>(fibers, elements, matrix, rows, stream);
}

/* ---- MTTKRP */

/* The matrices of an MTTKRP over slices. */
struct xplat_job {
    struct slc_csf csf; /* with arrays in device memory */
    uint32_t rank;
    struct slc_gpu_matrix matrix; /* factor of the fiber mode */
    /* factors by which the sum of a fiber is multiplied, and the row of each fiber in them */
    unsigned shared_count;
    struct slc_gpu_matrix shared[SLC_MAX_ORDER - 2];
    const uint32_t *shared_index[SLC_MAX_ORDER - 2];
    struct slc_gpu_matrix output;
};

/* Returns the factor row that the index selects, from `column` on. */
template <typename Element>
__device__ static inline const Element *
factor_row(const struct slc_gpu_matrix *factor, uint32_t index, uint32_t column)
{
    return static_cast<const Element *>(factor->data) +
           static_cast<uint64_t>(index) * factor->pitch + column;
}

/* Listing 3: a thread computes an element of the output. */
template <typename Element>
__global__ static void __launch_bounds__(SLC_BASELINE_THREADS)
    slc_xplat_mttkrp_element(const struct xplat_job job)
{
    const uint64_t slice = static_cast<uint64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
    const uint32_t column = blockIdx.y * blockDim.x + threadIdx.x;
    const struct slc_csf *csf = &job.csf;
    double sum = 0;

    if (slice >= csf->slices || column >= job.rank) {
        return;
    }
    for (uint32_t f = csf->slice_begin[slice]; f < csf->slice_begin[slice + 1]; f++) {
        double product = 0;

        for (uint32_t e = csf->fiber_begin[f]; e < csf->fiber_begin[f + 1]; e++) {
            product +=
                slc_baseline_value(csf->type, csf->values, e) *
                static_cast<double>(*factor_row<Element>(&job.matrix, csf->index[e], column));
        }
        for (unsigned m = 0; m < job.shared_count; m++) {
            product *= static_cast<double>(
                *factor_row<Element>(&job.shared[m], job.shared_index[m][f], column));
        }
        sum += product;
    }
    static_cast<double *>(job.output.data)[slice * job.output.pitch + column] = sum;
}

/* Listing 4: a thread computes a row of the output, the one of its slice. */
template <typename Element, uint32_t width>
__global__ static void __launch_bounds__(SLC_BASELINE_THREADS)
    slc_xplat_mttkrp_row(const struct xplat_job job)
{
    const uint64_t slice = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const struct slc_csf *csf = &job.csf;

    if (slice >= csf->slices) {
        return;
    }
    double *to = static_cast<double *>(job.output.data) + slice * job.output.pitch;

    for (uint32_t first = 0; first < job.rank; first += width) {
        double sum[width] = {};

        SLC_ROLL
        for (uint32_t f = csf->slice_begin[slice]; f < csf->slice_begin[slice + 1]; f++) {
            double product[width] = {};

            SLC_ROLL
            for (uint32_t e = csf->fiber_begin[f]; e < csf->fiber_begin[f + 1]; e++) {
                const double value = slc_baseline_value(csf->type, csf->values, e);
                const Element *row = factor_row<Element>(&job.matrix, csf->index[e], first);

                SLC_UNROLL
                for (uint32_t c = 0; c < width; c++) {
                    product[c] += first + c < job.rank ? value * static_cast<double>(row[c]) : 0;
                }
            }
            SLC_ROLL
            for (unsigned m = 0; m < job.shared_count; m++) {
                const Element *row =
                    factor_row<Element>(&job.shared[m], job.shared_index[m][f], first);

                SLC_UNROLL
                for (uint32_t c = 0; c < width; c++) {
                    product[c] *= first + c < job.rank ? static_cast<double>(row[c]) : 0;
                }
            }
            SLC_UNROLL
            for (uint32_t c = 0; c < width; c++) {
                sum[c] += product[c];
            }
        }
        SLC_UNROLL
        for (uint32_t c = 0; c < width; c++) {
            if (first + c < job.rank) {
                to[first + c] = sum[c];
            }
        }
    }
}

static struct xplat_job job_of(const struct slc_csf *csf, const struct slc_gpu_mttkrp *job)
{
    struct xplat_job made = {};

    made.csf = *csf;
    made.rank = job->rank;
    made.matrix = job->factor[csf->fiber_mode];
    made.output = job->output;
    for (unsigned m = 0; m < csf->order; m++) {
        if (csf->fiber_index[m] != nullptr) {
            made.shared[made.shared_count] = job->factor[m];
            made.shared_index[made.shared_count++] = csf->fiber_index[m];
        }
    }
    return made;
}

template <typename Element>
static cudaError_t compute(const struct slc_csf *csf,
                           bool elements,
                           const struct slc_gpu_mttkrp *job,
                           cudaStream_t stream)
{
    const dim3 block = slc_baseline_block(job->rank);

    if (elements) {
        return slc_launch(slc_xplat_mttkrp_element<Element>,
                          element_grid(csf->slices, job->rank, block), block, 0, stream,
                          job_of(csf, job));
    }
    return slc_launch(
        job->rank <= FEW ? slc_xplat_mttkrp_row<Element, FEW> : slc_xplat_mttkrp_row<Element, MANY>,
        row_grid(csf->slices), dim3(SLC_BASELINE_THREADS), 0, stream, job_of(csf, job));
}

cudaError_t slc_gpu_xplat_mttkrp(const struct slc_gpu_csf *csf,
                                 bool elements,
                                 const struct slc_gpu_mttkrp *job,
                                 cudaStream_t stream)
{
    return job->precision == SLC_F64 ? compute<double>(&csf->arrays, elements, job, stream)
                                     : compute<float>(&csf->arrays, elements, job, stream);
}
