/*
 * SpTV and TTM of encoded blocks, from their bytes on, beside the oracle; and of bytes that
 * contradict their description.
 */
#include "batch_fixture.h"
#include "gpu/expand.h"
#include "gpu/fiber_batch.h"
#include "gpu/sptv.h"
#include "gpu/ttm.h"

extern "C" {
#include "base/random.h"
#include "slc_test.h"
}

#include <map>

static const slc_gpu_machine machine = {3, 100 << 10, 90};
enum { COLS = 6 };

/* Sums by the coordinates of fibers, 0 in their own mode. */
typedef std::map<std::vector<uint64_t>, std::vector<double>> sums_map;

static sums_map oracle(const struct batch_fixture &fixture, unsigned mode, const slc_matrix *matrix)
{
    const uint64_t nnz = fixture.coo.nnz;
    std::vector<uint64_t> order(nnz), fiber(nnz);
    const uint64_t count = slc_reference_fibers(&fixture.coo, mode, order.data(), fiber.data());
    std::vector<double> rows(count * matrix->cols);
    sums_map sums;

    slc_reference_ttm(&fixture.coo, mode, matrix, order.data(), fiber.data(), rows.data());
    for (uint64_t k = 0; k < nnz; k++) {
        std::vector<uint64_t> at;

        for (unsigned m = 0; m < fixture.coo.order; m++) {
            at.push_back(m == mode ? 0 : fixture.coords[m][order[k]]);
        }
        sums[at].assign(rows.begin() + (long)(fiber[k] * matrix->cols),
                        rows.begin() + (long)((fiber[k] + 1) * matrix->cols));
    }
    return sums;
}

/* A batch on the device with all that products of it take. */
struct products {
    struct batch_fixture *fixture;
    unsigned mode;
    uint64_t length; /* of the mode */
    slc_matrix matrix = {};
    slc_gpu_fiber_batch batch = {};
    slc_gpu_sptv sptv = {};
    slc_gpu_ttm ttm = {};
    slc_gpu_matrix on_device = {}, rows = {};
    const uint64_t *tile_begin;

    products(struct batch_fixture *fixture_, unsigned mode_, uint64_t length_, unsigned seed);
    ~products();
    void find(void);
    sums_map take(uint32_t cols, const double *from, uint32_t pitch);
    sums_map multiply_vector(void);
    sums_map multiply_matrix(enum slc_gpu_ttm_form form);
};

static void must(cudaError_t error)
{
    CU_ASSERT_EQUAL_FATAL(error, cudaSuccess);
}

products::products(struct batch_fixture *fixture_, unsigned mode_, uint64_t length_, unsigned seed)
    : fixture(fixture_), mode(mode_), length(length_)
{
    const slc_emulation emulation = {1, (size_t)64 << 20, 100 << 10, 2, seed};
    const slc_gpu_sptv_options options = {false, 0};
    const uint64_t nnz = fixture->coo.nnz;

    slc_emulation_set(&emulation);
    batch_upload(fixture, 2, false);
    /* A multiple of two columns: rows begin at multiples of 16 bytes without padding. */
    CU_ASSERT_EQUAL_FATAL(slc_matrix_create(&matrix, SLC_F64, length, COLS, nullptr), SLC_OK);
    std::vector<double> elements;
    for (uint64_t i = 0; i < length * COLS; i++) {
        elements.push_back((double)slc_random_below(seed, 1, i, 7) - 3);
        slc_matrix_set(&matrix, i / COLS, (uint32_t)(i % COLS), elements.back());
    }
    on_device = {batch_to_device(fixture, elements.data(), elements.size() * 8), length, COLS,
                 COLS};
    rows = {batch_to_device(fixture, nullptr, nnz * COLS * 8), nnz, COLS, COLS};
    tile_begin = static_cast<const uint64_t *>(
        batch_to_device(fixture, fixture->tile_begin.data(), fixture->tile_begin.size() * 8));
    must(slc_gpu_fiber_batch_create(&batch, fixture->coo.order, nnz, SLC_F64));
    must(slc_gpu_sptv_create(&sptv, &batch.fibers, &options, &machine));
    must(slc_gpu_ttm_create(&ttm, &batch.fibers, COLS, SLC_ARITHMETIC_F64, 0, &machine));
}

products::~products()
{
    slc_gpu_ttm_destroy(&ttm);
    slc_gpu_sptv_destroy(&sptv);
    slc_gpu_fiber_batch_destroy(&batch);
    slc_matrix_destroy(&matrix);
    batch_release(fixture);
    slc_emulation_reset();
}

void products::find(void)
{
    must(slc_gpu_expand(fixture->batch.tiles, fixture->batch.tile_count, fixture->batch.fault,
                        fixture->stream));
    must(slc_gpu_fiber_batch_find(&batch, &fixture->batch, tile_begin, fixture->coo.nnz, mode,
                                  fixture->stream));
    must(slc_gpu_sptv_prepare(&sptv, length, fixture->stream));
    must(slc_gpu_ttm_prepare(&ttm, fixture->stream));
}

/* What the device has, by coordinates. */
sums_map products::take(uint32_t cols, const double *from, uint32_t pitch)
{
    const unsigned order = fixture->coo.order;
    const uint64_t count = batch.fibers.count;
    std::vector<uint32_t> coords(count * order);
    std::vector<double> all(count * pitch);
    sums_map sums;

    batch_download(fixture, coords.data(), batch.fibers.coords, coords.size() * 4);
    batch_download(fixture, all.data(), from, all.size() * 8);
    for (uint64_t f = 0; f < count; f++) {
        const auto at = coords.begin() + (long)(f * order);
        const auto row = all.begin() + (long)(f * pitch);

        sums[std::vector<uint64_t>(at, at + order)].assign(row, row + cols);
    }
    return sums;
}

/* The first column of the matrix is the vector. */
sums_map products::multiply_vector(void)
{
    std::vector<double> vector;
    double *sums = static_cast<double *>(rows.data);

    for (uint64_t i = 0; i < length; i++) {
        vector.push_back(slc_matrix_get(&matrix, i, 0));
    }
    const auto *on =
        static_cast<const double *>(batch_to_device(fixture, vector.data(), vector.size() * 8));
    must(slc_gpu_sptv_multiply(&sptv, on, sums, fixture->stream));
    return take(1, sums, 1);
}

sums_map products::multiply_matrix(enum slc_gpu_ttm_form form)
{
    must(slc_gpu_ttm_multiply(&ttm, form, &on_device, &rows, fixture->stream));
    return take(COLS, static_cast<const double *>(rows.data), COLS);
}

static void encode(struct batch_fixture *fixture,
                   const std::vector<uint64_t> &dims,
                   unsigned mode,
                   enum slc_codec codec,
                   enum slc_made_values values,
                   uint64_t seed)
{
    /* All bits of the mode lowest: whole fibers. */
    const struct batch_shape shape = {codec, {mode, slc_bits_for_length(dims[mode])}, 700, 0};

    batch_encode(fixture, (unsigned)dims.size(), dims.data(), 2500, values, seed, &shape);
}

static void check_products(const std::vector<uint64_t> &dims,
                           unsigned mode,
                           enum slc_codec codec,
                           enum slc_made_values values,
                           unsigned seed)
{
    struct batch_fixture fixture = {};
    struct slc_gpu_fault fault;

    encode(&fixture, dims, mode, codec, values, seed);
    products made(&fixture, mode, dims[mode], seed);
    sums_map want = oracle(fixture, mode, &made.matrix);

    made.find();
    CU_ASSERT_EQUAL(batch_fault(&fixture, &fault), SLC_GPU_SOUND);
    CU_ASSERT(made.multiply_matrix(SLC_GPU_TTM_FIBERS) == want);
    CU_ASSERT(made.multiply_matrix(SLC_GPU_TTM_ELEMENTS) == want);
    for (auto &fiber : want) {
        fiber.second.resize(1);
    }
    CU_ASSERT(made.multiply_vector() == want);
}

static void test_products(void)
{
    check_products({20, 30, 40}, 2, SLC_CODEC_PACKED, SLC_MADE_COUNTS, 1);
    check_products({20, 300, 10}, 1, SLC_CODEC_LZ4, SLC_MADE_EVEN_DOUBLES, 2);
    check_products({2000, 9, 3, 5}, 0, SLC_CODEC_BLCO, SLC_MADE_FEW, 3);
    check_products({4000}, 0, SLC_CODEC_PACKED, SLC_MADE_ONES, 4);
}

/* Alters bytes of a tile that its description says nothing of: keys. */
static void alter(struct batch_block *block, const struct slc_encoded_tile &tile, uint64_t seed)
{
    const bool packed = tile.encoding == SLC_ENCODING_PACKED;
    const uint32_t at = packed ? tile.gaps.data_at : tile.indices_at;
    /* Packed gaps take a few hundred bytes, of which these are the first. */
    const uint32_t bytes = packed ? 32 : tile.nnz * 8;

    for (unsigned i = 0; i < 4; i++) {
        const uint64_t index = 4 * tile.ordinal + i;

        block->bytes[at + slc_random_below(seed, 2, index, bytes)] ^=
            (uint8_t)(1 + slc_random_below(seed, 3, index, 255));
    }
}

/* Whatever keys say, nothing is read or written that is not there, which sanitizers watch. */
static void test_hostile(void)
{
    unsigned reported = 0;

    for (unsigned seed = 1; seed <= 6; seed++) {
        struct batch_fixture fixture = {};

        encode(&fixture, {20, 30, 40}, 2, seed % 2 == 0 ? SLC_CODEC_PACKED : SLC_CODEC_BLCO,
               SLC_MADE_COUNTS, seed);
        for (auto &block : fixture.blocks) {
            for (const auto &tile : block.tiles) {
                alter(&block, tile, seed);
            }
        }
        products made(&fixture, 2, 40, seed);
        made.find();
        struct slc_gpu_fault fault;

        reported += batch_fault(&fixture, &fault) != SLC_GPU_SOUND;
        CU_ASSERT(made.batch.fibers.count <= fixture.coo.nnz);
        (void)made.multiply_matrix(SLC_GPU_TTM_FIBERS);
        (void)made.multiply_matrix(SLC_GPU_TTM_ELEMENTS);
        (void)made.multiply_vector();
    }
    CU_ASSERT(reported >= 3);
}

static void test_refused(void)
{
    struct batch_fixture fixture = {};

    encode(&fixture, {20, 30, 40}, 2, SLC_CODEC_PACKED, SLC_MADE_COUNTS, 1);
    products made(&fixture, 2, 40, 1);
    CU_ASSERT_EQUAL(slc_gpu_fiber_batch_find(&made.batch, &fixture.batch, made.tile_begin,
                                             fixture.coo.nnz + 1, 2, fixture.stream),
                    cudaErrorInvalidValue);
    CU_ASSERT_EQUAL(slc_gpu_fiber_batch_find(&made.batch, &fixture.batch, made.tile_begin,
                                             fixture.coo.nnz, 3, fixture.stream),
                    cudaErrorInvalidValue);
}

static const struct slc_test tests[] = {
    {"products of encoded blocks agree with the oracle", test_products},
    {"altered bytes lead nowhere", test_hostile},
    {"what there is no room for is refused", test_refused},
};

int main(int argc, char **argv)
{
    return slc_test_main("gpu fiber batch", tests, SLC_COUNT(tests), argc, argv);
}
