/* Devices described by the name of a chip: their memory forecast equals that of an existing device,
 * which uses exactly that, and they are never opened. */
#include "product_fixture.h"

#include <cstring>
#include <random>
#include <string>

static struct slc_device *described(const char *name, uint64_t bytes)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *device = nullptr;

    SLC_ASSERT_OK(slc_gpu_describe(name, bytes, &device, &err), &err);
    return device;
}

/* A device that is opened uses the memory that is forecast for a device without opening it. */
static void same_as_opened(void)
{
    static const device_case cases[] = {
        {1, 1, 0, 1, SLC_F64, false, 1},           {3, 2, 3, 16, SLC_F64, false, 2},
        {2, 1, 1, 7, SLC_F32, false, 3},           {4, 3, 2, 33, SLC_F64, true, 4},
        {2, 1, 1, 8, SLC_F32, true, 5, 11},        {8, 1, 3, 70, SLC_F64, false, 6, 5},
        {2, 2, 1, 24, SLC_F32, false, 7, 0, true},
    };
    const device_tensor tensor(SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES, 800, 300);
    struct slc_device *chip = described("l40s", 0);

    for (const device_case &how : cases) {
        const device_emulation emulation(1);
        const struct slc_device_problem problem = device_problem_of(tensor, how);
        device_run run(tensor, how);
        struct slc_emulation_counts counts;

        SLC_ASSERT_OK(run.open(), &run.err);
        slc_emulation_counted(&counts);
        CU_ASSERT_EQUAL(chip->ops->memory.memory_bytes(chip, &problem), counts.memory_peak);
        CU_ASSERT_EQUAL(chip->ops->memory.host_bytes(chip, &problem),
                        run.device->ops->memory.host_bytes(run.device, &problem));
    }
    chip->ops->destroy(chip);
}

/* Problems of any shape, too large to be opened here; and some that no device can be opened for. */
static void same_as_measured(void)
{
    static const uint32_t ranks[] = {1, 3, 8, 16, 24, 33, 64, 65, 128, 300, 4096};
    std::mt19937_64 random(slc_test_seed());
    const device_emulation emulation(1);
    const struct slc_gpu_options options = {0, 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *chip = described("h100", 0), *device = nullptr;
    unsigned sound = 0;

    SLC_ASSERT_OK(slc_gpu_create(&options, &device, &err), &err);
    for (unsigned k = 0; k < 400; k++) {
        struct slc_device_problem problem = {};

        problem.order = 1 + (unsigned)(random() % 8);
        for (unsigned n = 0; n < problem.order; n++) {
            problem.dims[n] = 1 + random() % (UINT64_C(1) << (random() % 34));
        }
        problem.rank = ranks[random() % (sizeof ranks / sizeof ranks[0])];
        problem.precision = random() % 2 == 0 ? SLC_F64 : SLC_F32;
        problem.deterministic = random() % 3 == 0;
        problem.layout_count = 1 + (unsigned)(random() % 4);
        problem.streams = (unsigned)(random() % (SLC_DEVICE_STREAMS + 2));
        problem.slot_bytes = random() % (UINT64_C(1) << 26);
        problem.expanded_bytes = random() % 2 * (random() % (UINT64_C(1) << 26));
        problem.slot_tiles = 1 + (uint32_t)(random() % 100000);
        problem.resident_bytes = random() % 2 * (random() % (UINT64_C(1) << 36));
        problem.resident_tiles = problem.resident_bytes > 0 ? (uint32_t)(random() % 1000000) : 0;
        problem.unit_most = random() % 3 == 0 ? (uint32_t)(random() % 5000) : 0;
        problem.adds_host = !problem.deterministic && random() % 2 == 0;
        const uint64_t bytes = chip->ops->memory.memory_bytes(chip, &problem);

        CU_ASSERT_EQUAL(bytes, device->ops->memory.memory_bytes(device, &problem));
        CU_ASSERT_EQUAL(chip->ops->memory.host_bytes(chip, &problem),
                        device->ops->memory.host_bytes(device, &problem));
        CU_ASSERT_EQUAL(bytes == UINT64_MAX, problem.streams < 1 ||
                                                 problem.streams > SLC_DEVICE_STREAMS ||
                                                 problem.slot_bytes == 0);
        sound += bytes != UINT64_MAX;
        /* At least the factors, plus slots and resident blocks. */
        CU_ASSERT(bytes >= problem.dims[0] * problem.rank * sizeof(float) +
                               problem.streams * problem.slot_bytes + problem.resident_bytes);
    }
    CU_ASSERT(sound > 200);
    device->ops->destroy(device);
    chip->ops->destroy(chip);
}

static void same_for_products(void)
{
    static const product_case cases[] = {
        {1, 1, SLC_F64, 1, 16},
        {2, 5, SLC_F64, 3, SLC_TILE_NNZ},
        {6, 32, SLC_F32, 2, 100},
        {7, 1, SLC_F32, SLC_DEVICE_LANES, 1},
    };
    const device_tensor tensor(SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES, 800, 300);
    struct slc_device *chip = described("a100", 0);

    for (const product_case &how : cases) {
        const device_emulation emulation(1);
        product_run run(tensor.encoded, how);
        struct slc_emulation_counts counts;

        SLC_ASSERT_OK(run.create_emulated(), &run.err);
        SLC_ASSERT_OK(run.open(), &run.err);
        slc_emulation_counted(&counts);
        CU_ASSERT_EQUAL(chip->ops->product.memory_bytes(chip, &run.product), counts.memory_peak);
        CU_ASSERT_EQUAL(chip->ops->product.host_bytes(chip, &run.product),
                        run.device->ops->product.host_bytes(run.device, &run.product));
        run.product.lanes = 0;
        CU_ASSERT_EQUAL(chip->ops->product.memory_bytes(chip, &run.product), UINT64_MAX);
        CU_ASSERT_EQUAL(chip->ops->product.host_bytes(chip, &run.product), UINT64_MAX);
    }
    chip->ops->destroy(chip);
}

/* Properties of each chip, and its memory as the upper limit of requests. */
static void chips(void)
{
    unsigned count = 0;

    for (; slc_gpu_chip_names[count] != nullptr; count++) {
        const char *name = slc_gpu_chip_names[count];
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_device *chip = described(name, 0);
        struct slc_device_info info;

        chip->ops->info(chip, &info);
        CU_ASSERT_STRING_EQUAL(info.name, name);
        CU_ASSERT(info.described);
        CU_ASSERT_EQUAL(info.free_bytes, info.total_bytes / 10 * 9);
        CU_ASSERT(info.multiprocessors >= 100 && info.shared_bytes >= 99 << 10);
        const uint64_t gb = info.total_bytes / 1000000000;

        chip->ops->destroy(chip);
        chip = described(name, gb << 30);
        chip->ops->info(chip, &info);
        CU_ASSERT_EQUAL(info.free_bytes, gb << 30);
        chip->ops->destroy(chip);
        SLC_ASSERT_FAILS(
            slc_gpu_describe(name, (gb << 30) + 1, &chip, &err), SLC_ERR_USAGE, &err,
            ("but " + std::string(name) + " has " + std::to_string(gb) + " GB").c_str());
        CU_ASSERT_PTR_NULL(chip);
    }
    CU_ASSERT_EQUAL(count, 6);
    struct slc_device *chip = described("h100", 0);
    struct slc_device_info info;

    chip->ops->info(chip, &info);
    CU_ASSERT(info.multiprocessors == 132 && info.shared_bytes == 227 << 10 &&
              info.total_bytes == UINT64_C(80000000000));
    chip->ops->destroy(chip);
}

static void refused(void)
{
    const device_tensor tensor(SLC_CODEC_PACKED, SLC_MADE_ONES, 100, 0);
    const device_emulation emulation(1, 0);
    const struct slc_device_problem problem =
        device_problem_of(tensor, {1, 1, 0, 4, SLC_F64, false, 1});
    product_run run(tensor.encoded, {1, 3, SLC_F64, 1, 16});
    const struct slc_device_maker *maker = slc_gpu_maker();
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *chip = nullptr;

    SLC_ASSERT_FAILS(maker->describe("k80", 0, &chip, &err), SLC_ERR_USAGE, &err,
                     "'k80': use one of a100, a100-80gb, h100, h200, b200, l40s");
    CU_ASSERT_PTR_NULL(chip);
    slc_error_clear(&err);
    SLC_ASSERT_OK(maker->describe("b200", 1 << 20, &chip, &err), &err);
    SLC_ASSERT_FAILS(chip->ops->memory.open(chip, &problem, &err), SLC_ERR_USAGE, &err,
                     "only described");
    slc_error_clear(&err);
    SLC_ASSERT_FAILS(chip->ops->product.open(chip, &run.product, &err), SLC_ERR_USAGE, &err,
                     "only described");
    const struct slc_device_ops *ops = chip->ops;
    ops->destroy(chip);
    ops->destroy(nullptr);
}

SLC_SUITE(described)
{
    static const struct slc_test tests[] = {
        {"a description has the memory of an opened device", same_as_opened},
        {"problems of any shape are measured alike", same_as_measured},
        {"products are measured alike", same_for_products},
        {"the chips that are known", chips},
        {"unknown chips, and computing on a description", refused},
    };

    return slc_test_main("gpu devices, described", tests, SLC_COUNT(tests), argc, argv);
}
