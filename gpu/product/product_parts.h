/* Memory of a device that multiplies tiles (base/device.h: product.open). As in
 * gpu/memory/memory.h, the same function divides this memory into parts for plans and for open
 * devices. The function is C code (product_parts.c) in every build. Private to gpu/. */
#ifndef SLC_GPU_PRODUCT_PARTS_H
#define SLC_GPU_PRODUCT_PARTS_H

#include "gpu/memory/memory.h"

#include <assert.h>

enum {
    SLC_PRODUCT_GROUPS = SLC_TILE_NNZ / SLC_GROUP_NNZ,
    SLC_PRODUCT_WORDS = SLC_TILE_NNZ / SLC_WARP
};

/* A decoded tile, in device memory. */
struct slc_product_list {
    uint32_t *offsets; /* offsets[n * SLC_TILE_NNZ + i] is the offset of nonzero i in mode n */
    void *values;      /* SLC_TILE_NNZ values, of the type of the matrices */
    /* Bit i % 32 of word i / 32 is set if nonzero i begins a fiber. For the first nonzero of a run
     * the bit is always 0, because another warp decodes the nonzero before it. */
    uint32_t *heads;  /* SLC_PRODUCT_WORDS elements */
    uint32_t *counts; /* number of set bits in each group; SLC_PRODUCT_GROUPS elements */
};

/* The beginning of a result. */
struct slc_product_header {
    uint32_t count; /* fibers of the tile */
    uint32_t unused;
    struct slc_gpu_fault fault;
};

/* A result has three parts: the header; the offsets of the requested fibers in the kept modes, one
 * mode after the other; and the sums of the requested fibers, a row of `cols` elements per
 * fiber. */
enum { SLC_PRODUCT_OFFSETS_AT = 64 };
static_assert(sizeof(struct slc_product_header) <= SLC_PRODUCT_OFFSETS_AT,
              "offsets begin after the header");

SLC_HOST_DEVICE static inline uint64_t slc_product_sums_at(uint64_t fibers, uint32_t kept)
{
    return (SLC_PRODUCT_OFFSETS_AT + fibers * kept * sizeof(uint32_t) + 15) / 16 * 16;
}

/* The beginning of a lane's input; the tile's bytes follow it. */
struct slc_product_input {
    struct slc_gpu_tile tile;
    struct slc_gpu_fault fault; /* all zero when the input is sent; set by kernels */
};

enum {
    /* Offset of the tile's bytes: a multiple of SLC_DEVICE_ALIGN, as for the bytes of blocks. */
    SLC_PRODUCT_DATA_AT = (sizeof(struct slc_product_input) + SLC_DEVICE_ALIGN - 1) /
                          SLC_DEVICE_ALIGN * SLC_DEVICE_ALIGN
};

/* Returns the offset of the expanded bytes of a tile with `bytes` encoded bytes. */
static inline uint64_t slc_product_expanded_at(uint64_t bytes)
{
    return SLC_PRODUCT_DATA_AT +
           (bytes + SLC_DEVICE_ALIGN - 1) / SLC_DEVICE_ALIGN * SLC_DEVICE_ALIGN;
}

/* Returns the bytes of a lane's input: a tile with its description, its bytes and its expanded
 * bytes. */
static inline uint64_t slc_product_input_bytes(const struct slc_device_product *product)
{
    return slc_product_expanded_at(product->tile_bytes) + product->expanded_bytes;
}

/* Memory of a lane. */
struct slc_gpu_lane_memory {
    /* In device memory. */
    uint8_t *input;
    struct slc_product_list list;
    uint32_t *carry_fiber;
    double *carries;
    uint8_t *result;
    /* In host memory. */
    uint8_t *host_input, *host_result;
};

/* A product, values that follow from the product, and its memory. */
struct slc_gpu_product_memory {
    /* its pointers to matrices and layout are cleared once the device is open */
    struct slc_device_product product;
    uint32_t cols;
    uint32_t pitch; /* elements from one row to the next of matrices in device memory */
    uint32_t kept;  /* number of kept modes, which are the modes of a result */
    bool sums_over[SLC_MAX_ORDER];

    void *device; /* the only allocation */
    uint64_t device_bytes, registered_bytes;
    struct slc_buffer registered;
    void *matrix[SLC_MAX_ORDER];
    struct slc_used_word *used[SLC_MAX_ORDER]; /* map of used indices; NULL: a row for each index */
    struct slc_encoded_layout *layout;
    struct slc_gpu_lane_memory lane_memory[SLC_DEVICE_LANES];
};

/* Upper limit of the host memory that an open product uses in addition to its registered memory. */
enum { SLC_PRODUCT_RECORD_BYTES = 96 << 10 };

/* Returns the bytes of a result with `fibers` fibers. */
static inline uint64_t slc_product_result_bytes(const struct slc_gpu_product_memory *memory,
                                                uint64_t fibers)
{
    return slc_product_sums_at(fibers, memory->kept) + fibers * memory->cols * sizeof(double);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the values that follow from the product, and sets each part to its offset in its piece.
 * Returns false if the product is invalid, so that no device can be opened for it, and on overflow.
 * Needs: *memory is all-zero. */
bool slc_gpu_product_measure(const struct slc_device_product *product,
                             struct slc_gpu_product_memory *memory);

/* Sets each part to its address in the pieces of `memory`, which slc_gpu_product_measure filled in.
 * Calls `gap` for unused device memory between parts. */
bool slc_gpu_product_lay_out(struct slc_gpu_product_memory *memory, slc_gpu_gap gap);

/* Implement memory_bytes and host_bytes of struct slc_device_product_ops. `device` is ignored. */
uint64_t slc_gpu_product_memory_bytes(const struct slc_device *device,
                                      const struct slc_device_product *product);
uint64_t slc_gpu_product_host_bytes(const struct slc_device *device,
                                    const struct slc_device_product *product);

#ifdef __cplusplus
}
#endif

#endif
