/* A substitute for cuSPARSE on an emulated device: implements the calls of
 * tools/bench/rivals/gpu/cusparse.cu, computed at once on the host, which may read emulated memory
 * (it is built without sanitizers, which would forbid that). A call named in
 * SLC_CUSPARSE_STAND_IN_FAILS returns 7. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct operand {
    int64_t rows, cols, nnz;
    const uint32_t *begin, *index;
    double *numbers;
};

int cusparseCreate(void **handle);
int cusparseDestroy(void *handle);
int cusparseSetStream(void *handle, void *stream);
int cusparseCreateCsr(void **matrix,
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
int cusparseCreateDnVec(void **vector, int64_t size, void *values, int type);
int cusparseDestroySpMat(void *matrix);
int cusparseDestroyDnVec(void *vector);
int cusparseSpMV_bufferSize(void *handle,
                            int operation,
                            const void *alpha,
                            void *matrix,
                            void *vector,
                            const void *beta,
                            void *sums,
                            int type,
                            int algorithm,
                            size_t *bytes);
int cusparseSpMV_preprocess(void *handle,
                            int operation,
                            const void *alpha,
                            void *matrix,
                            void *vector,
                            const void *beta,
                            void *sums,
                            int type,
                            int algorithm,
                            void *buffer);
int cusparseSpMV(void *handle,
                 int operation,
                 const void *alpha,
                 void *matrix,
                 void *vector,
                 const void *beta,
                 void *sums,
                 int type,
                 int algorithm,
                 void *buffer);

/* The emulation's (tests/gpu/emulation/written.h). */
void slc_written_mark(const void *memory, size_t bytes);

static int result_of(const char *call)
{
    const char *fails = getenv("SLC_CUSPARSE_STAND_IN_FAILS");

    return fails != NULL && strcmp(fails, call) == 0 ? 7 : 0;
}

int cusparseCreate(void **handle)
{
    *handle = result_of("cusparseCreate") == 0 ? malloc(1) : NULL;
    return result_of("cusparseCreate");
}

int cusparseDestroy(void *handle)
{
    free(handle);
    return 0;
}

int cusparseSetStream(void *handle, void *stream)
{
    (void)handle;
    (void)stream;
    return result_of("cusparseSetStream");
}

static int create(void **result, const struct operand *from, const char *call)
{
    struct operand *operand = result_of(call) == 0 ? malloc(sizeof *operand) : NULL;

    if (operand == NULL) {
        return 7;
    }
    *operand = *from;
    *result = operand;
    return 0;
}

int cusparseCreateCsr(void **matrix,
                      int64_t rows,
                      int64_t cols,
                      int64_t nnz,
                      void *begin,
                      void *index,
                      void *values,
                      int begin_type,
                      int index_type,
                      int base,
                      int type)
{
    const struct operand from = {rows, cols, nnz, begin, index, values};

    /* CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F */
    if (begin_type != 2 || index_type != 2 || base != 0 || type != 1) {
        return 3;
    }
    return create(matrix, &from, "cusparseCreateCsr");
}

int cusparseCreateDnVec(void **vector, int64_t size, void *values, int type)
{
    const struct operand from = {.rows = size, .numbers = values};

    return type == 1 ? create(vector, &from, "cusparseCreateDnVec") : 3;
}

int cusparseDestroySpMat(void *matrix)
{
    free(matrix);
    return 0;
}

int cusparseDestroyDnVec(void *vector)
{
    free(vector);
    return 0;
}

int cusparseSpMV_bufferSize(void *handle,
                            int operation,
                            const void *alpha,
                            void *matrix,
                            void *vector,
                            const void *beta,
                            void *sums,
                            int type,
                            int algorithm,
                            size_t *bytes)
{
    (void)handle, (void)operation, (void)alpha, (void)matrix, (void)vector, (void)beta, (void)sums;
    *bytes = 100;
    /* CUSPARSE_SPMV_CSR_ALG1 and ALG2 */
    return type == 1 && (algorithm == 2 || algorithm == 3) ? result_of("cusparseSpMV_bufferSize")
                                                           : 3;
}

int cusparseSpMV_preprocess(void *handle,
                            int operation,
                            const void *alpha,
                            void *matrix,
                            void *vector,
                            const void *beta,
                            void *sums,
                            int type,
                            int algorithm,
                            void *buffer)
{
    (void)handle, (void)operation, (void)alpha, (void)matrix, (void)vector, (void)beta, (void)sums;
    (void)type, (void)algorithm;
    return buffer != NULL ? result_of("cusparseSpMV_preprocess") : 3;
}

int cusparseSpMV(void *handle,
                 int operation,
                 const void *alpha,
                 void *matrix,
                 void *vector,
                 const void *beta,
                 void *sums,
                 int type,
                 int algorithm,
                 void *buffer)
{
    const struct operand *a = matrix, *x = vector;
    struct operand *y = sums;
    double one, zero;

    (void)handle, (void)type, (void)algorithm;
    memcpy(&one, alpha, sizeof one);
    memcpy(&zero, beta, sizeof zero);
    if (operation != 0 || one != 1 || zero != 0 || buffer == NULL || x->rows != a->cols ||
        y->rows != a->rows || a->begin[a->rows] != (uint64_t)a->nnz) {
        return 3;
    }
    for (int64_t i = 0; i < a->rows; i++) {
        double sum = 0;

        for (uint32_t k = a->begin[i]; k < a->begin[i + 1]; k++) {
            sum += a->numbers[k] * x->numbers[a->index[k]];
        }
        y->numbers[i] = sum;
    }
    slc_written_mark(y->numbers, (size_t)a->rows * sizeof *y->numbers);
    return result_of("cusparseSpMV");
}
