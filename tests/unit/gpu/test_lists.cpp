/* The field's kernels on the factors of an open device, beside the oracle. */
#include "list_fixture.h"

extern "C" {
#include "gpu/gpu.h"
#include "gpu/lists.h"
}

#include <cstring>

static const std::vector<uint64_t> dims = {37, 5, 90};
static const uint32_t rank = 12;

/* A device that is open for the list; no block will come. */
static struct slc_device *open_device(bool deterministic)
{
    const struct slc_emulation emulation = {1, (size_t)64 << 20, 160 << 10, 4, 1};
    const struct slc_gpu_options options = {0, 0};
    struct slc_encoded_layout layout = {};
    struct slc_device_problem problem = {};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *device = nullptr;

    slc_emulation_set(&emulation);
    problem.order = (unsigned)dims.size();
    for (unsigned n = 0; n < problem.order; n++) {
        problem.dims[n] = dims[n];
    }
    problem.rank = rank;
    problem.precision = SLC_F64;
    problem.deterministic = deterministic;
    problem.layout_count = 1;
    problem.layouts = &layout;
    problem.streams = 1;
    problem.slot_bytes = 4096;
    problem.slot_tiles = 1;
    SLC_ASSERT_OK(slc_gpu_create(&options, &device, &err), &err);
    SLC_ASSERT_OK(device->ops->open(device, &problem, &err), &err);
    return device;
}

static void close_device(struct slc_device *device)
{
    device->ops->close(device);
    device->ops->destroy(device);
    slc_emulation_reset();
}

static void compare(struct slc_device *device, const double *want, uint64_t rows)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix got;
    uint64_t wrong = 0;

    SLC_ASSERT_OK(slc_matrix_create(&got, SLC_F64, rows, rank, &err), &err);
    SLC_ASSERT_OK(device->ops->output_read(device, &got, &err), &err);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < rank; r++) {
            wrong += slc_matrix_get(&got, i, r) != want[i * rank + r];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    slc_matrix_destroy(&got);
}

static void every_kernel(void)
{
    const host_list list = random_list(dims, 3000, 7);
    const oracle_list oracle(list);
    const host_matrix a(SLC_F64, dims[0], rank, 1), b(SLC_F64, dims[1], rank, 2),
        c(SLC_F64, dims[2], rank, 3);
    const struct slc_matrix *const factors[] = {&a.matrix, &b.matrix, &c.matrix};
    struct slc_device *device = open_device(false);
    struct slc_gpu_lists *lists = nullptr;
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < 3; n++) {
        SLC_ASSERT_OK(device->ops->factor_write(device, n, factors[n], &err), &err);
    }
    SLC_ASSERT_OK(slc_gpu_lists_create(device, list.nnz(), list.coords.data(), SLC_F64,
                                       list.values.data(), &lists, &err),
                  &err);
    for (unsigned mode = 0; mode < 3; mode++) {
        std::vector<double> want(dims[mode] * rank);

        slc_reference_mttkrp(&oracle.view, factors, mode, dims[mode], rank, want.data());
        for (unsigned k = 0; k < slc_gpu_lists_kernels(); k++) {
            double seconds = -1;

            SLC_ASSERT_OK(slc_gpu_lists_mttkrp(lists, k, mode, &seconds, &err), &err);
            CU_ASSERT(seconds >= 0);
            CU_ASSERT(strcmp(slc_gpu_lists_kernel(k), "?") != 0);
            compare(device, want.data(), dims[mode]);
        }
    }
    CU_ASSERT_EQUAL(slc_gpu_lists_mttkrp(lists, slc_gpu_lists_kernels(), 0, nullptr, nullptr),
                    SLC_ERR_USAGE);
    slc_gpu_lists_destroy(lists);
    close_device(device);
}

static void refused(void)
{
    const host_list list = random_list(dims, 10, 7);
    struct slc_device *device = open_device(true);
    struct slc_gpu_lists *lists = nullptr;

    CU_ASSERT_EQUAL(slc_gpu_lists_create(device, list.nnz(), list.coords.data(), SLC_F64,
                                         list.values.data(), &lists, nullptr),
                    SLC_ERR_USAGE);
    device->ops->close(device);
    CU_ASSERT_EQUAL(slc_gpu_lists_create(device, list.nnz(), list.coords.data(), SLC_F64,
                                         list.values.data(), &lists, nullptr),
                    SLC_ERR_USAGE);
    device->ops->destroy(device);
    slc_emulation_reset();
}

int main(int argc, char **argv)
{
    static const struct slc_test tests[] = {
        {"every kernel over lists on the factors of an open device", every_kernel},
        {"devices that lists cannot use are refused", refused},
    };

    return slc_test_main("gpu lists", tests, SLC_COUNT(tests), argc, argv);
}
