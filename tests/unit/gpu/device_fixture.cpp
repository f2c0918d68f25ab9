/* Runs a device of gpu/ through base/device.h. */
#include "device_fixture.h"

extern "C" {
#include "base/memory/memory.h"
#include "base/random.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>

/* Number of blocks in host memory at a time. */
static const size_t ring_places = 3;
/* Contents of a place of the ring whose block has been copied. */
static const int overwritten = 0xee;

device_emulation::device_emulation(unsigned seed, int wanted)
{
    const slc_emulation settings = {wanted, (size_t)1 << 27, 160 << 10, 2, seed};
    int count = 0;

    slc_emulation_set(&settings);
    (void)cudaGetDeviceCount(&count);
    devices = (unsigned)std::min(count, wanted);
}

device_emulation::~device_emulation()
{
    slc_emulation_reset();
}

device_tensor::device_tensor(enum slc_codec codec,
                             enum slc_made_values values,
                             uint64_t nnz,
                             uint32_t tile_nnz)
    : dims{40, 3000, 7}
{
    const struct batch_shape shape = {codec, {0, 0}, tile_nnz, SLC_MIN_BLOCK_BYTES};
    double squares = 0;

    batch_encode(&encoded, (unsigned)dims.size(), dims.data(), nnz, values, slc_test_seed(),
                 &shape);
    for (double value : encoded.values) {
        squares += value * value;
    }
    magnitude = std::sqrt(squares * (double)encoded.values.size()) * (1 + 1e-12);
}

uint64_t device_tensor::bytes(void) const
{
    return std::accumulate(
        encoded.blocks.begin(), encoded.blocks.end(), UINT64_C(0),
        [](uint64_t sum, const struct batch_block &b) { return sum + b.described.bytes; });
}

device_factor::device_factor(
    enum slc_value_type type, uint64_t rows, uint32_t cols, uint64_t seed, bool any)
{
    CU_ASSERT_EQUAL_FATAL(slc_matrix_create(&matrix, type, rows, cols, nullptr), SLC_OK);
    for (uint64_t i = 0; i < rows * cols; i++) {
        const double whole = (double)slc_random_below(seed, 1, i, 7) - 3;

        slc_matrix_set(&matrix, i / cols, (uint32_t)(i % cols),
                       any ? slc_random_normal(seed, 2, i) : whole);
    }
}

device_factor::~device_factor()
{
    slc_matrix_destroy(&matrix);
}

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + SLC_DEVICE_ALIGN - 1) / SLC_DEVICE_ALIGN * SLC_DEVICE_ALIGN;
}

struct slc_device_problem device_problem_of(const device_tensor &tensor, const device_case &how)
{
    struct slc_device_problem problem = {};
    uint64_t bytes = 0, expanded = 0, all_bytes = 0;
    uint32_t tiles = 0, all_tiles = 0;

    for (size_t b = 0; b < tensor.count(); b++) {
        const struct slc_encoded_block &block = tensor.block(b);

        bytes = std::max(bytes, block.bytes);
        expanded = std::max(expanded, block.expanded_bytes);
        tiles = std::max(tiles, block.tile_count);
        all_bytes += aligned(block.bytes) + aligned(block.expanded_bytes);
        all_tiles += block.tile_count;
    }
    problem.order = (unsigned)tensor.dims.size();
    std::copy(tensor.dims.begin(), tensor.dims.end(), problem.dims);
    problem.rank = how.rank;
    problem.precision = how.precision;
    problem.deterministic = how.deterministic;
    problem.layout_count = 1;
    problem.layouts = &tensor.encoded.layout;
    problem.streams = how.streams;
    /* With one block per slot, a slot has the exact size of a block. */
    problem.slot_bytes = aligned(bytes) * (how.slot_blocks - 1) + bytes;
    problem.expanded_bytes = aligned(expanded) * (how.slot_blocks - 1) + expanded;
    problem.slot_tiles = tiles * how.slot_blocks;
    problem.resident_bytes = all_bytes * how.thirds / 3;
    problem.resident_tiles = how.thirds > 0 ? all_tiles : 0;
    problem.transcoded_bytes = how.transcoded_bytes;
    problem.unit_most = how.unit_most;
    problem.adds_host = how.adds_host;
    return problem;
}

device_run::device_run(const device_tensor &of, const device_case &by, bool any_numbers)
    : tensor(of), how(by), keep(of.count(), SLC_NOT_RESIDENT), random(by.seed)
{
    for (size_t n = 0; n < of.dims.size(); n++) {
        factors.push_back(
            new device_factor(by.precision, of.dims[n], by.rank, slc_test_seed() + n, any_numbers));
    }
}

device_run::~device_run()
{
    if (device != nullptr) {
        if (registered) {
            device->ops->memory.host_unregister(device, memory.data);
        }
        device->ops->memory.close(device);
        device->ops->destroy(device);
    }
    slc_buffer_destroy(&memory);
    for (device_factor *factor : factors) {
        delete factor;
    }
}

enum slc_status device_run::open(unsigned ordinal, uint64_t memory_bytes)
{
    const struct slc_gpu_options options = {ordinal, memory_bytes};
    const struct slc_device_problem problem = device_problem_of(tensor, how);
    enum slc_status status = slc_gpu_create(&options, &device, &err);

    for (size_t b = 0; b < tensor.count(); b++) {
        place_bytes = std::max(place_bytes, aligned(tensor.block(b).bytes));
    }
    if (status == SLC_OK) {
        status = device->ops->memory.open(device, &problem, &err);
    }
    if (status == SLC_OK) {
        status = slc_buffer_create(&memory, place_bytes * ring_places, SLC_PAGES_SMALL, &err);
    }
    if (status == SLC_OK) {
        status = device->ops->memory.host_register(device, memory.data, memory.bytes, &err);
        registered = status == SLC_OK;
    }
    for (size_t p = 0; p < ring_places && status == SLC_OK; p++) {
        ring.push_back({static_cast<unsigned char *>(memory.data) + p * place_bytes, 0, false});
    }
    for (unsigned n = 0; n < factors.size() && status == SLC_OK; n++) {
        status = device->ops->memory.factor_write(device, n, &factors[n]->matrix, &err);
    }
    ready = status == SLC_OK;
    return status;
}

/* Queries whether the block at this place has been copied; it is then overwritten. */
enum slc_status device_run::ask(place *at, bool wait)
{
    bool done = false;
    const enum slc_status status = device->ops->job.copied(device, at->ticket, wait, &done, &err);

    if (status == SLC_OK && done) {
        memset(at->data, overwritten, place_bytes);
        at->busy = false;
    }
    return status;
}

/* Queries places in any order, sometimes without and then with waiting. */
enum slc_status device_run::find_place(place **at)
{
    enum slc_status status = SLC_OK;

    for (unsigned attempt = 0; status == SLC_OK; attempt++) {
        *at = &ring[random() % ring.size()];
        if ((*at)->busy) {
            status = ask(*at, attempt >= 4);
        }
        if (!(*at)->busy) {
            break;
        }
    }
    return status;
}

enum slc_status device_run::take(size_t b)
{
    struct slc_encoded_block block = tensor.block(b);
    place *at = nullptr;
    enum slc_status status;

    if (keep[b] != SLC_NOT_RESIDENT) {
        return device->ops->job.resident(device, keep[b], &err);
    }
    status = find_place(&at);
    if (status == SLC_OK) {
        memcpy(at->data, block.data, block.bytes);
        block.data = at->data;
        status =
            device->ops->job.block(device, &block, keeping ? &keep[b] : nullptr, &at->ticket, &err);
        at->busy = status == SLC_OK;
    }
    return status;
}

enum slc_status device_run::take_all(size_t first, size_t step)
{
    std::vector<size_t> order;
    enum slc_status status = SLC_OK;

    for (size_t b = first; b < tensor.count(); b += step) {
        order.push_back(b);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i = 0; i < order.size() && status == SLC_OK; i++) {
        status = take(order[i]);
        if (status == SLC_OK && flushing && random() % 8 == 0) {
            status = device->ops->job.flush(device, &err);
        }
    }
    /* Some tickets are queried before the end, and some after. */
    for (size_t p = ring.size(); p-- > 0 && status == SLC_OK;) {
        if (ring[p].busy && random() % 2 == 0) {
            status = ask(&ring[p], true);
        }
    }
    return status;
}

enum slc_status device_run::mttkrp(unsigned mode, size_t first, size_t step)
{
    const struct slc_device_job job = {0, mode, tensor.magnitude, true};
    enum slc_status status = device->ops->job.begin(device, &job, &err), ended;

    if (status != SLC_OK) {
        return status;
    }
    status = take_all(first, step);
    ended = device->ops->job.end(device, &err);
    status = status == SLC_OK ? ended : status;
    for (place &at : ring) {
        if (at.busy && status == SLC_OK) {
            status = ask(&at, false);
            CU_ASSERT(status != SLC_OK || !at.busy);
        }
    }
    return status;
}

enum slc_status device_run::output(unsigned mode, std::vector<double> *rows)
{
    struct slc_matrix matrix;
    enum slc_status status =
        slc_matrix_create(&matrix, how.seed % 2 == 0 ? SLC_F64 : factors[0]->matrix.type,
                          tensor.dims[mode], how.rank, &err);

    if (status != SLC_OK) {
        return status;
    }
    status = device->ops->memory.output_read(device, &matrix, &err);
    rows->clear();
    for (uint64_t i = 0; i < matrix.rows && status == SLC_OK; i++) {
        for (uint32_t r = 0; r < matrix.cols; r++) {
            rows->push_back(slc_matrix_get(&matrix, i, r));
        }
    }
    slc_matrix_destroy(&matrix);
    return status;
}

std::vector<double> device_run::expected(unsigned mode) const
{
    std::vector<double> rows(tensor.dims[mode] * how.rank);
    const struct slc_matrix *matrices[SLC_MAX_ORDER] = {};

    for (size_t n = 0; n < factors.size(); n++) {
        matrices[n] = &factors[n]->matrix;
    }
    slc_reference_mttkrp(&tensor.encoded.coo, matrices, mode, tensor.dims[mode], how.rank,
                         rows.data());
    return rows;
}

struct slc_device_stats device_run::stats(void) const
{
    struct slc_device_stats stats;

    device->ops->stats(device, &stats);
    return stats;
}
