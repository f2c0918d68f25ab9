/* Implements products by cuSPARSE (cusparse.h). The library is opened on demand. The declarations
 * follow the manual of the library, because its header may be missing. */
#include "tools/bench/rivals/gpu/cusparse.h"

#include "gpu/cuda/check.h"

#include <cinttypes>
#include <cstring>
#include <dlfcn.h>

/* Constants of cusparse.h and library_types.h. */
enum {
    NON_TRANSPOSE = 0,
    INDEX_32I = 2,
    BASE_ZERO = 0,
    REAL_64F = 1,     /* CUDA_R_64F */
    SPMV_CSR_ALG1 = 2 /* SPMV_CSR_ALG2 is the next value */
};

typedef int spmv_buffer_size(void *handle,
                             int operation,
                             const void *alpha,
                             void *matrix,
                             void *vector,
                             const void *beta,
                             void *sums,
                             int type,
                             int algorithm,
                             size_t *bytes);
typedef int spmv(void *handle,
                 int operation,
                 const void *alpha,
                 void *matrix,
                 void *vector,
                 const void *beta,
                 void *sums,
                 int type,
                 int algorithm,
                 void *buffer);

struct cusparse_functions {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t stream);
    int (*create_csr)(void **matrix,
                      int64_t rows,
                      int64_t cols,
                      int64_t nnz,
                      void *begin,
                      void *index,
                      void *values,
                      int begin_type,
                      int index_type,
                      int base,
                      int type);
    int (*create_vector)(void **vector, int64_t size, void *values, int type);
    int (*destroy_matrix)(void *matrix);
    int (*destroy_vector)(void *vector);
    spmv_buffer_size *buffer_size;
    /* NULL if the library is older than 12.4; its products then need no preprocessing */
    spmv *preprocess;
    spmv *multiply;
};

struct slc_cusparse {
    void *library;
    struct cusparse_functions of;
    void *handle, *matrix, *vector, *sums, *buffer;
    int algorithm;
};

static void *open_library(void)
{
#ifdef SLC_EMULATED
    /* This opens a stand-in: the real library cannot access the memory of an emulated device. */
    static const char *const names[] = {"libslc_cusparse_stand_in.so"};
#else
    static const char *const names[] = {"libcusparse.so.13", "libcusparse.so.12",
                                        "libcusparse.so.11", "libcusparse.so",
                                        "/usr/local/cuda/lib64/libcusparse.so"};
#endif
    void *library = nullptr;

    for (size_t i = 0; i < sizeof names / sizeof names[0] && library == nullptr; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

static enum slc_status open_functions(struct slc_cusparse *cusparse, struct slc_error *err)
{
    struct cusparse_functions *of = &cusparse->of;
    const struct {
        const char *name;
        void *function; /* address of a pointer, which receives the function */
    } wanted[] = {{"cusparseCreate", &of->create},
                  {"cusparseDestroy", &of->destroy},
                  {"cusparseSetStream", &of->set_stream},
                  {"cusparseCreateCsr", &of->create_csr},
                  {"cusparseCreateDnVec", &of->create_vector},
                  {"cusparseDestroySpMat", &of->destroy_matrix},
                  {"cusparseDestroyDnVec", &of->destroy_vector},
                  {"cusparseSpMV_bufferSize", &of->buffer_size},
                  {"cusparseSpMV", &of->multiply},
                  {"cusparseSpMV_preprocess", &of->preprocess}};

    cusparse->library = open_library();
    if (cusparse->library == nullptr) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "cuSPARSE cannot be opened: %s", dlerror());
    }
    for (const auto &one : wanted) {
        void *const function = dlsym(cusparse->library, one.name);

        if (function == nullptr && one.function != &of->preprocess) {
            return slc_fail(err, SLC_ERR_UNSUPPORTED, "this cuSPARSE has no %s", one.name);
        }
        memcpy(one.function, &function, sizeof function);
    }
    return SLC_OK;
}

static enum slc_status check_call(int result, const char *call, struct slc_error *err)
{
    return result == 0
               ? SLC_OK
               : slc_fail(err, SLC_ERR_SYSTEM, "cuSPARSE failed: %s returned %d", call, result);
}

static enum slc_status make_operands(struct slc_cusparse *cusparse,
                                     const struct slc_gpu_fibers *fibers,
                                     uint64_t length,
                                     double *vector,
                                     double *sums,
                                     struct slc_error *err)
{
    const struct cusparse_functions *of = &cusparse->of;

    SLC_TRY(
        check_call(of->create_csr(&cusparse->matrix, static_cast<int64_t>(fibers->count),
                                  static_cast<int64_t>(length), static_cast<int64_t>(fibers->nnz),
                                  fibers->begin, fibers->index, const_cast<void *>(fibers->values),
                                  INDEX_32I, INDEX_32I, BASE_ZERO, REAL_64F),
                   "cusparseCreateCsr", err));
    SLC_TRY(check_call(
        of->create_vector(&cusparse->vector, static_cast<int64_t>(length), vector, REAL_64F),
        "cusparseCreateDnVec", err));
    return check_call(
        of->create_vector(&cusparse->sums, static_cast<int64_t>(fibers->count), sums, REAL_64F),
        "cusparseCreateDnVec", err);
}

/* Allocates the scratch of the library and lets the library analyse the matrix before products. */
static enum slc_status prepare_spmv(struct slc_cusparse *cusparse, struct slc_error *err)
{
    const struct cusparse_functions *of = &cusparse->of;
    const double one = 1, zero = 0;
    size_t bytes = 0;

    SLC_TRY(check_call(of->buffer_size(cusparse->handle, NON_TRANSPOSE, &one, cusparse->matrix,
                                       cusparse->vector, &zero, cusparse->sums, REAL_64F,
                                       cusparse->algorithm, &bytes),
                       "cusparseSpMV_bufferSize", err));
    SLC_GPU_TRY(cudaMalloc(&cusparse->buffer, bytes + 1), err);
    if (of->preprocess == nullptr) {
        return SLC_OK;
    }
    return check_call(of->preprocess(cusparse->handle, NON_TRANSPOSE, &one, cusparse->matrix,
                                     cusparse->vector, &zero, cusparse->sums, REAL_64F,
                                     cusparse->algorithm, cusparse->buffer),
                      "cusparseSpMV_preprocess", err);
}

void slc_cusparse_destroy(struct slc_cusparse *cusparse)
{
    if (cusparse == nullptr) {
        return;
    }
    if (cusparse->sums != nullptr) {
        (void)cusparse->of.destroy_vector(cusparse->sums);
    }
    if (cusparse->vector != nullptr) {
        (void)cusparse->of.destroy_vector(cusparse->vector);
    }
    if (cusparse->matrix != nullptr) {
        (void)cusparse->of.destroy_matrix(cusparse->matrix);
    }
    if (cusparse->handle != nullptr) {
        (void)cusparse->of.destroy(cusparse->handle);
    }
    (void)cudaFree(cusparse->buffer);
    if (cusparse->library != nullptr) {
        (void)dlclose(cusparse->library);
    }
    slc_free(cusparse);
}

enum slc_status slc_cusparse_create(const struct slc_gpu_fibers *fibers,
                                    uint64_t length,
                                    double *vector,
                                    double *sums,
                                    unsigned algorithm,
                                    cudaStream_t stream,
                                    struct slc_cusparse **result,
                                    struct slc_error *err)
{
    struct slc_cusparse *cusparse;
    enum slc_status status;

    if (fibers->type != SLC_F64) {
        return slc_fail(err, SLC_ERR_UNSUPPORTED, "cuSPARSE products need values in f64");
    }
    cusparse = static_cast<struct slc_cusparse *>(slc_calloc(1, sizeof *cusparse));
    if (cusparse == nullptr) {
        return slc_fail(err, SLC_ERR_MEMORY, "no memory for a cuSPARSE product");
    }
    cusparse->algorithm = SPMV_CSR_ALG1 + static_cast<int>(algorithm) - 1;
    status = open_functions(cusparse, err);
    if (status == SLC_OK) {
        status = check_call(cusparse->of.create(&cusparse->handle), "cusparseCreate", err);
    }
    if (status == SLC_OK) {
        status =
            check_call(cusparse->of.set_stream(cusparse->handle, stream), "cusparseSetStream", err);
    }
    if (status == SLC_OK) {
        status = make_operands(cusparse, fibers, length, vector, sums, err);
    }
    if (status == SLC_OK) {
        status = prepare_spmv(cusparse, err);
    }
    if (status != SLC_OK) {
        slc_cusparse_destroy(cusparse);
        return status;
    }
    *result = cusparse;
    return SLC_OK;
}

enum slc_status slc_cusparse_multiply(struct slc_cusparse *cusparse, struct slc_error *err)
{
    const double one = 1, zero = 0;

    return check_call(cusparse->of.multiply(cusparse->handle, NON_TRANSPOSE, &one, cusparse->matrix,
                                            cusparse->vector, &zero, cusparse->sums, REAL_64F,
                                            cusparse->algorithm, cusparse->buffer),
                      "cusparseSpMV", err);
}
