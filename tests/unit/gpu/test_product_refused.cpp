/* Errors of a device that multiplies tiles, and its state after a failure: nothing of the tile is
 * left, and the lane can process the next one. */
#include "product_fixture.h"

extern "C" {
#include "base/error/fault.h"
#include "base/random.h"
}

#include <cstring>
#include <functional>
#include <string>

static const product_case plain = {2, 3, SLC_F64, 2, 16};

static void encode(struct batch_fixture *tensor, enum slc_codec codec, enum slc_made_values values)
{
    product_encode(tensor, {20, 300, 6}, 1500, values, {codec, {1, 9}, 600, 0});
}

static const struct slc_encoded_block &tile_of(const struct batch_fixture &tensor, size_t t)
{
    return tensor.blocks[0].lone[t];
}

/* Checks that the lane multiplies the first tile correctly. */
static void works(const product_run &run, unsigned lane)
{
    struct slc_error err = SLC_ERROR_INIT;
    product_sums made;

    SLC_ASSERT_OK(run.tile(lane, tile_of(run.tensor, 0), &made, &err), &err);
    CU_ASSERT(made == run.expected(*tile_of(run.tensor, 0).tiles, 0));
}

#define REFUSED(run, call, part)                                                                   \
    do {                                                                                           \
        SLC_ASSERT_FAILS(call, SLC_ERR_USAGE, &(run).err, part);                                   \
        slc_error_clear(&(run).err);                                                               \
    } while (0)

static void budget(void)
{
    struct batch_fixture tensor;
    uint64_t need;

    encode(&tensor, SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES);
    {
        const device_emulation emulation(1);
        product_run run(tensor, plain);
        struct slc_emulation_counts counts;
        struct slc_device_info info;

        SLC_ASSERT_OK(run.create_emulated((uint64_t)64 << 20), &run.err);
        const struct slc_device_ops *ops = run.device->ops;

        need = ops->product.memory_bytes(run.device, &run.product);
        SLC_ASSERT_OK(run.open(), &run.err);
        slc_emulation_counted(&counts);
        CU_ASSERT_EQUAL(counts.memory_peak, need);
        ops->info(run.device, &info);
        CU_ASSERT_EQUAL(info.free_bytes, ((uint64_t)64 << 20) - need);
        CU_ASSERT(ops->product.host_bytes(run.device, &run.product) >=
                  2 * (tensor.tile_bytes + 16 * 3 * sizeof(double)));
        ops->memory.close(run.device);
        ops->info(run.device, &info);
        CU_ASSERT_EQUAL(info.free_bytes, (uint64_t)64 << 20);
    }
    const device_emulation emulation(1);
    product_run less(tensor, plain), enough(tensor, plain);
    product_sums made;
    const std::string text = "need " + std::to_string((need >> 20) + 1) + " MiB of device memory";

    SLC_ASSERT_OK(less.create_emulated(need - 1), &less.err);
    SLC_ASSERT_FAILS(less.open(), SLC_ERR_BUDGET, &less.err, text.c_str());
    slc_error_clear(&less.err);
    REFUSED(less, less.tile(0, tile_of(tensor, 0), &made, &less.err), "no lane");
    SLC_ASSERT_OK(enough.create_emulated(need), &enough.err);
    SLC_ASSERT_OK(enough.open(), &enough.err);
    works(enough, 1);
}

static void refused_products(void)
{
    const device_emulation emulation(1);
    struct batch_fixture tensor;

    encode(&tensor, SLC_CODEC_PACKED, SLC_MADE_COUNTS);
    const device_factor other(SLC_F64, 300, 4, 1, false), narrow(SLC_F32, 300, 3, 1, false),
        shorter(SLC_F64, 299, 3, 1, false);
    const std::function<void(struct slc_device_product *)> spoil[] = {
        [](struct slc_device_product *p) { p->order = 0; },
        [](struct slc_device_product *p) { p->order = SLC_MAX_ORDER + 1; },
        [](struct slc_device_product *p) { p->dims[0] = 0; },
        [](struct slc_device_product *p) { p->lanes = 0; },
        [](struct slc_device_product *p) { p->lanes = SLC_DEVICE_LANES + 1; },
        [](struct slc_device_product *p) { p->room = 0; },
        [](struct slc_device_product *p) { p->room = SLC_TILE_NNZ + 1; },
        [](struct slc_device_product *p) { p->tile_bytes = 0; },
        [](struct slc_device_product *p) { p->tile_bytes = UINT64_MAX; },
        [](struct slc_device_product *p) { p->expanded_bytes = UINT64_MAX; },
        [](struct slc_device_product *p) { p->matrix[1] = nullptr; },
        [&](struct slc_device_product *p) { p->matrix[1] = &narrow.matrix; },
        [&](struct slc_device_product *p) { p->matrix[1] = &shorter.matrix; },
        [&](struct slc_device_product *p) {
            p->dims[0] = 300;
            p->matrix[0] = &other.matrix; /* a matrix of four columns instead of three */
        },
    };
    product_run run(tensor, plain);

    SLC_ASSERT_OK(run.create_emulated(), &run.err);
    for (const auto &change : spoil) {
        struct slc_device_product product = run.product;

        change(&product);
        REFUSED(run, run.device->ops->product.open(run.device, &product, &run.err),
                "cannot multiply");
        CU_ASSERT_EQUAL(run.device->ops->product.memory_bytes(run.device, &product), UINT64_MAX);
        CU_ASSERT_EQUAL(run.device->ops->product.host_bytes(run.device, &product), UINT64_MAX);
    }
    SLC_ASSERT_OK(run.open(), &run.err);
    works(run, 0);
}

static void wrong_calls(void)
{
    const device_emulation emulation(1);
    const device_tensor other(SLC_CODEC_PACKED, SLC_MADE_COUNTS, 500, 200);
    struct slc_device_problem problem = device_problem_of(other, {1, 1, 0, 4, SLC_F64, false, 2});
    struct batch_fixture tensor;
    struct slc_device_fibers fibers;

    encode(&tensor, SLC_CODEC_PACKED, SLC_MADE_COUNTS);
    product_run run(tensor, plain);
    SLC_ASSERT_OK(run.create_emulated(), &run.err);
    struct slc_device *device = run.device;
    const struct slc_device_ops *ops = device->ops;
    const struct slc_encoded_block &tile = tile_of(tensor, 0);

    REFUSED(run, ops->product.tile(device, 0, &tile, &fibers, &run.err), "no lane 0");
    REFUSED(run, ops->product.more(device, 0, &fibers, &run.err), "no lane 0");
    SLC_ASSERT_OK(run.open(), &run.err);
    REFUSED(run, run.open(), "already open");
    REFUSED(run, ops->memory.open(device, &problem, &run.err), "already open");
    REFUSED(run, ops->job.flush(device, &run.err), "no MTTKRP");
    REFUSED(run, ops->product.tile(device, 2, &tile, &fibers, &run.err), "no lane 2");
    REFUSED(run, ops->product.more(device, 1, &fibers, &run.err), "no more");
    SLC_ASSERT_OK(ops->product.tile(device, 1, &tile, &fibers, &run.err), &run.err);
    CU_ASSERT(fibers.more);
    while (fibers.more) {
        SLC_ASSERT_OK(ops->product.more(device, 1, &fibers, &run.err), &run.err);
    }
    REFUSED(run, ops->product.more(device, 1, &fibers, &run.err), "no more");
    ops->memory.close(device);
    SLC_ASSERT_OK(ops->memory.open(device, &problem, &run.err), &run.err);
    REFUSED(run, run.open(), "already open");
}

static void refused_tiles(void)
{
    const device_emulation emulation(1);
    struct batch_fixture tensor;

    encode(&tensor, SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES);
    product_run run(tensor, plain);
    struct slc_encoded_tile tile;
    struct slc_encoded_block block;
    const struct {
        std::function<void(void)> change;
        const char *text;
    } spoil[] = {
        {[&] { block.tile_count = 2; }, "one tile"},
        {[&] { block.bytes = tensor.tile_bytes + 1; }, "one tile"},
        {[&] { block.expanded_bytes = tensor.tile_expanded_bytes + 1; }, "one tile"},
        {[&] { block.expanded = nullptr; }, "not been expanded"},
        {[&] { tile.nnz = 0; }, "one tile"},
        {[&] { tile.nnz = SLC_TILE_NNZ + 1; }, "one tile"},
        {[&] { tile.corner[1] = 300; }, "in mode 2, whose size is 300"},
        {[&] { tile.extent[2] = 6; }, "in mode 3, whose size is 6"},
    };

    SLC_ASSERT_OK(run.create_emulated(), &run.err);
    SLC_ASSERT_OK(run.open(), &run.err);
    for (const auto &each : spoil) {
        struct slc_device_fibers fibers;

        block = tile_of(tensor, 1);
        tile = *block.tiles;
        block.tiles = &tile;
        each.change();
        SLC_ASSERT_FAILS(run.device->ops->product.tile(run.device, 0, &block, &fibers, &run.err),
                         SLC_ERR_USAGE, &run.err, each.text);
        CU_ASSERT_EQUAL(run.err.offset, block.offset);
        CU_ASSERT_EQUAL(fibers.count, 0);
        slc_error_clear(&run.err);
        works(run, 0);
    }
}

/* ---- damage */

/* A tile whose bytes a test changes: compressed bytes, if there are any. */
struct altered_tile {
    std::vector<uint8_t> bytes, expanded;
    struct slc_encoded_block block;

    explicit altered_tile(const struct slc_encoded_block &tile)
        : bytes((const uint8_t *)tile.data, (const uint8_t *)tile.data + tile.bytes), block(tile)
    {
        block.data = bytes.data();
        if (tile.expanded != nullptr) {
            expanded.assign((const uint8_t *)tile.expanded,
                            (const uint8_t *)tile.expanded + tile.expanded_bytes);
            block.expanded = expanded.data();
        }
    }
    altered_tile(const altered_tile &) = delete;
    std::vector<uint8_t> &which(void)
    {
        return expanded.empty() ? bytes : expanded;
    }
};

static void damaged(enum slc_codec codec,
                    enum slc_made_values values,
                    const std::function<size_t(const struct slc_encoded_tile &)> &where)
{
    const device_emulation emulation(1);
    struct batch_fixture tensor;

    encode(&tensor, codec, values);
    product_run run(tensor, plain);
    const struct slc_encoded_block &tile = tile_of(tensor, 1);
    altered_tile altered(tile);
    product_sums made;

    for (size_t i = 0; i < 4; i++) {
        altered.which()[where(*tile.tiles) + i] ^= 0xff;
    }
    SLC_ASSERT_OK(run.create_emulated(), &run.err);
    SLC_ASSERT_OK(run.open(), &run.err);
    SLC_ASSERT_FAILS(run.tile(1, altered.block, &made, &run.err), SLC_ERR_DAMAGED, &run.err,
                     "tile 1");
    CU_ASSERT_EQUAL(run.err.block, tile.block);
    CU_ASSERT_EQUAL(run.err.offset, tile.offset);
    slc_error_clear(&run.err);
    works(run, 1);
}

static void damage(void)
{
    damaged(SLC_CODEC_PACKED, SLC_MADE_COUNTS,
            [](const struct slc_encoded_tile &tile) { return (size_t)tile.gaps.data_at; });
    damaged(SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES,
            [](const struct slc_encoded_tile &tile) { return (size_t)tile.planes_at; });
}

/* For any bytes, no access is out of bounds, which sanitizers check. */
static void hostile(void)
{
    unsigned found = 0, trials = slc_test_quick() ? 12 : 60;

    for (unsigned trial = 0; trial < trials; trial++) {
        const enum slc_codec codecs[] = {SLC_CODEC_PACKED, SLC_CODEC_LZ4, SLC_CODEC_BLCO};
        const device_emulation emulation(trial);
        struct batch_fixture tensor;

        encode(&tensor, codecs[trial % 3], trial % 2 == 0 ? SLC_MADE_COUNTS : SLC_MADE_EVEN_FLOATS);
        product_run run(tensor, {2, trial % 4 < 2 ? 1U : 3U, SLC_F64, 1, 64});
        const struct slc_encoded_block &tile = tile_of(tensor, 1);
        altered_tile altered(tile);
        std::vector<uint8_t> &bytes = altered.which();
        product_sums made;

        for (unsigned i = 0; i < 1 + trial / 2; i++) {
            bytes[slc_random_below(trial, 1, i, bytes.size())] ^=
                (uint8_t)(1U << slc_random_below(trial, 2, i, 8));
        }
        SLC_ASSERT_OK(run.create_emulated(), &run.err);
        SLC_ASSERT_OK(run.open(), &run.err);
        const enum slc_status status = run.tile(0, altered.block, &made, &run.err);

        CU_ASSERT(status == SLC_OK || status == SLC_ERR_DAMAGED);
        CU_ASSERT(made.count(run.how.cols) <= tile.nnz);
        found += status == SLC_ERR_DAMAGED;
        slc_error_clear(&run.err);
        works(run, 0);
    }
    CU_ASSERT(found >= trials / 4);
}

/* ---- failures */

/* Operations repeated with another call failing each time. */
static enum slc_status try_all(product_run *run)
{
    product_sums made;
    enum slc_status status = run->create_emulated((uint64_t)64 << 20);

    if (status == SLC_OK) {
        status = run->open();
    }
    for (unsigned lane = 0; lane < 2 && status == SLC_OK; lane++) {
        status = run->tile(lane, tile_of(run->tensor, lane), &made, &run->err);
    }
    slc_emulation_refuse(0);
    slc_fault_arm(SLC_FAULT_ALLOCATION, 0);
    slc_error_clear(&run->err);
    if (status != SLC_OK && run->device != nullptr) {
        run->device->ops->memory.close(run->device);
        SLC_ASSERT_OK(run->open(), &run->err);
        works(*run, 0);
    }
    return status;
}

static void failing_calls(void)
{
    struct batch_fixture tensor;
    unsigned long long k = 1;
    enum slc_status status = SLC_ERR_SYSTEM;

    encode(&tensor, SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES);
    for (; status != SLC_OK; k += slc_test_threads_only() ? 5 : 1) {
        const device_emulation emulation(1);
        product_run run(tensor, plain);

        slc_emulation_refuse(k);
        status = try_all(&run);
        CU_ASSERT(status == SLC_OK || status == SLC_ERR_SYSTEM || status == SLC_ERR_MEMORY);
    }
    CU_ASSERT(k > 30);
}

static void failing_allocations(void)
{
    struct batch_fixture tensor;
    uint64_t k = 1;
    enum slc_status status = SLC_ERR_MEMORY;

    encode(&tensor, SLC_CODEC_PACKED, SLC_MADE_COUNTS);
    for (; status != SLC_OK; k++) {
        const device_emulation emulation(1);
        product_run run(tensor, plain);

        slc_fault_arm(SLC_FAULT_ALLOCATION, k);
        status = try_all(&run);
        CU_ASSERT(status == SLC_OK || status == SLC_ERR_MEMORY);
    }
    CU_ASSERT(k > 3); /* the last try works, and at least three calls fail before it */
}

/* A lane whose call failed can process the next tile. */
static void failing_tile(void)
{
    const device_emulation emulation(1);
    struct batch_fixture tensor;
    unsigned long long k = 1;
    enum slc_status status = SLC_ERR_SYSTEM;

    encode(&tensor, SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES);
    product_run run(tensor, plain);
    SLC_ASSERT_OK(run.create_emulated(), &run.err);
    SLC_ASSERT_OK(run.open(), &run.err);
    for (; status != SLC_OK; k++) {
        product_sums made;

        slc_emulation_refuse(k);
        status = run.tile(0, tile_of(tensor, 1), &made, &run.err);
        slc_emulation_refuse(0);
        CU_ASSERT(status == SLC_OK || status == SLC_ERR_SYSTEM || status == SLC_ERR_MEMORY);
        slc_error_clear(&run.err);
        works(run, 0);
    }
    CU_ASSERT(k > 10);
}

static const struct slc_test tests[] = {
    {"memory equals the forecast, and the cap holds", budget},
    {"products that cannot be", refused_products},
    {"calls in the wrong place", wrong_calls},
    {"tiles that do not fit", refused_tiles},
    {"damaged bytes are named", damage},
    {"altered bytes lead nowhere", hostile},
    {"every call fails once", failing_calls},
    {"every allocation fails once", failing_allocations},
    {"a lane outlives a failure", failing_tile},
};

SLC_SUITE(product_refused)
{
    return slc_test_main("gpu product refused", tests, SLC_COUNT(tests), argc, argv);
}
