/* Tiles of random tensors, a device that multiplies them, accessed only through base/device.h, and
 * the expected fibers and sums.
 *
 * The test sets the emulation up before it makes a run of an emulated device. */
#ifndef SLC_PRODUCT_FIXTURE_H
#define SLC_PRODUCT_FIXTURE_H

#include "device_fixture.h"

#include <memory>
#include <vector>

/* Operands and options of a product. */
struct product_case {
    unsigned modes; /* bit n: mode n is summed over */
    uint32_t cols;
    enum slc_value_type precision;
    unsigned lanes;
    uint32_t room;
};

/* Fibers of a tile: offsets of the remaining modes, contiguous, and rows of sums. */
struct product_sums {
    std::vector<std::vector<uint32_t>> offsets;
    std::vector<double> sums;

    bool operator==(const product_sums &other) const
    {
        return offsets == other.offsets && sums == other.sums;
    }
    uint64_t count(uint32_t cols) const
    {
        return sums.size() / cols;
    }
};

/* A device and operands for the tiles of a tensor, which is borrowed. */
struct product_run {
    const struct batch_fixture &tensor;
    product_case how;
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_device *device = nullptr;                  /* device, owned by the run */
    std::vector<std::unique_ptr<device_factor>> matrices; /* one per mode, used or not */
    std::vector<std::vector<struct slc_used_word>> words; /* maps of used indices */
    const struct slc_matrix *whole[SLC_MAX_ORDER] = {};   /* matrices with a row for each index */
    struct slc_device_product product = {};

    /* Integers, or any numbers; the same for the same seed of the test. */
    product_run(const struct batch_fixture &tensor, const product_case &how, bool any = false);
    ~product_run();
    product_run(const product_run &) = delete;

    /* Creates the emulated device, or that of product_device.h. */
    enum slc_status create_emulated(uint64_t memory_bytes = 0);
    /* Replaces the matrices by matrices with rows only for used indices. Call it before open. */
    void shorten(void);
    void create_fake(void);
    enum slc_status open(void);

    /* All fibers of a tile, in as many calls as necessary. */
    enum slc_status tile(unsigned lane,
                         const struct slc_encoded_block &block,
                         product_sums *made,
                         struct slc_error *error) const;
    /* The oracle's result, from nonzero `begin` of the tensor on. */
    product_sums expected(const struct slc_encoded_tile &tile, uint64_t begin) const;
};

/* Draws and encodes a tensor. */
void product_encode(struct batch_fixture *tensor,
                    const std::vector<uint64_t> &dims,
                    uint64_t nnz,
                    enum slc_made_values values,
                    const struct batch_shape &shape);

#endif
