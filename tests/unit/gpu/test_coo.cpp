/* Lists of coordinates on the device: uploads are complete, and permutations sort the list. */
#include "list_fixture.h"

static void test_write(void)
{
    emulated_device device(1);
    /* The list is so long that it is copied in more than one piece. */
    const host_list list = random_list({50, 60, 4000000000U, 7}, 300000, 1);
    const device_list on_device(list, SLC_F64, device.stream);
    std::vector<uint32_t> coords(list.coords.size());
    std::vector<double> values(list.values.size());

    SLC_MUST(
        slc_staged_to_host(coords.data(), on_device.coo.coords, coords.size() * 4, device.stream));
    SLC_MUST(
        slc_staged_to_host(values.data(), on_device.coo.values, values.size() * 8, device.stream));
    CU_ASSERT(coords == list.coords);
    CU_ASSERT(values == list.values);
}

static void check_permutation(const host_list &list, unsigned mode)
{
    emulated_device device(1);
    device_list on_device(list, SLC_F32, device.stream);
    std::vector<uint32_t> order(list.nnz());

    /* Twice: the second replaces the first. */
    for (unsigned again = 0; again < 2; again++) {
        SLC_MUST(slc_gpu_coo_permute(&on_device.coo, list.coords.data(), mode, list.dims[mode],
                                     device.stream));
    }
    SLC_MUST(slc_staged_to_host(order.data(), on_device.coo.permutation[mode], order.size() * 4,
                                device.stream));
    for (uint64_t k = 1; k < order.size(); k++) {
        const uint32_t before = list.coords[order[k - 1] * list.order() + mode];
        const uint32_t here = list.coords[order[k] * list.order() + mode];

        CU_ASSERT_FATAL(before < here || (before == here && order[k - 1] < order[k]));
    }
}

static void test_permute(void)
{
    for (unsigned mode = 0; mode < 3; mode++) {
        check_permutation(random_list({300, 1, 20}, 2000, 2), mode);
    }
    check_permutation(random_list({300, 20}, 0, 3), 1);
    check_permutation(random_list({300, 20}, 1, 3), 1);
}

/* A copy whose nonzeros are ordered by runs of `each` rows of a mode. */
static void check_sorted(const host_list &list, unsigned mode, uint64_t each)
{
    emulated_device device(1);
    const unsigned order = list.order();
    const slc_gpu_host_list host = {order, SLC_F64, list.nnz(), list.coords.data(),
                                    list.values.data()};
    std::vector<uint32_t> coords(list.coords.size());
    std::vector<double> values(list.nnz());
    slc_gpu_coo sorted = {};
    uint64_t next = 0;

    SLC_MUST(slc_gpu_coo_create_sorted(&sorted, &host, mode, list.dims[mode], each, device.stream));
    CU_ASSERT_EQUAL(sorted.nnz, list.nnz());
    SLC_MUST(slc_staged_to_host(coords.data(), sorted.coords, coords.size() * 4, device.stream));
    SLC_MUST(slc_staged_to_host(values.data(), sorted.values, values.size() * 8, device.stream));
    /* Values are positions in the list: those of a run ascend, and each position occurs once. */
    for (uint64_t run = 0; run * each < list.dims[mode]; run++) {
        for (uint64_t i = 0; i < list.nnz(); i++) {
            if (list.coords[i * order + mode] / each == run) {
                CU_ASSERT_EQUAL_FATAL(values[next], (double)i);
                for (unsigned m = 0; m < order; m++) {
                    CU_ASSERT_EQUAL(coords[next * order + m], list.coords[i * order + m]);
                }
                next++;
            }
        }
    }
    CU_ASSERT_EQUAL(next, list.nnz());
    slc_gpu_coo_destroy(&sorted);
}

static void test_sorted(void)
{
    host_list list = random_list({30, 1, 20}, 400, 2);

    for (uint64_t i = 0; i < list.nnz(); i++) {
        list.values[i] = (double)i;
    }
    check_sorted(list, 0, 1);
    check_sorted(list, 0, 4);
    check_sorted(list, 1, 2);
    check_sorted(list, 2, 20);
    check_sorted(random_list({3, 20}, 0, 3), 1, 2);
}

static void test_refused(void)
{
    emulated_device device(1);
    const host_list list = random_list({30, 20}, 100, 4);
    device_list on_device(list, SLC_F64, device.stream);
    const slc_gpu_host_list view = {2, SLC_F64, list.nnz(), list.coords.data(), list.values.data()};
    slc_gpu_coo other = {};

    CU_ASSERT_EQUAL(slc_gpu_coo_permute(&on_device.coo, list.coords.data(), 2, 20, device.stream),
                    cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_coo_permute(&on_device.coo, list.coords.data(), 1, 10, device.stream),
                    cudaErrorInvalidValue);
    CU_ASSERT_PTR_NULL(on_device.coo.permutation[1]);
    CU_ASSERT_EQUAL(slc_gpu_coo_create_sorted(&other, &view, 2, 20, 1, device.stream),
                    cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_coo_create_sorted(&other, &view, 1, 10, 1, device.stream),
                    cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_coo_create_sorted(&other, &view, 1, 20, 0, device.stream),
                    cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_coo_create(&other, 0, 10, SLC_F64), cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_coo_create(&other, 17, 10, SLC_F64), cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_coo_create(&other, 2, UINT64_MAX / 8, SLC_F64),
                    cudaErrorMemoryAllocation);
#ifdef SLC_EMULATED
    CU_ASSERT_EQUAL(slc_gpu_coo_create(&other, 2, (uint64_t)1 << 26, SLC_F64),
                    cudaErrorMemoryAllocation);
#endif
    slc_gpu_coo_destroy(&other);
    slc_gpu_coo_destroy(&other);
}

static const struct slc_test tests[] = {
    {"a list is written in pieces", test_write},
    {"a permutation sorts by a mode and keeps the order of the list", test_permute},
    {"a copy has the nonzeros of each run of rows together", test_sorted},
    {"mismatched requests are rejected", test_refused},
};

SLC_SUITE(coo)
{
    return slc_test_main("gpu coo", tests, SLC_COUNT(tests), argc, argv);
}
