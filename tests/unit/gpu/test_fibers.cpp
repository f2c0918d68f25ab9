/* SpTV and TTM from fibers on the emulated device against the oracle: sums of integers are exact,
 * so all agree bit for bit. */
#include "list_fixture.h"
#include "tools/bench/rivals/gpu/products.h"

#include <algorithm>

static const slc_gpu_machine machine = {3, 160 << 10, 90};

/* The nonempty fibers of a list sorted by them, numbered as by the oracle. */
struct oracle_fibers {
    oracle_list wide;
    std::vector<uint64_t> order, fiber;
    uint64_t count;

    oracle_fibers(const host_list &list, unsigned mode)
        : wide(list), order(list.nnz()), fiber(list.nnz())
    {
        count = slc_reference_fibers(&wide.view, mode, order.data(), fiber.data());
    }
};

/* A list in which one fiber has two thirds of all nonzeros, between short ones. */
static host_list
fibers_list(const std::vector<uint64_t> &dims, uint64_t nnz, unsigned mode, uint64_t seed)
{
    host_list list = random_list(dims, nnz, seed);

    for (uint64_t i = 0; i < nnz; i++) {
        for (unsigned m = 0; m < dims.size(); m++) {
            if (m != mode && i % 3 != 0) {
                list.coords[i * dims.size() + m] = (uint32_t)(dims[m] / 2);
            }
        }
    }
    sort_fibers(&list, mode);
    return list;
}

static void
make_fibers(slc_gpu_fibers *fibers, const slc_gpu_coo *coo, unsigned mode, cudaStream_t stream)
{
    SLC_MUST(slc_gpu_fibers_reserve(fibers, coo->order, coo->nnz));
    SLC_MUST(slc_gpu_fibers_find(fibers, coo, mode, stream));
}

static void check_sptv(const host_list &list,
                       unsigned mode,
                       const slc_gpu_sptv_options &options,
                       bool keep_empty,
                       unsigned seed)
{
    const oracle_fibers oracle(list, mode);
    const host_matrix vector(SLC_F64, list.dims[mode], 1, seed);
    std::vector<double> numbers(list.dims[mode]), want(oracle.count);
    uint64_t nonempty = 0, wrong = 0;

    for (uint64_t i = 0; i < numbers.size(); i++) {
        numbers[i] = slc_matrix_get(&vector.matrix, i, 0);
    }
    slc_reference_ttv(&oracle.wide.view, mode, numbers.data(), oracle.order.data(),
                      oracle.fiber.data(), want.data());

    emulated_device device(seed);
    const device_list on_device(list, seed % 2 == 0 ? SLC_F32 : SLC_F64, device.stream);
    const device_array<double> on_vector(numbers, device.stream);
    slc_gpu_fibers fibers = {};
    slc_gpu_sptv sptv = {};

    if (keep_empty) {
        SLC_MUST(slc_gpu_fibers_create_all(&fibers, &on_device.coo, mode, list.dims.data(),
                                           device.stream));
    } else {
        make_fibers(&fibers, &on_device.coo, mode, device.stream);
    }
    SLC_MUST(slc_gpu_sptv_create(&sptv, &fibers, &options, &machine));
    SLC_MUST(slc_gpu_sptv_prepare(&sptv, list.dims[mode], device.stream));
    const device_array<double> sums(std::vector<double>(fibers.count, 1e300), device.stream);
    SLC_MUST(slc_gpu_sptv_multiply(&sptv, on_vector.data, sums.data, device.stream));
    const std::vector<double> got = sums.read(fibers.count, device.stream);
    std::vector<uint32_t> begin(fibers.count + 1);
    SLC_MUST(slc_staged_to_host(begin.data(), fibers.begin, begin.size() * 4, device.stream));
    CU_ASSERT(slc_gpu_sptv_bytes(&sptv, list.dims[mode]) > 0);
    uint32_t longest = 0;
    for (uint64_t f = 0; f < fibers.count; f++) {
        const bool empty = begin[f] == begin[f + 1];
        longest = std::max(longest, begin[f + 1] - begin[f]);

        wrong += got[f] != (empty || nonempty == oracle.count ? 0 : want[nonempty]);
        nonempty += !empty;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(nonempty, oracle.count);
    /* A fiber of twice the largest group is divided, a short one never. */
    CU_ASSERT(longest > SLC_FIBER_WHOLE || !sptv.groups.divides);
    CU_ASSERT(longest < 512 || sptv.groups.divides);
    slc_gpu_sptv_destroy(&sptv);
    slc_gpu_fibers_destroy(&fibers);
}

/* All lengths of fibers from 1 to everything, split anywhere by groups. */
static void test_sptv(void)
{
    static const uint32_t group_items[] = {0, 1, 7, 64, 300, 1000000};
    const uint64_t share = slc_test_threads_only() ? 4 : 1;
    unsigned seed = 1;

    for (uint32_t items : group_items) {
        const slc_gpu_sptv_options options = {seed % 2 == 0, items};

        check_sptv(fibers_list({20, 9, 30}, 2000 / share, 2, seed), 2, options, false, seed);
        check_sptv(fibers_list({20, 9, 30}, 1000 / share, 0, seed), 0, options, true, seed);
        check_sptv(fibers_list({1, 1, 50}, 1500 / share, 2, seed), 2, options, false, seed);
        check_sptv(fibers_list({40, 1, 30, 2}, 500 / share, 1, seed), 1, options, true, seed);
        seed++;
    }
    /* Several fibers of more than 32 nonzeros in a group, and no fiber that is divided. */
    host_list several = random_list({4, 1, 400}, 220, 3), apart = random_list({90, 9, 7}, 900, 4);
    sort_fibers(&several, 2);
    sort_fibers(&apart, 2);
    check_sptv(several, 2, {false, 0}, false, seed);
    check_sptv(apart, 2, {false, 0}, false, seed);
}

static void test_sptv_edges(void)
{
    const slc_gpu_sptv_options plain = {false, 0}, dropping = {true, 5};

    check_sptv(fibers_list({20, 9}, 0, 1, 1), 1, plain, false, 1);
    check_sptv(fibers_list({20, 9}, 0, 1, 1), 1, plain, true, 1);
    check_sptv(fibers_list({20, 9}, 0, 1, 1), 1, dropping, true, 1);
    check_sptv(fibers_list({20, 9}, 1, 1, 1), 1, dropping, true, 2);
    check_sptv(fibers_list({20, 9}, 1, 1, 1), 1, plain, false, 2);
    check_sptv(fibers_list({30}, 100, 0, 1), 0, plain, false, 2);
    check_sptv(fibers_list({30}, 100, 0, 1), 0, dropping, true, 2);
}

static void check_ttm(const host_list &list,
                      unsigned mode,
                      uint32_t cols,
                      enum slc_value_type precision,
                      uint32_t group_items,
                      unsigned seed)
{
    const oracle_fibers oracle(list, mode);
    const host_matrix matrix(precision, list.dims[mode], cols, seed);
    std::vector<double> want(oracle.count * cols);

    slc_reference_ttm(&oracle.wide.view, mode, &matrix.matrix, oracle.order.data(),
                      oracle.fiber.data(), want.data());
    for (unsigned form = 0; form < SLC_GPU_TTM_FORMS; form++) {
        emulated_device device(seed);
        const device_list on_device(list, seed % 2 == 0 ? SLC_F32 : SLC_F64, device.stream);
        const device_matrix on_matrix(&matrix.matrix, device.stream);
        slc_gpu_fibers fibers = {};
        slc_gpu_ttm ttm = {};

        make_fibers(&fibers, &on_device.coo, mode, device.stream);
        SLC_MUST(slc_gpu_ttm_create(&ttm, &fibers, cols, precision, group_items, &machine));
        SLC_MUST(slc_gpu_ttm_prepare(&ttm, device.stream));
        const device_matrix rows(SLC_F64, fibers.count, cols, device.stream);
        /* The second product overwrites the rows of the first. */
        for (unsigned again = 0; again < 2; again++) {
            SLC_MUST(slc_gpu_ttm_multiply(&ttm, static_cast<enum slc_gpu_ttm_form>(form),
                                          &on_matrix.matrix, &rows.matrix, device.stream));
        }
        const std::vector<double> got = rows.read(SLC_F64, device.stream);
        CU_ASSERT(got == want);
        slc_gpu_ttm_destroy(&ttm);
        slc_gpu_fibers_destroy(&fibers);
    }
}

static void test_ttm(void)
{
    static const uint32_t widths[] = {1, 3, 7, 8, 16, 24, 32, 33, 48, 64, 100, 128, 300};
    static const uint32_t group_items[] = {0, 1, 7, 64, 100000};
    static const enum slc_value_type precisions[] = {SLC_F64, SLC_F32};

    for (unsigned w = 0; w < SLC_COUNT(widths); w++) {
        const unsigned mode = w % 3;

        check_ttm(fibers_list({20, 9, 30}, slc_test_threads_only() ? 100 : 400, mode, w), mode,
                  widths[w], precisions[w / 2 % 2], group_items[w % SLC_COUNT(group_items)], w + 1);
    }
    check_ttm(fibers_list({5, 1, 3, 2, 4, 1, 6, 7}, 300, 5, 1), 5, 4, SLC_F64, 0, 1);
    check_ttm(fibers_list({20, 9}, 0, 1, 1), 1, 4, SLC_F64, 0, 1);
    check_ttm(fibers_list({20, 9}, 1, 1, 1), 1, 4, SLC_F64, 0, 1);
    check_ttm(fibers_list({50}, 300, 0, 1), 0, 5, SLC_F64, 20, 1);
}

/* Fibers in order of arrival: their coordinates, and a row of sums each. */
struct met {
    std::vector<uint32_t> coords;
    std::vector<double> rows;
};

/* Appends the fibers of a piece; adds to the fiber that the previous piece left incomplete. */
static void append(met *all,
                   const std::vector<uint32_t> &coords,
                   const std::vector<double> &rows,
                   unsigned order,
                   uint32_t cols)
{
    const bool goes_on =
        !coords.empty() && !all->coords.empty() &&
        std::equal(coords.begin(), coords.begin() + order, all->coords.end() - order);

    for (uint32_t c = 0; goes_on && c < cols; c++) {
        all->rows[all->rows.size() - cols + c] += rows[c];
    }
    all->coords.insert(all->coords.end(), coords.begin() + (goes_on ? order : 0), coords.end());
    all->rows.insert(all->rows.end(), rows.begin() + (goes_on ? cols : 0), rows.end());
}

/* A list that arrives in pieces, like the blocks of a stream: one set of arrays serves all. */
static void test_pieces(void)
{
    static const uint64_t pieces[] = {700, 1, 0, 999, 300};
    const unsigned order = 3, mode = 1;
    const uint32_t cols = 5;
    const host_list list = fibers_list({20, 30, 9}, 2000, mode, 1);
    const oracle_fibers oracle(list, mode);
    const host_matrix matrix(SLC_F64, list.dims[mode], cols, 1);
    std::vector<double> want(oracle.count * cols);
    uint64_t at = 0;
    met all;

    slc_reference_ttm(&oracle.wide.view, mode, &matrix.matrix, oracle.order.data(),
                      oracle.fiber.data(), want.data());
    emulated_device device(3);
    const device_matrix on_matrix(&matrix.matrix, device.stream);
    const device_matrix rows(SLC_F64, 1000, cols, device.stream);
    slc_gpu_fibers fibers = {};
    slc_gpu_ttm ttm = {};

    SLC_MUST(slc_gpu_fibers_reserve(&fibers, order, 1000));
    SLC_MUST(slc_gpu_ttm_create(&ttm, &fibers, cols, SLC_F64, 0, &machine));
    for (uint64_t nnz : pieces) {
        host_list piece = {list.dims, {}, {}};

        piece.coords.assign(list.coords.begin() + (long)(at * order),
                            list.coords.begin() + (long)((at + nnz) * order));
        piece.values.assign(list.values.begin() + (long)at, list.values.begin() + (long)(at + nnz));
        at += nnz;
        const device_list on_device(piece, SLC_F64, device.stream);
        SLC_MUST(slc_gpu_fibers_find(&fibers, &on_device.coo, mode, device.stream));
        SLC_MUST(slc_gpu_ttm_prepare(&ttm, device.stream));
        SLC_MUST(slc_gpu_ttm_multiply(&ttm, SLC_GPU_TTM_FIBERS, &on_matrix.matrix, &rows.matrix,
                                      device.stream));
        std::vector<uint32_t> coords(fibers.count * order);
        std::vector<double> sums = rows.read(SLC_F64, device.stream);
        SLC_MUST(
            slc_staged_to_host(coords.data(), fibers.coords, coords.size() * 4, device.stream));
        sums.resize(fibers.count * cols);
        append(&all, coords, sums, order, cols);
    }
    CU_ASSERT_EQUAL(at, list.nnz());
    CU_ASSERT(all.rows == want);
    slc_gpu_ttm_destroy(&ttm);
    slc_gpu_fibers_destroy(&fibers);
}

/* More counts than the block that adds them processes at a time. */
static void test_long_list(void)
{
    const host_list list = fibers_list({9000, 40}, 70000, 1, 1);
    emulated_device device(1);
    const device_list on_device(list, SLC_F32, device.stream);
    slc_gpu_fibers fibers = {};
    std::vector<uint32_t> want;

    for (uint32_t i = 0; i < list.nnz(); i++) {
        if (i == 0 || list.coords[2 * i] != list.coords[2 * i - 2]) {
            want.push_back(i);
        }
    }
    want.push_back((uint32_t)list.nnz());
    make_fibers(&fibers, &on_device.coo, 1, device.stream);
    CU_ASSERT_EQUAL_FATAL(fibers.count + 1, want.size());
    std::vector<uint32_t> begin(want.size());
    SLC_MUST(slc_staged_to_host(begin.data(), fibers.begin, begin.size() * 4, device.stream));
    CU_ASSERT(begin == want);
    slc_gpu_fibers_destroy(&fibers);
}

static void test_refused(void)
{
    emulated_device device(1);
    const host_list list = random_list({20, 9}, 100, 1); /* a list that is not sorted */
    const device_list on_device(list, SLC_F64, device.stream);
    const device_matrix matrix(SLC_F64, 9, 4, device.stream);
    const device_matrix rows(SLC_F64, 7, 4, device.stream);
    static const uint64_t too_many[] = {UINT32_MAX, 9}, too_short[] = {3, 9};
    const slc_gpu_sptv_options dropping = {true, 0};
    slc_gpu_fibers fibers = {};
    slc_gpu_sptv sptv = {};
    slc_gpu_ttm ttm = {};

    for (const uint64_t *dims : {list.dims.data(), too_many, too_short}) {
        CU_ASSERT_EQUAL(slc_gpu_fibers_create_all(&fibers, &on_device.coo, 1, dims, device.stream),
                        cudaErrorInvalidValue);
        slc_gpu_fibers_destroy(&fibers);
    }
    CU_ASSERT_EQUAL(slc_gpu_fibers_reserve(&fibers, 0, 10), cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_fibers_reserve(&fibers, 2, UINT32_MAX), cudaErrorInvalidValue);
    SLC_MUST(slc_gpu_fibers_reserve(&fibers, 2, 99));
    CU_ASSERT_EQUAL(slc_gpu_fibers_find(&fibers, &on_device.coo, 1, device.stream),
                    cudaErrorInvalidValue);
    slc_gpu_fibers_destroy(&fibers);
    SLC_MUST(slc_gpu_fibers_reserve(&fibers, 2, 100));
    CU_ASSERT_EQUAL(slc_gpu_fibers_find(&fibers, &on_device.coo, 2, device.stream),
                    cudaErrorInvalidValue);
    SLC_MUST(slc_gpu_fibers_find(&fibers, &on_device.coo, 1, device.stream));
    SLC_MUST(slc_gpu_sptv_create(&sptv, &fibers, &dropping, &machine));
    CU_ASSERT_EQUAL(slc_gpu_sptv_prepare(&sptv, 5, device.stream), cudaErrorInvalidValue);
    SLC_MUST(slc_gpu_ttm_create(&ttm, &fibers, 4, SLC_F64, 0, &machine));
    SLC_MUST(slc_gpu_ttm_prepare(&ttm, device.stream));
    CU_ASSERT_EQUAL(
        slc_gpu_ttm_multiply(&ttm, SLC_GPU_TTM_FIBERS, &matrix.matrix, &rows.matrix, device.stream),
        cudaErrorInvalidValue);
    CU_ASSERT_STRING_EQUAL(slc_gpu_ttm_form_name(SLC_GPU_TTM_FIBERS), "fibers");
    CU_ASSERT_STRING_EQUAL(slc_gpu_ttm_form_name(SLC_GPU_TTM_NONZEROS), "nonzeros");
    CU_ASSERT_STRING_EQUAL(slc_gpu_ttm_form_name(SLC_GPU_TTM_FORMS), "?");
    slc_gpu_ttm_destroy(&ttm);
    slc_gpu_sptv_destroy(&sptv);
    slc_gpu_fibers_destroy(&fibers);
}

static const struct slc_test tests[] = {
    {"SpTV agrees with the oracle, however fibers are long and cut", test_sptv},
    {"SpTV of nothing, of one nonzero, of one mode", test_sptv_edges},
    {"TTM agrees with the oracle in both forms", test_ttm},
    {"a list in pieces", test_pieces},
    {"the fibers of a long list", test_long_list},
    {"mismatched requests are rejected", test_refused},
};

SLC_SUITE(fibers)
{
    return slc_test_main("gpu fibers", tests, SLC_COUNT(tests), argc, argv);
}
