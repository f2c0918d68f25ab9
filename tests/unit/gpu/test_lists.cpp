/* Kernels of other programs on the factors of an open device, against the oracle. */
#include "list_fixture.h"

extern "C" {
#include "gpu/gpu.h"
#include "tools/bench/rivals/gpu/lists.h"
}

#include <cstring>
#include <string>

static const std::vector<uint64_t> dims = {37, 5, 90};
static const uint32_t rank = 12;

/* A device opened for the list; it receives no blocks. */
static struct slc_device *open_device(bool deterministic, size_t memory_bytes)
{
    const struct slc_emulation emulation = {1, memory_bytes, 160 << 10, 4, 1};
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
    SLC_ASSERT_OK(device->ops->memory.open(device, &problem, &err), &err);
    return device;
}

static void close_device(struct slc_device *device)
{
    device->ops->memory.close(device);
    device->ops->destroy(device);
    slc_emulation_reset();
}

static void compare(struct slc_device *device, const double *want, uint64_t rows)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_matrix got;
    uint64_t wrong = 0;

    SLC_ASSERT_OK(slc_matrix_create(&got, SLC_F64, rows, rank, &err), &err);
    SLC_ASSERT_OK(device->ops->memory.output_read(device, &got, &err), &err);
    for (uint64_t i = 0; i < rows; i++) {
        for (uint32_t r = 0; r < rank; r++) {
            wrong += slc_matrix_get(&got, i, r) != want[i * rank + r];
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    slc_matrix_destroy(&got);
}

/* BLCO's choice depends on the number of multiprocessors. */
static std::string
expected_choice(const struct slc_device *device, const std::string &name, unsigned mode)
{
    struct slc_device_info info;

    device->ops->info(device, &info);
    const std::string form = dims[mode] < info.multiprocessors ? "stash" : "registers";

    return name == "blco" || name == "blco-queues" ? "blco-" + form
           : name == "blco-code"                   ? "blco-code-" + form
                                                   : name;
}

static void every_kernel(void)
{
    const host_list list = random_list(dims, 3000, 7);
    const oracle_list oracle(list);
    const host_matrix a(SLC_F64, dims[0], rank, 1), b(SLC_F64, dims[1], rank, 2),
        c(SLC_F64, dims[2], rank, 3);
    const struct slc_matrix *const factors[] = {&a.matrix, &b.matrix, &c.matrix};
    struct slc_device *device = open_device(false, (size_t)64 << 20);
    const slc_gpu_lists_options options = {};
    struct slc_gpu_lists *lists = nullptr;
    struct slc_error err = SLC_ERROR_INIT;

    for (unsigned n = 0; n < 3; n++) {
        SLC_ASSERT_OK(device->ops->memory.factor_write(device, n, factors[n], &err), &err);
    }
    const slc_gpu_lists_source source = {list.nnz(), list.coords.data(), SLC_F64,
                                         list.values.data()};
    SLC_ASSERT_OK(slc_gpu_lists_create(device, &source, &options, &lists, &err), &err);
    for (unsigned mode = 0; mode < 3; mode++) {
        std::vector<double> want(dims[mode] * rank);

        slc_reference_mttkrp(&oracle.view, factors, mode, dims[mode], rank, want.data());
        for (unsigned k = 0; k < slc_gpu_lists_kernels(); k++) {
            const std::string name = slc_gpu_lists_kernel(k);
            slc_gpu_lists_run run = {};

            SLC_ASSERT_OK(slc_gpu_lists_mttkrp(lists, k, mode, &run, &err), &err);
            CU_ASSERT(run.seconds >= 0 && run.kernel_seconds >= 0);
            CU_ASSERT(run.form_seconds > 0);
            CU_ASSERT(run.form_bytes_per_nonzero >= (name.rfind("xplat", 0) == 0 ? 12 : 16));
            CU_ASSERT_EQUAL(run.streamed, name == "blco-queues");
            CU_ASSERT_STRING_EQUAL(run.chosen, expected_choice(device, name, mode).c_str());
            compare(device, want.data(), dims[mode]);
        }
    }
    CU_ASSERT_EQUAL(slc_gpu_lists_mttkrp(lists, slc_gpu_lists_kernels(), 0, nullptr, nullptr),
                    SLC_ERR_USAGE);
    slc_gpu_lists_destroy(lists);
    close_device(device);
}

/* An open device rejects the options with `message`. */
static void refuse_options(const slc_gpu_lists_options &options, const char *message)
{
    const host_list list = random_list(dims, 10, 7);
    const slc_gpu_lists_source source = {list.nnz(), list.coords.data(), SLC_F64,
                                         list.values.data()};
    struct slc_device *device = open_device(false, (size_t)64 << 20);
    struct slc_gpu_lists *lists = nullptr;
    struct slc_error err = SLC_ERROR_INIT;

    SLC_ASSERT_FAILS(slc_gpu_lists_create(device, &source, &options, &lists, &err), SLC_ERR_USAGE,
                     &err, message);
    close_device(device);
}

static void options_refused(void)
{
    static const uint32_t work_groups[] = {48, 100, 544}, queues[] = {1, 9};
    slc_gpu_lists_options options = {};

    for (const uint32_t threads : work_groups) {
        options.work_group = threads;
        refuse_options(options, "must be a multiple of 32, up to 512");
    }
    options = {};
    options.index_bits = 65;
    refuse_options(options, "65 index bits");
    options = {};
    for (const uint32_t count : queues) {
        options.queues = count;
        refuse_options(options, "must be 2 to 8");
    }
}

static void refused(void)
{
    const host_list list = random_list(dims, 10, 7);
    const slc_gpu_lists_source source = {list.nnz(), list.coords.data(), SLC_F64,
                                         list.values.data()};
    struct slc_device *device = open_device(true, (size_t)64 << 20);
    struct slc_gpu_lists *lists = nullptr;
    const slc_gpu_lists_options options = {};

    CU_ASSERT_EQUAL(slc_gpu_lists_create(device, &source, &options, &lists, nullptr),
                    SLC_ERR_USAGE);
    device->ops->memory.close(device);
    CU_ASSERT_EQUAL(slc_gpu_lists_create(device, &source, &options, &lists, nullptr),
                    SLC_ERR_USAGE);
    device->ops->destroy(device);
    slc_emulation_reset();
}

/* A list that does not fit on the emulated device as a whole: only the kernel that streams it
 * can compute. */
static void out_of_memory(void)
{
    const host_list list = random_list(dims, 300000, 9);
    const oracle_list oracle(list);
    const host_matrix a(SLC_F64, dims[0], rank, 1), b(SLC_F64, dims[1], rank, 2),
        c(SLC_F64, dims[2], rank, 3);
    const struct slc_matrix *const factors[] = {&a.matrix, &b.matrix, &c.matrix};
    const slc_gpu_lists_source source = {list.nnz(), list.coords.data(), SLC_F64,
                                         list.values.data()};
    struct slc_device *device = open_device(false, (size_t)4 << 20);
    slc_gpu_lists_options options = {};
    struct slc_gpu_lists *lists = nullptr;
    struct slc_error err = SLC_ERROR_INIT;
    std::vector<double> want(dims[1] * rank);
    slc_gpu_lists_run run = {};

    for (unsigned n = 0; n < 3; n++) {
        SLC_ASSERT_OK(device->ops->memory.factor_write(device, n, factors[n], &err), &err);
    }
    slc_reference_mttkrp(&oracle.view, factors, 1, dims[1], rank, want.data());
    options.queues = 3;
    options.block_nnz = 20000;
    SLC_ASSERT_OK(slc_gpu_lists_create(device, &source, &options, &lists, &err), &err);
    for (unsigned k = 0; k < slc_gpu_lists_kernels(); k++) {
        if (strcmp(slc_gpu_lists_kernel(k), "blco-queues") != 0) {
#ifdef SLC_EMULATED
            CU_ASSERT_EQUAL(slc_gpu_lists_mttkrp(lists, k, 1, &run, nullptr), SLC_ERR_MEMORY);
#endif
            continue;
        }
        SLC_ASSERT_OK(slc_gpu_lists_mttkrp(lists, k, 1, &run, &err), &err);
        CU_ASSERT(run.streamed && run.copy_seconds > 0 && run.kernel_seconds > 0);
        CU_ASSERT(run.copy_seconds <= run.seconds + 1e-5);
        CU_ASSERT(run.kernel_seconds <= run.seconds + 1e-5);
        compare(device, want.data(), dims[1]);
    }
    slc_gpu_lists_destroy(lists);
    close_device(device);
}

SLC_SUITE(lists)
{
    static const struct slc_test tests[] = {
        {"every kernel over lists on the factors of an open device", every_kernel},
        {"devices that lists cannot use are refused", refused},
        {"options that no kernel can use are refused", options_refused},
        {"a list that does not fit is refused, and the device stays usable", out_of_memory},
    };

    return slc_test_main("gpu lists", tests, SLC_COUNT(tests), argc, argv);
}
