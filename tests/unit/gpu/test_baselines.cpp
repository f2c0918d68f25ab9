/*
 * The field's kernels beside the oracle: integers are added up without rounding, so all agree bit
 * for bit.
 */
#include "gpu/baselines.h"
#include "list_fixture.h"

extern "C" {
#include "base/random.h"
}

#include <memory>

/* A tensor, its factors and what the oracle makes of them. */
struct problem {
    host_list list;
    uint32_t rank;
    enum slc_value_type precision;
    slc_gpu_baseline_options options = {};
    std::vector<std::unique_ptr<host_matrix>> factors;

    problem(const host_list &list_, uint32_t rank_, enum slc_value_type precision_)
        : list(list_), rank(rank_), precision(precision_)
    {
        for (unsigned m = 0; m < list.order(); m++) {
            factors.emplace_back(new host_matrix(precision, list.dims[m], rank, 100 + m));
        }
    }
    std::vector<double> oracle(unsigned mode) const
    {
        const oracle_list wide(list);
        const struct slc_matrix *pointers[SLC_MAX_ORDER];
        std::vector<double> output(list.dims[mode] * rank);

        for (unsigned m = 0; m < list.order(); m++) {
            pointers[m] = &factors[m]->matrix;
        }
        slc_reference_mttkrp(&wide.view, pointers, mode, list.dims[mode], rank, output.data());
        return output;
    }
};

/* Twice into one output, which is added to. */
static std::vector<double>
computed(const problem &p, enum slc_gpu_kernel kernel, unsigned mode, unsigned seed)
{
    emulated_device device(seed);
    device_list list(p.list, seed % 2 == 0 ? SLC_F32 : SLC_F64, device.stream);
    device_matrix output(SLC_F64, p.list.dims[mode], p.rank, device.stream);
    std::vector<std::unique_ptr<device_matrix>> factors;
    const slc_gpu_machine machine = {3, 160 << 10, 90};
    slc_gpu_forms forms = {};
    slc_gpu_mttkrp job = {};

    job.order = p.list.order();
    job.mode = mode;
    job.rank = p.rank;
    job.precision = p.precision;
    job.output = output.matrix;
    for (unsigned m = 0; m < job.order; m++) {
        factors.emplace_back(new device_matrix(&p.factors[m]->matrix, device.stream));
        job.factor[m] = factors[m]->matrix;
    }
    job.factor[mode].data = nullptr;
    forms.coo = &list.coo;
    SLC_MUST(slc_gpu_forms_prepare(&forms, kernel, &job, p.list.dims.data(), &p.options, &machine,
                                   device.stream));
    for (unsigned again = 0; again < 2; again++) {
        SLC_MUST(slc_gpu_baseline_run(kernel, &forms, &job, &p.options, &machine, device.stream));
    }
    slc_gpu_forms_destroy(&forms);
    return output.read(SLC_F64, device.stream);
}

static void check(const problem &p, unsigned mode, unsigned seed)
{
    const std::vector<double> want = p.oracle(mode);

    for (unsigned k = 0; k < SLC_GPU_KERNELS; k++) {
        const std::vector<double> got =
            computed(p, static_cast<enum slc_gpu_kernel>(k), mode, seed);
        uint64_t wrong = 0;

        for (uint64_t i = 0; i < want.size(); i++) {
            wrong += got[i] != 2 * want[i];
        }
        if (wrong > 0) {
            printf("# %s, order %u, mode %u, rank %u, precision %d: %llu of %zu\n",
                   slc_gpu_kernel_name(static_cast<enum slc_gpu_kernel>(k)), p.list.order(), mode,
                   p.rank, p.precision, (unsigned long long)wrong, want.size());
        }
        CU_ASSERT_EQUAL(wrong, 0);
    }
}

static const enum slc_value_type precisions[] = {SLC_F64, SLC_F32};

/* Every rank, order and precision, each in some combination. */
static void test_shapes(void)
{
    static const uint32_t ranks[] = {1, 3, 7, 8, 16, 24, 32, 33, 48, 64, 100, 128};
    const std::vector<uint64_t> lengths = {40, 9, 21, 5, 1, 7, 13, 3};
    const bool few = slc_test_threads_only();

    for (unsigned r = 0; r < SLC_COUNT(ranks); r++) {
        const unsigned order = 2 + r % 7;
        const std::vector<uint64_t> dims(lengths.begin(), lengths.begin() + order);
        problem p(random_list(dims, (few ? 150 : 400) / (1 + ranks[r] / 32), r), ranks[r],
                  precisions[r / 2 % 2]);

        p.options.fiber_mode = (r + 1) % order;
        check(p, r % order, r);
        if (!few) {
            check(p, (r + 1) % order, r + 1);
        }
    }
}

/* Options, and lists in an order in which fibers and rows are long. */
static void test_options(void)
{
    for (unsigned mode = 0; mode < 3; mode++) {
        problem p(random_list({300, 3, 8}, slc_test_threads_only() ? 500 : 2500, mode), 40,
                  precisions[(mode + 1) / 2 % 2]);

        sort_fibers(&p.list, 2 - mode);
        p.options.coarsening = 3;
        p.options.stash_rows = 1 + mode;
        p.options.copies = 3;
        p.options.index_bits = 4 + mode;
        p.options.fiber_mode = 2 - mode;
        check(p, mode, mode);
    }
    /* A rank whose rows fill the stash. */
    problem wide(random_list({3, 2}, slc_test_threads_only() ? 10 : 40, 7), SLC_MAX_RANK, SLC_F64);
    check(wide, 0, 1);
}

static void test_edges(void)
{
    const problem empty(random_list({4, 5, 6}, 0, 1), 3, SLC_F64);
    const problem one(random_list({4, 5, 6}, 1, 1), 17, SLC_F64);
    const problem single_row(random_list({1, 50, 60}, 1000, 1), 5, SLC_F64);
    const problem ones(random_list({1, 1, 1}, 40, 1), 2, SLC_F32);
    const problem vector(random_list({30}, 100, 1), 4, SLC_F64);

    check(empty, 1, 1);
    check(one, 0, 1);
    check(single_row, 0, 1);
    check(ones, 2, 1);
    check(vector, 0, 1);
}

static void test_refused(void)
{
    emulated_device device(1);
    const host_list host = random_list({4, 5}, 10, 1);
    device_list list(host, SLC_F64, device.stream);
    device_matrix output(SLC_F64, 4, 2, device.stream);
    const slc_gpu_machine machine = {3, 160 << 10, 90};
    slc_gpu_forms forms = {};
    slc_gpu_mttkrp job = {};
    slc_gpu_baseline_options options = {};
    const uint64_t long_dims[] = {4, (uint64_t)1 << 32};

    forms.coo = &list.coo;
    job.order = 2;
    job.rank = 2;
    job.precision = SLC_F64;
    job.output = output.matrix;
    for (unsigned k = 0; k < SLC_GPU_KERNELS; k++) {
        if (k != SLC_GPU_AMPED && k != SLC_GPU_GENTEN_EACH && k != SLC_GPU_GENTEN_TILES) {
            CU_ASSERT_EQUAL(slc_gpu_baseline_run(static_cast<enum slc_gpu_kernel>(k), &forms, &job,
                                                 &options, &machine, device.stream),
                            cudaErrorInvalidValue);
        }
    }
    job.order = 3;
    CU_ASSERT_EQUAL(
        slc_gpu_baseline_run(SLC_GPU_AMPED, &forms, &job, &options, &machine, device.stream),
        cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_blco_create(&forms.blco, &list.coo, long_dims, 64, device.stream),
                    cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(
        slc_gpu_blco_create(&forms.blco, &list.coo, host.dims.data(), 65, device.stream),
        cudaErrorInvalidValue);
    slc_gpu_forms_destroy(&forms);
}

static void test_names(void)
{
    for (unsigned k = 0; k < SLC_GPU_KERNELS; k++) {
        const char *name = slc_gpu_kernel_name(static_cast<enum slc_gpu_kernel>(k));

        CU_ASSERT_EQUAL((unsigned)slc_gpu_kernel_parse(name), k);
    }
    CU_ASSERT_EQUAL(slc_gpu_kernel_parse("none"), SLC_GPU_KERNELS);
    CU_ASSERT_STRING_EQUAL(slc_gpu_kernel_name(SLC_GPU_KERNELS), "?");
}

static const struct slc_test tests[] = {
    {"orders, ranks and precisions agree with the oracle", test_shapes},
    {"options, long fibers, the largest rank", test_options},
    {"empty, single, one row, modes of length 1, one mode", test_edges},
    {"what was not prepared, or fits no index, is refused", test_refused},
    {"names", test_names},
};

int main(int argc, char **argv)
{
    return slc_test_main("gpu baselines", tests, SLC_COUNT(tests), argc, argv);
}
