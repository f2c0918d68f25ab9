/* Computes and times TTV and TTM from fibers in device memory, also by cuSPARSE. */
#include "gpu/cuda/check.h"
#include "gpu/cuda/staged_copy.h"
#include "tools/bench/rivals/gpu/cusparse.h"
#include "tools/bench/rivals/gpu/lists.h"
#include "tools/bench/rivals/gpu/products.h"
#include "tools/bench/rivals/gpu/xplat.h"

#include <cinttypes>
#include <cstring>

enum { MOST_PRODUCTS = 16 /* largest number of products in a sample */ };
/* Least time of a sample if MOST_PRODUCTS suffice. The clock of a stream also counts the time from
 * an event to the first kernel, several microseconds, and short kernels take less than 100. */
static const double sample_seconds = 1e-3;

struct slc_gpu_fiber_list {
    int ordinal;
    struct slc_gpu_machine machine;
    struct slc_gpu_coo coo;
    struct slc_gpu_fibers fibers;
    uint64_t length; /* size of the mode of the fibers */
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

/* Arrays of one product, in addition to the fibers. */
struct product {
    enum slc_gpu_fiber_product kind;
    enum slc_value_type precision;      /* of the matrix */
    struct slc_gpu_matrix matrix, rows; /* in device memory */
    struct slc_gpu_sptv sptv;
    struct slc_gpu_ttm ttm;
    struct slc_cusparse *cusparse;
};

extern "C" const char *slc_gpu_product_name(enum slc_gpu_fiber_product product)
{
    static const char *const names[] = {
        "sptv",       "sptv-short",   "cusparse-1",        "cusparse-2",
        "ttm-fibers", "ttm-nonzeros", "ttm-xplat-element", "ttm-xplat-fiber"};

    return static_cast<unsigned>(product) < SLC_GPU_PRODUCTS ? names[product] : "?";
}

extern "C" bool slc_gpu_product_of_vector(enum slc_gpu_fiber_product product)
{
    return product < SLC_GPU_PRODUCT_TTM_FIBERS;
}

/* ---- the list */

static enum slc_status find_fibers(struct slc_gpu_fiber_list *list,
                                   const struct slc_gpu_fiber_source *source,
                                   struct slc_error *err)
{
    struct slc_gpu_fibers *fibers = &list->fibers;
    cudaError_t error;

    if (source->keep_empty) {
        error =
            slc_gpu_fibers_create_all(fibers, &list->coo, source->mode, source->dims, list->stream);
    } else {
        error = slc_gpu_fibers_reserve(fibers, source->order, source->nnz);
        if (error == cudaSuccess) {
            error = slc_gpu_fibers_find(fibers, &list->coo, source->mode, list->stream);
        }
    }
    if (error == cudaErrorInvalidValue) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED,
                        "%" PRIu64 " nonzeros cannot form fibers of mode %u%s: there must be fewer "
                        "than 2^32 - 1 of each, and the nonzeros must be sorted by fiber",
                        source->nnz, source->mode + 1,
                        source->keep_empty ? ", including empty ones" : "");
    }
    SLC_GPU_TRY(error, err);
    return SLC_OK;
}

static enum slc_status fill(struct slc_gpu_fiber_list *list,
                            const struct slc_gpu_fiber_source *source,
                            struct slc_error *err)
{
    struct cudaDeviceProp properties;

    list->ordinal = static_cast<int>(source->ordinal);
    list->length = source->dims[source->mode];
    SLC_GPU_TRY(cudaSetDevice(list->ordinal), err);
    SLC_GPU_TRY(cudaGetDeviceProperties(&properties, list->ordinal), err);
    list->machine.multiprocessors = static_cast<unsigned>(properties.multiProcessorCount);
    list->machine.shared_bytes = static_cast<unsigned>(properties.sharedMemPerBlockOptin);
    list->machine.architecture = static_cast<unsigned>(properties.major * 10 + properties.minor);
    SLC_GPU_TRY(cudaStreamCreateWithFlags(&list->stream, cudaStreamNonBlocking), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&list->begin, cudaEventDefault), err);
    SLC_GPU_TRY(cudaEventCreateWithFlags(&list->end, cudaEventDefault), err);
    SLC_GPU_TRY(slc_gpu_coo_create(&list->coo, source->order, source->nnz, source->type), err);
    SLC_GPU_TRY(slc_gpu_coo_write(&list->coo, source->coords, source->values, list->stream), err);
    return find_fibers(list, source, err);
}

extern "C" enum slc_status slc_gpu_fiber_list_create(const struct slc_gpu_fiber_source *source,
                                                     struct slc_gpu_fiber_list **result,
                                                     struct slc_error *err)
{
    struct slc_gpu_fiber_list *list =
        static_cast<struct slc_gpu_fiber_list *>(slc_calloc(1, sizeof *list));
    enum slc_status status;

    if (list == nullptr) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a list of fibers");
    }
    status = fill(list, source, err);
    if (status != SLC_OK) {
        slc_gpu_fiber_list_destroy(list);
        return status;
    }
    *result = list;
    return SLC_OK;
}

extern "C" void slc_gpu_fiber_list_destroy(struct slc_gpu_fiber_list *list)
{
    if (list == nullptr) {
        return;
    }
    slc_gpu_fibers_destroy(&list->fibers);
    slc_gpu_coo_destroy(&list->coo);
    slc_event_destroy(list->begin);
    slc_event_destroy(list->end);
    slc_stream_destroy(list->stream);
    slc_free(list);
}

extern "C" uint64_t slc_gpu_fiber_list_count(const struct slc_gpu_fiber_list *list)
{
    return list->fibers.count;
}

/* ---- a product */

/* Allocates a device matrix with the size of `of`. Unless it is a vector, its rows start at
 * multiples of 16 bytes. */
static cudaError_t reserve(struct slc_gpu_matrix *matrix, const struct slc_matrix *of, bool vector)
{
    const uint32_t element = slc_value_bytes(of->type), each = 16 / element;

    matrix->rows = of->rows;
    matrix->cols = of->cols;
    matrix->pitch = vector ? 1 : (of->cols + each - 1) / each * each;
    return cudaMalloc(&matrix->data, (of->rows * matrix->pitch + 1) * element);
}

/* Copies rows between matrices with different pitches. */
static void repack(void *to,
                   uint32_t to_pitch,
                   const void *from,
                   uint32_t from_pitch,
                   uint64_t rows,
                   size_t row_bytes)
{
    for (uint64_t i = 0; i < rows; i++) {
        memcpy(static_cast<unsigned char *>(to) + i * to_pitch,
               static_cast<const unsigned char *>(from) + i * from_pitch, row_bytes);
    }
}

/* Copies a matrix from the host to the device, or from the device to the host. */
static enum slc_status move(const struct slc_gpu_matrix *device,
                            struct slc_matrix *host,
                            bool to_device,
                            cudaStream_t stream,
                            struct slc_error *err)
{
    const uint32_t element = slc_value_bytes(host->type);
    const uint64_t bytes = device->rows * device->pitch * element;
    struct slc_buffer packed = SLC_BUFFER_INIT;
    cudaError_t error;

    if (bytes == 0) {
        return SLC_OK;
    }
    if (device->pitch == host->pitch) {
        SLC_GPU_TRY(to_device ? slc_staged_to_device(device->data, host->buffer.data, bytes, stream)
                              : slc_staged_to_host(host->buffer.data, device->data, bytes, stream),
                    err);
        return SLC_OK;
    }
    SLC_TRY(slc_buffer_create(&packed, bytes, SLC_PAGES_HUGE, err));
    if (to_device) {
        repack(packed.data, device->pitch * element, host->buffer.data, host->pitch * element,
               host->rows, host->cols * element);
        error = slc_staged_to_device(device->data, packed.data, bytes, stream);
    } else {
        error = slc_staged_to_host(packed.data, device->data, bytes, stream);
        repack(host->buffer.data, host->pitch * element, packed.data, device->pitch * element,
               host->rows, host->cols * element);
    }
    slc_buffer_destroy(&packed);
    SLC_GPU_TRY(error, err);
    return SLC_OK;
}

static enum slc_status
prepare_vector(struct slc_gpu_fiber_list *list, struct product *product, struct slc_error *err)
{
    const struct slc_gpu_sptv_options options = {product->kind == SLC_GPU_PRODUCT_SPTV_SHORT, 0};

    if (product->kind == SLC_GPU_PRODUCT_CUSPARSE_1 ||
        product->kind == SLC_GPU_PRODUCT_CUSPARSE_2) {
        return slc_cusparse_create(&list->fibers, list->length,
                                   static_cast<double *>(product->matrix.data),
                                   static_cast<double *>(product->rows.data),
                                   product->kind == SLC_GPU_PRODUCT_CUSPARSE_1 ? 1 : 2,
                                   list->stream, &product->cusparse, err);
    }
    SLC_GPU_TRY(slc_gpu_sptv_create(&product->sptv, &list->fibers, &options, &list->machine), err);
    SLC_GPU_TRY(slc_gpu_sptv_prepare(&product->sptv, list->length, list->stream), err);
    return SLC_OK;
}

static bool is_xplat(enum slc_gpu_fiber_product kind)
{
    return kind == SLC_GPU_PRODUCT_TTM_XPLAT_ELEMENT || kind == SLC_GPU_PRODUCT_TTM_XPLAT_FIBER;
}

static enum slc_status prepare(struct slc_gpu_fiber_list *list,
                               struct product *product,
                               const struct slc_gpu_product_run *run,
                               struct slc_error *err)
{
    const bool vector = slc_gpu_product_of_vector(product->kind);
    enum slc_status status;

    SLC_GPU_TRY(reserve(&product->matrix, run->matrix, vector), err);
    SLC_GPU_TRY(reserve(&product->rows, run->rows, vector), err);
    /* Kernels do not write the padding of rows, which is copied with them. */
    SLC_GPU_TRY(
        cudaMemsetAsync(product->rows.data, 0,
                        product->rows.rows * product->rows.pitch * slc_value_bytes(run->rows->type),
                        list->stream),
        err);
    status = move(&product->matrix, const_cast<struct slc_matrix *>(run->matrix), true,
                  list->stream, err);
    if (status != SLC_OK || vector) {
        return status == SLC_OK ? prepare_vector(list, product, err) : status;
    }
    if (is_xplat(product->kind)) {
        return SLC_OK;
    }
    SLC_GPU_TRY(slc_gpu_ttm_create(&product->ttm, &list->fibers, run->matrix->cols,
                                   run->matrix->type, 0, &list->machine),
                err);
    SLC_GPU_TRY(slc_gpu_ttm_prepare(&product->ttm, list->stream), err);
    return SLC_OK;
}

static void release(struct product *product)
{
    slc_cusparse_destroy(product->cusparse);
    slc_gpu_sptv_destroy(&product->sptv);
    slc_gpu_ttm_destroy(&product->ttm);
    (void)cudaFree(product->matrix.data);
    (void)cudaFree(product->rows.data);
}

static enum slc_status
enqueue(struct slc_gpu_fiber_list *list, struct product *product, struct slc_error *err)
{
    if (product->cusparse != nullptr) {
        return slc_cusparse_multiply(product->cusparse, err);
    }
    if (slc_gpu_product_of_vector(product->kind)) {
        SLC_GPU_TRY(slc_gpu_sptv_multiply(&product->sptv,
                                          static_cast<const double *>(product->matrix.data),
                                          static_cast<double *>(product->rows.data), list->stream),
                    err);
        return SLC_OK;
    }
    if (is_xplat(product->kind)) {
        SLC_GPU_TRY(
            slc_gpu_xplat_ttm(&list->fibers, product->kind == SLC_GPU_PRODUCT_TTM_XPLAT_ELEMENT,
                              product->precision, &product->matrix, &product->rows, list->stream),
            err);
        return SLC_OK;
    }
    SLC_GPU_TRY(slc_gpu_ttm_multiply(&product->ttm,
                                     product->kind == SLC_GPU_PRODUCT_TTM_FIBERS
                                         ? SLC_GPU_TTM_FIBERS
                                         : SLC_GPU_TTM_NONZEROS,
                                     &product->matrix, &product->rows, list->stream),
                err);
    return SLC_OK;
}

/* Sets *seconds to the mean time of `count` products in a row. */
static enum slc_status time_products(struct slc_gpu_fiber_list *list,
                                     struct product *product,
                                     unsigned count,
                                     double *seconds,
                                     struct slc_error *err)
{
    float milliseconds = 0;

    SLC_GPU_TRY(cudaEventRecord(list->begin, list->stream), err);
    for (unsigned i = 0; i < count; i++) {
        SLC_TRY(enqueue(list, product, err));
    }
    SLC_GPU_TRY(cudaEventRecord(list->end, list->stream), err);
    SLC_GPU_TRY(cudaEventSynchronize(list->end), err);
    SLC_GPU_TRY(cudaEventElapsedTime(&milliseconds, list->begin, list->end), err);
    *seconds = static_cast<double>(milliseconds) * 1e-3 / count;
    return SLC_OK;
}

/* Returns the number of products whose total time is a sample. */
static unsigned products_per_sample(double seconds)
{
    return seconds * MOST_PRODUCTS <= sample_seconds ? (unsigned)MOST_PRODUCTS
           : seconds < sample_seconds ? static_cast<unsigned>(sample_seconds / seconds)
                                      : 1;
}

static enum slc_status check(const struct slc_gpu_fiber_list *list,
                             const struct slc_gpu_product_run *run,
                             struct slc_error *err)
{
    const struct slc_matrix *matrix = run->matrix, *rows = run->rows;

    if (run->product < SLC_GPU_PRODUCTS && matrix->rows == list->length &&
        rows->rows == list->fibers.count && rows->cols == matrix->cols && matrix->cols > 0 &&
        rows->type == SLC_F64 &&
        (!slc_gpu_product_of_vector(run->product) ||
         (matrix->cols == 1 && matrix->type == SLC_F64))) {
        return SLC_OK;
    }
    return slc_fail(err, SLC_ERR_USAGE,
                    "product %s of %" PRIu64 " fibers in a mode of size %" PRIu64
                    " cannot multiply a %" PRIu64 " x %u matrix into a %" PRIu64 " x %u matrix",
                    slc_gpu_product_name(run->product), list->fibers.count, list->length,
                    matrix->rows, matrix->cols, rows->rows, rows->cols);
}

static uint64_t bytes_of(const struct slc_gpu_fiber_list *list, const struct product *product)
{
    const struct slc_gpu_fibers *fibers = &list->fibers;

    if (product->cusparse == nullptr && slc_gpu_product_of_vector(product->kind)) {
        return slc_gpu_sptv_bytes(&product->sptv, list->length);
    }
    return fibers->nnz * (sizeof(uint32_t) + slc_value_bytes(fibers->type)) +
           fibers->count * sizeof(uint32_t) +
           (fibers->count * sizeof(double) + list->length * slc_value_bytes(product->precision)) *
               product->matrix.cols;
}

static enum slc_status multiply(struct slc_gpu_fiber_list *list,
                                struct product *product,
                                const struct slc_gpu_product_run *run,
                                double *seconds,
                                struct slc_error *err)
{
    double untimed = 0;

    SLC_TRY(prepare(list, product, run, err));
    /* The first product also loads the code of the kernels. */
    for (unsigned i = 0; i < 2; i++) {
        SLC_TRY(time_products(list, product, 1, &untimed, err));
    }
    const unsigned count = products_per_sample(untimed);

    for (unsigned i = 0; i < run->repeats; i++) {
        SLC_TRY(time_products(list, product, count, &seconds[i], err));
    }
    return move(&product->rows, run->rows, false, list->stream, err);
}

extern "C" enum slc_status slc_gpu_fiber_list_multiply(struct slc_gpu_fiber_list *list,
                                                       const struct slc_gpu_product_run *run,
                                                       double *seconds,
                                                       uint64_t *bytes,
                                                       struct slc_error *err)
{
    struct product product = {};
    enum slc_status status;

    SLC_TRY(check(list, run, err));
    SLC_GPU_TRY(cudaSetDevice(list->ordinal), err);
    product.kind = run->product;
    product.precision = run->matrix->type;
    status = multiply(list, &product, run, seconds, err);
    if (status == SLC_OK) {
        *bytes = bytes_of(list, &product);
    } else {
        /* Work on the stream may still use the memory that is released below. */
        (void)cudaStreamSynchronize(list->stream);
    }
    release(&product);
    return status;
}
