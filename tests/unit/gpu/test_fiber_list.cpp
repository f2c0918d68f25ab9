/* Timed products from fibers: each against the oracle, and each fallible call. */
#include "list_fixture.h"

extern "C" {
#include "tools/bench/rivals/gpu/lists.h"
}

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

static const std::vector<uint64_t> dims = {13, 40, 7};

static slc_gpu_fiber_source source_of(const host_list &list, unsigned mode, bool keep_empty)
{
    slc_gpu_fiber_source source = {};

    source.order = list.order();
    source.mode = mode;
    for (unsigned m = 0; m < list.order(); m++) {
        source.dims[m] = list.dims[m];
    }
    source.nnz = list.nnz();
    source.coords = list.coords.data();
    source.type = SLC_F64;
    source.values = list.values.data();
    source.keep_empty = keep_empty;
    return source;
}

/* Rows of nonempty fibers in the order of the list. */
static std::vector<double> oracle(const host_list &list, unsigned mode, const slc_matrix *matrix)
{
    const oracle_list wide(list);
    std::vector<uint64_t> order(list.nnz()), fiber(list.nnz());
    const uint64_t count = slc_reference_fibers(&wide.view, mode, order.data(), fiber.data());
    std::vector<double> rows(count * matrix->cols);

    slc_reference_ttm(&wide.view, mode, matrix, order.data(), fiber.data(), rows.data());
    return rows;
}

/* Those rows that are not all zero: sums of integers are exact. */
static std::vector<double> nonzero_rows(const std::vector<double> &rows, uint32_t cols)
{
    std::vector<double> found;

    for (size_t i = 0; i < rows.size(); i += cols) {
        bool some = false;

        for (uint32_t r = 0; r < cols; r++) {
            some = some || rows[i + r] != 0;
        }
        if (some) {
            found.insert(found.end(), rows.begin() + (long)i, rows.begin() + (long)(i + cols));
        }
    }
    return found;
}

static enum slc_status multiply(slc_gpu_fiber_list *list,
                                enum slc_gpu_fiber_product product,
                                const host_matrix &matrix,
                                std::vector<double> *got,
                                struct slc_error *err,
                                enum slc_value_type rows_type = SLC_F64)
{
    const uint64_t count = slc_gpu_fiber_list_count(list);
    const host_matrix rows(rows_type, count, matrix.matrix.cols, 5);
    struct slc_matrix result = rows.matrix;
    const slc_gpu_product_run run = {product, &matrix.matrix, &result, 2};
    double seconds[2] = {-1, -1};
    uint64_t bytes = 0;
    const enum slc_status status = slc_gpu_fiber_list_multiply(list, &run, seconds, &bytes, err);

    got->clear();
    for (uint64_t i = 0; i < count && status == SLC_OK; i++) {
        for (uint32_t r = 0; r < result.cols; r++) {
            got->push_back(slc_matrix_get(&result, i, r));
        }
    }
    CU_ASSERT(status != SLC_OK || (bytes > 0 && seconds[0] >= 0 && seconds[1] >= 0));
    return status;
}

static bool of_cusparse(int product)
{
    return product == SLC_GPU_PRODUCT_CUSPARSE_1 || product == SLC_GPU_PRODUCT_CUSPARSE_2;
}

static void every_product(void)
{
    for (unsigned mode = 0; mode < 3; mode++) {
        host_list sorted = random_list(dims, 900, mode);
        sort_fibers(&sorted, mode);
        for (int p = 0; p < SLC_GPU_PRODUCTS; p++) {
            const auto product = static_cast<enum slc_gpu_fiber_product>(p);
            const bool vector = slc_gpu_product_of_vector(product);
            emulated_device device(mode + 1);
            struct slc_error err = SLC_ERROR_INIT;

            for (uint32_t cols :
                 vector ? std::vector<uint32_t>{1} : std::vector<uint32_t>{1, 7, 33}) {
                for (enum slc_value_type type : {SLC_F64, SLC_F32}) {
                    const host_matrix matrix(type, dims[mode], cols, 9);
                    const slc_gpu_fiber_source source = source_of(sorted, mode, false);
                    slc_gpu_fiber_list *list = nullptr;
                    std::vector<double> got;

                    SLC_ASSERT_OK(slc_gpu_fiber_list_create(&source, &list, &err), &err);
                    const enum slc_status status = multiply(list, product, matrix, &got, &err);
                    if (vector && type == SLC_F32) {
                        CU_ASSERT_EQUAL(status, SLC_ERR_USAGE);
                    } else if (status != SLC_ERR_UNSUPPORTED || !of_cusparse(p)) {
                        SLC_ASSERT_OK(status, &err);
                        CU_ASSERT(got == oracle(sorted, mode, &matrix.matrix));
                    }
                    slc_gpu_fiber_list_destroy(list);
                }
            }
            CU_ASSERT(strcmp(slc_gpu_product_name(product), "?") != 0);
        }
    }
}

static void with_empty_fibers(void)
{
    host_list sorted = random_list(dims, 300, 3);
    emulated_device device(1);
    const host_matrix vector(SLC_F64, dims[2], 1, 4);
    struct slc_error err = SLC_ERROR_INIT;

    sort_fibers(&sorted, 2);
    for (enum slc_gpu_fiber_product product : {SLC_GPU_PRODUCT_SPTV, SLC_GPU_PRODUCT_SPTV_SHORT}) {
        const slc_gpu_fiber_source source = source_of(sorted, 2, true);
        slc_gpu_fiber_list *list = nullptr;
        std::vector<double> got;

        SLC_ASSERT_OK(slc_gpu_fiber_list_create(&source, &list, &err), &err);
        CU_ASSERT_EQUAL(slc_gpu_fiber_list_count(list), dims[0] * dims[1]);
        SLC_ASSERT_OK(multiply(list, product, vector, &got, &err), &err);
        CU_ASSERT(nonzero_rows(got, 1) == nonzero_rows(oracle(sorted, 2, &vector.matrix), 1));
        slc_gpu_fiber_list_destroy(list);
    }
}

static void refused(void)
{
    host_list sorted = random_list(dims, 50, 3), many = random_list({70000, 70000, 3}, 10, 1);
    emulated_device device(1);
    const host_matrix vector(SLC_F64, dims[1], 1, 4), wrong(SLC_F64, dims[1] + 1, 1, 4);
    slc_gpu_fiber_list *list = nullptr;
    struct slc_error err = SLC_ERROR_INIT;
    std::vector<double> got;

    sort_fibers(&sorted, 1);
    sort_fibers(&many, 2);
    const slc_gpu_fiber_source source = source_of(sorted, 1, false);
    const slc_gpu_fiber_source too_many = source_of(many, 2, true);
    SLC_ASSERT_FAILS(slc_gpu_fiber_list_create(&too_many, &list, &err), SLC_ERR_UNSUPPORTED, &err,
                     "including empty ones");
    slc_error_clear(&err);
    SLC_ASSERT_OK(slc_gpu_fiber_list_create(&source, &list, &err), &err);
    SLC_ASSERT_FAILS(multiply(list, SLC_GPU_PRODUCT_SPTV, wrong, &got, &err), SLC_ERR_USAGE, &err,
                     "cannot multiply");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(multiply(list, SLC_GPU_PRODUCTS, vector, &got, &err), SLC_ERR_USAGE, &err,
                     "product ?");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(multiply(list, SLC_GPU_PRODUCT_TTM_FIBERS, vector, &got, &err, SLC_F32),
                     SLC_ERR_USAGE, &err, "cannot multiply");
    slc_gpu_fiber_list_destroy(list);
    slc_gpu_fiber_list_destroy(nullptr);
}

#ifdef SLC_EMULATED
/* An existing library that fails: the error names the call. */
static void failing_library(void)
{
    host_list sorted = random_list(dims, 50, 3);
    const host_matrix vector(SLC_F64, dims[1], 1, 4);

    sort_fibers(&sorted, 1);
    for (const char *call :
         {"cusparseCreate", "cusparseSetStream", "cusparseCreateCsr", "cusparseCreateDnVec",
          "cusparseSpMV_bufferSize", "cusparseSpMV_preprocess", "cusparseSpMV"}) {
        emulated_device device(1);
        const slc_gpu_fiber_source source = source_of(sorted, 1, false);
        slc_gpu_fiber_list *list = nullptr;
        struct slc_error err = SLC_ERROR_INIT;
        std::vector<double> got;

        SLC_ASSERT_OK(slc_gpu_fiber_list_create(&source, &list, &err), &err);
        setenv("SLC_CUSPARSE_STAND_IN_FAILS", call, 1);
        const std::string wanted = std::string(call) + " returned 7";
        SLC_ASSERT_FAILS(multiply(list, SLC_GPU_PRODUCT_CUSPARSE_1, vector, &got, &err),
                         SLC_ERR_SYSTEM, &err, wanted.c_str());
        unsetenv("SLC_CUSPARSE_STAND_IN_FAILS");
        slc_gpu_fiber_list_destroy(list);
    }
}

/* Any call of the runtime fails: it is reported, and nothing leaks. */
static void failing_device(void)
{
    host_list sorted = random_list({5, 6}, 12, 3);
    const host_matrix vector(SLC_F64, 6, 1, 4);

    sort_fibers(&sorted, 1);
    for (int p = 0; p < SLC_GPU_PRODUCTS; p++) {
        enum slc_status status = SLC_ERR_SYSTEM;
        unsigned k;

        for (k = 1; status != SLC_OK; k++) {
            emulated_device device(k);
            const slc_gpu_fiber_source source = source_of(sorted, 1, p == 0);
            slc_gpu_fiber_list *list = nullptr;
            struct slc_error err = SLC_ERROR_INIT;
            std::vector<double> got;

            slc_emulation_refuse(k);
            status = slc_gpu_fiber_list_create(&source, &list, &err);
            if (status == SLC_OK) {
                status =
                    multiply(list, static_cast<enum slc_gpu_fiber_product>(p), vector, &got, &err);
            }
            slc_emulation_refuse(0);
            CU_ASSERT(status == SLC_OK || err.status == status);
            slc_gpu_fiber_list_destroy(list);
            CU_ASSERT_FATAL(k < 500);
        }
        CU_ASSERT(k > 20);
    }
}
#endif

static const struct slc_test tests[] = {
    {"every product agrees with the oracle", every_product},
    {"fibers that are empty have sums of zero", with_empty_fibers},
    {"impossible products are rejected", refused},
#ifdef SLC_EMULATED
    {"calls of cuSPARSE fail", failing_library},
    {"any call of the runtime fails", failing_device},
#endif
};

SLC_SUITE(fiber_list)
{
    return slc_test_main("gpu fiber list", tests, SLC_COUNT(tests), argc, argv);
}
