/* The kernels of other programs against the oracle: sums of integers are exact, so all agree bit
 * for bit. */
#include "list_fixture.h"
#include "tools/bench/rivals/gpu/baselines.h"

extern "C" {
#include "base/random.h"
}

#include <memory>

/* A tensor, its factors and the oracle's result. */
struct problem {
    host_list list;
    uint32_t rank;
    enum slc_value_type precision;
    slc_gpu_lists_options options = {};
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

/* The list on the host, with values of a given type. */
struct host_view {
    std::vector<float> narrow;
    slc_gpu_host_list list;

    host_view(const host_list &from, enum slc_value_type type)
        : narrow(from.values.begin(), from.values.end())
    {
        list = {from.order(), type, from.nnz(), from.coords.data(), from.values.data()};
        if (type == SLC_F32) {
            list.values = narrow.data();
        }
    }
};

static const slc_gpu_machine machine = {6, 160 << 10, 90};

static bool is_xplat(enum slc_gpu_kernel kernel)
{
    return kernel == SLC_GPU_XPLAT_ELEMENT || kernel == SLC_GPU_XPLAT_ROW;
}

/* Makes two runs with one output, to which all kernels add, except those of XPLAT. */
static std::vector<double>
computed(const problem &p, enum slc_gpu_kernel kernel, unsigned mode, unsigned seed)
{
    emulated_device device(seed);
    const host_view view(p.list, seed % 2 == 0 ? SLC_F32 : SLC_F64);
    device_matrix output(SLC_F64, p.list.dims[mode], p.rank, device.stream);
    std::vector<std::unique_ptr<device_matrix>> factors;
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
    forms.list = view.list;
    forms.dims = p.list.dims.data();
    forms.options = p.options;
    forms.machine = &machine;
    forms.stream = device.stream;
    SLC_MUST(slc_gpu_forms_prepare(&forms, kernel, &job));
    for (unsigned again = 0; again < 2; again++) {
        SLC_MUST(slc_gpu_baseline_run(kernel, &forms, &job));
    }
    std::vector<double> got = output.read(SLC_F64, device.stream);
    const slc_gpu_form_cost cost = slc_gpu_forms_cost(&forms, kernel, mode);

    /* At least a value and an index; all forms but slices have two. */
    CU_ASSERT(cost.seconds > 0 && cost.bytes >= (double)(p.list.nnz() == 0  ? 0
                                                         : is_xplat(kernel) ? 4 + 4
                                                                            : 8 + 4));
    slc_gpu_forms_destroy(&forms);
    return got;
}

static void check(const problem &p, unsigned mode, unsigned seed)
{
    const std::vector<double> want = p.oracle(mode);

    for (unsigned k = 0; k < SLC_GPU_KERNELS; k++) {
        const bool stores = is_xplat(static_cast<enum slc_gpu_kernel>(k));
        uint64_t wrong = 0;

        if (stores && p.list.order() < 3) {
            continue; /* refused: test_refused */
        }
        const std::vector<double> got =
            computed(p, static_cast<enum slc_gpu_kernel>(k), mode, seed);

        for (uint64_t i = 0; i < want.size(); i++) {
            wrong += got[i] != (stores ? 1 : 2) * want[i];
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

/* Options, and lists sorted so that fibers and rows are long. One mode has many small blocks, the
 * others have blocks of which a warp computes several tiles. */
static void test_options(void)
{
    for (unsigned mode = 0; mode < 3; mode++) {
        problem p(random_list({300, 3, 8}, slc_test_threads_only() ? 150 : 2500, mode), 40,
                  precisions[(mode + 1) / 2 % 2]);

        sort_fibers(&p.list, 2 - mode);
        p.options.coarsening = 3;
        p.options.work_group = mode == 2 ? 96 : 32;
        p.options.stash_rows = 1 + mode;
        p.options.copies = 3;
        p.options.index_bits = mode == 1 ? 4 : 0;
        p.options.queues = 2 + mode;
        p.options.block_nnz = 70 << mode;
        p.options.partition_rows = 2;
        p.options.fiber_mode = 2 - mode;
        check(p, mode, mode);
    }
    /* A rank whose rows fill the stash. */
    problem wide(random_list({3, 2}, slc_test_threads_only() ? 10 : 40, 7), SLC_MAX_RANK, SLC_F64);
    check(wide, 0, 1);
}

/* Orders 2 to 5, and ranks that leave a block of columns incomplete. */
static void test_ranks(void)
{
    static const uint32_t ranks[] = {1, 3, 24, 33, 48, 100, 130};
    const std::vector<uint64_t> lengths = {5, 1, 23, 3, 7};
    const bool few = slc_test_threads_only();

    for (unsigned r = 0; r < SLC_COUNT(ranks); r += few ? 3 : 1) {
        const unsigned order = 2 + r % 4;
        const std::vector<uint64_t> dims(lengths.begin(), lengths.begin() + order);
        problem p(random_list(dims, few ? 40 : 300, r), ranks[r], precisions[r / 2 % 2]);

        p.options.block_nnz = 70;
        p.options.index_bits = 2 + r % 3;
        check(p, r % order, r);
        if (!few) {
            check(p, (r + 1) % order, r + 1);
        }
    }
}

/* The listings of XPLAT in orders 3 to 5, every mode, and ranks below and beyond the columns that a
 * thread keeps in registers. */
static void test_xplat(void)
{
    static const uint32_t ranks[] = {1, 7, 16, 33, 70};
    const std::vector<uint64_t> lengths = {5, 1, 23, 3, 7};

    for (unsigned r = 0; r < SLC_COUNT(ranks); r++) {
        for (unsigned order = 3; order <= 5; order++) {
            const std::vector<uint64_t> dims(lengths.begin(), lengths.begin() + order);
            const problem p(random_list(dims, slc_test_threads_only() ? 30 : 200, r), ranks[r],
                            precisions[r % 2]);

            for (unsigned mode = 0; mode < order; mode++) {
                const std::vector<double> want = p.oracle(mode);

                CU_ASSERT(computed(p, SLC_GPU_XPLAT_ELEMENT, mode, r + mode) == want);
                CU_ASSERT(computed(p, SLC_GPU_XPLAT_ROW, mode, r + mode) == want);
            }
        }
    }
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
    const host_view view(host, SLC_F64);
    device_matrix output(SLC_F64, 4, 2, device.stream);
    slc_gpu_forms forms = {};
    slc_gpu_mttkrp job = {};
    const uint64_t long_dims[] = {4, (uint64_t)1 << 32};

    forms.list = view.list;
    forms.dims = host.dims.data();
    forms.machine = &machine;
    forms.stream = device.stream;
    job.order = 2;
    job.rank = 2;
    job.precision = SLC_F64;
    job.output = output.matrix;
    for (unsigned k = 0; k < SLC_GPU_KERNELS; k++) {
        CU_ASSERT_EQUAL(slc_gpu_baseline_run(static_cast<enum slc_gpu_kernel>(k), &forms, &job),
                        cudaErrorInvalidValue);
    }
    SLC_MUST(slc_gpu_forms_prepare(&forms, SLC_GPU_AMPED, &job));
    job.mode = 1; /* the copy that AMPED has is for mode 0 */
    CU_ASSERT_EQUAL(slc_gpu_baseline_run(SLC_GPU_AMPED, &forms, &job), cudaErrorInvalidValue);
    job.mode = 0;
    CU_ASSERT_EQUAL(slc_gpu_forms_prepare(&forms, SLC_GPU_XPLAT_ROW, &job), cudaErrorInvalidValue);
    job.order = 3;
    CU_ASSERT_EQUAL(slc_gpu_baseline_run(SLC_GPU_AMPED, &forms, &job), cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_blco_encode(&forms.blco, &view.list, long_dims, 64, 100),
                    cudaErrorInvalidValue);
    slc_gpu_forms_destroy(&forms);
}

/* The numbers of GenTen's table 4, a column for each range of ranks. */
static const struct {
    uint32_t first, last, vector, columns;
} table4[] = {{1, 1, 1, 1},      {2, 2, 2, 2},     {3, 3, 2, 4},     {4, 4, 4, 4},
              {5, 7, 4, 8},      {8, 8, 8, 8},     {9, 16, 8, 16},   {17, 24, 8, 24},
              {25, 47, 8, 32},   {48, 48, 16, 48}, {49, 95, 16, 64}, {96, 96, 32, 96},
              {97, 256, 32, 128}};

/* By the formulas of table 3: 2^ceil(log2 R) up to 32, and of that up to 16. */
static const struct {
    uint32_t first, last, vector, columns;
} table3[] = {{1, 1, 1, 1}, {2, 2, 2, 2},    {3, 4, 4, 4},
              {5, 8, 8, 8}, {9, 16, 16, 16}, {17, 256, 16, 32}};

template <typename Row, size_t count>
static void check_table(enum slc_gpu_kernel kernel, const Row (&table)[count])
{
    uint32_t next = 1;

    for (size_t k = 0; k < count; k++) {
        CU_ASSERT_EQUAL(table[k].first, next);
        for (uint32_t rank = table[k].first; rank <= table[k].last; rank++) {
            const struct slc_gpu_genten_blocking got = slc_gpu_genten_blocking(kernel, rank);

            CU_ASSERT_EQUAL(got.vector, table[k].vector);
            CU_ASSERT_EQUAL(got.columns, table[k].columns);
        }
        next = table[k].last + 1;
    }
    CU_ASSERT_EQUAL(next, 257);
}

static void test_genten_tables(void)
{
    check_table(SLC_GPU_GENTEN_EACH, table3);
    check_table(SLC_GPU_GENTEN_TILES, table4);
    check_table(SLC_GPU_GENTEN_PERMUTED, table4);
}

/* BLCO's choice by the number of multiprocessors (5.3), and the clusters of known devices. */
static void test_blco_choice(void)
{
    static const struct {
        unsigned architecture, multiprocessors;
        uint32_t clusters;
    } devices[] = {{80, 108, 7}, {89, 142, 12}, {90, 132, 8},
                   {90, 114, 7}, {100, 148, 8}, {90, 1, 1}};
    slc_gpu_mttkrp job = {};

    for (unsigned k = 0; k < SLC_COUNT(devices); k++) {
        const slc_gpu_machine device = {devices[k].multiprocessors, 160 << 10,
                                        devices[k].architecture};

        CU_ASSERT_EQUAL(slc_gpu_clusters(&device), devices[k].clusters);
        job.output.rows = device.multiprocessors - 1;
        CU_ASSERT_EQUAL(slc_gpu_baseline_chosen(SLC_GPU_BLCO, &job, &device), SLC_GPU_BLCO_STASH);
        CU_ASSERT_EQUAL(slc_gpu_baseline_chosen(SLC_GPU_BLCO_QUEUES, &job, &device),
                        SLC_GPU_BLCO_STASH);
        CU_ASSERT_EQUAL(slc_gpu_baseline_chosen(SLC_GPU_BLCO_CODE, &job, &device),
                        SLC_GPU_BLCO_CODE_STASH);
        job.output.rows = device.multiprocessors;
        CU_ASSERT_EQUAL(slc_gpu_baseline_chosen(SLC_GPU_BLCO, &job, &device),
                        SLC_GPU_BLCO_REGISTERS);
        CU_ASSERT_EQUAL(slc_gpu_baseline_chosen(SLC_GPU_BLCO_QUEUES, &job, &device),
                        SLC_GPU_BLCO_REGISTERS);
        CU_ASSERT_EQUAL(slc_gpu_baseline_chosen(SLC_GPU_BLCO_CODE, &job, &device),
                        SLC_GPU_BLCO_CODE_REGISTERS);
    }
    CU_ASSERT_EQUAL(slc_gpu_baseline_chosen(SLC_GPU_AMPED, &job, &machine), SLC_GPU_AMPED);
}

/* Blocks are within their limit and share their upper bits; each nonzero is in one work-group,
 * and each work-group in one block. */
static void
check_map(const host_list &host, unsigned index_bits, uint64_t block_nnz, uint32_t elements)
{
    emulated_device device(1);
    const host_view view(host, SLC_F64);
    const struct slc_gpu_blco_map *map = nullptr, *again = nullptr;
    slc_gpu_blco blco = {};
    uint64_t next = 0;

    SLC_MUST(slc_gpu_blco_encode(&blco, &view.list, host.dims.data(), index_bits, block_nnz));
    SLC_MUST(slc_gpu_blco_map(&blco, elements, device.stream, &map));
    SLC_MUST(slc_gpu_blco_map(&blco, elements, device.stream, &again));
    CU_ASSERT_PTR_EQUAL(map, again);
    const auto *blocks = static_cast<const slc_gpu_blco_block *>(blco.host_blocks.data);
    const auto *groups = static_cast<const slc_gpu_blco_group *>(map->host.data);
    const auto *indices = static_cast<const uint64_t *>(blco.host_indices.data);

    for (uint64_t g = 0; g < map->count; g++) {
        const slc_gpu_blco_block &block = blocks[groups[g].block];
        const uint64_t end =
            groups[g].block + 1 < blco.block_count ? (&block)[1].first : host.nnz();

        CU_ASSERT_EQUAL(groups[g].first, next);
        CU_ASSERT(groups[g].count > 0 && groups[g].count <= elements);
        next += groups[g].count;
        CU_ASSERT(groups[g].first >= block.first && next <= end && end - block.first <= block_nnz);
        for (uint64_t i = groups[g].first; i < next; i++) {
            for (unsigned m = 0; m < host.order(); m++) {
                const uint64_t lower =
                    indices[i] >> blco.shift[m] & (((uint64_t)1 << blco.bits[m]) - 1);

                CU_ASSERT_EQUAL(block.upper[m] | lower, host.coords[i * host.order() + m]);
            }
        }
    }
    CU_ASSERT_EQUAL(next, host.nnz());
    slc_gpu_blco_destroy(&blco);
}

static void test_maps(void)
{
    host_list list = random_list({3000000000U, 5, 4000, 1}, 700, 3);

    check_map(list, 64, 1 << 27, 256);
    check_map(list, 64, 100, 64);
    check_map(list, 20, 1 << 27, 96);
    sort_fibers(&list, 2);
    check_map(list, 30, 33, 32);
    check_map(random_list({7, 9}, 0, 1), 64, 10, 32);
    check_map(random_list({7, 9}, 1, 1), 3, 1, 512);
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
    {"ranks that fill no block of columns, in small blocks", test_ranks},
    {"the listings of XPLAT agree in orders 3 to 5, every mode", test_xplat},
    {"empty, single, one row, modes of length 1, one mode", test_edges},
    {"unprepared or too large lists are rejected", test_refused},
    {"GenTen's sizes are those of its tables 3 and 4", test_genten_tables},
    {"BLCO's choice and number of copies", test_blco_choice},
    {"BLCO's blocks, and the work-groups of its maps", test_maps},
    {"names", test_names},
};

SLC_SUITE(baselines)
{
    return slc_test_main("gpu baselines", tests, SLC_COUNT(tests), argc, argv);
}
