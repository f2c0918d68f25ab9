/* Multiplies tiles on a device and computes the expected sums. */
#include "product_fixture.h"

#include <set>

extern "C" {
#include "product_device.h"
}

void product_encode(struct batch_fixture *tensor,
                    const std::vector<uint64_t> &dims,
                    uint64_t nnz,
                    enum slc_made_values values,
                    const struct batch_shape &shape)
{
    batch_encode(tensor, (unsigned)dims.size(), dims.data(), nnz, values, slc_test_seed(), &shape);
}

product_run::product_run(const struct batch_fixture &of, const product_case &by, bool any)
    : tensor(of), how(by)
{
    product.order = of.coo.order;
    product.layout = &of.layout;
    product.precision = by.precision;
    product.lanes = by.lanes;
    product.tile_bytes = of.tile_bytes;
    product.expanded_bytes = of.tile_expanded_bytes;
    product.room = by.room;
    for (unsigned n = 0; n < product.order; n++) {
        product.dims[n] = of.layout.dims[n];
        if ((by.modes >> n & 1) != 0) {
            matrices.push_back(std::make_unique<device_factor>(by.precision, product.dims[n],
                                                               by.cols, slc_test_seed() + n, any));
            product.matrix[n] = &matrices.back()->matrix;
            whole[n] = product.matrix[n];
        }
    }
}

void product_run::shorten(void)
{
    for (unsigned n = 0; n < product.order; n++) {
        if (whole[n] == nullptr) {
            continue;
        }
        std::set<uint64_t> indices(tensor.coords[n].begin(), tensor.coords[n].end());
        struct slc_used *used = &product.used[n];
        uint64_t row = 0;

        *used = {*indices.begin(), *indices.rbegin() + 1, indices.size(), nullptr};
        words.emplace_back(slc_used_words(used));
        used->words = words.back().data();
        matrices.push_back(std::make_unique<device_factor>(how.precision, indices.size() + 1,
                                                           how.cols, slc_test_seed(), false));
        struct slc_matrix *brief = &matrices.back()->matrix;
        for (uint64_t index : indices) {
            const uint64_t at = index - used->first;

            used->words[at / SLC_USED_WORD_BITS].bits |= UINT64_C(1) << at % SLC_USED_WORD_BITS;
            for (uint32_t r = 0; r < how.cols; r++) {
                slc_matrix_set(brief, row, r, slc_matrix_get(whole[n], index, r));
            }
            row++;
        }
        for (uint64_t w = 1; w < words.back().size(); w++) {
            used->words[w].before =
                used->words[w - 1].before + (uint64_t)__builtin_popcountll(used->words[w - 1].bits);
        }
        product.matrix[n] = brief;
    }
}

product_run::~product_run()
{
    if (device != nullptr) {
        device->ops->memory.close(device);
        device->ops->destroy(device);
    }
}

enum slc_status product_run::create_emulated(uint64_t memory_bytes)
{
    const struct slc_gpu_options options = {0, memory_bytes};

    return slc_gpu_create(&options, &device, &err);
}

void product_run::create_fake(void)
{
    device = product_device_create(UINT64_MAX, 0);
}

enum slc_status product_run::open(void)
{
    return device->ops->product.open(device, &product, &err);
}

enum slc_status product_run::tile(unsigned lane,
                                  const struct slc_encoded_block &block,
                                  product_sums *made,
                                  struct slc_error *error) const
{
    struct slc_device_fibers fibers;
    enum slc_status status = device->ops->product.tile(device, lane, &block, &fibers, error);

    made->offsets.clear();
    made->sums.clear();
    for (bool more = true; more && status == SLC_OK;) {
        size_t k = 0;

        CU_ASSERT(fibers.count > 0 && fibers.count <= how.room);
        for (unsigned n = 0; n < product.order; n++) {
            CU_ASSERT_EQUAL(fibers.offset[n] == nullptr, product.matrix[n] != nullptr);
            if (fibers.offset[n] != nullptr) {
                made->offsets.resize(std::max(made->offsets.size(), k + 1));
                made->offsets[k].insert(made->offsets[k].end(), fibers.offset[n],
                                        fibers.offset[n] + fibers.count);
                k++;
            }
        }
        made->sums.insert(made->sums.end(), fibers.sums,
                          fibers.sums + (uint64_t)fibers.count * how.cols);
        more = fibers.more;
        if (more) {
            status = device->ops->product.more(device, lane, &fibers, error);
        }
    }
    return status;
}

product_sums product_run::expected(const struct slc_encoded_tile &tile, uint64_t begin) const
{
    product_sums made;
    unsigned kept = 0;

    for (unsigned n = 0; n < product.order; n++) {
        kept += product.matrix[n] == nullptr;
    }
    made.offsets.resize(kept);
    for (uint64_t i = begin; i < begin + tile.nnz; i++) {
        bool begins = i == begin;
        unsigned k = 0;

        for (unsigned n = 0; n < product.order; n++) {
            begins = begins || (product.matrix[n] == nullptr &&
                                tensor.coords[n][i] != tensor.coords[n][i - 1]);
        }
        for (unsigned n = 0; n < product.order && begins; n++) {
            if (product.matrix[n] == nullptr) {
                made.offsets[k++].push_back((uint32_t)(tensor.coords[n][i] - tile.corner[n]));
            }
        }
        if (begins) {
            made.sums.resize(made.sums.size() + how.cols);
        }
        for (uint32_t r = 0; r < how.cols; r++) {
            double term = tensor.values[i];

            for (unsigned n = 0; n < product.order; n++) {
                if (product.matrix[n] != nullptr) {
                    term *= slc_matrix_get(whole[n], tensor.coords[n][i], r);
                }
            }
            made.sums[made.sums.size() - how.cols + r] += term;
        }
    }
    return made;
}
